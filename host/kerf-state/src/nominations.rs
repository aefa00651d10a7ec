//! What was decided and does not show in any object yet: pods on their way to a node, nodes on their way out.
//!
//! Losing this in a restart is safe: nominations end by themselves within seconds, and marks are taken from the
//! NodeClaims' DisruptionReason condition as well.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kerf_core::ids::PodUid;
use kerf_core::plan::PlacementTarget;

/// Decisions that no object shows yet.
#[derive(Debug, Default)]
pub(crate) struct Nominations {
    until: BTreeMap<PlacementTarget, Timestamp>,
    /// Pods that a plan put on a node. Karpenter: differs, because there the node is kept to the end of the time even
    /// when all its pods have come.
    expected: BTreeMap<PodUid, (PlacementTarget, Timestamp)>,
    /// How long nodes are kept for those pods; the latest of each.
    expecting: BTreeMap<PlacementTarget, Expecting>,
    marked: BTreeSet<String>,
    /// How many virtual pods the last plan put where; none while no plan has said so since buffers were expected.
    buffer_pods: BufferPods,
}

/// What is expected on a node.
#[derive(Debug)]
struct Expecting {
    pods: usize,
    until: Timestamp,
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

    /// Until the pod has a node or is gone, or until then.
    pub(crate) fn expect(&mut self, pod: PodUid, target: &PlacementTarget, until: Timestamp) {
        self.arrived(&pod);
        let known = self
            .expecting
            .entry(target.clone())
            .or_insert(Expecting { pods: 0, until });
        known.pods += 1;
        known.until = known.until.max(until);
        self.expected.insert(pod, (target.clone(), until));
    }

    /// The pod is not expected anywhere any more.
    pub(crate) fn arrived(&mut self, pod: &PodUid) {
        let Some((target, _)) = self.expected.remove(pod) else {
            return;
        };
        if let Some(known) = self.expecting.get_mut(&target) {
            known.pods -= 1;
            if known.pods == 0 {
                self.expecting.remove(&target);
            }
        }
    }

    pub(crate) fn forget_ended(&mut self, now: Timestamp) {
        self.until.retain(|_, until| *until > now);
        let ended = self.expected.iter().filter(|(_, (_, until))| *until <= now);
        let ended: Vec<PodUid> = ended.map(|(pod, _)| pod.clone()).collect();
        for pod in &ended {
            self.arrived(pod);
        }
    }

    /// The latest of what was said about the node and about its claim, and of what is expected there.
    pub(crate) fn until(&self, node: Option<&str>, claim: Option<&str>) -> Option<Timestamp> {
        if self.until.is_empty() && self.expecting.is_empty() {
            return None;
        }
        let of = |target: PlacementTarget| {
            let expecting = self.expecting.get(&target).map(|it| it.until);
            self.until.get(&target).copied().max(expecting)
        };
        let node = node.and_then(|name| of(PlacementTarget::Node(name.into())));
        node.max(claim.and_then(|name| of(PlacementTarget::InFlight(name.into()))))
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
        if places.is_empty() {
            return 0;
        }
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
