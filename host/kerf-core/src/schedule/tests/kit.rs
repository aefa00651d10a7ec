//! Short forms for pools, instance types, pods and nodes.

use std::sync::Arc;

use crate::instance_type::{CapacityType, InstanceType, Offering};
use crate::labels;
use crate::node::Node;
use crate::node_pool::NodePool;
use crate::plan::{Plan, PlannedClaim, WorkBudget};
use crate::pod::{Pod, PodSpec};
use crate::preferences::Preferences;
use crate::price::Price;
use crate::requirement::Requirement;
use crate::resources::Resources;
use crate::schedule::schedule;
use crate::snapshot::Snapshot;

pub(super) const GI: i64 = 1 << 30;
pub(super) const ZONES: [&str; 3] = ["h", "i", "j"];

/// An on-demand type of that many cores with 4 GiB each, at 0.1 per core, in all zones.
pub(super) fn instance_type(name: &str, cores: u32) -> InstanceType {
    sold(name, cores, &ZONES, &[CapacityType::OnDemand])
}

pub(super) fn sold(
    name: &str,
    cores: u32,
    zones: &[&str],
    capacity_types: &[CapacityType],
) -> InstanceType {
    let offering = |zone: &str, capacity_type| {
        let discount = if capacity_type == CapacityType::Spot {
            0.3
        } else {
            1.0
        };
        Offering::new(
            zone,
            capacity_type,
            Price::from_per_hour(0.1 * f64::from(cores) * discount),
        )
    };
    let offerings = zones
        .iter()
        .flat_map(|zone| capacity_types.iter().map(move |it| offering(zone, *it)));
    let capacity =
        Resources::of(i64::from(cores) * 1000, i64::from(cores) * 4 * GI).with("pods", 110);
    InstanceType::new(
        name,
        [Requirement::in_values(labels::ARCH, ["amd64"])],
        capacity,
        Resources::default(),
        offerings.collect(),
    )
}

/// `general` with types of 2, 4, 8 and 16 cores.
pub(super) fn pool() -> NodePool {
    pool_of([2, 4, 8, 16].map(|cores| instance_type(&format!("ecs.g7.{cores}c"), cores)))
}

pub(super) fn pool_of(instance_types: impl IntoIterator<Item = InstanceType>) -> NodePool {
    let instance_types = Arc::new(instance_types.into_iter().map(Arc::new).collect());
    NodePool {
        name: "general".into(),
        instance_types,
        ..NodePool::default()
    }
}

pub(super) fn named(name: &str, weight: u32, pool: NodePool) -> NodePool {
    NodePool {
        name: name.into(),
        weight,
        ..pool
    }
}

/// A pod of that many thousandths of a core and 100 MiB.
pub(super) fn spec(cpu_milli: i64) -> PodSpec {
    PodSpec::requesting(cpu_milli, 100 << 20)
}

pub(super) fn pods(prefix: &str, count: usize, spec: &PodSpec) -> Vec<Pod> {
    (0..count)
        .map(|n| Pod::new(&format!("{prefix}-{n:03}"), spec.clone()))
        .collect()
}

/// An initialised node of `general`.
pub(super) fn node(name: &str, cores: i64, zone: &str) -> Node {
    let labels = [
        (labels::ZONE, zone),
        (labels::HOSTNAME, name),
        (labels::NODE_POOL, "general"),
        (labels::CAPACITY_TYPE, "on-demand"),
        (labels::ARCH, "amd64"),
    ];
    let resources = Resources::of(cores * 1000, cores * 4 * GI).with("pods", 110);
    Node {
        name: Some(name.into()),
        node_claim: Some(name.into()),
        pool: Some("general".into()),
        labels: labels.into_iter().collect(),
        allocatable: resources.clone(),
        capacity: resources,
        is_ready: true,
        is_registered: true,
        is_initialized: true,
        ..Node::default()
    }
}

/// A snapshot in the making.
#[derive(Default)]
pub(super) struct World(pub(super) Snapshot);

impl World {
    pub(super) fn new(pool: NodePool) -> Self {
        Self::default().pool(pool)
    }

    pub(super) fn pool(mut self, pool: NodePool) -> Self {
        self.0.pools.push(Arc::new(pool));
        self
    }

    pub(super) fn node(mut self, node: Node) -> Self {
        self.0.nodes.push(Arc::new(node));
        self
    }

    pub(super) fn pods(mut self, pods: impl IntoIterator<Item = Pod>) -> Self {
        self.0.pending_pods.extend(pods.into_iter().map(Arc::new));
        self
    }

    pub(super) fn pod(self, name: &str, spec: PodSpec) -> Self {
        self.pods([Pod::new(name, spec)])
    }

    pub(super) fn plan(&self) -> Plan {
        self.plan_with(&Preferences::none())
    }

    pub(super) fn plan_with(&self, preferences: &Preferences) -> Plan {
        schedule(
            &self.0,
            preferences,
            WorkBudget::ROUND,
            jiff::Timestamp::UNIX_EPOCH,
        )
    }
}

/// The claim's pods and its first offering, as `a b -> ecs.g7.2c h`.
pub(super) fn show(claim: &PlannedClaim) -> String {
    let mut pods: Vec<&str> = claim.pods.iter().map(|pod| &*pod.name).collect();
    pods.sort_unstable();
    let first = &claim.offerings[0];
    format!(
        "{} -> {} {}",
        pods.join(" "),
        first.instance_type,
        first.zone
    )
}

pub(super) fn shown(plan: &Plan) -> Vec<String> {
    plan.new_claims.iter().map(show).collect()
}

/// The reason of the only group of unschedulable pods.
pub(super) fn only_reason(plan: &Plan) -> String {
    assert_eq!(plan.unschedulable.len(), 1, "{:?}", plan.unschedulable);
    plan.unschedulable[0].reason.to_string()
}

/// Where each pod went: by name of the node.
pub(super) fn placed(plan: &Plan) -> Vec<String> {
    plan.placements
        .iter()
        .map(|it| format!("{} -> {:?}", it.pod.name, it.node))
        .collect()
}
