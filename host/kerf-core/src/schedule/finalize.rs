//! From the state of a finished round to its plan.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::class::ATTACHMENTS_PREFIX;
use super::pool::{Overlaid, PoolEntry, node_class_label};
use super::roomy::RoomyShapes;
use super::round::Round;
use super::sets::SetId;
use crate::ids::ZoneId;
use crate::labels;
use crate::plan::{PlannedClaim, PlannedOffering};
use crate::requirement::Requirement;
use crate::requirements::Requirements;
use crate::resources::Resources;
use crate::selector::Labels;

/// How many offerings a claim lists: what one policy call is sized for, and more fallbacks than a launch ever tries.
const MAX_OFFERINGS: usize = 300;

/// With fewer claims of a pool, trying its shapes one by one is less work than a [`RoomyShapes`].
const ROOMY_MIN_CLAIMS: usize = 16;

/// What makes two claims have the same offerings in the same order.
type OptionsKey = (usize, SetId, Vec<usize>, Vec<usize>);

/// The offerings of a claim and what its requirements become with them.
type Options = (Arc<Requirements>, Arc<[PlannedOffering]>, Overlaid);

/// Turns claims into planned ones, keeping the balance of zones.
pub(super) struct Finalizer<'r, 's> {
    round: &'r mut Round<'s>,
    known: FxHashMap<OptionsKey, Options>,
    free_ips: Vec<BTreeMap<ZoneId, u64>>,
    /// By pool, where it has many claims.
    roomy: Vec<Option<RoomyShapes>>,
}

impl<'r, 's> Finalizer<'r, 's> {
    pub(super) fn new(round: &'r mut Round<'s>) -> Self {
        let free_ips = round
            .pools
            .iter()
            .map(|entry| entry.pool.free_ips.clone())
            .collect();
        let roomy = roomy_shapes(round);
        Self {
            round,
            known: FxHashMap::default(),
            free_ips,
            roomy,
        }
    }

    pub(super) fn planned_claims(mut self) -> Vec<PlannedClaim> {
        (0..self.round.claims.all.len())
            .filter(|claim| !self.round.claims.all[*claim].pods.is_empty())
            .collect::<Vec<_>>()
            .into_iter()
            .map(|claim| self.planned_claim(claim))
            .collect()
    }

    fn planned_claim(&mut self, idx: usize) -> PlannedClaim {
        let (pool, set) = (
            self.round.claims.all[idx].pool,
            self.round.claims.all[idx].set,
        );
        let shapes = self.shapes_of(idx);
        let zones = self.zones_in_order(idx);
        let (requirements, offerings, overlaid) = self.options(pool, set, shapes, zones);
        self.count_first_zone(pool, set, &offerings);
        let claim = &self.round.claims.all[idx];
        let entry = &self.round.pools[pool];
        let template = &entry.pool.template;
        let mut annotations = template.annotations.clone();
        if !entry.min_values.is_empty() {
            annotations.insert(
                labels::MIN_VALUES_RELAXED.to_owned(),
                claim.min_values_relaxed.to_string(),
            );
        }
        let overlays = [
            (labels::PRICE_OVERLAY_APPLIED, overlaid.price),
            (labels::CAPACITY_OVERLAY_APPLIED, overlaid.capacity),
        ];
        for (key, _) in overlays.into_iter().filter(|(_, is_applied)| *is_applied) {
            annotations.insert(key.to_owned(), true.to_string());
        }
        let daemons = &entry.shapes[claim.shape()].daemons;
        let requests = self.round.resources.resources(&claim.used.sum(daemons));
        PlannedClaim {
            pool: entry.pool.name.clone(),
            node_class: template.node_class.clone(),
            labels: claim_labels(entry, self.round.sets.at(set)),
            reason: reason(claim.pods.len(), &offerings),
            requirements,
            offerings,
            requests: without_attachments(&requests),
            pods: claim
                .pods
                .iter()
                .map(|pod| Arc::clone(&self.round.pods[*pod]))
                .collect(),
            annotations,
            taints: template.taints.clone(),
            startup_taints: template.startup_taints.clone(),
            expire_after: template.expire_after,
            termination_grace_period: template.termination_grace_period,
        }
    }

    /// The shapes that hold the claim's pods within the pool's limits, best first. What a larger one takes of the
    /// limits is reserved, so that all claims of the plan are within them whichever of their offerings they become.
    fn shapes_of(&mut self, idx: usize) -> Vec<usize> {
        let claim = &self.round.claims.all[idx];
        let entry = &self.round.pools[claim.pool];
        let limits = &mut self.round.limits[claim.pool];
        let own = &entry.shapes[claim.shape()];
        let mut reserved = limits.taken_by(&own.capacity);
        let mut shapes = Vec::new();
        let mut offerings = 0;
        let roomy = self.roomy[claim.pool]
            .as_ref()
            .map(|roomy| roomy.holding(&claim.used));
        for ranked in &claim.view.order[claim.place..] {
            let shape = &entry.shapes[ranked.shape];
            let has_room = match &roomy {
                Some(roomy) => roomy.contains(ranked.shape),
                None => claim.used.fits_in(&shape.room),
            };
            let holds = has_room && !super::nodes::conflicts(&claim.ports, &shape.daemon_ports);
            let is_ours = shape.reservation.is_none() || shape.reservation == own.reservation;
            if !holds || !is_ours {
                continue;
            }
            if !limits.raise(&mut reserved, &shape.capacity) {
                continue;
            }
            offerings += shape
                .sales
                .clone()
                .filter(|sale| claim.view.sales.contains(*sale))
                .count();
            shapes.push(ranked.shape);
            if offerings >= MAX_OFFERINGS && entry.min_values.is_empty() {
                break;
            }
        }
        shapes
    }

    /// The claim's zones, as places in its view: at equal price the one with the fewest nodes of the pool comes first,
    /// then the one with the most free IP addresses, then by name.
    fn zones_in_order(&self, idx: usize) -> Vec<usize> {
        let claim = &self.round.claims.all[idx];
        let (nodes, free_ips) = (
            &self.round.zone_nodes[claim.pool],
            &self.free_ips[claim.pool],
        );
        let order = |place: &usize| {
            let zone = claim.view.zones[*place].as_str();
            let free_ips = free_ips.get(zone).copied().unwrap_or(0);
            (
                nodes.get(zone).copied().unwrap_or(0),
                Reverse(free_ips),
                *place,
            )
        };
        let mut zones: Vec<usize> = (0..claim.view.zones.len()).collect();
        zones.sort_by_key(order);
        zones
    }

    fn options(
        &mut self,
        pool: usize,
        set: SetId,
        shapes: Vec<usize>,
        zones: Vec<usize>,
    ) -> Options {
        let key = (pool, set, shapes, zones);
        if let Some(options) = self.known.get(&key) {
            return options.clone();
        }
        let view = self.round.view(pool, set);
        let entry = &self.round.pools[pool];
        let zone_place = |zone: &ZoneId| key.3.iter().position(|place| view.zones[*place] == *zone);
        let mut sales: Vec<(usize, usize)> = Vec::new();
        for shape in &key.2 {
            let open = entry.shapes[*shape]
                .sales
                .clone()
                .filter(|sale| view.sales.contains(*sale));
            sales.extend(open.map(|sale| (*shape, sale)));
        }
        let is_zone_first = entry.pool.is_zone_balanced;
        sales.sort_by_key(|(shape, sale)| {
            let place = zone_place(&entry.sales[*sale].zone);
            (
                place.filter(|_| is_zone_first),
                entry.sales[*sale].rank,
                place,
                *shape,
                *sale,
            )
        });
        if entry.min_values.is_empty() {
            sales.truncate(MAX_OFFERINGS);
        }
        let offerings: Arc<[PlannedOffering]> = sales
            .iter()
            .map(|(shape, sale)| planned_offering(entry, *shape, *sale))
            .collect();
        let overlaid = sales.iter().map(|(_, sale)| entry.sales[*sale].overlaid);
        let overlaid = overlaid.fold(Overlaid::default(), |all, it| Overlaid {
            price: all.price || it.price,
            capacity: all.capacity || it.capacity,
        });
        let requirements = Arc::new(narrowed_requirements(self.round.sets.at(set), &offerings));
        let options = (requirements, offerings, overlaid);
        self.known.insert(key, options.clone());
        options
    }

    fn count_first_zone(&mut self, pool: usize, set: SetId, offerings: &[PlannedOffering]) {
        let Some(first) = offerings.first() else {
            return;
        };
        if self.round.settled_zone(set).is_none() {
            *self.round.zone_nodes[pool]
                .entry(Arc::from(first.zone.as_str()))
                .or_default() += 1;
        }
        if let Some(free_ips) = self.free_ips[pool].get_mut(&first.zone) {
            *free_ips = free_ips.saturating_sub(1);
        }
    }
}

/// Leaves a planned claim only some of its offerings, and says so in its requirements.
pub(crate) fn keep_offerings(
    claim: &mut PlannedClaim,
    keep: impl FnMut(&&PlannedOffering) -> bool,
) {
    let kept: Arc<[PlannedOffering]> = claim.offerings.iter().filter(keep).cloned().collect();
    if kept.len() == claim.offerings.len() {
        return;
    }
    claim.requirements = Arc::new(narrowed_requirements(&claim.requirements, &kept));
    claim.reason = reason(claim.pods.len(), &kept);
    claim.offerings = kept;
}

fn roomy_shapes(round: &Round<'_>) -> Vec<Option<RoomyShapes>> {
    let mut claims = vec![0; round.pools.len()];
    for claim in &round.claims.all {
        claims[claim.pool] += 1;
    }
    let places = round.resources.names().count();
    let pools = round.pools.iter().zip(claims);
    pools
        .map(|(pool, claims)| (claims >= ROOMY_MIN_CLAIMS).then(|| RoomyShapes::of(pool, places)))
        .collect()
}

fn planned_offering(entry: &PoolEntry, shape: usize, sale: usize) -> PlannedOffering {
    let (shape, sale) = (&entry.shapes[shape], &entry.sales[sale]);
    PlannedOffering {
        instance_type: shape.instance_type.name.clone(),
        zone: sale.zone.clone(),
        capacity_type: sale.capacity_type,
        price: sale.price,
        reservation: sale.reservation.clone(),
        allocatable: shape.allocatable.clone(),
        capacity: shape.capacity_resources.clone(),
    }
}

/// The claim's requirements with the instance types and capacity types that its offerings have.
fn narrowed_requirements(set: &Requirements, offerings: &[PlannedOffering]) -> Requirements {
    let mut requirements = set.clone();
    for key in [labels::REGISTERED, labels::INITIALIZED] {
        requirements.remove(key);
    }
    let min_values = |key| set.on(key).and_then(Requirement::min_values);
    let types = Requirement::in_values(
        labels::INSTANCE_TYPE,
        offerings.iter().map(|it| it.instance_type.as_str()),
    );
    requirements.replace(types.with_min_values(min_values(labels::INSTANCE_TYPE)));
    let capacity_types = Requirement::in_values(
        labels::CAPACITY_TYPE,
        offerings.iter().map(|it| it.capacity_type.as_str()),
    );
    requirements.replace(capacity_types.with_min_values(min_values(labels::CAPACITY_TYPE)));
    requirements
}

/// The template's labels, the pool, the NodeClass, and a value for every custom label that a pod or the pool asks for.
fn claim_labels(entry: &PoolEntry, set: &Requirements) -> Labels {
    let mut all = entry.pool.template.labels.clone();
    for requirement in set
        .iter()
        .filter(|it| !labels::is_well_known(it.key()) && !labels::is_restricted(it.key()))
    {
        if let Some(value) = requirement
            .any_value()
            .filter(|_| !requirement.tolerates_absence())
        {
            all.insert(requirement.key().to_owned(), value.into_owned());
        }
    }
    all.insert(labels::NODE_POOL.to_owned(), entry.pool.name.to_string());
    if let Some((key, value)) = node_class_label(&entry.pool) {
        all.insert(key, value.to_owned());
    }
    all
}

fn without_attachments(requests: &Resources) -> Resources {
    let kept = requests
        .iter()
        .filter(|(name, _)| !name.starts_with(ATTACHMENTS_PREFIX));
    kept.fold(Resources::default(), |all, (name, amount)| {
        all.with(name, amount)
    })
}

fn reason(pods: usize, offerings: &[PlannedOffering]) -> String {
    let Some(first) = offerings.first() else {
        return format!("holds {pods} pods");
    };
    let (instance_type, zone, capacity_type, price) = (
        &first.instance_type,
        &first.zone,
        first.capacity_type,
        first.price,
    );
    format!(
        "holds {pods} pods; {instance_type} in {zone} ({capacity_type}, {price} per hour) is the best of {} offerings",
        offerings.len()
    )
}
