//! How far the account's prices are from the list: the middle of what was asked, by family. Pure.
//!
//! A live price has the account's discounts in it and a list price has not. Compared as they are, a type that was asked
//! would look cheaper than a like one that was not, only because it was asked.

use std::collections::BTreeMap;

use kerf_core::instance_type::CapacityType;
use kerf_core::price::Price;

use crate::provider::prices::live::LivePrices;
use crate::provider::prices::{Lists, PriceSource};
use crate::provider::region::Types;

/// Steps of a factor. A new figure should not move the estimates of hundreds of types by a thousandth.
const STEPS: f64 = 100.0;

/// Live prices in parts of list prices.
#[derive(Debug, Default)]
pub(super) struct Calibration(BTreeMap<(CapacityType, PriceSource), Factors>);

#[derive(Debug, Default)]
struct Factors {
    by_family: BTreeMap<String, f64>,
    all: f64,
}

impl Calibration {
    /// From every live price of a type that `lists` has a price of too.
    pub(super) fn new(live: &LivePrices, types: &Types, lists: &Lists<'_>) -> Self {
        let mut samples: BTreeMap<(CapacityType, PriceSource), BTreeMap<String, Vec<f64>>> =
            BTreeMap::new();
        let mut add = |name: &str, zone: &str, capacity_type, live: Price| {
            let facts = types.get(name)?;
            let (list, source) = lists.price(name, zone, capacity_type)?;
            let of_layer = samples.entry((capacity_type, source)).or_default();
            let of_family = of_layer.entry(facts.family.clone()).or_default();
            of_family.push(live.per_hour()? / list);
            Some(())
        };
        for (name, price) in live.on_demand() {
            add(name, "", CapacityType::OnDemand, price);
        }
        for (zone, name, price) in live.spot() {
            add(name, zone, CapacityType::Spot, price);
        }
        let factors = samples.into_iter();
        Self(factors.map(|(key, of)| (key, Factors::new(of))).collect())
    }

    /// What to multiply a list price with, more than zero; none while nothing of its layer was asked.
    pub(super) fn factor(
        &self,
        capacity_type: CapacityType,
        source: PriceSource,
        family: &str,
    ) -> Option<f64> {
        let factors = self.0.get(&(capacity_type, source))?;
        let own = factors.by_family.get(family).copied();
        Some(own.unwrap_or(factors.all))
    }
}

impl Factors {
    fn new(samples: BTreeMap<String, Vec<f64>>) -> Self {
        let step = |factor: f64| (factor * STEPS).round().max(1.0) / STEPS;
        let all = samples.values().flatten().copied().collect();
        let families = samples.into_iter();
        Self {
            all: median(all).map_or(1.0, step),
            by_family: families
                .filter_map(|(family, of)| Some((family, step(median(of)?))))
                .collect(),
        }
    }
}

/// The one in the middle, the lower one of two; none of none.
pub(super) fn median(mut samples: Vec<f64>) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_two_is_the_lower_one() {
        assert_eq!(median(vec![3.0, 1.0]), Some(1.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(Vec::new()), None);
    }
}
