//! DescribeVSwitches and DescribeSecurityGroups.

use serde::Deserialize;

use crate::actions::{EcsTags, PAGES_MAX};
use crate::error::CloudError;
use crate::rpc::{Action, Client, Params, Request};

const VSWITCHES_PER_PAGE: u32 = 50;
const SECURITY_GROUPS_PER_PAGE: u32 = 100;

/// One vSwitch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct VSwitchItem {
    #[serde(rename = "VSwitchId")]
    pub vswitch_id: String,
    #[serde(rename = "VSwitchName")]
    pub vswitch_name: String,
    pub vpc_id: String,
    pub zone_id: String,
    /// `Available` or `Pending`.
    pub status: String,
    /// Lags behind launches.
    pub available_ip_address_count: u64,
    pub tags: VpcTags,
}

/// The list around VPC tags.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct VpcTags {
    pub tag: Vec<VpcTag>,
}

/// A tag as VPC spells it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct VpcTag {
    pub key: String,
    pub value: String,
}

/// One security group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SecurityGroupItem {
    pub security_group_id: String,
    pub security_group_name: String,
    pub vpc_id: String,
    pub tags: EcsTags,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DescribeVSwitchesReply {
    #[serde(rename = "VSwitches")]
    vswitches: VSwitches,
    #[serde(rename = "TotalCount")]
    total_count: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct VSwitches {
    #[serde(rename = "VSwitch")]
    vswitch: Vec<VSwitchItem>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct DescribeSecurityGroupsReply {
    security_groups: SecurityGroups,
    next_token: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct SecurityGroups {
    security_group: Vec<SecurityGroupItem>,
}

/// Which vSwitches or security groups to list; everything given must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkFilter {
    pub ids: Vec<String>,
    pub name: String,
    pub tags: Vec<(String, String)>,
}

/// Builds one page's call. The region is needed although the model does not say so.
#[must_use]
pub fn describe_vswitches_request(region_id: &str, filter: &NetworkFilter, page: u32) -> Request {
    let mut params = Params::new();
    params.put("RegionId", region_id);
    params.put_text("VSwitchId", &filter.ids.join(","));
    params.put_text("VSwitchName", &filter.name);
    params.put_tags(&filter.tags);
    params
        .put("PageNumber", page)
        .put("PageSize", VSWITCHES_PER_PAGE);
    Request::rpc(Action::DescribeVSwitches, params)
}

/// Builds one page's call.
#[must_use]
pub fn describe_security_groups_request(
    region_id: &str,
    filter: &NetworkFilter,
    next_token: &str,
) -> Request {
    let mut params = Params::new();
    params.put("RegionId", region_id);
    params.put("MaxResults", SECURITY_GROUPS_PER_PAGE);
    params.put_text("NextToken", next_token);
    params.put_json_list("SecurityGroupIds", &filter.ids);
    params.put_text("SecurityGroupName", &filter.name);
    params.put_tags(&filter.tags);
    Request::rpc(Action::DescribeSecurityGroups, params)
}

impl Client {
    /// All vSwitches that match, over all pages.
    ///
    /// # Errors
    /// The first page's that fails.
    pub async fn describe_vswitches(
        &self,
        filter: &NetworkFilter,
    ) -> Result<Vec<VSwitchItem>, CloudError> {
        let mut all = Vec::new();
        for page in 1..=PAGES_MAX {
            let request = describe_vswitches_request(self.region_id(), filter, page);
            let reply: DescribeVSwitchesReply = self.send(&request).await?;
            let is_empty = reply.vswitches.vswitch.is_empty();
            all.extend(reply.vswitches.vswitch);
            if is_empty || u64::from(page * VSWITCHES_PER_PAGE) >= reply.total_count {
                break;
            }
        }
        Ok(all)
    }

    /// All security groups that match, over all pages.
    ///
    /// # Errors
    /// The first page's that fails.
    pub async fn describe_security_groups(
        &self,
        filter: &NetworkFilter,
    ) -> Result<Vec<SecurityGroupItem>, CloudError> {
        let mut all = Vec::new();
        let mut token = String::new();
        for _ in 0..PAGES_MAX {
            let request = describe_security_groups_request(self.region_id(), filter, &token);
            let reply: DescribeSecurityGroupsReply = self.send(&request).await?;
            all.extend(reply.security_groups.security_group);
            if reply.next_token.is_empty() || reply.next_token == token {
                break;
            }
            token = reply.next_token;
        }
        Ok(all)
    }
}
