//! What was decided and does not show in any object yet: pods on their way to a node, nodes on their way out.
//!
//! Losing this in a restart is safe: nominations end by themselves within seconds, and marks are taken from the
//! NodeClaims' DisruptionReason condition as well.

use std::collections::{BTreeMap, BTreeSet, HashMap};

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

/// What nominations come to for each node, by the names of Nodes and of NodeClaims.
#[derive(Debug, Default)]
pub(crate) struct Outlook<'a> {
    nodes: HashMap<&'a str, AtNode>,
    claims: HashMap<&'a str, AtNode>,
    /// Whether virtual pods could be on every node.
    anywhere: bool,
}

/// The same for one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AtNode {
    /// The latest of what was said about the node and about its claim, and of what is expected there.
    pub(crate) until: Option<Timestamp>,
    /// How many virtual pods it stands in for.
    pub(crate) buffer_pods: u32,
}

impl<'a> Outlook<'a> {
    /// On the node with these names; one virtual pod where nobody knows yet where they are.
    pub(crate) fn on(&self, node: Option<&str>, claim: Option<&str>) -> AtNode {
        let of = |table: &HashMap<&str, AtNode>, name: Option<&str>| {
            let known = name.and_then(|name| table.get(name));
            known.copied().unwrap_or_default()
        };
        let (node, claim) = (of(&self.nodes, node), of(&self.claims, claim));
        let buffer_pods = node.buffer_pods.saturating_add(claim.buffer_pods);
        AtNode {
            until: node.until.max(claim.until),
            buffer_pods: if self.anywhere { 1 } else { buffer_pods },
        }
    }

    fn at(&mut self, target: &'a PlacementTarget) -> &mut AtNode {
        match target {
            PlacementTarget::Node(name) => self.nodes.entry(name.as_str()).or_default(),
            PlacementTarget::InFlight(name) => self.claims.entry(name.as_str()).or_default(),
        }
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

    /// What they come to, for a walk over all nodes.
    pub(crate) fn outlook(&self) -> Outlook<'_> {
        let mut all = Outlook {
            anywhere: matches!(self.buffer_pods, BufferPods::Anywhere),
            ..Outlook::default()
        };
        let expecting = self.expecting.iter().map(|(target, it)| (target, it.until));
        let kept = self.until.iter().map(|(target, until)| (target, *until));
        for (target, until) in kept.chain(expecting) {
            let known = &mut all.at(target).until;
            *known = (*known).max(Some(until));
        }
        if let BufferPods::At(places) = &self.buffer_pods {
            for (target, pods) in places {
                all.at(target).buffer_pods += pods;
            }
        }
        all
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
