//! Where one pod can go: on an existing node, on a claim of this round, or on a new one.
//!
//! Nothing changes here; [`super::commit`] does that.

use super::bits::Bits;
use super::class::{Class, Guest};
use super::nodes::conflicts;
use super::pool::{PoolEntry, Shape};
use super::round::Round;
use super::sets::SetId;
use super::settle::HostBlocks;
use super::vector::Vector;
use super::view::View;

/// Where a pod can go.
#[derive(Debug, Clone)]
pub(super) enum Spot {
    /// An existing node.
    Node(usize),
    /// A claim of this round, which becomes the shape at that place of the view of that set.
    Claim {
        claim: usize,
        set: SetId,
        place: usize,
    },
    /// A new claim of a pool.
    New(NewClaim),
}

/// A claim to open.
#[derive(Debug, Clone)]
pub(super) struct NewClaim {
    pub(super) pool: usize,
    pub(super) set: SetId,
    pub(super) place: usize,
    pub(super) min_values: Vec<(String, u32)>,
    pub(super) min_values_relaxed: bool,
}

/// How many claims are looked at for the one that grows at the least cost. More find hardly a better one.
const GROWTH_CANDIDATES: usize = 8;

impl Round<'_> {
    /// The best spot for a pod, if there is one.
    pub(super) fn find_spot(&mut self, guest: Guest<'_>) -> Option<Spot> {
        let set = guest.variant.set?;
        if let Some(node) = self.find_node(guest, set, None) {
            return Some(Spot::Node(node));
        }
        let mut open = Vec::new();
        if let Some(spot) = self.find_free_claim(guest, set, &mut open) {
            return Some(spot);
        }
        let new = self.find_new_claim(guest, set);
        let new_price = new.as_ref().map(|new| self.price_of_new(new));
        let limit = if new.is_some() {
            GROWTH_CANDIDATES
        } else {
            usize::MAX
        };
        let growth = self.find_growth(guest, &open, limit);
        match (growth, new_price) {
            (Some((spot, cost)), Some(price)) if cost <= price && cost < u64::MAX => Some(spot),
            (Some((spot, _)), None) => Some(spot),
            (_, _) => new.map(Spot::New),
        }
    }

    /// Whether the pod can go to that node, its home from an earlier round.
    pub(super) fn fits_home(&mut self, guest: Guest<'_>, home: usize) -> bool {
        guest
            .variant
            .set
            .is_some_and(|set| self.find_node(guest, set, Some(home)).is_some())
    }

    /// The first node that can take the pod; with a home, that one or none.
    pub(super) fn find_node(
        &mut self,
        guest: Guest<'_>,
        set: SetId,
        home: Option<usize>,
    ) -> Option<usize> {
        if self.nodes.entries.is_empty() {
            return None;
        }
        let suits =
            self.nodes
                .compatible(set, guest.variant.tolerations, &self.sets, &mut self.taints);
        if suits.is_empty() {
            return None;
        }
        let mut members = Bits::clone(&suits);
        members.subtract(&self.nodes.closed);
        if let Some(home) = home {
            members.intersect(&std::iter::once(home).collect());
        }
        self.keep_allowed_nodes(&mut members, guest);
        for alternative in &guest.class.alternatives {
            let reachable = self.nodes.compatible(
                *alternative,
                guest.variant.tolerations,
                &self.sets,
                &mut self.taints,
            );
            let mut candidates = members.clone();
            candidates.intersect(&reachable);
            let blocks = HostBlocks::of(guest, &self.topology);
            let blocked = blocks.on_nodes();
            let mut rooms = self.nodes.shelf.with_room(
                &guest.class.request,
                &candidates,
                &blocked,
                &mut self.work,
            );
            if let Some(found) = rooms.find(|idx| self.nodes.can_attach(*idx, guest.class)) {
                return Some(found);
            }
        }
        None
    }

    /// A claim that holds the pod without costing more. Where a claim could become larger is noted in `open`.
    fn find_free_claim(
        &mut self,
        guest: Guest<'_>,
        wanted: SetId,
        open: &mut Vec<(usize, SetId)>,
    ) -> Option<Spot> {
        for bucket in 0..self.claims.buckets.len() {
            if self.claims.buckets[bucket].count == 0 {
                continue;
            }
            let (pool, own) = (
                self.claims.buckets[bucket].pool,
                self.claims.buckets[bucket].set,
            );
            for set in self.reachable_sets(pool, own, wanted, guest) {
                if let Some(spot) = self.find_free_in(bucket, set, guest) {
                    return Some(spot);
                }
                open.push((bucket, set));
            }
        }
        None
    }

    /// The sets that a claim with that set can have once a pod of the guest.class is on it, best first.
    pub(super) fn reachable_sets(
        &mut self,
        pool: usize,
        own: SetId,
        wanted: SetId,
        guest: Guest<'_>,
    ) -> Vec<SetId> {
        self.work += 1;
        if !self
            .taints
            .tolerated(self.pools[pool].taints, guest.variant.tolerations)
        {
            return Vec::new();
        }
        let Some(combined) = self.sets.combine(own, wanted) else {
            return Vec::new();
        };
        let mut sets = Vec::with_capacity(1);
        for alternative in &guest.class.alternatives {
            if let Some(set) = self.sets.combine(combined, *alternative) {
                self.settle(pool, set, guest, &mut sets);
            }
        }
        sets
    }

    fn find_free_in(&mut self, bucket: usize, set: SetId, guest: Guest<'_>) -> Option<Spot> {
        let (pool, is_same) = (
            self.claims.buckets[bucket].pool,
            self.claims.buckets[bucket].set == set,
        );
        let view = self.view(pool, set);
        let blocks = HostBlocks::of(guest, &self.topology);
        let blocked = blocks.on_claims();
        let members = &self.claims.buckets[bucket].members;
        let mut work = 0;
        let mut found = None;
        for claim in
            self.claims
                .free
                .with_room(&guest.class.claim_request, members, &blocked, &mut work)
        {
            let own = &self.claims.all[claim];
            // Under a narrower set the claim must still be the same shape at the same price.
            let place = if is_same {
                Some(own.place)
            } else {
                same_price_place(&own.view, own.place, &view)
            };
            let Some(place) = place else { continue };
            let ports = &guest.class.spec.host_ports;
            let daemon_ports = &self.pools[pool].shapes[view.order[place].shape].daemon_ports;
            let fits_ports = !conflicts(ports, &own.ports) && !conflicts(ports, daemon_ports);
            if fits_ports && self.keeps_min_values(claim, &view, guest.class) {
                found = Some(Spot::Claim { claim, set, place });
                break;
            }
        }
        self.work += work;
        found
    }

    /// The claim that becomes larger at the least cost, among the first few that can.
    fn find_growth(
        &mut self,
        guest: Guest<'_>,
        open: &[(usize, SetId)],
        limit: usize,
    ) -> Option<(Spot, u64)> {
        let mut best: Option<(Spot, u64)> = None;
        let mut tried = 0;
        for (bucket, set) in open {
            let view = self.view(self.claims.buckets[*bucket].pool, *set);
            let blocks = HostBlocks::of(guest, &self.topology);
            let blocked = blocks.on_claims();
            let members = &self.claims.buckets[*bucket].members;
            let mut work = 0;
            for claim in self.claims.headroom.with_room(
                &guest.class.claim_request,
                members,
                &blocked,
                &mut work,
            ) {
                let Some((place, cost)) = self.growth(claim, *set, &view, guest.class) else {
                    continue;
                };
                if best.as_ref().is_none_or(|(_, least)| cost < *least) {
                    best = Some((
                        Spot::Claim {
                            claim,
                            set: *set,
                            place,
                        },
                        cost,
                    ));
                }
                tried += 1;
                if tried >= limit || cost == 0 {
                    break;
                }
            }
            self.work += work;
            if tried >= limit {
                break;
            }
        }
        best
    }

    /// The place of the best shape that holds the claim's pods and one more, and what it costs more.
    fn growth(&self, claim: usize, set: SetId, view: &View, class: &Class) -> Option<(usize, u64)> {
        let own = &self.claims.all[claim];
        let pool = &self.pools[own.pool];
        let total = own.used.sum(&class.claim_request);
        if !view.can_hold(&total, pool) || conflicts(&class.spec.host_ports, &own.ports) {
            return None;
        }
        let current = &pool.shapes[own.shape()];
        let start = if own.set == set { own.place } else { 0 };
        let place = (start..view.order.len()).find(|place| {
            let shape = &pool.shapes[view.order[*place].shape];
            total.fits_in(&shape.room)
                && self.limits[own.pool].allows_change(&current.capacity, &shape.capacity)
                && (shape.reservation == current.reservation || self.is_reservable(shape))
                && !conflicts(&class.spec.host_ports, &shape.daemon_ports)
                && !conflicts(&own.ports, &shape.daemon_ports)
        })?;
        if !self.keeps_min_values(claim, view, class) {
            return None;
        }
        let (now, then) = (own.view.order[own.place].rank, view.order[place].rank);
        // A worse score is never made good by a lower price, so that a claim only grows into one if it must.
        let is_worse = then.score > now.score;
        Some((
            place,
            if is_worse {
                u64::MAX
            } else {
                then.price.micros().saturating_sub(now.price.micros())
            },
        ))
    }

    pub(super) fn find_new_claim(&mut self, guest: Guest<'_>, wanted: SetId) -> Option<NewClaim> {
        if !HostBlocks::of(guest, &self.topology).allow_new_host() {
            return None;
        }
        for pool in 0..self.pools.len() {
            for set in self.reachable_sets(pool, self.pools[pool].set, wanted, guest) {
                if let Some(new) = self.new_claim_in(pool, set, guest.class) {
                    return Some(new);
                }
            }
        }
        None
    }

    fn new_claim_in(&mut self, pool: usize, set: SetId, class: &Class) -> Option<NewClaim> {
        let view = self.view(pool, set);
        let entry = &self.pools[pool];
        if !view.can_hold(&class.claim_request, entry) {
            return None;
        }
        let place = (0..view.order.len()).find(|place| {
            let shape = &entry.shapes[view.order[*place].shape];
            class.claim_request.fits_in(&shape.room)
                && self.limits[pool].allows_node(&shape.capacity)
                && self.is_reservable(shape)
                && !conflicts(&class.spec.host_ports, &shape.daemon_ports)
        })?;
        let (min_values, min_values_relaxed) = self.min_values_of_new(pool, &view, class)?;
        Some(NewClaim {
            pool,
            set,
            place,
            min_values,
            min_values_relaxed,
        })
    }

    fn price_of_new(&mut self, new: &NewClaim) -> u64 {
        self.view(new.pool, new.set).order[new.place]
            .rank
            .price
            .micros()
    }

    fn is_reservable(&self, shape: &Shape) -> bool {
        shape
            .reservation
            .is_none_or(|reservation| self.reservations.left[reservation] > 0)
    }

    fn keeps_min_values(&self, claim: usize, view: &View, class: &Class) -> bool {
        let own = &self.claims.all[claim];
        if own.min_values.is_empty() {
            return true;
        }
        let total = own.used.sum(&class.claim_request);
        let pool = &self.pools[own.pool];
        own.min_values
            .iter()
            .all(|(key, least)| distinct_values(pool, view, &total, key, *least) >= *least)
    }
}

/// How many values of a label the shapes that hold that much have, counted up to `enough`.
pub(super) fn distinct_values(
    pool: &PoolEntry,
    view: &View,
    total: &Vector,
    key: &str,
    enough: u32,
) -> u32 {
    let mut values: Vec<&str> = Vec::new();
    let enough = usize::try_from(enough).unwrap_or(usize::MAX);
    for ranked in &view.order {
        let shape = &pool.shapes[ranked.shape];
        if !total.fits_in(&shape.room) {
            continue;
        }
        for value in shape
            .instance_type
            .requirements
            .on(key)
            .into_iter()
            .flat_map(|it| it.values())
        {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        if values.len() >= enough {
            break;
        }
    }
    u32::try_from(values.len()).unwrap_or(u32::MAX)
}

/// The place of a claim's shape in a narrower view, if it costs the same there.
fn same_price_place(own: &View, place: usize, narrower: &View) -> Option<usize> {
    let ranked = own.order[place];
    narrower
        .place(ranked.shape)
        .filter(|place| narrower.order[*place].rank == ranked.rank)
}
