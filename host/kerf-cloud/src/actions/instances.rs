//! DescribeInstances, DeleteInstances and DeleteInstance.

use serde::Deserialize;

use crate::actions::{EcsTags, Empty, PAGES_MAX};
use crate::error::CloudError;
use crate::rpc::{Action, Client, Params, Request};

/// The most ids or rows that one call takes.
pub const INSTANCES_PER_CALL_MAX: usize = 100;

/// One instance as the API shows it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct InstanceItem {
    pub instance_id: String,
    pub instance_type: String,
    pub zone_id: String,
    pub region_id: String,
    pub image_id: String,
    pub status: String,
    /// Tells spot; the charge type does not.
    pub spot_strategy: String,
    /// `2026-01-02T03:04Z`, without seconds.
    pub creation_time: String,
    pub vpc_attributes: VpcAttributes,
    pub security_group_ids: SecurityGroupIds,
    pub tags: EcsTags,
    pub operation_locks: OperationLocks,
}

/// Where the instance is in its VPC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct VpcAttributes {
    #[serde(rename = "VSwitchId")]
    pub vswitch_id: String,
    #[serde(rename = "VpcId")]
    pub vpc_id: String,
    #[serde(rename = "PrivateIpAddress")]
    pub private_ip_address: IpAddresses,
}

/// The list around addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct IpAddresses {
    pub ip_address: Vec<String>,
}

/// The list around security group ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SecurityGroupIds {
    pub security_group_id: Vec<String>,
}

/// The list around locks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct OperationLocks {
    pub lock_reason: Vec<OperationLock>,
}

/// Why the instance is locked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct OperationLock {
    pub lock_reason: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct DescribeInstancesReply {
    instances: Instances,
    next_token: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Instances {
    instance: Vec<InstanceItem>,
}

/// Which instances to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceFilter {
    /// At most [`INSTANCES_PER_CALL_MAX`].
    pub ids: Vec<String>,
    /// All of them must match.
    pub tags: Vec<(String, String)>,
    /// Such as `Recycling`; empty means any.
    pub lock_reason: String,
}

/// Builds one page's call.
#[must_use]
pub fn describe_instances_request(
    region_id: &str,
    filter: &InstanceFilter,
    next_token: &str,
) -> Request {
    let mut params = Params::new();
    params.put("RegionId", region_id);
    params.put("MaxResults", INSTANCES_PER_CALL_MAX);
    params.put_text("NextToken", next_token);
    params.put_json_list("InstanceIds", &filter.ids);
    params.put_tags(&filter.tags);
    params.put_text("LockReason", &filter.lock_reason);
    Request::rpc(Action::DescribeInstances, params)
}

/// Builds the call that deletes up to [`INSTANCES_PER_CALL_MAX`] instances, running or not.
#[must_use]
pub fn delete_instances_request(region_id: &str, ids: &[String], client_token: &str) -> Request {
    let mut params = Params::new();
    params.put("RegionId", region_id);
    params.put_list("InstanceId", ids);
    params.put("Force", true);
    // A subscription is money already spent; somebody else bought it and must decide.
    params.put("TerminateSubscription", false);
    params.put_text("ClientToken", client_token);
    Request::rpc(Action::DeleteInstances, params)
}

/// Builds the call that deletes one instance, running or not.
#[must_use]
pub fn delete_instance_request(id: &str) -> Request {
    let mut params = Params::new();
    params.put("InstanceId", id).put("Force", true);
    Request::rpc(Action::DeleteInstance, params)
}

impl Client {
    /// All instances that match, over all pages.
    ///
    /// # Errors
    /// The first page's that fails: a part is never passed off as the whole.
    pub async fn describe_instances(
        &self,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceItem>, CloudError> {
        let mut all = Vec::new();
        let mut token = String::new();
        for _ in 0..PAGES_MAX {
            let request = describe_instances_request(self.region_id(), filter, &token);
            let reply: DescribeInstancesReply = self.send(&request).await?;
            all.extend(reply.instances.instance);
            if reply.next_token.is_empty() || reply.next_token == token {
                break;
            }
            token = reply.next_token;
        }
        Ok(all)
    }

    /// Deletes up to [`INSTANCES_PER_CALL_MAX`] instances in one call; one bad id fails them all.
    ///
    /// # Errors
    /// The API's, typed.
    pub async fn delete_instances(
        &self,
        ids: &[String],
        client_token: &str,
    ) -> Result<(), CloudError> {
        let request = delete_instances_request(self.region_id(), ids, client_token);
        self.send::<Empty>(&request).await.map(drop)
    }

    /// Deletes one instance.
    ///
    /// # Errors
    /// The API's, typed; `NotFound(Instance)` means that it is gone.
    pub async fn delete_instance(&self, id: &str) -> Result<(), CloudError> {
        self.send::<Empty>(&delete_instance_request(id))
            .await
            .map(drop)
    }
}
