//! What the pools' limits leave, reserved claim by claim inside the round.

use std::sync::Arc;

use super::pool::PoolEntry;
use super::vector::{ResourceIndex, Vector};
use crate::node::Node;
use crate::node_pool::NodePool;
use crate::resources::{NODES, Resources};
use crate::sabotage::{self, Sabotage};
use crate::snapshot::Snapshot;

/// What is left of one pool's limits.
#[derive(Debug, Clone)]
pub(super) struct Remaining {
    /// Places of limited resources with what is left.
    places: Vec<(usize, i64)>,
    pub(super) nodes: Option<i64>,
}

/// Whether nodes that a command wants to replace count against their pool's limits, as long as they are not deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaving {
    /// For pods that wait: the command may be taken back, and then the node stays beside what was launched in its room.
    /// Karpenter differs: it gives the room away at once.
    Counts,
    /// For further commands, whose replacements come for nodes that go (Karpenter: same).
    CountsNot,
}

impl Remaining {
    fn new(
        pool: &NodePool,
        snapshot: &Snapshot,
        resources: &ResourceIndex,
        leaving: Leaving,
    ) -> Self {
        let counts = |node: &Node| match leaving {
            Leaving::Counts => !node.is_deleting,
            Leaving::CountsNot => node.is_active(),
        };
        let of_pool = || {
            let nodes = snapshot.nodes.iter();
            nodes.filter(|node| node.pool.as_ref() == Some(&pool.name) && counts(node))
        };
        let mut used = Resources::default();
        if !pool.limits.is_empty() {
            of_pool().for_each(|node| used.add(&node.capacity));
        }
        let left = |(place, name): (usize, &str)| {
            Some((
                place,
                pool.limits.bound(name)?.saturating_sub(used.amount(name)),
            ))
        };
        let count = || i64::try_from(of_pool().count()).unwrap_or(i64::MAX);
        Self {
            places: resources.names().enumerate().filter_map(left).collect(),
            nodes: pool
                .limits
                .bound(NODES)
                .map(|bound| bound.saturating_sub(count())),
        }
    }

    /// Whether a new node of that capacity is within the limits.
    pub(super) fn allows_node(&self, capacity: &Vector) -> bool {
        self.nodes.is_none_or(|nodes| nodes >= 1) && self.allows(capacity)
    }

    /// Whether that much more is within the limits.
    pub(super) fn allows(&self, capacity: &Vector) -> bool {
        self.places
            .iter()
            .all(|(place, left)| capacity.at(*place) <= *left)
    }

    /// Whether a node may change from one capacity to another.
    pub(super) fn allows_change(&self, from: &Vector, to: &Vector) -> bool {
        self.places
            .iter()
            .all(|(place, left)| to.at(*place) - from.at(*place) <= (*left).max(0))
    }

    pub(super) fn take_node(&mut self, capacity: &Vector) {
        if sabotage::is_on(Sabotage::LimitsNotReserved) {
            return;
        }
        if let Some(nodes) = &mut self.nodes {
            *nodes -= 1;
        }
        for (place, left) in &mut self.places {
            *left -= capacity.at(*place);
        }
    }

    pub(super) fn return_node(&mut self, capacity: &Vector) {
        if sabotage::is_on(Sabotage::LimitsNotReserved) {
            return;
        }
        if let Some(nodes) = &mut self.nodes {
            *nodes += 1;
        }
        for (place, left) in &mut self.places {
            *left += capacity.at(*place);
        }
    }

    pub(super) fn change(&mut self, from: &Vector, to: &Vector) {
        for (place, left) in &mut self.places {
            *left += from.at(*place) - to.at(*place);
        }
    }

    /// What a node of that capacity takes of the limited resources, in their order.
    pub(super) fn taken_by(&self, capacity: &Vector) -> Vec<i64> {
        let places = self.places.iter();
        places.map(|(place, _)| capacity.at(*place)).collect()
    }

    /// Takes what a node needs to become one of that capacity too, over what is taken for it. Says whether there was
    /// that much; if not, nothing changes.
    pub(super) fn raise(&mut self, taken: &mut [i64], capacity: &Vector) -> bool {
        let more =
            |(taken, (place, _)): (&i64, &(usize, i64))| (capacity.at(*place) - taken).max(0);
        let mut both = taken.iter().zip(&self.places);
        if !both.all(|it| more(it) <= it.1.1.max(0)) {
            return false;
        }
        for (taken, (place, left)) in taken.iter_mut().zip(&mut self.places) {
            let more = (capacity.at(*place) - *taken).max(0);
            *taken += more;
            *left -= more;
        }
        true
    }

    /// The first limit that a new node of that capacity would break: its place and what is left. `None` as a place
    /// means the number of nodes.
    pub(super) fn first_broken(&self, capacity: &Vector) -> Option<(Option<usize>, i64)> {
        let nodes = self
            .nodes
            .filter(|nodes| *nodes < 1)
            .map(|nodes| (None, nodes));
        let place = self
            .places
            .iter()
            .find(|(place, left)| capacity.at(*place) > *left);
        nodes.or(place.map(|(place, left)| (Some(*place), *left)))
    }
}

/// What is left of every pool's limits, in the order of the pools.
pub(super) fn of_pools(
    pools: &[PoolEntry],
    snapshot: &Snapshot,
    resources: &ResourceIndex,
    leaving: Leaving,
) -> Vec<Remaining> {
    pools
        .iter()
        .map(|entry| Remaining::new(Arc::as_ref(&entry.pool), snapshot, resources, leaving))
        .collect()
}
