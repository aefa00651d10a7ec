//! What an account sees of a region, as a catalog of format v1. Pure.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kerf_core::instance_type::CapacityType;

use crate::provider::catalog::{Catalog, CatalogOffering, CatalogType, FORMAT, VERSION};
use crate::provider::facts::TypeFacts;
use crate::provider::instance_types::Market;
use crate::provider::prices::live::CURRENCY;
use crate::provider::prices::{Known, Layers, PriceSource};
use crate::provider::region::Stock;

/// What was read.
pub(super) struct Seen<'a> {
    pub(super) zones: BTreeSet<String>,
    pub(super) stock: &'a Stock,
    pub(super) known: Known<'a>,
    pub(super) at: Timestamp,
}

/// Every type that is sold in one of the zones, in name order. What has no stock stays, as not available: of a type that
/// is missing nobody could say why.
pub(super) fn catalog(seen: &Seen<'_>) -> Catalog {
    let market = Market {
        stock: seen.stock,
        prices: &Layers::new(seen.known),
    };
    let mut live = 0;
    let types = seen.known.types.values().filter_map(|facts| {
        let sold = offerings(facts, &seen.zones, &market);
        live += sold
            .iter()
            .filter(|(_, it)| *it == PriceSource::Live)
            .count();
        let offerings: Vec<_> = sold.into_iter().map(|(offering, _)| offering).collect();
        (!offerings.is_empty()).then(|| CatalogType::new(facts, offerings))
    });
    let types = types.collect();
    let region = seen.known.lists.region_id;
    Catalog {
        format: FORMAT.to_owned(),
        version: VERSION,
        region: region.to_owned(),
        currency: CURRENCY.to_owned(),
        source: source(seen, live),
        zones: seen.zones.iter().cloned().collect(),
        types,
    }
}

fn offerings(
    facts: &TypeFacts,
    zones: &BTreeSet<String>,
    market: &Market<'_>,
) -> Vec<(CatalogOffering, PriceSource)> {
    let both = [CapacityType::OnDemand, CapacityType::Spot];
    let pairs = zones
        .iter()
        .flat_map(|zone| both.map(|capacity_type| (zone, capacity_type)));
    pairs
        .filter_map(|(zone, capacity_type)| {
            let offering = market.offering(facts, &zone.as_str().into(), capacity_type)?;
            let (_, source) = market.prices.price(facts, zone, capacity_type);
            let offering = CatalogOffering {
                zone: zone.clone(),
                capacity_type: capacity_type.as_str().to_owned(),
                price_per_hour: offering.price.per_hour(),
                unavailable: offering.unavailable.map(|it| it.text),
                is_stock_uncertain: offering.is_stock_uncertain,
            };
            Some((offering, source))
        })
        .collect()
}

/// Where the facts come from, and which of them are not the account's.
fn source(seen: &Seen<'_>, live: usize) -> String {
    let at = seen.at.strftime("%Y-%m-%dT%H:%M:%SZ");
    let spot = if seen.known.lists.discounts.is_empty() {
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
    let live = match live {
        0 => String::new(),
        live => format!("; {live} prices as the account is told"),
    };
    let given = if seen.known.given.is_empty() {
        ""
    } else {
        "; prices of a price catalog come first"
    };
    format!("an account at {at}, list prices of 2025-09, {spot}{live}{given}{stock}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::prices::live::LivePrices;
    use crate::provider::prices::{Lists, PriceList, SpotDiscounts};
    use crate::provider::region::Types;

    fn pull(edit: impl FnOnce(&mut TypeFacts), discounts: &SpotDiscounts) -> Catalog {
        let mut facts = TypeFacts::plain("ecs.g7.xlarge");
        edit(&mut facts);
        pulled(facts, discounts, &LivePrices::default())
    }

    fn pulled(facts: TypeFacts, discounts: &SpotDiscounts, live: &LivePrices) -> Catalog {
        catalog(&Seen {
            zones: BTreeSet::from(["z".to_owned()]),
            stock: &Stock::default(),
            known: Known {
                lists: Lists {
                    region_id: "cn-hangzhou",
                    discounts,
                },
                given: &PriceList::new(),
                live,
                types: &Types::from([(facts.name.clone(), facts)]),
                account_discount_percent: 0.0,
            },
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

    #[test]
    fn how_many_prices_are_live_is_told() {
        let live = LivePrices::default().with_on_demand("ecs.g7.xlarge", 0.5);
        let facts = TypeFacts::plain("ecs.g7.xlarge");

        let catalog = pulled(facts, &SpotDiscounts::default(), &live);

        assert_eq!(catalog.types[0].offerings[0].price_per_hour, Some(0.5));
        let said = "spot estimated; 1 prices as the account is told";
        assert!(catalog.source.contains(said), "{}", catalog.source);
    }
}
