//! What policies said, in the form that scheduling uses: bars, scores and prices for ordering.
//!
//! Core calls no policy. The caller asks them about a plan's claims, adds what they say here, and plans again.

use std::collections::BTreeMap;

use crate::ids::{InstanceTypeName, NodePoolName, ZoneId};
use crate::instance_type::CapacityType;
use crate::price::Price;

/// One offering of one NodePool. `None` in a bar means every zone or capacity type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferingKey {
    /// The instance type.
    pub instance_type: InstanceTypeName,
    /// The zone.
    pub zone: ZoneId,
    /// The capacity type.
    pub capacity_type: CapacityType,
}

impl std::fmt::Display for OfferingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}/{}/{}",
            self.instance_type, self.zone, self.capacity_type
        )
    }
}

/// An exclusion by a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    /// The instance type that may not be used.
    pub instance_type: InstanceTypeName,
    /// In this zone; none for every zone.
    pub zone: Option<ZoneId>,
    /// As this capacity type; none for every one.
    pub capacity_type: Option<CapacityType>,
    /// The policy that said so.
    pub policy: String,
    /// Its reason.
    pub reason: String,
}

impl Bar {
    /// Whether it excludes the offering.
    pub fn covers(&self, instance_type: &str, zone: &str, capacity_type: CapacityType) -> bool {
        *self.instance_type == *instance_type
            && self.zone.as_ref().is_none_or(|own| **own == *zone)
            && self.capacity_type.is_none_or(|own| own == capacity_type)
    }
}

/// What policies said about the offerings of one NodePool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PoolPreferences {
    /// Offerings that may not be used.
    pub bars: Vec<Bar>,
    /// Scores: a higher one comes first, whatever the price. Offerings without one have score 0.
    pub scores: BTreeMap<OfferingKey, i64>,
    /// Prices that ordering uses in place of the real ones.
    pub prices: BTreeMap<OfferingKey, Price>,
}

/// What policies said, by NodePool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Preferences {
    /// By name of the NodePool.
    pub pools: BTreeMap<NodePoolName, PoolPreferences>,
}

impl Preferences {
    /// No policy said anything.
    pub fn none() -> Self {
        Self::default()
    }

    /// What was said about a pool's offerings, to add to.
    pub fn pool_mut(&mut self, pool: &NodePoolName) -> &mut PoolPreferences {
        self.pools.entry(pool.clone()).or_default()
    }
}
