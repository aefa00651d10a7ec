//! What was decided and does not show in any object yet: pods on their way to a node, nodes on their way out.
//!
//! Losing this in a restart is safe: nominations end by themselves within seconds, and marks are taken from the
//! NodeClaims' DisruptionReason condition as well.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kerf_core::plan::PlacementTarget;

/// Decisions that no object shows yet.
#[derive(Debug, Default)]
pub(crate) struct Nominations {
    until: BTreeMap<PlacementTarget, Timestamp>,
    marked: BTreeSet<String>,
}

impl Nominations {
    pub(crate) fn nominate(&mut self, target: &PlacementTarget, until: Timestamp) {
        let current = self.until.entry(target.clone()).or_insert(until);
        *current = (*current).max(until);
    }

    pub(crate) fn forget_ended(&mut self, now: Timestamp) {
        self.until.retain(|_, until| *until > now);
    }

    /// The later of what was said about the node and about its claim.
    pub(crate) fn until(&self, node: Option<&str>, claim: Option<&str>) -> Option<Timestamp> {
        let node = node.and_then(|name| self.until.get(&PlacementTarget::Node(name.into())));
        let claim = claim.and_then(|name| self.until.get(&PlacementTarget::InFlight(name.into())));
        node.max(claim).copied()
    }

    pub(crate) fn mark(&mut self, claim: &str) {
        self.marked.insert(claim.to_owned());
    }

    pub(crate) fn unmark(&mut self, claim: &str) {
        self.marked.remove(claim);
    }

    pub(crate) fn is_marked(&self, claim: &str) -> bool {
        self.marked.contains(claim)
    }
}
