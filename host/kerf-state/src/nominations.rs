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
    /// How many virtual pods the last plan put where; none while no plan has said so since buffers were expected.
    buffer_pods: BufferPods,
}

/// Where room for CapacityBuffers is.
#[derive(Debug)]
enum BufferPods {
    /// Known from the last plan.
    At(BTreeMap<PlacementTarget, u32>),
    /// Not planned yet: it could be anywhere.
    Anywhere,
}

impl Default for BufferPods {
    fn default() -> Self {
        Self::At(BTreeMap::new())
    }
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

    pub(crate) fn expect_buffers(&mut self) {
        self.buffer_pods = BufferPods::Anywhere;
    }

    /// Whether that is news.
    pub(crate) fn set_buffer_places(&mut self, places: BTreeMap<PlacementTarget, u32>) -> bool {
        let is_same = matches!(&self.buffer_pods, BufferPods::At(known) if *known == places);
        self.buffer_pods = BufferPods::At(places);
        !is_same
    }

    /// How many virtual pods a node stands in for; 1 where that is not known yet.
    pub(crate) fn buffer_pods(&self, node: Option<&str>, claim: Option<&str>) -> u32 {
        let BufferPods::At(places) = &self.buffer_pods else {
            return 1;
        };
        let at = |target: PlacementTarget| places.get(&target).copied().unwrap_or_default();
        let of_node = node.map_or(0, |name| at(PlacementTarget::Node(name.into())));
        let of_claim = claim.map_or(0, |name| at(PlacementTarget::InFlight(name.into())));
        of_node.saturating_add(of_claim)
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
