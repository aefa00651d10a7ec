//! What the budgets of the pools still allow in a pass. Every command takes its part before it is decided.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::disruption::budget::DisruptionReason;
use crate::disruption::emptiness::allowed_now;
use crate::ids::NodePoolName;
use crate::node_pool::NodePool;
use crate::snapshot::Snapshot;

/// The budgets of a pass.
#[derive(Debug)]
pub(super) struct BudgetBook<'a> {
    snapshot: &'a Snapshot,
    now: Timestamp,
    allowed: BTreeMap<(NodePoolName, DisruptionReason), usize>,
    /// Nodes that this pass takes, whatever the reason: budgets of all reasons count all of them.
    taken: BTreeMap<NodePoolName, usize>,
}

impl<'a> BudgetBook<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, now: Timestamp) -> Self {
        Self {
            snapshot,
            now,
            allowed: BTreeMap::new(),
            taken: BTreeMap::new(),
        }
    }

    /// How many more nodes of the pool may go for the reason.
    pub(super) fn left(&mut self, pool: &NodePool, reason: DisruptionReason) -> usize {
        let (snapshot, now) = (self.snapshot, self.now);
        let allowed = *self
            .allowed
            .entry((pool.name.clone(), reason))
            .or_insert_with(|| allowed_now(pool, snapshot, reason, now));
        allowed.saturating_sub(self.taken.get(&pool.name).copied().unwrap_or(0))
    }

    pub(super) fn take(&mut self, pool: &NodePoolName, nodes: usize) {
        *self.taken.entry(pool.clone()).or_default() += nodes;
    }
}
