//! A last look at claims in pairs: two become one where that costs no more, so that a round makes few nodes.
//!
//! Pods that must be apart need a node each; the others came first if they were larger, and may have opened claims of
//! their own. A pair can be one when nothing that its pods ask for is broken: their requirement sets combine, one shape
//! holds them all for at most the price of the two, and every constraint on host names holds at each pod's turn in the
//! plan's order, with the preferences that the pod was placed with. Karpenter: differs, because it never moves a pod
//! once it is on a claim.

use std::collections::VecDeque;
use std::rc::Rc;

use super::bits::Bits;
use super::claims::Claim;
use super::class::{Class, Guest};
use super::nodes::conflicts;
use super::round::Round;
use super::sets::SetId;
use super::settle::HostBlocks;
use super::shelf::Blocked;
use super::topology::{GroupId, GroupKey, GroupKind};
use super::vector::Vector;

/// Prices are rounded to millionths, each by up to a half: a machine that is twice another at twice its price may cost a
/// millionth more.
const ROUNDING_MICROS: u64 = 1;
/// How many partners of a claim are priced. More find hardly a cheaper one.
const PRICED_MAX: usize = 16;
/// How many partners of a claim are looked at for those.
const LOOKED_AT_MAX: u64 = 128;
/// Kinds of claims whose refusals are remembered. A round has few kinds of claims at one price; more would cost memory.
const REFUSALS_MAX: usize = 32;

/// A claim that could take in another, and what the two become.
struct Partner {
    claim: usize,
    set: SetId,
    place: usize,
    saving: u64,
}

/// What a look at a possible partner found.
enum Look {
    Partner(Partner),
    /// No shape holds both for their price. So it stays until one of them changes.
    TooDear,
    /// Limits or host ports are in the way, now.
    NotNow,
}

/// What of a claim decides which partners are too dear for it.
#[derive(PartialEq, Eq)]
struct Kind {
    pool: usize,
    set: SetId,
    place: usize,
    used: Vector,
}

/// Claims that are too dear for a kind of claims. Without this the first full ones would be looked at again for every
/// claim like the last, and a round of thousands of nodes would never come to those that have room.
#[derive(Default)]
struct Refusals(Vec<(Kind, Bits)>);

impl Refusals {
    fn of(&self, kind: &Kind) -> Bits {
        let known = self.0.iter().find(|(known, _)| known == kind);
        known.map(|(_, hosts)| hosts.clone()).unwrap_or_default()
    }

    fn add(&mut self, kind: Kind, refused: &Bits) {
        if refused.is_empty() {
            return;
        }
        match self.0.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, hosts)) => hosts.unite(refused),
            None => {
                if self.0.len() == REFUSALS_MAX {
                    self.0.remove(0);
                }
                self.0.push((kind, refused.clone()));
            }
        }
    }

    /// The claim is another now.
    fn forget(&mut self, host: usize) {
        for (_, hosts) in &mut self.0 {
            hosts.remove(host);
        }
    }
}

impl Round<'_> {
    /// Makes one claim of two wherever that is possible at no higher price, the cheapest claims first. What has grown has
    /// another turn: two that are nothing for each other may each be the half of a third machine later.
    pub(super) fn merge_claims(&mut self, classes: &[Class]) {
        let price = |claim: &Claim| claim.view.order[claim.place].rank.price;
        let mut order: Vec<usize> = (0..self.claims.all.len())
            .filter(|claim| self.can_merge(*claim))
            .collect();
        order.sort_by_key(|claim| (price(&self.claims.all[*claim]), *claim));
        let mut refusals = Refusals::default();
        let mut queue = VecDeque::from(order);
        while let Some(claim) = queue.pop_front() {
            if self.claims.all[claim].pods.is_empty() {
                continue;
            }
            let mut partners = self.partners(claim, &mut refusals, classes);
            partners.sort_by_key(|it| (std::cmp::Reverse(it.saving), it.claim));
            let fitting = partners
                .into_iter()
                .find(|it| self.can_share(claim, it, classes));
            if let Some(partner) = fitting {
                self.merge(claim, &partner, classes);
                refusals.forget(partner.claim);
                queue.push_back(partner.claim);
            }
        }
    }

    /// Whether prices say all about the claim.
    fn can_merge(&self, claim: usize) -> bool {
        let claim = &self.claims.all[claim];
        !claim.pods.is_empty()
            && claim.min_values.is_empty()
            && claim.view.order[claim.place].rank.price.is_known()
            && self.pools[claim.pool].shapes[claim.shape()]
                .reservation
                .is_none()
    }

    /// Claims that have the room and the price to take this one in.
    fn partners(
        &mut self,
        claim: usize,
        refusals: &mut Refusals,
        classes: &[Class],
    ) -> Vec<Partner> {
        let away = self.refused_hosts(claim, classes);
        let kind = {
            let claim = &self.claims.all[claim];
            Kind {
                pool: claim.pool,
                set: claim.set,
                place: claim.place,
                used: claim.used.clone(),
            }
        };
        let (pool, own) = (kind.pool, kind.set);
        let (known, mut too_dear) = (refusals.of(&kind), Bits::default());
        let mut partners = Vec::new();
        let (mut looked_at, mut work) = (0, 0);
        'buckets: for bucket in 0..self.claims.buckets.len() {
            let other = &self.claims.buckets[bucket];
            if other.count == 0 || other.pool != pool {
                continue;
            }
            let Some(set) = self.sets.combine(other.set, own) else {
                continue;
            };
            let view = self.view(pool, set);
            let blocked = Blocked {
                by: vec![&away, &known],
                unless: Vec::new(),
            };
            let members = &self.claims.buckets[bucket].members;
            let hosts = self
                .claims
                .headroom
                .with_room(&kind.used, members, &blocked, &mut work);
            for host in hosts {
                if host == claim || !self.can_merge(host) {
                    continue;
                }
                looked_at += 1;
                match self.partner(claim, host, set, &view) {
                    Look::Partner(partner) => partners.push(partner),
                    Look::TooDear => too_dear.insert(host),
                    Look::NotNow => {}
                }
                if partners.len() >= PRICED_MAX || looked_at >= LOOKED_AT_MAX {
                    break 'buckets;
                }
            }
        }
        self.work += work + looked_at;
        refusals.add(kind, &too_dear);
        partners
    }

    /// The claims that constraints of this one's pods on host names leave out.
    fn refused_hosts(&self, claim: usize, classes: &[Class]) -> Bits {
        let pods = &self.claims.all[claim].pods;
        let mut guests: Vec<(usize, usize)> = pods
            .iter()
            .map(|pod| (self.class_of[*pod], self.seats[*pod].variant))
            .collect();
        guests.sort_unstable();
        guests.dedup();
        let mut refused = Bits::default();
        for (class, variant) in guests {
            let class = &classes[class];
            let variant = &class.variants[variant];
            let blocks = HostBlocks::of(Guest { class, variant }, &self.topology);
            for bits in blocks.on_claims().by {
                refused.unite(bits);
            }
        }
        refused
    }

    /// The cheapest shape that holds both, if it costs at most what the two cost.
    fn partner(&self, claim: usize, host: usize, set: SetId, view: &super::view::View) -> Look {
        let (guest, host_claim) = (&self.claims.all[claim], &self.claims.all[host]);
        let pool = &self.pools[guest.pool];
        let total = guest.used.sum(&host_claim.used);
        if !view.can_hold(&total, pool) {
            return Look::TooDear;
        }
        let rank = |claim: &Claim| claim.view.order[claim.place].rank;
        let both = rank(guest)
            .price
            .micros()
            .saturating_add(rank(host_claim).price.micros())
            .saturating_add(ROUNDING_MICROS);
        let score = rank(guest).score.min(rank(host_claim).score);
        let start = view.place(host_claim.shape()).unwrap_or(0);
        let ranked = view.order.iter().enumerate().skip(start);
        let affordable = ranked.take_while(|(_, it)| {
            it.rank.score < score || (it.rank.score == score && it.rank.price.micros() <= both)
        });
        let mut holding = affordable
            .filter(|(_, it)| {
                let shape = &pool.shapes[it.shape];
                total.fits_in(&shape.room)
                    && it.rank.price.is_known()
                    && shape.reservation.is_none()
            })
            .peekable();
        if holding.peek().is_none() {
            return Look::TooDear;
        }
        if conflicts(&guest.ports, &host_claim.ports) {
            return Look::NotNow;
        }
        let capacity = |claim: &Claim| &pool.shapes[claim.shape()].capacity;
        let now = capacity(guest).sum(capacity(host_claim));
        let found = holding.find(|(_, it)| {
            let shape = &pool.shapes[it.shape];
            self.limits[guest.pool].allows_change(&now, &shape.capacity)
                && !conflicts(&guest.ports, &shape.daemon_ports)
                && !conflicts(&host_claim.ports, &shape.daemon_ports)
        });
        let partner = found.and_then(|(place, found)| {
            Some(Partner {
                claim: host,
                set,
                place,
                saving: both.checked_sub(found.rank.price.micros())?,
            })
        });
        partner.map_or(Look::NotNow, Look::Partner)
    }

    /// Whether every constraint still holds when the two are one.
    fn can_share(&mut self, claim: usize, partner: &Partner, classes: &[Class]) -> bool {
        let is_counted_as_before = [claim, partner.claim]
            .into_iter()
            .all(|it| self.is_counted_as_before(it, partner.set, classes));
        is_counted_as_before && self.hold_in_order(claim, partner, classes)
    }

    /// Whether the claim's pods count for constraints on labels as they do now when it has that set.
    fn is_counted_as_before(&mut self, claim: usize, set: SetId, classes: &[Class]) -> bool {
        let (pool, own) = (self.claims.all[claim].pool, self.claims.all[claim].set);
        if own == set {
            return true;
        }
        let before = Rc::clone(&self.claims.all[claim].view);
        let after = self.view(pool, set);
        let appears = |(before, after): (&Bits, &Bits)| before.is_empty() != after.is_empty();
        if before.domains.iter().zip(&after.domains).any(appears) {
            return false;
        }
        (0..self.claims.all[claim].pods.len()).all(|idx| {
            let pod = self.claims.all[claim].pods[idx];
            let counted = &classes[self.class_of[pod]].counted;
            counted
                .iter()
                .all(|id| self.counts_under(*id, pool, own) == self.counts_under(*id, pool, set))
        })
    }

    /// Goes through the pods of both in the order of the plan and asks of each what was asked when it was placed.
    fn hold_in_order(&mut self, claim: usize, partner: &Partner, classes: &[Class]) -> bool {
        let pool = self.claims.all[claim].pool;
        let mut counts: Vec<(GroupId, u32)> = Vec::new();
        for pod in self.pods_of_both(claim, partner.claim) {
            let class = &classes[self.class_of[pod]];
            let variant = &class.variants[self.seats[pod].variant];
            let holds = self.holds_on_host(Guest { class, variant }, &counts);
            if !holds {
                return false;
            }
            for id in class.counted.iter().chain(&class.inverse) {
                let is_of_host = self.topology.groups[*id].identity.key == GroupKey::Hostname;
                if !is_of_host || !self.counts_under(*id, pool, partner.set) {
                    continue;
                }
                match counts.iter_mut().find(|(known, _)| known == id) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((*id, 1)),
                }
            }
        }
        true
    }

    /// Whether the pod may be on a host where the groups have those counts.
    fn holds_on_host(&self, guest: Guest<'_>, counts: &[(GroupId, u32)]) -> bool {
        let count = |id: GroupId| {
            let known = counts.iter().find(|(known, _)| *known == id);
            known.map_or(0, |(_, count)| *count)
        };
        let is_kept_away = guest.class.blocked_by.iter().any(|id| count(*id) > 0);
        !is_kept_away
            && guest.variant.owned.iter().all(|owned| {
                let identity = &self.topology.groups[owned.group].identity;
                if identity.key != GroupKey::Hostname {
                    return true;
                }
                match identity.kind {
                    GroupKind::Spread { max_skew, .. } => {
                        count(owned.group) + u32::from(owned.counts_itself) <= max_skew
                    }
                    // Who was together stays together.
                    GroupKind::Affinity => true,
                    GroupKind::AntiAffinity | GroupKind::InverseAntiAffinity => {
                        count(owned.group) == 0
                    }
                }
            })
    }

    /// The pods of two claims in the order in which they were placed.
    fn pods_of_both(&self, one: usize, other: usize) -> Vec<usize> {
        let all = &self.claims.all;
        let mut pods = [&*all[one].pods, &*all[other].pods].concat();
        pods.sort_by_key(|pod| self.seats[*pod].turn);
        pods
    }

    fn merge(&mut self, claim: usize, partner: &Partner, classes: &[Class]) {
        let pods = self.pods_of_both(claim, partner.claim);
        let leaving = &self.claims.all[claim];
        let (pool, set, shape) = (leaving.pool, leaving.set, leaving.shape());
        let (used, ports) = (leaving.used.clone(), leaving.ports.clone());
        for pod in &leaving.pods {
            let class = &classes[self.class_of[*pod]];
            for id in class.counted.iter().chain(&class.inverse) {
                self.topology.groups[*id].join(partner.claim);
            }
        }
        self.limits[pool].return_node(&self.pools[pool].shapes[shape].capacity);
        self.uncount_zone(pool, set);
        self.claims.remove(claim);
        let host = &mut self.claims.all[partner.claim];
        host.used.add(&used);
        host.ports.extend(ports);
        host.pods = pods;
        self.reshape(partner.claim, partner.set, partner.place);
    }
}
