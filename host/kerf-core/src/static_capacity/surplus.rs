//! Which nodes of a static pool go first when there are too many.

use std::cmp::Reverse;

use jiff::Timestamp;

use crate::disruption::cost::{life_left, rescheduling_cost};
use crate::node::Node;
use crate::pod::{OwnerKind, PodPhase};

/// What a node means to those who use it; the least goes first. Karpenter: same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    /// Its instance does not exist yet.
    NotLaunched,
    /// Nothing on it would have to run elsewhere.
    Empty,
    /// Its pods must move.
    InUse,
    /// Somebody forbids its disruption.
    Protected,
}

impl Worth {
    fn of(node: &Node, now: Timestamp) -> Self {
        if !node.is_launched {
            return Self::NotLaunched;
        }
        let mut active = node.pods.iter().filter(|it| it.phase == PodPhase::Active);
        // A mirror pod goes with its node whatever its annotations say.
        let is_protected = node.forbids_disruption
            || active.any(|it| it.spec.owner != OwnerKind::Node && it.forbids_disruption(now));
        let has_movers = node.pods.iter().any(|it| it.is_reschedulable());
        match (is_protected, has_movers) {
            (true, _) => Self::Protected,
            (false, true) => Self::InUse,
            (false, false) => Self::Empty,
        }
    }

    fn why(self) -> &'static str {
        match self {
            Self::NotLaunched => "this one has no instance yet",
            Self::Empty => "this one has no pods that must run elsewhere",
            Self::InUse => "this one is the cheapest to disrupt",
            Self::Protected => {
                "only protected ones are left, and this one is the cheapest to disrupt"
            }
        }
    }
}

/// The nodes in the order in which they would go, each with the reason. At equal cost the youngest goes first, then the
/// name decides.
pub(super) fn in_order<'a>(nodes: &[&'a Node], now: Timestamp) -> Vec<(&'a Node, &'static str)> {
    let mut ranked: Vec<(Worth, f64, &Node)> = nodes
        .iter()
        .map(|node| {
            let cost = rescheduling_cost(node) * life_left(node, now);
            (Worth::of(node, now), cost, *node)
        })
        .collect();
    ranked.sort_by(|(a_worth, a_cost, a), (b_worth, b_cost, b)| {
        let age = |node: &Node| Reverse(node.created_at);
        a_worth
            .cmp(b_worth)
            .then(a_cost.total_cmp(b_cost))
            .then_with(|| (age(a), &a.node_claim).cmp(&(age(b), &b.node_claim)))
    });
    let ordered = ranked.into_iter();
    ordered
        .map(|(worth, _, node)| (node, worth.why()))
        .collect()
}
