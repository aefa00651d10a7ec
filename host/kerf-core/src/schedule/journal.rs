//! What a simulation has changed about a round, so that it can be taken back: nothing is copied that was not touched.

use std::sync::Arc;

use super::claims::Claims;
use super::limits::Remaining;
use super::nodes::NodeBefore;
use super::round::{Round, ZoneNodes, domain_on};
use super::topology::{GroupId, GroupKey, GroupKind, Host, HostCounts};
use crate::pod::PodPhase;

/// The changes of a simulation, and the small tables that are simply kept.
#[derive(Debug)]
pub(super) struct Journal {
    pub(super) nodes: Vec<NodeBefore>,
    /// Group, host, domain, and whether a pod came (or went).
    pub(super) counts: Vec<(GroupId, Host, Option<usize>, bool)>,
    closed: Vec<usize>,
    limits: Vec<Remaining>,
    zone_nodes: Vec<ZoneNodes>,
    reservations: Vec<u32>,
}

impl Round<'_> {
    /// From here on changes can be taken back by [`Self::take_back`].
    pub(super) fn open_journal(&mut self) {
        self.journal = Some(Journal {
            nodes: Vec::new(),
            counts: Vec::new(),
            closed: Vec::new(),
            limits: self.limits.clone(),
            zone_nodes: self.zone_nodes.clone(),
            reservations: self.reservations.left.clone(),
        });
    }

    /// Makes the round what it was when the journal was opened, without claims.
    pub(super) fn take_back(&mut self) {
        let Some(journal) = self.journal.take() else {
            return;
        };
        self.limits = journal.limits;
        self.zone_nodes = journal.zone_nodes;
        self.reservations.left = journal.reservations;
        for before in journal.nodes.into_iter().rev() {
            self.nodes.restore(before);
        }
        for (id, host, domain, came) in journal.counts.iter().rev() {
            let group = &mut self.topology.groups[*id];
            match came {
                true => group.unrecord(*host, *domain),
                false => group.record(*host, *domain),
            }
            if matches!(host, Host::Claim(_)) {
                group.on_claims = HostCounts::default();
            }
        }
        for node in journal.closed {
            self.nodes.closed.remove(node);
        }
        self.claims = Claims::default();
    }

    /// Makes the changes last. Planned claims are out of sight from now on: what comes later cannot rely on them.
    pub(super) fn make_last(&mut self) {
        let Some(journal) = self.journal.take() else {
            return;
        };
        for (id, host, _, _) in &journal.counts {
            if matches!(host, Host::Claim(_)) {
                self.topology.groups[*id].on_claims = HostCounts::default();
            }
        }
        self.claims = Claims::default();
    }

    /// Takes a node out: it takes no pods, its limits are free again, and those of its pods that move are not there.
    pub(super) fn take_node_out(&mut self, idx: usize, pods: &[usize]) {
        let was_closed = self.nodes.closed.contains(idx);
        self.nodes.closed.insert(idx);
        let node = Arc::clone(&self.nodes.entries[idx].node);
        let pool = node.pool.as_ref();
        let entry = self
            .pools
            .iter()
            .position(|entry| Some(&entry.pool.name) == pool);
        if let Some(pool) = entry {
            self.limits[pool].return_node(&self.resources.vector(&node.capacity));
            let count = node
                .zone()
                .and_then(|zone| self.zone_nodes[pool].get_mut(zone));
            if let Some(count) = count {
                *count = count.saturating_sub(1);
            }
        }
        let mut gone: Vec<(GroupId, Host, Option<usize>)> = Vec::new();
        for pod in pods {
            let class = &self.classes.classes[self.class_of[*pod]];
            let phase = self.pods[*pod].phase;
            for id in class.counted.iter().chain(&class.inverse) {
                let group = &self.topology.groups[*id];
                let was_counted = match group.identity.kind {
                    GroupKind::Spread { .. } => {
                        let eligible = group.eligible_nodes.as_ref();
                        phase == PodPhase::Active && eligible.is_none_or(|it| it.contains(idx))
                    }
                    GroupKind::Affinity
                    | GroupKind::AntiAffinity
                    | GroupKind::InverseAntiAffinity => true,
                };
                if was_counted {
                    let domain = domain_on(&self.topology, *id, &self.nodes.entries[idx]);
                    gone.push((*id, Host::Node(idx), domain));
                }
            }
        }
        for (id, host, domain) in gone {
            let group = &mut self.topology.groups[id];
            if domain.is_some() || group.identity.key == GroupKey::Hostname {
                group.unrecord(host, domain);
                if let Some(journal) = &mut self.journal {
                    journal.counts.push((id, host, domain, false));
                }
            }
        }
        if let Some(journal) = self.journal.as_mut().filter(|_| !was_closed) {
            journal.closed.push(idx);
        }
    }
}
