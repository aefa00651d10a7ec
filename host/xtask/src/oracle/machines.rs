//! The nodes that a case needs on the real API server: what exists, what the plan makes, and one of each shape that a
//! pool could still make.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_core::ids::ReservationId;
use kerf_core::instance_type::{InstanceType, Offering};
use kerf_core::labels;
use kerf_core::node::Node;
use kerf_core::node_pool::NodePool;
use kerf_core::plan::{PlannedClaim, PlannedOffering};
use kerf_core::resources::{NODES, Resources};
use kerf_core::selector::Labels;
use kerf_core::snapshot::MinValuesPolicy;
use kerf_core::taint::Taint;
use kerf_core::{Plan, Snapshot};

use super::draw::{ATTACHMENTS, TEAM};

/// More shapes than this take too long and say nothing new.
const FRESH_MAX: usize = 60;

/// A node as it will be when it is Ready and initialised.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) labels: Labels,
    pub(super) taints: Vec<Taint>,
    pub(super) capacity: Resources,
    pub(super) allocatable: Resources,
    /// Volumes that it can attach, by driver.
    pub(super) attachment_limits: BTreeMap<String, u32>,
}

impl Machine {
    /// A node of the snapshot; one in flight gets the name of its claim and loses what goes away during start-up.
    pub(super) fn existing(node: &Node) -> Self {
        let name = node.display_name().to_owned();
        let mut labels = Labels::from(&node.labels);
        labels.insert(labels::HOSTNAME.to_owned(), name.clone());
        Self {
            name,
            labels,
            taints: node.effective_taints().cloned().collect(),
            capacity: node.capacity.clone(),
            allocatable: node.allocatable.clone(),
            attachment_limits: node.attachment_limits.clone(),
        }
    }

    /// What the claim becomes when that offering is launched.
    pub(super) fn planned(
        name: &str,
        claim: &PlannedClaim,
        offering: &PlannedOffering,
        pool: &NodePool,
    ) -> Self {
        let it = pool
            .instance_types
            .iter()
            .find(|it| it.name == offering.instance_type);
        let mut all = it.map(|it| labels_of_type(it)).unwrap_or_default();
        all.extend(claim.labels.clone());
        set(&mut all, labels::INSTANCE_TYPE, &offering.instance_type);
        set(&mut all, labels::ZONE, &offering.zone);
        set(
            &mut all,
            labels::CAPACITY_TYPE,
            offering.capacity_type.as_str(),
        );
        if let Some(id) = &offering.reservation {
            set(&mut all, labels::RESERVATION_ID, id);
        }
        Self {
            name: name.to_owned(),
            labels: ready(all, name, pool),
            taints: claim.taints.clone(),
            capacity: offering.capacity.clone(),
            allocatable: offering.allocatable.clone(),
            attachment_limits: limits(&offering.allocatable),
        }
    }

    fn fresh(
        name: &str,
        pool: &NodePool,
        it: &InstanceType,
        offering: &Offering,
        team: Option<&str>,
    ) -> Self {
        let mut all = labels_of_type(it);
        all.extend(pool.template.labels.clone());
        set(&mut all, labels::ZONE, &offering.zone);
        set(
            &mut all,
            labels::CAPACITY_TYPE,
            offering.capacity_type.as_str(),
        );
        if let Some(reservation) = &offering.reservation {
            set(&mut all, labels::RESERVATION_ID, &reservation.id);
        }
        if let Some(team) = team {
            set(&mut all, TEAM, team);
        }
        Self {
            name: name.to_owned(),
            labels: ready(all, name, pool),
            taints: pool.template.taints.clone(),
            capacity: it.capacity.clone(),
            allocatable: it.allocatable_of(offering),
            attachment_limits: limits(&it.capacity),
        }
    }
}

fn limits(allocatable: &Resources) -> BTreeMap<String, u32> {
    let counted = allocatable.iter().filter_map(|(name, amount)| {
        let driver = name.strip_prefix(ATTACHMENTS)?;
        Some((driver.to_owned(), u32::try_from(amount).ok()?))
    });
    counted.collect()
}

fn labels_of_type(it: &InstanceType) -> Labels {
    it.requirements
        .iter()
        .filter_map(|it| Some((it.key().to_owned(), it.single_value()?.to_owned())))
        .collect()
}

fn ready(mut all: Labels, name: &str, pool: &NodePool) -> Labels {
    set(&mut all, labels::HOSTNAME, name);
    set(&mut all, labels::NODE_POOL, &pool.name);
    set(&mut all, labels::REGISTERED, "true");
    set(&mut all, labels::INITIALIZED, "true");
    all
}

fn set(all: &mut Labels, key: &str, value: &str) {
    all.insert(key.to_owned(), value.to_owned());
}

/// One machine of each shape that the pools could still make within their limits.
pub(super) fn fresh(seed: u64, snapshot: &Snapshot, plan: &Plan) -> Vec<Machine> {
    let mut machines = Vec::new();
    // One node says nothing about a pool that makes none unless it could make several.
    let is_strict = snapshot.settings.min_values_policy == MinValuesPolicy::Strict;
    let makes_one =
        |pool: &&Arc<NodePool>| !(is_strict && pool.template.requirements.has_min_values());
    for pool in snapshot.pools.iter().filter(makes_one) {
        let used = used(snapshot, plan, pool);
        let teams: Vec<Option<&str>> = match pool.template.requirements.on(TEAM) {
            Some(requirement) => requirement.values().map(Some).collect(),
            None => vec![None],
        };
        for it in pool.instance_types.iter() {
            let fits_pool = pool.template.requirements.intersects(&it.requirements);
            if !fits_pool || !within_limits(pool, &used, &it.capacity) {
                continue;
            }
            let can_be_bought = |offering: &&Offering| {
                let is_taken = |id: &ReservationId| {
                    let offerings = plan
                        .new_claims
                        .iter()
                        .flat_map(|claim| claim.offerings.iter());
                    offerings
                        .filter_map(|it| it.reservation.as_ref())
                        .any(|it| it == id)
                };
                let reservation = offering.reservation.as_ref();
                reservation.is_none_or(|it| !is_taken(&it.id))
                    && offering.is_available()
                    && offering.is_allowed_by(&pool.template.requirements)
            };
            for offering in it.offerings.iter().filter(can_be_bought) {
                for team in &teams {
                    let name = format!("case-{seed}-fresh-{}", machines.len());
                    machines.push(Machine::fresh(&name, pool, it, offering, *team));
                }
            }
        }
    }
    machines.truncate(FRESH_MAX);
    machines
}

/// What the pool has, counting each planned claim at the largest that it may become.
fn used(snapshot: &Snapshot, plan: &Plan, pool: &NodePool) -> Resources {
    let one = Resources::default().with(NODES, 1);
    let mut used = Resources::default();
    for node in &snapshot.nodes {
        if node.pool.as_ref() == Some(&pool.name) {
            used.add(&node.capacity);
            used.add(&one);
        }
    }
    for claim in plan
        .new_claims
        .iter()
        .filter(|claim| claim.pool == pool.name)
    {
        let mut largest = one.clone();
        for offering in claim.offerings.iter() {
            largest.raise_to(&offering.capacity);
        }
        used.add(&largest);
    }
    used
}

fn within_limits(pool: &NodePool, used: &Resources, capacity: &Resources) -> bool {
    let capacity = capacity.clone().with(NODES, 1);
    pool.limits
        .iter()
        .all(|(name, limit)| used.amount(name) + capacity.amount(name) <= limit)
}
