//! What topology constraints leave of a claim's or node's possibilities.
//!
//! A claim settles on one domain of a key as soon as a pod is on it that some constraint on the key counts or binds.
//! Karpenter: differs, because it leaves the domain open and counts nothing until it is known; then pods of one round
//! can break each other's constraints, or wait a round each.

use super::bits::Bits;
use super::class::{Guest, Owned, Variant};
use super::domains::KeyId;
use super::pool::Rank;
use super::round::Round;
use super::sets::SetId;
use super::shelf::Blocked;
use super::topology::{Filter, Group, GroupId, GroupKey, GroupKind, HostCounts, Topology};
use crate::labels;
use crate::planted::{self, Bug};
use crate::requirement::Requirement;
use crate::requirements::Requirements;

/// More alternatives than this are never needed to find one that fits, and keep the product of several keys small.
const MAX_SETTLED: usize = 64;

impl Round<'_> {
    /// Adds the sets that settle every key that matters, best first.
    pub(super) fn settle(
        &mut self,
        pool: usize,
        set: SetId,
        guest: Guest<'_>,
        settled: &mut Vec<SetId>,
    ) {
        let mut open = vec![set];
        for key in &guest.variant.keys {
            let mut next = Vec::with_capacity(1);
            for set in open {
                self.settle_key(pool, set, *key, guest, &mut next);
                if next.len() >= MAX_SETTLED {
                    break;
                }
            }
            open = next;
        }
        for id in &guest.class.counted {
            if self.topology.groups[*id].has_filter() {
                let mut next = Vec::with_capacity(1);
                for set in open {
                    self.around_filter(pool, set, *id, &mut next);
                }
                next.truncate(MAX_SETTLED);
                open = next;
            }
        }
        settled.append(&mut open);
    }

    /// The sets with which it is sure whether nodes count for the group: first those that pass its filter, then those that
    /// do not. If a claim could still become a node that passes or one that does not, its pods would count or not.
    fn around_filter(&mut self, pool: usize, set: SetId, id: GroupId, settled: &mut Vec<SetId>) {
        let filter = self.topology.groups[id].identity.filter.clone();
        let mut sets = self.passing_sets(pool, set, &filter);
        if sets.is_empty() || sets.contains(&set) {
            settled.push(set);
            return;
        }
        sets.append(&mut self.failing_sets(set, &filter));
        let before = settled.len();
        for it in sets {
            if !self.view(pool, it).order.is_empty() {
                settled.push(it);
            }
        }
        if settled.len() == before {
            settled.push(set);
        }
    }

    /// What the set becomes when no node of it passes the filter: one set per way to fail all its terms. A bound cannot be
    /// turned round, so that a term with bounds only has no such way.
    fn failing_sets(&mut self, set: SetId, filter: &Filter) -> Vec<SetId> {
        let mut failing = vec![set];
        for term in &filter.terms {
            let mut next = Vec::with_capacity(1);
            for set in failing {
                if self.sets.combine(set, *term).is_none() {
                    next.push(set);
                    continue;
                }
                let term = std::sync::Arc::clone(self.sets.at(*term));
                for opposite in term.iter().filter_map(Requirement::opposite) {
                    let only = self.sets.intern(Requirements::from_iter([opposite]));
                    next.extend(self.sets.combine(set, only));
                }
            }
            next.truncate(MAX_SETTLED);
            failing = next;
        }
        failing
    }

    fn settle_key(
        &mut self,
        pool: usize,
        set: SetId,
        key: KeyId,
        guest: Guest<'_>,
        settled: &mut Vec<SetId>,
    ) {
        let view = self.view(pool, set);
        let own = &view.domains[key.idx()];
        if own.is_empty() {
            if !self.needs_domain(key, guest.variant) {
                settled.push(set);
            }
            return;
        }
        let mut allowed = own.clone();
        self.keep_allowed_domains(&mut allowed, key, guest);
        let mut choices: Vec<(DomainOrder, SetId)> = Vec::with_capacity(1);
        for domain in allowed.iter() {
            if let Some(narrowed) = self.sets.narrow(set, key, domain, &self.domains) {
                let order = self.domain_order(pool, narrowed, key, domain, &guest.variant.owned);
                choices.extend(order.map(|order| (order, narrowed)));
            }
        }
        choices.sort();
        settled.extend(choices.into_iter().map(|(_, set)| set));
    }

    /// Where a domain stands among those that are allowed; none when nothing can be bought there.
    fn domain_order(
        &mut self,
        pool: usize,
        set: SetId,
        key: KeyId,
        domain: usize,
        owned: &[Owned],
    ) -> Option<DomainOrder> {
        let view = self.view(pool, set);
        let best = view.order.first()?.rank;
        let groups = owned.iter().map(|owned| &self.topology.groups[owned.group]);
        let spread = groups
            .filter(|group| group.is_spread_on(key))
            .map(|group| group.count(domain))
            .sum();
        let value = std::sync::Arc::clone(self.domains.value(key, domain));
        let is_zone = &*self.domains.name(key) == labels::ZONE;
        let (nodes, free_ips) = if is_zone {
            let nodes = self.zone_nodes[pool].get(&*value).copied().unwrap_or(0);
            (
                nodes,
                self.pools[pool]
                    .pool
                    .free_ips
                    .get(&*value)
                    .copied()
                    .unwrap_or(0),
            )
        } else {
            (0, 0)
        };
        let is_balanced = self.pools[pool].pool.is_zone_balanced;
        Some(DomainOrder {
            spread,
            nodes_first: if is_balanced { nodes } else { 0 },
            best,
            nodes,
            free_ips: std::cmp::Reverse(free_ips),
            value,
        })
    }

    /// Settles every claim that could still be in several domains of the keys, so that no domain will turn out to have a
    /// node that nobody counted with.
    pub(super) fn settle_claims(&mut self, keys: &[KeyId]) {
        for claim in 0..self.claims.all.len() {
            for key in keys {
                self.settle_claim(claim, *key);
            }
        }
    }

    fn settle_claim(&mut self, claim: usize, key: KeyId) {
        let (pool, set) = (self.claims.all[claim].pool, self.claims.all[claim].set);
        let view = std::rc::Rc::clone(&self.claims.all[claim].view);
        let mut choices: Vec<(Rank, DomainOrder, SetId, usize)> = Vec::new();
        for domain in view.domains[key.idx()].iter() {
            let Some(narrowed) = self.sets.narrow(set, key, domain, &self.domains) else {
                continue;
            };
            let there = self.view(pool, narrowed);
            let own = &self.claims.all[claim];
            let current = view.order[own.place];
            let holds = |place: &usize| there.order[*place].shape == current.shape;
            let place = (0..there.order.len()).find(holds);
            if let (Some(place), Some(order)) =
                (place, self.domain_order(pool, narrowed, key, domain, &[]))
            {
                choices.push((there.order[place].rank, order, narrowed, place));
            }
        }
        if let Some((_, _, set, place)) = choices.into_iter().min() {
            self.reshape(claim, set, place);
        }
    }

    /// Whether a constraint of the pod needs the label to be there at all.
    fn needs_domain(&self, key: KeyId, variant: &Variant) -> bool {
        let groups = variant
            .owned
            .iter()
            .map(|owned| &self.topology.groups[owned.group]);
        groups
            .filter(|group| group.identity.key == GroupKey::Label(key))
            .any(Group::needs_domain)
    }

    /// Takes away the domains that some constraint on the key forbids.
    fn keep_allowed_domains(&self, allowed: &mut Bits, key: KeyId, guest: Guest<'_>) {
        let retain = |allowed: &mut Bits, keep: &dyn Fn(usize) -> bool| {
            let removed: Vec<usize> = allowed.iter().filter(|domain| !keep(*domain)).collect();
            for domain in removed {
                allowed.remove(domain);
            }
        };
        for owned in &guest.variant.owned {
            let group = &self.topology.groups[owned.group];
            if group.identity.key != GroupKey::Label(key) {
                continue;
            }
            match group.identity.kind {
                GroupKind::Spread {
                    max_skew,
                    min_domains,
                } => {
                    let most = match guest.variant.is_last_resort {
                        true => {
                            group.least_count(&self.inhabited_domains(group, key), min_domains)
                                + max_skew
                        }
                        false => group.least_count(&group.eligible, min_domains) + max_skew,
                    };
                    let most = most + u32::from(planted::is_on(Bug::SkewOffByOne));
                    retain(allowed, &|domain| {
                        group.count(domain) + u32::from(owned.counts_itself) <= most
                    });
                }
                GroupKind::Affinity if group.total == 0 && owned.counts_itself => {}
                GroupKind::Affinity => retain(allowed, &|domain| group.count(domain) > 0),
                GroupKind::AntiAffinity | GroupKind::InverseAntiAffinity => {
                    retain(allowed, &|domain| group.count(domain) == 0);
                }
            }
        }
        for id in &guest.class.blocked_by {
            let group = &self.topology.groups[*id];
            if group.identity.key == GroupKey::Label(key) {
                retain(allowed, &|domain| group.count(domain) == 0);
            }
        }
    }

    /// The domains that have nodes which the group counts, or may have them once the round's claims have become nodes.
    fn inhabited_domains(&self, group: &Group, key: KeyId) -> Bits {
        let mut domains = self.nodes.domains_of(key, group.eligible_nodes.as_ref());
        for bucket in self.claims.buckets.iter().filter(|bucket| bucket.count > 0) {
            domains.unite(&bucket.view.domains[key.idx()]);
        }
        domains.intersect(&group.eligible);
        domains
    }

    /// Takes away the nodes that are in forbidden domains.
    pub(super) fn keep_allowed_nodes(&self, nodes: &mut Bits, guest: Guest<'_>) {
        for key in &guest.variant.keys {
            let binds = |id: usize| self.topology.groups[id].identity.key == GroupKey::Label(*key);
            let is_bound = guest.variant.owned.iter().any(|owned| binds(owned.group));
            if !is_bound && !guest.class.blocked_by.iter().any(|id| binds(*id)) {
                continue;
            }
            let mut allowed = self.nodes.domains_of(*key, None);
            self.keep_allowed_domains(&mut allowed, *key, guest);
            nodes.intersect(&self.nodes.in_domains(
                *key,
                &allowed,
                !self.needs_domain(*key, guest.variant),
            ));
        }
    }
}

/// Where a domain stands: fewest pods of the constraint, in a pool with balanced zones fewest nodes, best offering, fewest nodes of the pool, most free IPs, name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DomainOrder {
    spread: u32,
    /// Of a pool whose zones are kept in balance; else 0.
    nodes_first: u32,
    best: Rank,
    nodes: u32,
    free_ips: std::cmp::Reverse<u64>,
    value: std::sync::Arc<str>,
}

impl Group {
    fn is_spread_on(&self, key: KeyId) -> bool {
        self.identity.key == GroupKey::Label(key)
            && matches!(self.identity.kind, GroupKind::Spread { .. })
    }

    fn needs_domain(&self) -> bool {
        match self.identity.kind {
            GroupKind::Spread { .. } | GroupKind::Affinity => true,
            GroupKind::AntiAffinity | GroupKind::InverseAntiAffinity => false,
        }
    }
}

/// The hosts that constraints on the hostname leave out.
pub(super) struct HostBlocks<'a> {
    /// Groups whose hosts are out, and which of them.
    by: Vec<(&'a Group, Part)>,
    /// Affinity groups: only their hosts are in.
    unless: Vec<&'a Group>,
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Present,
    Full,
    Overfull,
}

impl Part {
    fn of(self, counts: &HostCounts) -> &Bits {
        match self {
            Self::Present => &counts.present,
            Self::Full => &counts.full,
            Self::Overfull => &counts.overfull,
        }
    }
}

impl<'a> HostBlocks<'a> {
    pub(super) fn of(guest: Guest<'_>, topology: &'a Topology) -> Self {
        let mut blocks = Self {
            by: Vec::new(),
            unless: Vec::new(),
        };
        for owned in &guest.variant.owned {
            let group = &topology.groups[owned.group];
            if group.identity.key != GroupKey::Hostname {
                continue;
            }
            match group.identity.kind {
                GroupKind::Spread { .. } if owned.counts_itself => {
                    blocks.by.push((group, Part::Full));
                }
                GroupKind::Spread { .. } => blocks.by.push((group, Part::Overfull)),
                GroupKind::Affinity if group.total == 0 && owned.counts_itself => {}
                GroupKind::Affinity => blocks.unless.push(group),
                GroupKind::AntiAffinity | GroupKind::InverseAntiAffinity => {
                    blocks.by.push((group, Part::Present));
                }
            }
        }
        let away = guest
            .class
            .blocked_by
            .iter()
            .map(|id| &topology.groups[*id]);
        blocks.by.extend(
            away.filter(|it| it.identity.key == GroupKey::Hostname)
                .map(|it| (it, Part::Present)),
        );
        blocks
    }

    pub(super) fn on_nodes(&self) -> Blocked<'a> {
        self.blocked(|group| &group.on_nodes)
    }

    pub(super) fn on_claims(&self) -> Blocked<'a> {
        self.blocked(|group| &group.on_claims)
    }

    /// Whether the pod may be the first on a host.
    pub(super) fn allow_new_host(&self) -> bool {
        self.unless.is_empty()
    }

    fn blocked(&self, counts: impl Fn(&'a Group) -> &'a HostCounts) -> Blocked<'a> {
        Blocked {
            by: self
                .by
                .iter()
                .map(|(group, part)| part.of(counts(group)))
                .collect(),
            unless: self
                .unless
                .iter()
                .map(|group| &counts(group).present)
                .collect(),
        }
    }
}
