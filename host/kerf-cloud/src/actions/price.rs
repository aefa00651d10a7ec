//! DescribePrice and DescribeSpotPriceHistory: what one type costs, on demand and as spot. One type per call, so they are
//! asked now and then, never for a whole catalog at once.

use jiff::Timestamp;
use serde::Deserialize;

use crate::error::{CloudError, ErrorClass};
use crate::rpc::{Action, Client, Params, Request};

/// A price is asked for with a system disk, since some types refuse the default one. Current types take the first of these
/// categories, and old ones the second.
const DISK_CATEGORIES: [&str; 2] = ["cloud_essd", "cloud_efficiency"];
/// Any size that both take, in GiB: the disk has a line of its own in the answer.
const DISK_GIB: u32 = 40;
/// The line of the answer that is the instance alone.
const INSTANCE_LINE: &str = "instanceType";
/// Pages of one history at most: three hours of a handful of zones are one page.
const HISTORY_PAGES_MAX: usize = 5;

/// What an instance alone costs per hour.
#[derive(Debug, Clone, PartialEq)]
pub struct HourlyPrice {
    /// `CNY`; an account of the international site may be told another.
    pub currency: String,
    /// After the account's discounts, as the API says it: not checked.
    pub amount: f64,
}

/// What spot instances of a type cost per hour in one zone.
#[derive(Debug, Clone, PartialEq)]
pub struct SpotPrice {
    pub zone_id: String,
    pub price: HourlyPrice,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct DescribePriceReply {
    price_info: PriceInfo,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct PriceInfo {
    price: PriceItem,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct PriceItem {
    currency: String,
    detail_infos: Details,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Details {
    detail_info: Vec<Detail>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Detail {
    resource: String,
    trade_price: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct DescribeSpotPriceHistoryReply {
    currency: String,
    next_offset: u32,
    spot_prices: SpotRows,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct SpotRows {
    spot_price_type: Vec<SpotRow>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct SpotRow {
    zone_id: String,
    network_type: String,
    io_optimized: String,
    timestamp: String,
    spot_price: f64,
}

impl SpotRow {
    /// Whether nodes are bought like that; what a row does not say it does not rule out.
    fn is_ours(&self) -> bool {
        matches!(self.network_type.as_str(), "" | "vpc")
            && matches!(self.io_optimized.as_str(), "" | "optimized")
    }
}

/// Builds the call for one hour of one instance, on demand.
#[must_use]
pub fn describe_price_request(
    region_id: &str,
    instance_type: &str,
    zone_id: &str,
    disk_category: &str,
) -> Request {
    let mut params = Params::new();
    params
        .put("RegionId", region_id)
        .put("ResourceType", "instance")
        .put("InstanceType", instance_type)
        .put_text("ZoneId", zone_id)
        .put("InstanceNetworkType", "vpc")
        .put("PriceUnit", "Hour")
        .put("Period", 1)
        .put("Amount", 1)
        .put("SystemDisk.Category", disk_category)
        .put("SystemDisk.Size", DISK_GIB);
    Request::rpc(Action::DescribePrice, params).optional()
}

/// Builds the call for the last hours of all zones.
#[must_use]
pub fn describe_spot_price_history_request(
    region_id: &str,
    instance_type: &str,
    offset: u32,
) -> Request {
    let mut params = Params::new();
    params
        .put("RegionId", region_id)
        .put("InstanceType", instance_type)
        .put("NetworkType", "vpc")
        .put("OSType", "linux")
        .put("Offset", offset);
    Request::rpc(Action::DescribeSpotPriceHistory, params).optional()
}

impl Client {
    /// What an instance of the type costs on demand, to this account; none when the answer does not say. Two calls at
    /// most, the second for types that take no current disk.
    ///
    /// # Errors
    /// The API's, typed.
    pub async fn describe_price(
        &self,
        instance_type: &str,
        zone_id: &str,
    ) -> Result<Option<HourlyPrice>, CloudError> {
        let [current, old] = DISK_CATEGORIES
            .map(|disk| describe_price_request(self.region_id(), instance_type, zone_id, disk));
        let reply: DescribePriceReply = match self.send(&current).await {
            Err(error) if error.class() == ErrorClass::DiskCategory => self.send(&old).await?,
            other => other?,
        };
        let PriceItem {
            currency,
            detail_infos,
        } = reply.price_info.price;
        let mut lines = detail_infos.detail_info.into_iter();
        let line = lines.find(|it| it.resource == INSTANCE_LINE);
        Ok(line.map(|line| HourlyPrice {
            currency,
            amount: line.trade_price,
        }))
    }

    /// What spot instances of the type cost now, one row for each zone that has them, in zone order.
    ///
    /// # Errors
    /// The API's, typed.
    pub async fn describe_spot_price_history(
        &self,
        instance_type: &str,
    ) -> Result<Vec<SpotPrice>, CloudError> {
        let (mut rows, mut currency, mut offset) = (Vec::new(), String::new(), 0);
        for _ in 0..HISTORY_PAGES_MAX {
            let request =
                describe_spot_price_history_request(self.region_id(), instance_type, offset);
            let reply: DescribeSpotPriceHistoryReply = self.send(&request).await?;
            currency = reply.currency;
            let page = reply.spot_prices.spot_price_type;
            let is_last = page.is_empty() || reply.next_offset <= offset;
            rows.extend(page);
            if is_last {
                break;
            }
            offset = reply.next_offset;
        }
        Ok(newest(rows, &currency))
    }
}

/// The newest row of each zone: the order of the rows is not promised. One without a time is as old as can be.
fn newest(rows: Vec<SpotRow>, currency: &str) -> Vec<SpotPrice> {
    let mut rows: Vec<(String, Option<Timestamp>, f64)> = rows
        .into_iter()
        .filter(SpotRow::is_ours)
        .map(|row| (row.zone_id, row.timestamp.parse().ok(), row.spot_price))
        .collect();
    rows.sort_by(|a, b| (&a.0, b.1).cmp(&(&b.0, a.1)));
    rows.dedup_by(|later, first| later.0 == first.0);
    let prices = rows.into_iter().map(|(zone_id, _, amount)| SpotPrice {
        zone_id,
        price: HourlyPrice {
            currency: currency.to_owned(),
            amount,
        },
    });
    prices.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(zone: &str, at: &str, price: f64) -> SpotRow {
        SpotRow {
            zone_id: zone.to_owned(),
            timestamp: at.to_owned(),
            spot_price: price,
            ..SpotRow::default()
        }
    }

    #[test]
    fn the_newest_row_of_each_zone_counts_whatever_the_order() {
        let mut classic = row("h", "2026-01-01T09:00:00Z", 9.0);
        classic.network_type = "classic".to_owned();
        let rows = vec![
            row("i", "2026-01-01T02:00:00Z", 3.0),
            row("h", "", 4.0),
            row("h", "2026-01-01T01:00:00Z", 1.0),
            row("h", "2026-01-01T03:00:00Z", 2.0),
            classic,
        ];

        let found = newest(rows, "CNY");

        let found: Vec<_> = found
            .iter()
            .map(|it| (it.zone_id.as_str(), it.price.amount))
            .collect();
        assert_eq!(found, [("h", 2.0), ("i", 3.0)]);
    }
}
