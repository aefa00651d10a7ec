//! Nodes whose price nobody knows, which are missing in what their NodePool costs. The name is Karpenter's.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::PoolLabels;

/// Counts each such node once, when it becomes one.
#[derive(Debug, Default)]
pub struct CostErrors {
    errors: Family<PoolLabels, Counter>,
    /// The nodes without a price at the last look, and their pools.
    known: Mutex<BTreeMap<String, String>>,
}

impl CostErrors {
    /// Registers the counter; the registry's prefix is Karpenter's.
    #[must_use]
    pub fn new(karpenter: &mut Registry) -> Self {
        let it = Self::default();
        karpenter.register(
            "nodepools_cost_tracker_errors",
            "Nodes whose price became unknown, so that the cost of their NodePool lacks them",
            it.errors.clone(),
        );
        it
    }

    /// Takes in all nodes without a price, and their pools.
    pub fn note(&self, unpriced: BTreeMap<String, String>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, pool) in unpriced
            .iter()
            .filter(|(node, _)| !known.contains_key(*node))
        {
            let labels = PoolLabels {
                nodepool: pool.clone(),
            };
            self.errors.get_or_create(&labels).inc();
        }
        *known = unpriced;
    }

    /// How many were counted for a pool.
    #[cfg(test)]
    pub(super) fn of(&self, nodepool: &str) -> u64 {
        let labels = PoolLabels {
            nodepool: nodepool.to_owned(),
        };
        self.errors.get(&labels).map_or(0, |it| it.get())
    }

    /// A family without members does not show.
    #[cfg(test)]
    pub(super) fn touch(&self) {
        self.note([(String::new(), String::new())].into());
    }
}
