//! Claims as a pool's template makes them, without pods.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ids::{ReservationId, ZoneId};
use crate::instance_type::{CapacityType, InstanceType, Offering};
use crate::labels;
use crate::node::Node;
use crate::node_pool::NodePool;
use crate::plan::{MAX_INSTANCE_TYPES, PlannedClaim, PlannedOffering};
use crate::preferences::{OfferingKey, PoolPreferences};
use crate::price::Price;
use crate::requirements::Requirements;
use crate::resources::Resources;
use crate::schedule::{node_class_label, template_requirements, type_meets};

/// A pool's template and what it can become now.
pub(crate) struct Template<'a> {
    pool: &'a NodePool,
    requirements: Arc<Requirements>,
    /// What can be bought, with how good it is: higher scores first, then reservations, then lower prices.
    open: Vec<(Rank, &'a InstanceType, &'a Offering)>,
    nodes: BTreeMap<ZoneId, u32>,
    free_ips: BTreeMap<ZoneId, u64>,
    reserved: BTreeMap<ReservationId, u32>,
}

type Rank = (Reverse<i64>, bool, Price);

impl<'a> Template<'a> {
    pub(crate) fn new(
        pool: &'a NodePool,
        preferences: Option<&PoolPreferences>,
        nodes: &[&Node],
    ) -> Self {
        let mut requirements = template_requirements(pool);
        for key in [labels::REGISTERED, labels::INITIALIZED] {
            requirements.remove(key);
        }
        let usable = pool.instance_types.iter().filter(|instance_type| {
            let mut all = requirements.iter();
            all.all(|requirement| type_meets(instance_type, requirement))
        });
        let offerings = usable
            .flat_map(|it| it.offerings.iter().map(move |offering| (&**it, offering)))
            .filter(|(_, offering)| {
                offering.is_available() && offering.is_allowed_by(&requirements)
            });
        let open = offerings
            .filter_map(|(it, offering)| Some((rank(it, offering, preferences)?, it, offering)))
            .collect();
        let mut in_zone: BTreeMap<ZoneId, u32> = BTreeMap::new();
        for zone in nodes.iter().filter_map(|node| node.zone()) {
            *in_zone.entry(zone.into()).or_default() += 1;
        }
        Self {
            pool,
            requirements: Arc::new(requirements),
            open,
            nodes: in_zone,
            free_ips: pool.free_ips.clone(),
            reserved: BTreeMap::new(),
        }
    }

    /// Why nothing can be made from it now.
    pub(super) fn obstacle(&self) -> Option<String> {
        self.open.is_empty().then(|| {
            let requirements = &self.requirements;
            format!("no instance type can be bought that meets {requirements}")
        })
    }

    /// The next claim. Zones take turns at equal price, as in scheduling.
    pub(crate) fn claim(&mut self, reason: &str) -> Option<PlannedClaim> {
        let offerings = self.offerings();
        let (instance_type, first) = *offerings.first()?;
        *self.nodes.entry(first.zone.clone()).or_default() += 1;
        if let Some(free) = self.free_ips.get_mut(&first.zone) {
            *free = free.saturating_sub(1);
        }
        if let Some(reservation) = &first.reservation {
            *self.reserved.entry(reservation.id.clone()).or_default() += 1;
        }
        let template = &self.pool.template;
        let mut claim_labels = template.labels.clone();
        claim_labels.insert(labels::NODE_POOL.to_owned(), self.pool.name.to_string());
        claim_labels
            .extend(node_class_label(self.pool).map(|(key, value)| (key, value.to_owned())));
        let reason = format!(
            "{reason}; {} in {} ({}, {} per hour) is the best of {} offerings",
            instance_type.name,
            first.zone,
            first.capacity_type,
            first.price,
            offerings.len()
        );
        Some(PlannedClaim {
            pool: self.pool.name.clone(),
            node_class: template.node_class.clone(),
            requirements: Arc::clone(&self.requirements),
            annotations: self.annotations(&offerings),
            offerings: offerings.into_iter().map(planned).collect(),
            requests: Resources::default(),
            pods: Vec::new(),
            labels: claim_labels,
            taints: template.taints.clone(),
            startup_taints: template.startup_taints.clone(),
            expire_after: template.expire_after,
            termination_grace_period: template.termination_grace_period,
            reason,
        })
    }

    fn offerings(&self) -> Vec<(&'a InstanceType, &'a Offering)> {
        let is_left = |offering: &Offering| {
            offering.reservation.as_ref().is_none_or(|it| {
                self.reserved.get(&it.id).copied().unwrap_or_default() < it.remaining
            })
        };
        let mut open: Vec<_> = self.open.iter().filter(|it| is_left(it.2)).collect();
        open.sort_by_cached_key(|(rank, it, offering)| {
            let zone = &offering.zone;
            let nodes = self.nodes.get(zone).copied().unwrap_or_default();
            let free = self.free_ips.get(zone).copied().unwrap_or_default();
            let key = (zone.clone(), offering.capacity_type);
            let nodes_first = self.pool.is_zone_balanced.then_some(nodes);
            let name = it.name.clone();
            (nodes_first, *rank, nodes, Reverse(free), name, key)
        });
        open.truncate(MAX_INSTANCE_TYPES);
        open.into_iter()
            .map(|(_, it, offering)| (*it, *offering))
            .collect()
    }

    fn annotations(&self, offerings: &[(&InstanceType, &Offering)]) -> BTreeMap<String, String> {
        let mut annotations = self.pool.template.annotations.clone();
        let is_priced = offerings.iter().any(|it| it.1.overlay_price.is_some());
        let is_larger = offerings.iter().any(|it| it.1.is_capacity_overlaid);
        let overlays = [
            (labels::PRICE_OVERLAY_APPLIED, is_priced),
            (labels::CAPACITY_OVERLAY_APPLIED, is_larger),
        ];
        for (key, _) in overlays.into_iter().filter(|(_, is_applied)| *is_applied) {
            annotations.insert(key.to_owned(), true.to_string());
        }
        annotations
    }
}

/// How good an offering is; none when a policy bars it.
fn rank(
    instance_type: &InstanceType,
    offering: &Offering,
    preferences: Option<&PoolPreferences>,
) -> Option<Rank> {
    let is_bought = offering.capacity_type != CapacityType::Reserved;
    let Some(preferences) = preferences else {
        return Some((Reverse(0), is_bought, offering.ordering_price()));
    };
    let (zone, capacity_type) = (&offering.zone, offering.capacity_type);
    let mut bars = preferences.bars.iter();
    if bars.any(|bar| bar.covers(&instance_type.name, zone, capacity_type)) {
        return None;
    }
    let key = OfferingKey {
        instance_type: instance_type.name.clone(),
        zone: zone.clone(),
        capacity_type,
    };
    let score = preferences.scores.get(&key).copied().unwrap_or_default();
    let price = preferences.prices.get(&key).copied();
    Some((
        Reverse(score),
        is_bought,
        price.unwrap_or_else(|| offering.ordering_price()),
    ))
}

fn planned((instance_type, offering): (&InstanceType, &Offering)) -> PlannedOffering {
    PlannedOffering {
        instance_type: instance_type.name.clone(),
        zone: offering.zone.clone(),
        capacity_type: offering.capacity_type,
        price: offering.price,
        reservation: offering.reservation.as_ref().map(|it| it.id.clone()),
        allocatable: instance_type.allocatable_of(offering),
        capacity: instance_type.capacity_of(offering).clone(),
    }
}
