//! Why no pool can serve a class of pods, found by asking each question again on the finished round.

use std::cmp::Reverse;

use super::bits::Bits;
use super::class::{Class, Variant};
use super::nodes::conflicts;
use super::pool::Closed;
use super::round::Round;
use super::sets::SetId;
use super::topology::{GroupId, GroupKey, GroupKind};
use crate::labels;
use crate::reason::{
    Failure, PoolFailure, Shortage, Unavailable, UnavailableOffering, UnschedulableReason,
};
use crate::requirements::{Requirements, Undefined};
use crate::resources::NODES;

/// More places than this in a message tell nothing new.
const MAX_UNAVAILABLE_SHOWN: usize = 12;

impl Round<'_> {
    /// Why the class has no place. It is asked in its most lenient variant.
    pub(super) fn explain(&mut self, class: &Class) -> UnschedulableReason {
        let Some(variant) = class.variants.last() else {
            return UnschedulableReason::NoNodePools;
        };
        let Some(wanted) = variant.set else {
            let message = "its node selector and node affinity contradict each other".to_owned();
            return UnschedulableReason::Invalid { message };
        };
        let mut failures = Vec::new();
        for pool in 0..self.pools.len() {
            let failure = self.explain_pool(pool, class, variant, wanted);
            failures.push(PoolFailure {
                pool: self.pools[pool].pool.name.clone(),
                failure,
            });
        }
        let mut not_ready: Vec<PoolFailure> = Vec::new();
        for pool in self
            .snapshot
            .pools
            .iter()
            .filter(|pool| pool.replicas.is_none() && !pool.is_deleting)
        {
            if let Some(message) = &pool.not_ready {
                let failure = Failure::NotReady {
                    message: message.clone(),
                };
                not_ready.push(PoolFailure {
                    pool: pool.name.clone(),
                    failure,
                });
            }
        }
        not_ready.sort();
        failures.append(&mut not_ready);
        if failures.is_empty() {
            UnschedulableReason::NoNodePools
        } else {
            UnschedulableReason::NodePools(failures)
        }
    }

    fn explain_pool(
        &mut self,
        pool: usize,
        class: &Class,
        variant: &Variant,
        wanted: SetId,
    ) -> Failure {
        if let Some(taint) = self
            .taints
            .first_untolerated(self.pools[pool].taints, variant.tolerations)
        {
            return Failure::Taint(taint.clone());
        }
        let own = self.pools[pool].set;
        let Some(set) = self.sets.combine(own, wanted) else {
            let own = self.sets.at(own);
            return match own
                .first_incompatibility(self.sets.at(wanted), Undefined::WellKnownAllowed)
            {
                Some(incompatibility) => Failure::Requirement(incompatibility),
                None => self.no_instance_type(wanted),
            };
        };
        let alternatives = class.alternatives.iter();
        let sets: Vec<SetId> = alternatives
            .filter_map(|alternative| self.sets.combine(set, *alternative))
            .collect();
        let Some(first) = sets.first().copied() else {
            return Failure::VolumeTopology {
                claim: volume_with_topology(class),
            };
        };
        let failure = self.explain_shapes(pool, first, class);
        failure
            .or_else(|| self.explain_topology(pool, first, class, variant))
            .unwrap_or_else(|| self.no_instance_type(first))
    }

    fn no_instance_type(&self, set: SetId) -> Failure {
        let mut requirements = Requirements::clone(self.sets.at(set));
        for key in [labels::REGISTERED, labels::INITIALIZED] {
            requirements.remove(key);
        }
        Failure::NoInstanceType {
            requirements: requirements.to_string(),
        }
    }

    /// What is wrong with the shapes that the set allows, before any topology.
    fn explain_shapes(&mut self, pool: usize, set: SetId, class: &Class) -> Option<Failure> {
        let requirements = std::sync::Arc::clone(self.sets.at(set));
        let sales = self
            .views
            .allowed_sales(pool, &self.pools[pool], &requirements);
        let entry = &self.pools[pool];
        let is_sold = |shape: &usize| {
            entry.shapes[*shape]
                .sales
                .clone()
                .any(|sale| sales.contains(sale))
        };
        let allowed: Vec<usize> = (0..entry.shapes.len()).filter(is_sold).collect();
        if allowed.is_empty() {
            return Some(self.no_instance_type(set));
        }
        let (holding, small): (Vec<usize>, Vec<usize>) = allowed
            .iter()
            .partition(|it| class.claim_request.fits_in(&entry.shapes[**it].room));
        if holding.is_empty() {
            return Some(Failure::TooLarge(self.shortage(pool, &allowed, class)));
        }
        let view = self.view(pool, set);
        let open: Vec<usize> = holding
            .iter()
            .copied()
            .filter(|shape| view.place(*shape).is_some())
            .collect();
        if open.is_empty() {
            let sold = small.into_iter().filter(|it| view.place(*it).is_some());
            let small: Vec<usize> = sold.collect();
            let closest = (!small.is_empty()).then(|| self.shortage(pool, &small, class));
            return Some(self.closed(pool, &holding, &sales, closest));
        }
        self.explain_claim(pool, &open, &view, class)
    }

    /// What keeps a claim from being any of the shapes that would do.
    fn explain_claim(
        &self,
        pool: usize,
        open: &[usize],
        view: &super::view::View,
        class: &Class,
    ) -> Option<Failure> {
        let entry = &self.pools[pool];
        let limits = &self.limits[pool];
        let shape = |idx: usize| &entry.shapes[idx];
        if !open
            .iter()
            .any(|idx| limits.allows_node(&shape(*idx).capacity))
        {
            let least = open
                .iter()
                .min_by_key(|idx| (shape(**idx).capacity.at(0), **idx))?;
            let (place, left) = limits.first_broken(&shape(*least).capacity)?;
            let names: Vec<&str> = self.resources.names().collect();
            let resource = place.map_or(NODES, |place| names[place]);
            let needed = place.map_or(1, |place| shape(*least).capacity.at(place));
            let limit = entry.pool.limits.bound(resource).unwrap_or(0);
            return Some(Failure::Limit {
                resource: resource.to_owned(),
                limit,
                used: limit - left,
                needed,
            });
        }
        let taken = |idx: &usize| conflicts(&class.spec.host_ports, &shape(*idx).daemon_ports);
        if open.iter().all(taken) {
            return class
                .spec
                .host_ports
                .first()
                .copied()
                .map(Failure::HostPort);
        }
        let is_reserved = |idx: &usize| {
            shape(*idx)
                .reservation
                .is_some_and(|it| self.reservations.left[it] == 0)
        };
        if open.iter().all(is_reserved) {
            return Some(Failure::ReservedCapacity);
        }
        if self.min_values_of_new(pool, view, class).is_none() {
            return entry.min_values.iter().find_map(|(key, wanted)| {
                let remaining =
                    super::place::distinct_values(entry, view, &class.claim_request, key, *wanted);
                (remaining < *wanted).then(|| Failure::MinValues {
                    key: key.clone(),
                    wanted: *wanted,
                    remaining,
                })
            });
        }
        None
    }

    /// How near the closest of the shapes comes: the one that lacks the fewest resources and, of those, has the most
    /// of what it lacks.
    fn shortage(&self, pool: usize, shapes: &[usize], class: &Class) -> Shortage {
        let entry = &self.pools[pool];
        let names: Vec<&str> = self.resources.names().collect();
        let request = &class.claim_request;
        let lacking = |shape: usize| {
            let room = &entry.shapes[shape].room;
            (0..names.len()).filter(move |place| request.at(*place) > room.at(*place))
        };
        let closeness = |shape: &usize| {
            let first = lacking(*shape).next();
            let there = first.map(|place| entry.shapes[*shape].room.at(place));
            (lacking(*shape).count(), first, Reverse(there), *shape)
        };
        let closest = shapes
            .iter()
            .copied()
            .min_by_key(closeness)
            .unwrap_or_default();
        let shape = &entry.shapes[closest];
        let place = request.first_shortage(&shape.room).unwrap_or_default();
        Shortage {
            resource: names[place].to_owned(),
            needed: request.at(place),
            daemons: shape.daemons.at(place),
            closest: shape.instance_type.name.clone(),
            left: shape.room.at(place),
        }
    }

    /// Why none of the shapes that are large enough can be bought.
    fn closed(
        &self,
        pool: usize,
        holding: &[usize],
        sales: &Bits,
        closest: Option<Shortage>,
    ) -> Failure {
        let entry = &self.pools[pool];
        let allowed = |shape: usize| {
            entry.shapes[shape]
                .sales
                .clone()
                .filter(|sale| sales.contains(*sale))
        };
        let barred =
            holding
                .iter()
                .flat_map(|shape| allowed(*shape))
                .filter_map(|sale| match &entry.sales[sale].closed {
                    Some(Closed::Barred { policy, reason }) => {
                        Some((entry.sales[sale].rank, policy, reason))
                    }
                    Some(Closed::Unavailable(_)) | None => None,
                });
        if let Some((_, policy, reason)) = barred.min() {
            return Failure::Barred {
                policy: policy.clone(),
                reason: reason.clone(),
            };
        }
        let best_rank = |shape: &usize| {
            (
                allowed(*shape).map(|sale| entry.sales[sale].rank).min(),
                *shape,
            )
        };
        let smallest = holding
            .iter()
            .copied()
            .min_by_key(best_rank)
            .unwrap_or_default();
        let offerings = allowed(smallest).take(MAX_UNAVAILABLE_SHOWN).map(|sale| {
            let sale = &entry.sales[sale];
            let reason = match &sale.closed {
                Some(Closed::Unavailable(reason)) => reason.clone(),
                Some(Closed::Barred { reason, .. }) => reason.clone(),
                None => String::new(),
            };
            UnavailableOffering {
                zone: sale.zone.clone(),
                capacity_type: sale.capacity_type,
                reason,
            }
        });
        let smallest_name = entry.shapes[smallest].instance_type.name.clone();
        Failure::Unavailable(Unavailable {
            closest,
            smallest: smallest_name,
            offerings: offerings.collect(),
        })
    }

    /// The constraint that leaves no domain, one by one.
    fn explain_topology(
        &mut self,
        pool: usize,
        set: SetId,
        class: &Class,
        variant: &Variant,
    ) -> Option<Failure> {
        let owned: Vec<GroupId> = variant.owned.iter().map(|owned| owned.group).collect();
        let view = self.view(pool, set);
        let on_hosts = |id: &GroupId| {
            let group = &self.topology.groups[*id];
            group.identity.key == GroupKey::Hostname
                && group.identity.kind == GroupKind::Affinity
                && group.total > 0
        };
        if owned.iter().any(on_hosts) {
            return Some(Failure::PodAffinity {
                key: labels::HOSTNAME.to_owned(),
            });
        }
        for id in owned.iter().chain(&class.blocked_by) {
            let group = &self.topology.groups[*id];
            let GroupKey::Label(key) = group.identity.key else {
                continue;
            };
            let name = self.domains.name(key).to_string();
            let domains = &view.domains[key.idx()];
            let failure = match group.identity.kind {
                GroupKind::Spread {
                    max_skew,
                    min_domains,
                } => {
                    let most = group.least_count(&group.eligible, min_domains) + max_skew;
                    let counts = group.eligible.iter();
                    let counts =
                        counts.map(|it| (self.domains.value(key, it).to_string(), group.count(it)));
                    let is_open = domains.iter().any(|domain| group.count(domain) < most);
                    let mut counts: Vec<(String, u32)> = counts.collect();
                    counts.sort();
                    (!is_open).then_some(Failure::TopologySpread {
                        key: name,
                        counts,
                        max_skew,
                    })
                }
                GroupKind::Affinity => {
                    let is_open = domains.iter().any(|domain| group.count(domain) > 0);
                    (!is_open).then_some(Failure::PodAffinity { key: name })
                }
                GroupKind::AntiAffinity | GroupKind::InverseAntiAffinity => {
                    let is_open =
                        domains.is_empty() || domains.iter().any(|domain| group.count(domain) == 0);
                    (!is_open).then_some(Failure::PodAntiAffinity { key: name })
                }
            };
            if failure.is_some() {
                return failure;
            }
        }
        None
    }
}

fn volume_with_topology(class: &Class) -> String {
    let volume = class
        .spec
        .volumes
        .iter()
        .find(|volume| !volume.alternatives.is_empty());
    volume
        .map(|volume| volume.claim.clone())
        .unwrap_or_default()
}
