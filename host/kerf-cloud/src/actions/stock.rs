//! DescribeAvailableResource and DescribeZones: what is sold where.

use serde::Deserialize;

use crate::error::CloudError;
use crate::rpc::{Action, Client, Params, Request};

/// How the stock is asked for: spot is not a charge type of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StockMarket {
    OnDemand,
    Spot,
}

/// What one zone has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AvailableZone {
    pub zone_id: String,
    pub status_category: String,
    pub available_resources: AvailableResources,
}

/// The list around resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AvailableResources {
    pub available_resource: Vec<AvailableResource>,
}

/// The resources of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AvailableResource {
    #[serde(rename = "Type")]
    pub kind: String,
    pub supported_resources: SupportedResources,
}

/// The list around rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SupportedResources {
    pub supported_resource: Vec<SupportedResource>,
}

/// One row: a type and whether it is in stock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SupportedResource {
    pub value: String,
    pub status: String,
    pub status_category: String,
}

/// Whether a row is in stock; the greater the better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowStock {
    /// It is not.
    None,
    /// `ClosedWithStock`: it is sold without a promise; launches there do work.
    Unpromised,
    /// It is.
    Promised,
}

impl SupportedResource {
    /// What the row says about stock.
    #[must_use]
    pub fn stock(&self) -> RowStock {
        match self.status_category.as_str() {
            "WithStock" => RowStock::Promised,
            "ClosedWithStock" => RowStock::Unpromised,
            "" if self.status == "Available" => RowStock::Promised,
            _ => RowStock::None,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct DescribeAvailableResourceReply {
    available_zones: AvailableZones,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct AvailableZones {
    available_zone: Vec<AvailableZone>,
}

/// One zone of the region.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ZoneItem {
    pub zone_id: String,
    pub available_resource_creation: ResourceCreation,
}

/// The list around what can be made in a zone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ResourceCreation {
    pub resource_types: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct DescribeZonesReply {
    zones: Zones,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Zones {
    zone: Vec<ZoneItem>,
}

/// Builds the call for all types of the region; without the answer stock is learnt from launches.
#[must_use]
pub fn describe_available_resource_request(region_id: &str, market: StockMarket) -> Request {
    let strategy = match market {
        StockMarket::OnDemand => "NoSpot",
        StockMarket::Spot => "SpotAsPriceGo",
    };
    let mut params = Params::new();
    params.put("RegionId", region_id);
    params.put("DestinationResource", "InstanceType");
    params.put("ResourceType", "instance");
    params.put("InstanceChargeType", "PostPaid");
    params.put("SpotStrategy", strategy);
    params.put("IoOptimized", "optimized");
    params.put("NetworkCategory", "vpc");
    Request::rpc(Action::DescribeAvailableResource, params).optional()
}

/// Builds the call.
#[must_use]
pub fn describe_zones_request(region_id: &str) -> Request {
    let mut params = Params::new();
    params.put("RegionId", region_id).put("Verbose", false);
    Request::rpc(Action::DescribeZones, params)
}

impl Client {
    /// What every zone has for one market.
    ///
    /// # Errors
    /// The API's, typed.
    pub async fn describe_available_resource(
        &self,
        market: StockMarket,
    ) -> Result<Vec<AvailableZone>, CloudError> {
        let request = describe_available_resource_request(self.region_id(), market);
        let reply: DescribeAvailableResourceReply = self.send(&request).await?;
        Ok(reply.available_zones.available_zone)
    }

    /// The zones of the region.
    ///
    /// # Errors
    /// The API's, typed.
    pub async fn describe_zones(&self) -> Result<Vec<ZoneItem>, CloudError> {
        let reply: DescribeZonesReply =
            self.send(&describe_zones_request(self.region_id())).await?;
        Ok(reply.zones.zone)
    }
}
