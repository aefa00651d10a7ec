//! The list in this binary: public prices in CNY per hour, Linux, pay as you go; data/README.md says where they come from.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::provider::prices::PriceSource;

pub(crate) const CATALOG: &str = include_str!("../../../data/catalog.csv");

/// Regions that the table has a column for, best first for a region that it lacks.
const REGION_COLUMNS: [(&str, &str); 4] = [
    ("cn-hangzhou", "price_cn_hangzhou_cny_h_2025_09"),
    ("cn-beijing", "price_cn_beijing_cny_h_2025_09"),
    ("ap-southeast-1", "price_ap_southeast_1_cny_h_2025_09"),
    // An older table that tells no region.
    ("", "price_cny_h_2024_10"),
];

static TABLE: LazyLock<BTreeMap<String, [f64; REGION_COLUMNS.len()]>> = LazyLock::new(read_table);

/// The list price of a type, in CNY per hour and more than zero: the region's own, else another region's as an estimate.
pub(in crate::provider) fn list_price(
    region_id: &str,
    instance_type: &str,
) -> Option<(f64, PriceSource)> {
    let prices = TABLE.get(instance_type)?;
    let of_region = REGION_COLUMNS
        .iter()
        .position(|(region, _)| *region == region_id);
    let own = of_region
        .map(|column| prices[column])
        .filter(|price| *price > 0.0);
    if let Some(own) = own {
        return Some((own, PriceSource::Catalog));
    }
    let any = prices.iter().copied().find(|price| *price > 0.0)?;
    Some((any, PriceSource::Estimate))
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

    #[test]
    fn the_embedded_table_is_whole() {
        assert_eq!(TABLE.len(), 923);
        let known = TABLE
            .values()
            .filter(|prices| prices.iter().any(|price| *price > 0.0));
        assert!(known.count() >= 590);
    }

    #[test]
    fn no_list_price_is_zero() {
        for name in TABLE.keys() {
            let price = list_price("cn-hangzhou", name);
            assert!(price.is_none_or(|(price, _)| price > 0.0), "{name}");
        }
    }
}
