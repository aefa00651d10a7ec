//! Putting a pod where it was decided to go, and counting it.

use super::claims::Claim;
use super::class::Class;
use super::place::{NewClaim, Spot, distinct_values};
use super::round::Round;
use super::sets::SetId;
use super::topology::{GroupId, GroupKey, Host};
use super::view::View;
use crate::labels;
use crate::snapshot::MinValuesPolicy;

impl Round<'_> {
    /// Puts a pod on its spot.
    pub(super) fn commit(&mut self, pod: usize, class: &Class, spot: &Spot) {
        let host = match spot {
            Spot::Node(node) => {
                if let Some(journal) = &mut self.journal {
                    journal.nodes.push(self.nodes.before(*node, class));
                }
                self.nodes.place(*node, class);
                Host::Node(*node)
            }
            Spot::Claim { claim, set, place } => {
                self.add_to_claim(*claim, *set, *place, pod, class);
                Host::Claim(*claim)
            }
            Spot::New(new) => Host::Claim(self.open_claim(new, pod, class)),
        };
        for id in &class.counted {
            if self.counts_on(*id, host) {
                self.record(*id, host);
            }
        }
        for id in &class.inverse {
            self.record(*id, host);
        }
    }

    fn open_claim(&mut self, new: &NewClaim, pod: usize, class: &Class) -> usize {
        let view = self.view(new.pool, new.set);
        let shape = &self.pools[new.pool].shapes[view.order[new.place].shape];
        self.limits[new.pool].take_node(&shape.capacity);
        if let Some(reservation) = shape.reservation {
            self.reservations.left[reservation] -= 1;
        }
        let used = class.claim_request.clone();
        let (free, headroom) = (
            shape.room.difference(&used),
            view.most_room.difference(&used),
        );
        let claim = Claim {
            pool: new.pool,
            set: new.set,
            view,
            place: new.place,
            used,
            pods: vec![pod],
            ports: class.spec.host_ports.clone(),
            min_values: new.min_values.clone(),
            min_values_relaxed: new.min_values_relaxed,
        };
        let idx = self.claims.push(claim, free, headroom);
        self.count_zone(new.pool, new.set);
        idx
    }

    fn add_to_claim(&mut self, idx: usize, set: SetId, place: usize, pod: usize, class: &Class) {
        let claim = &mut self.claims.all[idx];
        claim.used.add(&class.claim_request);
        claim.pods.push(pod);
        claim.ports.extend(&class.spec.host_ports);
        self.reshape(idx, set, place);
    }

    /// Gives a claim another requirement set, the shape at that place of its view, and the room that follows.
    pub(super) fn reshape(&mut self, idx: usize, set: SetId, place: usize) {
        let (pool, old_set) = (self.claims.all[idx].pool, self.claims.all[idx].set);
        let view = self.view(pool, set);
        let shapes = &self.pools[pool].shapes;
        let (old, new) = (
            &shapes[self.claims.all[idx].shape()],
            &shapes[view.order[place].shape],
        );
        self.limits[pool].change(&old.capacity, &new.capacity);
        if old.reservation != new.reservation {
            if let Some(returned) = old.reservation {
                self.reservations.left[returned] += 1;
            }
            if let Some(taken) = new.reservation {
                self.reservations.left[taken] -= 1;
            }
        }
        let claim = &mut self.claims.all[idx];
        claim.place = place;
        let (free, headroom) = (
            new.room.difference(&claim.used),
            view.most_room.difference(&claim.used),
        );
        claim.view = view;
        self.claims.free.set(idx, free);
        self.claims.headroom.set(idx, headroom);
        if old_set != set {
            self.claims.change_set(idx, set);
            if self.settled_zone(old_set).is_none() {
                self.count_zone(pool, set);
            }
        }
    }

    /// Counts a claim in its zone, once it has settled on one.
    pub(super) fn count_zone(&mut self, pool: usize, set: SetId) {
        if let Some(zone) = self.settled_zone(set).map(std::sync::Arc::from) {
            *self.zone_nodes[pool].entry(zone).or_default() += 1;
        }
    }

    /// Takes back [`Self::count_zone`].
    pub(super) fn uncount_zone(&mut self, pool: usize, set: SetId) {
        let zone = self.settled_zone(set).map(str::to_owned);
        if let Some(count) = zone.and_then(|zone| self.zone_nodes[pool].get_mut(&*zone)) {
            *count = count.saturating_sub(1);
        }
    }

    pub(super) fn settled_zone(&self, set: SetId) -> Option<&str> {
        self.sets.at(set).on(labels::ZONE)?.single_value()
    }

    /// Whether the group counts pods on that host.
    fn counts_on(&mut self, id: GroupId, host: Host) -> bool {
        match host {
            Host::Node(idx) => {
                let group = &self.topology.groups[id];
                !group.has_filter()
                    || group
                        .eligible_nodes
                        .as_ref()
                        .is_none_or(|nodes| nodes.contains(idx))
            }
            Host::Claim(idx) => {
                let claim = &self.claims.all[idx];
                self.counts_under(id, claim.pool, claim.set)
            }
        }
    }

    /// Whether the group counts pods on a claim of the pool that has that set.
    pub(super) fn counts_under(&mut self, id: GroupId, pool: usize, set: SetId) -> bool {
        let group = &self.topology.groups[id];
        if !group.has_filter() {
            return true;
        }
        let filter = group.identity.filter.clone();
        self.passing_sets(pool, set, &filter).contains(&set)
    }

    fn record(&mut self, id: GroupId, host: Host) {
        let domain = match (self.topology.groups[id].identity.key, host) {
            (GroupKey::Hostname, _) => None,
            (GroupKey::Label(key), Host::Node(idx)) => self.nodes.entries[idx].domain(key),
            (GroupKey::Label(key), Host::Claim(idx)) => {
                let mut domains = self.claims.all[idx].view.domains[key.idx()].iter();
                domains.next().filter(|_| domains.next().is_none())
            }
        };
        self.topology.groups[id].record(host, domain);
        if let Some(journal) = &mut self.journal {
            journal.counts.push((id, host, domain, true));
        }
    }

    /// The `minValues` that a new claim must keep; none when they cannot be kept.
    pub(super) fn min_values_of_new(
        &self,
        pool: usize,
        view: &View,
        class: &Class,
    ) -> Option<(Vec<(String, u32)>, bool)> {
        let entry = &self.pools[pool];
        let mut kept = entry.min_values.clone();
        let mut is_relaxed = false;
        for (key, least) in &mut kept {
            let there = distinct_values(entry, view, &class.claim_request, key, *least);
            if there >= *least {
                continue;
            }
            if self.snapshot.settings.min_values_policy == MinValuesPolicy::Strict {
                return None;
            }
            *least = there;
            is_relaxed = true;
        }
        Some((kept, is_relaxed))
    }
}
