//! What policies said of the offerings of one pool, by instance type.
//!
//! A pool has thousands of offerings, and preferences name each in full: looking every one up would cost more than all the
//! rest of preparing a pool. In order, what concerns a type is a short run.

use crate::ids::InstanceTypeName;
use crate::instance_type::Offering;
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

    pub(super) fn of(&'a self, instance_type: &str) -> OfType<'a> {
        OfType {
            bars: run(&self.bars, instance_type, |it| &it.instance_type),
            scores: run(&self.scores, instance_type, |it| &it.0.instance_type),
            prices: run(&self.prices, instance_type, |it| &it.0.instance_type),
        }
    }
}

impl<'a> OfType<'a> {
    /// The first bar that covers an offering of the type.
    pub(super) fn bar(&self, offering: &Offering) -> Option<&'a Bar> {
        let covers =
            |bar: &&&Bar| bar.covers(&bar.instance_type, &offering.zone, offering.capacity_type);
        self.bars.iter().find(covers).copied()
    }

    pub(super) fn score(&self, offering: &Offering) -> Option<i64> {
        find(self.scores, offering)
    }

    pub(super) fn price(&self, offering: &Offering) -> Option<Price> {
        find(self.prices, offering)
    }
}

/// The part of what is ordered by instance type that is about this one.
fn run<'a, T>(
    all: &'a [T],
    instance_type: &str,
    name: impl Fn(&T) -> &InstanceTypeName,
) -> &'a [T] {
    let first = all.partition_point(|it| name(it).as_str() < instance_type);
    let rest = &all[first..];
    let len = rest
        .iter()
        .take_while(|it| name(it).as_str() == instance_type)
        .count();
    &rest[..len]
}

fn find<T: Copy>(of_type: &[(&OfferingKey, T)], offering: &Offering) -> Option<T> {
    let is_it = |key: &OfferingKey| {
        key.capacity_type == offering.capacity_type && key.zone == offering.zone
    };
    of_type
        .iter()
        .find(|(key, _)| is_it(key))
        .map(|(_, value)| *value)
}
