//! The answer of a simulation, as `-o json` prints it. Its schema is docs/reference/simulate.schema.json.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_core::plan::{PlacementTarget, Plan, PlannedClaim};
use kerf_core::pod::Pod;
use kerf_core::price::Price;
use kerf_core::reason::{PoolFailure, UnschedulableReason};
use kerf_core::resources::{Resources, quantity_of};
use kerf_core::snapshot::Snapshot;
use kerf_core::static_capacity::SurplusClaim;
use schemars::JsonSchema;
use serde::Serialize;

use crate::simulate::buffers;
use crate::simulate::complaint::Complaint;
use crate::simulate::disruption::Disruption;
use crate::simulate::world::{Owners, Prepared};

/// Raised when a field changes its meaning or goes; new fields do not raise it.
const SCHEMA_VERSION: u32 = 1;

/// Amounts per resource, as Kubernetes quantities.
type Amounts = BTreeMap<String, String>;

/// The answer of `kerf simulate`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    /// Version of this form.
    pub(crate) schema_version: u32,
    /// The region of zones and prices.
    pub(crate) region: String,
    /// The unit of all prices.
    pub(crate) currency: String,
    /// Where types and prices come from.
    pub(crate) catalog: String,
    /// What was not done, because somebody interrupted it: the answer is a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interrupted: Option<String>,
    /// The figures of the whole.
    pub(crate) summary: Summary,
    /// NodePools, in name order.
    pub(crate) pools: Vec<Pool>,
    /// Nodes to launch, in the order in which they were planned.
    pub(crate) new_nodes: Vec<NewNode>,
    /// Nodes that exist and take pods.
    pub(crate) existing_nodes: Vec<ExistingNode>,
    /// NodeClaims that static NodePools have too many of, and that would go whatever is on them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) surplus: Vec<Surplus>,
    /// What would be done about nodes that exist; only with --disrupt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) disruption: Option<Disruption>,
    /// Pods without a place, by reason.
    pub(crate) unschedulable: Vec<Unplaced>,
    /// What was assumed, ignored or looks wrong.
    pub(crate) notes: Vec<Complaint>,
}

/// The figures of the whole.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    /// Pods that needed a place.
    pub(crate) pods: usize,
    /// Of these, pods that do not exist: those for which CapacityBuffers keep room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) buffer_pods: usize,
    /// Of these, on nodes to launch.
    pub(crate) on_new_nodes: usize,
    /// Of these, on nodes that exist.
    pub(crate) on_existing_nodes: usize,
    /// Of these, without a place.
    pub(crate) unschedulable: usize,
    /// Nodes to launch.
    pub(crate) new_nodes: usize,
    /// What the nodes to launch cost together per hour.
    pub(crate) price_per_hour: f64,
    /// Nodes to launch whose price is unknown.
    pub(crate) nodes_without_price: usize,
    /// Whether planning ended before every pod was tried.
    pub(crate) is_partial: bool,
}

/// A NodePool.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pool {
    /// Its name.
    pub(crate) name: String,
    /// Nodes to launch.
    pub(crate) new_nodes: usize,
    /// Pods on them.
    pub(crate) pods: usize,
    /// What they cost together per hour.
    pub(crate) price_per_hour: f64,
    /// Why it can serve no pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

/// A node to launch.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewNode {
    /// The NodePool.
    pub(crate) pool: String,
    /// The first choice: its instance type.
    pub(crate) instance_type: String,
    /// Its zone.
    pub(crate) zone: String,
    /// on-demand, spot or reserved.
    pub(crate) capacity_type: String,
    /// Absent when unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) price_per_hour: Option<f64>,
    /// What pods can use.
    pub(crate) allocatable: Amounts,
    /// What pods and daemons ask for.
    pub(crate) requested: Amounts,
    /// How many ways to launch it there are, the first choice counted.
    pub(crate) offerings: usize,
    /// Why it is launched.
    pub(crate) reason: String,
    /// Its pods.
    pub(crate) pods: Vec<PlannedPod>,
}

/// A node that exists.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExistingNode {
    /// Its name.
    pub(crate) name: String,
    /// The pods that it takes.
    pub(crate) pods: Vec<PlannedPod>,
}

/// A NodeClaim beyond the `replicas` of its static NodePool.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Surplus {
    /// The NodePool.
    pub(crate) pool: String,
    /// The NodeClaim.
    pub(crate) node_claim: String,
    /// Why it goes and not another.
    pub(crate) why: String,
}

impl Surplus {
    pub(crate) fn of(claim: &SurplusClaim) -> Self {
        Self {
            pool: claim.pool.to_string(),
            node_claim: claim.node_claim.to_string(),
            why: claim.note.clone(),
        }
    }
}

/// A pod and what it asks for.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlannedPod {
    /// Namespace and name.
    pub(crate) name: String,
    /// Kind, namespace and name of what it was made from.
    pub(crate) workload: String,
    /// What it asks for.
    pub(crate) requests: Amounts,
}

/// Pods without a place that share a reason.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Unplaced {
    /// The reason in one sentence.
    pub(crate) reason: String,
    /// The constraint that failed, per NodePool.
    pub(crate) pools: Vec<PoolReason>,
    /// The pods.
    pub(crate) pods: Vec<PlannedPod>,
}

/// Why a NodePool cannot serve a pod.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PoolReason {
    /// The NodePool.
    pub(crate) pool: String,
    /// The constraint that failed.
    pub(crate) reason: String,
}

/// The JSON Schema of [`Report`].
pub(crate) fn schema() -> Result<String, Vec<Complaint>> {
    serde_json::to_string_pretty(&schemars::schema_for!(Report))
        .map(|json| json + "\n")
        .map_err(|error| vec![Complaint::of("the schema", &error.to_string())])
}

/// Puts the plan into the answer's words.
pub(crate) fn build(world: &Prepared, plan: &Plan) -> Report {
    let Prepared {
        snapshot,
        owners,
        types: catalog,
        notes,
        registry: _,
        visits: _,
        has_times: _,
    } = world;
    let new_nodes: Vec<NewNode> = plan
        .new_claims
        .iter()
        .map(|it| new_node(it, owners))
        .collect();
    let mut unplaced: Vec<Unplaced> = plan
        .unschedulable
        .iter()
        .map(|group| Unplaced {
            reason: group.reason.to_string(),
            pools: pool_reasons(&group.reason),
            pods: real(&group.pods).map(|pod| planned(pod, owners)).collect(),
        })
        .filter(|group| !group.pods.is_empty())
        .collect();
    unplaced.extend(withheld(snapshot, plan, owners));
    let on_new_nodes = new_nodes.iter().map(|node| node.pods.len()).sum();
    let unschedulable = unplaced.iter().map(|group| group.pods.len()).sum();
    let claims = plan.new_claims.iter().flat_map(|claim| &claim.pods);
    let placed = plan.placements.iter().map(|it| &it.pod);
    let summary = Summary {
        buffer_pods: claims.chain(placed).filter(|pod| pod.is_virtual()).count(),
        pods: on_new_nodes + plan.placements.len() + unschedulable,
        on_new_nodes,
        on_existing_nodes: plan.placements.len(),
        unschedulable,
        new_nodes: new_nodes.len(),
        price_per_hour: per_hour(plan.price_per_hour()),
        nodes_without_price: new_nodes
            .iter()
            .filter(|it| it.price_per_hour.is_none())
            .count(),
        is_partial: plan.is_partial,
    };
    Report {
        schema_version: SCHEMA_VERSION,
        region: catalog.region.clone(),
        currency: catalog.currency.clone(),
        catalog: catalog.source.clone(),
        interrupted: None,
        summary,
        pools: pools(snapshot, plan),
        new_nodes,
        existing_nodes: existing_nodes(plan, owners),
        surplus: Vec::new(),
        disruption: None,
        unschedulable: unplaced,
        notes: notes
            .iter()
            .cloned()
            .chain(buffers::short(plan, owners))
            .collect(),
    }
}

/// Without the pods of CapacityBuffers.
fn real(pods: &[Arc<Pod>]) -> impl Iterator<Item = &Arc<Pod>> {
    pods.iter().filter(|pod| !pod.is_virtual())
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Pods that the plan says nothing of: their NodeClaims were taken back, because a policy that must answer did not.
fn withheld(snapshot: &Snapshot, plan: &Plan, owners: &Owners) -> Option<Unplaced> {
    let claims = plan.new_claims.iter().flat_map(|claim| &claim.pods);
    let placed = plan.placements.iter().map(|it| &it.pod);
    let refused = plan.unschedulable.iter().flat_map(|group| &group.pods);
    let told: BTreeSet<_> = claims
        .chain(placed)
        .chain(refused)
        .map(|pod| &pod.uid)
        .collect();
    let pods: Vec<PlannedPod> = snapshot
        .pending_pods
        .iter()
        .filter(|pod| !told.contains(&pod.uid) && !pod.is_virtual())
        .map(|pod| planned(pod, owners))
        .collect();
    let reason = "a policy with failurePolicy Fail gave no answer, so its NodeClaim is not made";
    (!pods.is_empty()).then(|| Unplaced {
        reason: reason.to_owned(),
        pools: Vec::new(),
        pods,
    })
}

pub(super) fn per_hour(price: Price) -> f64 {
    price.per_hour().unwrap_or_default()
}

pub(super) fn new_node(claim: &PlannedClaim, owners: &Owners) -> NewNode {
    let first = claim.offerings.first();
    let text = |of: &dyn Fn(&kerf_core::plan::PlannedOffering) -> String| {
        first.map(of).unwrap_or_default()
    };
    NewNode {
        pool: claim.pool.to_string(),
        instance_type: text(&|it| it.instance_type.to_string()),
        zone: text(&|it| it.zone.to_string()),
        capacity_type: text(&|it| it.capacity_type.to_string()),
        price_per_hour: claim.price().per_hour(),
        allocatable: first.map(|it| amounts(&it.allocatable)).unwrap_or_default(),
        requested: amounts(&claim.requests),
        offerings: claim.offerings.len(),
        reason: claim.reason.clone(),
        pods: claim.pods.iter().map(|pod| planned(pod, owners)).collect(),
    }
}

fn amounts(resources: &Resources) -> Amounts {
    let known = resources.iter();
    known
        .map(|(name, amount)| (name.to_owned(), quantity_of(name, amount).to_string()))
        .collect()
}

pub(super) fn planned(pod: &Pod, owners: &Owners) -> PlannedPod {
    let key = (pod.namespace.to_string(), pod.name.to_string());
    PlannedPod {
        name: format!("{}/{}", pod.namespace, pod.name),
        workload: owners
            .get(&key)
            .map(|(title, _)| title.clone())
            .unwrap_or_default(),
        requests: amounts(&pod.spec.requests),
    }
}

fn pools(snapshot: &Snapshot, plan: &Plan) -> Vec<Pool> {
    let mut pools: Vec<Pool> = snapshot
        .pools
        .iter()
        .map(|pool| {
            let own = || {
                plan.new_claims
                    .iter()
                    .filter(|claim| claim.pool == pool.name)
            };
            let found = plan.pool_problems.iter().find(|it| it.pool == pool.name);
            Pool {
                name: pool.name.to_string(),
                new_nodes: own().count(),
                pods: own().map(|claim| claim.pods.len()).sum(),
                price_per_hour: per_hour(own().map(PlannedClaim::price).sum()),
                problem: pool
                    .not_ready
                    .clone()
                    .or_else(|| found.map(|it| it.message.clone())),
            }
        })
        .collect();
    pools.sort_by(|a, b| a.name.cmp(&b.name));
    pools
}

fn existing_nodes(plan: &Plan, owners: &Owners) -> Vec<ExistingNode> {
    let mut by_name: BTreeMap<String, Vec<PlannedPod>> = BTreeMap::new();
    for placement in &plan.placements {
        let name = match &placement.node {
            PlacementTarget::Node(name) => name.to_string(),
            PlacementTarget::InFlight(name) => name.to_string(),
        };
        by_name
            .entry(name)
            .or_default()
            .push(planned(&placement.pod, owners));
    }
    let nodes = by_name.into_iter();
    nodes
        .map(|(name, pods)| ExistingNode { name, pods })
        .collect()
}

fn pool_reasons(reason: &UnschedulableReason) -> Vec<PoolReason> {
    let failures: &[PoolFailure] = match reason {
        UnschedulableReason::NodePools(failures) => failures,
        _ => &[],
    };
    let reasons = failures.iter().map(|it| PoolReason {
        pool: it.pool.to_string(),
        reason: it.failure.to_string(),
    });
    reasons.collect()
}
