//! What an account sees of a region, as a catalog of format v1. Pure.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kerf_core::instance_type::CapacityType;

use crate::provider::catalog::{CURRENCY, Catalog, CatalogOffering, CatalogType, FORMAT, VERSION};
use crate::provider::instance_types::Market;
use crate::provider::prices::{PriceList, SpotDiscounts};
use crate::provider::region::{Stock, Types};

/// What was read.
pub(super) struct Seen<'a> {
    pub(super) region_id: &'a str,
    pub(super) zones: BTreeSet<String>,
    pub(super) types: &'a Types,
    pub(super) stock: &'a Stock,
    pub(super) discounts: &'a SpotDiscounts,
    pub(super) prices: &'a PriceList,
    pub(super) at: Timestamp,
}

/// Every type that is sold in one of the zones, in name order. What has no stock stays, as not available: of a type that
/// is missing nobody could say why.
pub(super) fn catalog(seen: &Seen<'_>) -> Catalog {
    let market = Market {
        region_id: seen.region_id,
        stock: seen.stock,
        discounts: seen.discounts,
        prices: seen.prices,
    };
    let types = seen.types.values().filter_map(|facts| {
        let offerings = offerings(&facts.name, &seen.zones, &market);
        (!offerings.is_empty()).then(|| CatalogType::new(facts, offerings))
    });
    Catalog {
        format: FORMAT.to_owned(),
        version: VERSION,
        region: seen.region_id.to_owned(),
        currency: CURRENCY.to_owned(),
        source: source(seen),
        zones: seen.zones.iter().cloned().collect(),
        types: types.collect(),
    }
}

fn offerings(
    instance_type: &str,
    zones: &BTreeSet<String>,
    market: &Market<'_>,
) -> Vec<CatalogOffering> {
    let both = [CapacityType::OnDemand, CapacityType::Spot];
    let pairs = zones
        .iter()
        .flat_map(|zone| both.map(|capacity_type| (zone, capacity_type)));
    pairs
        .filter_map(|(zone, capacity_type)| {
            let offering = market.offering(instance_type, &zone.as_str().into(), capacity_type)?;
            Some(CatalogOffering {
                zone: zone.clone(),
                capacity_type: capacity_type.as_str().to_owned(),
                price_per_hour: offering.price.per_hour(),
                unavailable: offering.unavailable.map(|it| it.text),
                is_stock_uncertain: offering.is_stock_uncertain,
            })
        })
        .collect()
}

/// Where the facts come from, and which of them are not the account's.
fn source(seen: &Seen<'_>) -> String {
    let at = seen.at.strftime("%Y-%m-%dT%H:%M:%SZ");
    let spot = if seen.discounts.is_empty() {
        "spot estimated"
    } else {
        "spot as of the market"
    };
    let unknown: Vec<&str> = seen.stock.unknown().map(CapacityType::as_str).collect();
    let stock = if unknown.is_empty() {
        String::new()
    } else {
        format!("; stock unknown: {}", unknown.join(", "))
    };
    let given = if seen.prices.is_empty() {
        ""
    } else {
        "; prices of a price catalog come first"
    };
    format!("an account at {at}, list prices of 2025-09, {spot}{given}{stock}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::facts::TypeFacts;

    fn pull(edit: impl FnOnce(&mut TypeFacts), discounts: &SpotDiscounts) -> Catalog {
        let mut facts = TypeFacts::plain("ecs.g7.xlarge");
        edit(&mut facts);
        catalog(&Seen {
            region_id: "cn-hangzhou",
            zones: BTreeSet::from(["z".to_owned()]),
            types: &Types::from([(facts.name.clone(), facts)]),
            stock: &Stock::default(),
            discounts,
            prices: &PriceList::new(),
            at: Timestamp::UNIX_EPOCH,
        })
    }

    #[test]
    fn all_that_is_known_of_a_type_survives_the_catalog() {
        let edit = |facts: &mut TypeFacts| {
            facts.cpu_model = "Intel(R) Xeon(R) Platinum 8369B".to_owned();
            facts.gpus = 2;
            facts.gpu_spec = "NVIDIA A10".to_owned();
            facts.gpu_memory_gib = 24;
        };

        let pulled = pull(edit, &SpotDiscounts::default());

        let mut facts = TypeFacts::plain("ecs.g7.xlarge");
        edit(&mut facts);
        let json = serde_json::to_string(&pulled).unwrap();
        let read = Catalog::parse(&json).unwrap();
        assert_eq!(read, pulled);
        assert_eq!(read.types[0].facts(), Some(facts));
    }

    #[test]
    fn what_could_not_be_asked_is_told() {
        let blind = pull(|_| {}, &SpotDiscounts::default()).source;

        assert_eq!(
            blind,
            "an account at 1970-01-01T00:00:00Z, list prices of 2025-09, spot estimated; stock unknown: on-demand, spot"
        );
        let key = ("ecs.g7.xlarge".to_owned(), "z".to_owned());
        let seen = pull(|_| {}, &SpotDiscounts::from_iter([(key, 30)]));
        assert!(
            seen.source.contains("spot as of the market"),
            "{}",
            seen.source
        );
    }
}
