//! What policies said of the offerings of one pool, by instance type.
//!
//! A pool has thousands of offerings, and preferences name each in full: looking every one up would cost more than all the
//! rest of preparing a pool. In order, what concerns a type is a short run.

use crate::ids::{InstanceTypeName, ZoneId};
use crate::instance_type::CapacityType;
use crate::preferences::{Bar, OfferingKey, PoolPreferences};
use crate::price::Price;

/// What was said of a pool.
#[derive(Debug, Default)]
pub(super) struct Sayings<'a> {
    bars: Vec<&'a Bar>,
    scores: Vec<(&'a OfferingKey, i64)>,
    prices: Vec<(&'a OfferingKey, Price)>,
}

/// What was said of an instance type in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfType<'a> {
    bars: &'a [&'a Bar],
    scores: &'a [(&'a OfferingKey, i64)],
    prices: &'a [(&'a OfferingKey, Price)],
}

impl<'a> Sayings<'a> {
    pub(super) fn new(preferences: Option<&'a PoolPreferences>) -> Self {
        let Some(PoolPreferences {
            bars,
            scores,
            prices,
        }) = preferences
        else {
            return Self::default();
        };
        // The sort is stable: of two bars of one offering the first counts.
        let mut bars: Vec<&Bar> = bars.iter().collect();
        bars.sort_by(|a, b| a.instance_type.cmp(&b.instance_type));
        Self {
            bars,
            scores: scores.iter().map(|(key, score)| (key, *score)).collect(),
            prices: prices.iter().map(|(key, price)| (key, *price)).collect(),
        }
    }

    /// By instance type, for a caller who goes through them in the order of their names.
    pub(super) fn by_type(&self) -> ByType<'_> {
        ByType(OfType {
            bars: &self.bars,
            scores: &self.scores,
            prices: &self.prices,
        })
    }
}

/// What was said of this type and those after it.
#[derive(Debug)]
pub(super) struct ByType<'a>(OfType<'a>);

impl<'a> ByType<'a> {
    /// What was said of this type. Each must come after the last one by name, or be it again.
    pub(super) fn of(&mut self, instance_type: &str) -> OfType<'a> {
        let rest = &mut self.0;
        OfType {
            bars: run(&mut rest.bars, instance_type, |it| &it.instance_type),
            scores: run(&mut rest.scores, instance_type, |it| &it.0.instance_type),
            prices: run(&mut rest.prices, instance_type, |it| &it.0.instance_type),
        }
    }
}

impl<'a> OfType<'a> {
    /// The first bar that covers an offering of the type.
    pub(super) fn bar(&self, zone: &ZoneId, capacity_type: CapacityType) -> Option<&'a Bar> {
        let covers = |bar: &&&Bar| bar.covers(&bar.instance_type, zone, capacity_type);
        self.bars.iter().find(covers).copied()
    }

    pub(super) fn score(&self, zone: &ZoneId, capacity_type: CapacityType) -> Option<i64> {
        find(self.scores, zone, capacity_type)
    }

    pub(super) fn price(&self, zone: &ZoneId, capacity_type: CapacityType) -> Option<Price> {
        find(self.prices, zone, capacity_type)
    }
}

/// The part of what is ordered by instance type that is about this one; what comes before it is left out from now on.
fn run<'a, T>(
    rest: &mut &'a [T],
    instance_type: &str,
    name: impl Fn(&T) -> &InstanceTypeName,
) -> &'a [T] {
    let all = *rest;
    let before = all
        .iter()
        .take_while(|it| name(it).as_str() < instance_type);
    let from = &all[before.count()..];
    let own = from
        .iter()
        .take_while(|it| name(it).as_str() == instance_type);
    *rest = from;
    &from[..own.count()]
}

fn find<T: Copy>(
    of_type: &[(&OfferingKey, T)],
    zone: &ZoneId,
    capacity_type: CapacityType,
) -> Option<T> {
    let is_it = |key: &OfferingKey| key.capacity_type == capacity_type && key.zone == *zone;
    of_type
        .iter()
        .find(|(key, _)| is_it(key))
        .map(|(_, value)| *value)
}
