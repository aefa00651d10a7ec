//! DescribeCapacityReservations: private pools of the account, and what is left in them.

use serde::Deserialize;

use crate::actions::{EcsTags, PAGES_MAX};
use crate::error::CloudError;
use crate::rpc::{Action, Client, Params, Request};

const RESERVATIONS_PER_PAGE: u32 = 100;

/// One private pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CapacityReservationItem {
    pub private_pool_options_id: String,
    /// `Active` while instances can be had.
    pub status: String,
    pub tags: EcsTags,
    pub allocated_resources: AllocatedResources,
}

/// The list around what a pool has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocatedResources {
    pub allocated_resource: Vec<AllocatedResource>,
}

/// Room for one type in one zone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocatedResource {
    pub instance_type: String,
    /// The API writes this name in small letters.
    #[serde(rename = "zoneId", alias = "ZoneId")]
    pub zone_id: String,
    pub total_amount: u64,
    pub used_amount: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct DescribeCapacityReservationsReply {
    capacity_reservation_set: CapacityReservationSet,
    next_token: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct CapacityReservationSet {
    capacity_reservation_item: Vec<CapacityReservationItem>,
}

/// Builds one page's call; an empty id means any.
#[must_use]
pub fn describe_capacity_reservations_request(
    region_id: &str,
    id: &str,
    tags: &[(String, String)],
    next_token: &str,
) -> Request {
    let mut params = Params::new();
    params.put("RegionId", region_id);
    params.put("Status", "All");
    params.put("MaxResults", RESERVATIONS_PER_PAGE);
    params.put_text("NextToken", next_token);
    let ids: Vec<String> = Some(id.to_owned())
        .filter(|it| !it.is_empty())
        .into_iter()
        .collect();
    params.put_json_list("PrivatePoolOptions.Ids", &ids);
    params.put_tags(tags);
    Request::rpc(Action::DescribeCapacityReservations, params)
}

impl Client {
    /// All private pools that match, over all pages.
    ///
    /// # Errors
    /// The first page's that fails.
    pub async fn describe_capacity_reservations(
        &self,
        id: &str,
        tags: &[(String, String)],
    ) -> Result<Vec<CapacityReservationItem>, CloudError> {
        let mut all = Vec::new();
        let mut token = String::new();
        for _ in 0..PAGES_MAX {
            let request =
                describe_capacity_reservations_request(self.region_id(), id, tags, &token);
            let reply: DescribeCapacityReservationsReply = self.send(&request).await?;
            all.extend(reply.capacity_reservation_set.capacity_reservation_item);
            if reply.next_token.is_empty() || reply.next_token == token {
                break;
            }
            token = reply.next_token;
        }
        Ok(all)
    }
}
