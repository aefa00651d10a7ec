//! Spread constraints and pod (anti-)affinity as groups with a counter per domain.
//!
//! A group is one constraint; equal constraints of different pods share one. For each pod a group can matter in two
//! ways: the pod has the constraint, or the pod is one of those that the constraint speaks of. Anti-affinity makes
//! two groups, since it also holds the other way round: pods stay away from where its owners are.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::bits::Bits;
use super::domains::KeyId;
use super::sets::SetId;
use super::taints::TolerationsId;
use crate::planted::{self, Bug};
use crate::selector::{LabelSelector, Labels};

/// The number of a group.
pub(super) type GroupId = usize;

/// The label that a group is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum GroupKey {
    /// Each node is a domain of its own.
    Hostname,
    Label(KeyId),
}

/// What a group asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum GroupKind {
    /// Counts of domains differ by at most `max_skew`.
    Spread { max_skew: u32, min_domains: u32 },
    /// Only where pods of the group are.
    Affinity,
    /// Only where no pods of the group are.
    AntiAffinity,
    /// Pods of the group go only where no owner of the constraint is. Owners are counted.
    InverseAntiAffinity,
}

/// Pods by namespace and labels.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    /// None: all namespaces.
    pub(super) namespaces: Option<BTreeSet<String>>,
    pub(super) selector: Option<LabelSelector>,
}

impl Scope {
    fn matches(&self, namespace: &str, labels: &Labels) -> bool {
        self.namespaces
            .as_ref()
            .is_none_or(|names| names.contains(namespace))
            && self
                .selector
                .as_ref()
                .is_some_and(|selector| selector.matches(labels))
    }
}

/// Which nodes count for a group.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Filter {
    /// Nodes that meet one of these; empty: all.
    pub(super) terms: Vec<SetId>,
    /// Nodes whose taints these tolerate; none: all.
    pub(super) tolerations: Option<TolerationsId>,
}

impl Filter {
    pub(super) fn is_open(&self) -> bool {
        self.terms.is_empty() && self.tolerations.is_none()
    }
}

/// What makes two constraints the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    pub(super) key: GroupKey,
    pub(super) kind: GroupKind,
    /// All must match. Affinity terms of one pod count only pods that match every term, as in kube-scheduler.
    pub(super) scopes: Vec<Scope>,
    pub(super) filter: Filter,
}

/// A constraint and the counts of its domains.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) identity: Identity,
    /// Pods by domain; unused for hostnames.
    pub(super) counts: Vec<u32>,
    /// Pods in any domain.
    pub(super) total: u32,
    /// Domains that count for the least one of a spread.
    pub(super) eligible: Bits,
    /// Existing nodes that pass the filter; none: all.
    pub(super) eligible_nodes: Option<Bits>,
    pub(super) on_nodes: HostCounts,
    pub(super) on_claims: HostCounts,
}

/// Pods of a group by host.
#[derive(Debug, Default)]
pub(super) struct HostCounts {
    counts: Vec<u32>,
    /// Hosts with any.
    pub(super) present: Bits,
    /// Hosts that can take no further pod of the group.
    pub(super) full: Bits,
    /// Hosts that have more than they may.
    pub(super) overfull: Bits,
}

impl HostCounts {
    fn add(&mut self, host: usize, max_skew: u32) {
        if host >= self.counts.len() {
            self.counts.resize(host + 1, 0);
        }
        self.counts[host] += 1;
        self.present.insert(host);
        if self.counts[host] >= max_skew {
            self.full.insert(host);
        }
        if self.counts[host] > max_skew {
            self.overfull.insert(host);
        }
    }
}

impl HostCounts {
    fn remove(&mut self, host: usize, max_skew: u32) {
        let Some(count) = self.counts.get_mut(host).filter(|count| **count > 0) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.present.remove(host);
        }
        if *count < max_skew {
            self.full.remove(host);
        }
        if *count <= max_skew {
            self.overfull.remove(host);
        }
    }
}

/// Where a pod is: the host and, by topology key, its domain.
#[derive(Debug, Clone, Copy)]
pub(super) enum Host {
    Node(usize),
    Claim(usize),
}

impl Group {
    pub(super) fn matches(&self, namespace: &str, labels: &Labels) -> bool {
        self.identity
            .scopes
            .iter()
            .all(|scope| scope.matches(namespace, labels))
    }

    pub(super) fn count(&self, domain: usize) -> u32 {
        self.counts.get(domain).copied().unwrap_or(0)
    }

    /// Counts a pod on a host, in its domain of the group's key if it has one.
    pub(super) fn record(&mut self, host: Host, domain: Option<usize>) {
        match (self.identity.key, domain) {
            (GroupKey::Label(_), Some(domain)) => {
                if domain >= self.counts.len() {
                    self.counts.resize(domain + 1, 0);
                }
                self.counts[domain] += 1;
                self.total += 1;
            }
            (GroupKey::Label(_), None) => {}
            (GroupKey::Hostname, _) => {
                let max_skew = self.max_skew();
                self.total += 1;
                match host {
                    Host::Node(idx) => self.on_nodes.add(idx, max_skew),
                    Host::Claim(idx) => self.on_claims.add(idx, max_skew),
                }
            }
        }
    }

    /// Takes back [`Self::record`].
    pub(super) fn unrecord(&mut self, host: Host, domain: Option<usize>) {
        match (self.identity.key, domain) {
            (GroupKey::Label(_), Some(domain)) => {
                if let Some(count) = self.counts.get_mut(domain).filter(|count| **count > 0) {
                    *count -= 1;
                    self.total = self.total.saturating_sub(1);
                }
            }
            (GroupKey::Label(_), None) => {}
            (GroupKey::Hostname, _) => {
                let max_skew = self.max_skew();
                self.total = self.total.saturating_sub(1);
                match host {
                    Host::Node(idx) => self.on_nodes.remove(idx, max_skew),
                    Host::Claim(idx) => self.on_claims.remove(idx, max_skew),
                }
            }
        }
    }

    /// Counts a pod on a claim that it joins from another, for constraints on host names.
    pub(super) fn join(&mut self, claim: usize) {
        if self.identity.key == GroupKey::Hostname {
            self.on_claims.add(claim, self.max_skew());
        }
    }

    fn max_skew(&self) -> u32 {
        match self.identity.kind {
            GroupKind::Spread { max_skew, .. } => max_skew,
            GroupKind::Affinity | GroupKind::AntiAffinity | GroupKind::InverseAntiAffinity => {
                u32::MAX
            }
        }
    }

    /// Whether only some nodes count for it.
    pub(super) fn has_filter(&self) -> bool {
        matches!(self.identity.kind, GroupKind::Spread { .. }) && !self.identity.filter.is_open()
    }

    /// The count of the emptiest of the domains, as far as the constraint knows: 0 with fewer than it wants.
    pub(super) fn least_count(&self, domains: &Bits, min_domains: u32) -> u32 {
        let mut known = 0;
        let mut least = u32::MAX;
        for domain in domains.iter() {
            known += 1;
            least = least.min(self.count(domain));
        }
        let too_few = known < min_domains && !planted::is_on(Bug::MinDomainsIgnored);
        if too_few || least == u32::MAX {
            0
        } else {
            least
        }
    }

    /// Whether it spreads over the values of a label.
    pub(super) fn is_label_spread(&self) -> bool {
        matches!(self.identity.kind, GroupKind::Spread { .. })
            && self.identity.key != GroupKey::Hostname
    }
}

/// All groups of a round.
#[derive(Debug, Default)]
pub(super) struct Topology {
    pub(super) groups: Vec<Group>,
    ids: FxHashMap<Identity, GroupId>,
    /// Groups whose first scope selects by one label value, by that label; the others are tried for every pod.
    by_label: FxHashMap<(String, String), Vec<GroupId>>,
    unlabelled: Vec<GroupId>,
}

impl Topology {
    /// The group of that identity, and whether it is new.
    pub(super) fn group(&mut self, identity: Identity) -> (GroupId, bool) {
        if let Some(id) = self.ids.get(&identity) {
            return (*id, false);
        }
        let id = self.groups.len();
        self.ids.insert(identity.clone(), id);
        let selector = identity
            .scopes
            .first()
            .and_then(|scope| scope.selector.as_ref());
        match selector.and_then(|selector| selector.match_labels.first_key_value()) {
            Some((key, value)) => self
                .by_label
                .entry((key.clone(), value.clone()))
                .or_default()
                .push(id),
            None => self.unlabelled.push(id),
        }
        self.groups.push(Group {
            identity,
            counts: Vec::new(),
            total: 0,
            eligible: Bits::default(),
            eligible_nodes: None,
            on_nodes: HostCounts::default(),
            on_claims: HostCounts::default(),
        });
        (id, true)
    }

    /// The groups that speak of a pod with these labels, in order.
    pub(super) fn groups_of(&self, namespace: &str, labels: &Labels) -> Vec<GroupId> {
        let mut candidates = self.unlabelled.clone();
        if !self.by_label.is_empty() {
            for (key, value) in labels {
                candidates.extend(
                    self.by_label
                        .get(&(key.clone(), value.clone()))
                        .into_iter()
                        .flatten(),
                );
            }
        }
        candidates.sort_unstable();
        candidates.retain(|id| self.groups[*id].matches(namespace, labels));
        candidates
    }
}
