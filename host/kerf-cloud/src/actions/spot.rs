//! DescribeSpotAdvice: discounts and interruption rates for many types in one call.

use serde::Deserialize;

use crate::error::CloudError;
use crate::rpc::{Action, Client, Params, Request};

/// What the market was like in one zone over the last 30 days.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SpotZone {
    pub zone_id: String,
    pub available_spot_resources: SpotResources,
}

/// The list around rows.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SpotResources {
    pub available_spot_resource: Vec<SpotResource>,
}

/// One type.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SpotResource {
    pub instance_type: String,
    /// Per cent of the on-demand price that spot costs.
    pub average_spot_discount: u32,
    pub interruption_rate: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct DescribeSpotAdviceReply {
    available_spot_zones: SpotZones,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct SpotZones {
    available_spot_zone: Vec<SpotZone>,
}

/// Builds the call for the whole region; without the answer spot prices are estimated.
#[must_use]
pub fn describe_spot_advice_request(region_id: &str) -> Request {
    let mut params = Params::new();
    params.put("RegionId", region_id);
    Request::rpc(Action::DescribeSpotAdvice, params).optional()
}

impl Client {
    /// What the spot market was like.
    ///
    /// # Errors
    /// The API's, typed.
    pub async fn describe_spot_advice(&self) -> Result<Vec<SpotZone>, CloudError> {
        let reply: DescribeSpotAdviceReply = self
            .send(&describe_spot_advice_request(self.region_id()))
            .await?;
        Ok(reply.available_spot_zones.available_spot_zone)
    }
}
