//! What an offering costs per hour, in layers: what the API told, the table in this binary, an estimate.
//!
//! Prices order choices; they are no bill. A price is never zero: what nobody knows is unknown and sorts last.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use kerf_core::instance_type::CapacityType;
use kerf_core::price::Price;

/// Public list prices in CNY per hour, Linux, pay as you go; data/README.md says where they come from.
pub(crate) const CATALOG: &str = include_str!("../../data/catalog.csv");

/// Regions that the table has a column for, best first for a region that it lacks.
const REGION_COLUMNS: [(&str, &str); 4] = [
    ("cn-hangzhou", "price_cn_hangzhou_cny_h_2025_09"),
    ("cn-beijing", "price_cn_beijing_cny_h_2025_09"),
    ("ap-southeast-1", "price_ap_southeast_1_cny_h_2025_09"),
    // An older table that tells no region.
    ("", "price_cny_h_2024_10"),
];

/// What spot costs of the on-demand price where the market was never asked. Between what the public history shows for
/// common families (0.1 to 0.5) and the price cap (1.0), on the dear side, so that an estimate wins over nothing real.
const SPOT_PART_ESTIMATE: f64 = 0.5;

static TABLE: LazyLock<BTreeMap<String, [f64; REGION_COLUMNS.len()]>> = LazyLock::new(read_table);

/// Which layer a price came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PriceSource {
    /// Asked from the API.
    Live,
    /// The table in this binary.
    Catalog,
    /// Derived: another region's price, or a part of the on-demand price.
    Estimate,
    /// No layer knows.
    Unknown,
}

/// What was learnt from the spot market: per cent of the on-demand price. By zone and then by type, because the names of
/// zones would be most of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpotDiscounts(BTreeMap<String, BTreeMap<Box<str>, u32>>);

impl SpotDiscounts {
    fn percent(&self, instance_type: &str, zone_id: &str) -> Option<u32> {
        self.0.get(zone_id)?.get(instance_type).copied()
    }

    /// Whether nothing was learnt.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<((String, String), u32)> for SpotDiscounts {
    /// From rows of type, zone and per cent.
    fn from_iter<I: IntoIterator<Item = ((String, String), u32)>>(rows: I) -> Self {
        let mut discounts = Self::default();
        for ((instance_type, zone_id), percent) in rows {
            let zone = discounts.0.entry(zone_id).or_default();
            zone.insert(instance_type.into(), percent);
        }
        discounts
    }
}

/// Prices that somebody gave, by type, zone and capacity type: they come before every layer.
pub type PriceList = BTreeMap<(String, String, CapacityType), Price>;

/// The price of an offering and where it came from.
#[must_use]
pub fn price(
    region_id: &str,
    instance_type: &str,
    zone_id: &str,
    capacity_type: CapacityType,
    discounts: &SpotDiscounts,
) -> (Price, PriceSource) {
    let (on_demand, source) = on_demand_price(region_id, instance_type);
    let Some(on_demand_per_hour) = on_demand.per_hour() else {
        return (Price::UNKNOWN, PriceSource::Unknown);
    };
    match capacity_type {
        CapacityType::OnDemand | CapacityType::Reserved => (on_demand, source),
        CapacityType::Spot => {
            match discounts
                .percent(instance_type, zone_id)
                .filter(|percent| (1..=100).contains(percent))
            {
                Some(percent) => {
                    let part = f64::from(percent) / 100.0;
                    (
                        Price::from_per_hour(on_demand_per_hour * part),
                        PriceSource::Live,
                    )
                }
                None => {
                    let estimate = on_demand_per_hour * SPOT_PART_ESTIMATE;
                    (Price::from_per_hour(estimate), PriceSource::Estimate)
                }
            }
        }
    }
}

fn on_demand_price(region_id: &str, instance_type: &str) -> (Price, PriceSource) {
    let Some(prices) = TABLE.get(instance_type) else {
        return (Price::UNKNOWN, PriceSource::Unknown);
    };
    let of_region = REGION_COLUMNS
        .iter()
        .position(|(region, _)| *region == region_id);
    let own = of_region
        .map(|column| prices[column])
        .filter(|price| *price > 0.0);
    let any = prices.iter().copied().find(|price| *price > 0.0);
    match (own, any) {
        (Some(own), _) => (Price::from_per_hour(own), PriceSource::Catalog),
        (None, Some(any)) => (Price::from_per_hour(any), PriceSource::Estimate),
        (None, None) => (Price::UNKNOWN, PriceSource::Unknown),
    }
}

fn read_table() -> BTreeMap<String, [f64; REGION_COLUMNS.len()]> {
    let mut reader = csv::Reader::from_reader(CATALOG.as_bytes());
    let header = reader.headers().cloned().unwrap_or_default();
    let column = |name: &str| header.iter().position(|title| title == name);
    let columns = REGION_COLUMNS.map(|(_, name)| column(name));
    let rows = reader.records().filter_map(Result::ok).filter_map(|row| {
        let cell = |column: Option<usize>| -> f64 {
            column
                .and_then(|column| row.get(column)?.parse().ok())
                .unwrap_or(0.0)
        };
        Some((row.get(0)?.to_owned(), columns.map(cell)))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(region: &str, name: &str, capacity_type: CapacityType) -> (Option<f64>, PriceSource) {
        let discounts =
            SpotDiscounts::from_iter([(("ecs.g7.xlarge".to_owned(), "h".to_owned()), 20)]);
        let (price, source) = price(region, name, "h", capacity_type, &discounts);
        (price.per_hour(), source)
    }

    #[test]
    fn the_embedded_table_is_whole() {
        assert_eq!(TABLE.len(), 923);
        let known = TABLE
            .values()
            .filter(|prices| prices.iter().any(|price| *price > 0.0));
        assert!(known.count() >= 590);
    }

    #[test]
    fn layers_are_tried_in_order() {
        let (own, source) = ask("cn-hangzhou", "ecs.g7.xlarge", CapacityType::OnDemand);
        assert_eq!(source, PriceSource::Catalog);
        let own = own.unwrap();

        let (other, source) = ask("eu-central-1", "ecs.g7.xlarge", CapacityType::OnDemand);
        assert_eq!(source, PriceSource::Estimate);
        assert!(other.unwrap() > 0.0);

        let (spot, source) = ask("cn-hangzhou", "ecs.g7.xlarge", CapacityType::Spot);
        assert_eq!(source, PriceSource::Live);
        assert!((spot.unwrap() - own / 5.0).abs() < 1e-6);
        assert_eq!(
            ask("cn-hangzhou", "ecs.g7.large", CapacityType::Spot).1,
            PriceSource::Estimate
        );
    }

    #[test]
    fn what_nobody_knows_is_unknown_and_never_zero() {
        let unknown = (None, PriceSource::Unknown);

        assert_eq!(
            ask("cn-hangzhou", "ecs.new9.large", CapacityType::Spot),
            unknown
        );
        for name in TABLE.keys() {
            let (price, _) = ask("cn-hangzhou", name, CapacityType::OnDemand);
            assert_ne!(price, Some(0.0), "{name}");
        }
    }
}
