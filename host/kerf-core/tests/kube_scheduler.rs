//! Plans against a model of kube-scheduler's filters: every planned pod is accepted on its planned node when the pods
//! are offered in the plan's order, and no pod without a place would be accepted on a node that could be made.
//!
//! The model (`kube_scheduler/model.rs`) is written from Kubernetes' rules and shares nothing with the planner but the
//! types. `cargo xtask oracle` asks the real one the same; this is the part of it that needs no cluster.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "kube_scheduler/generate.rs"]
mod generate;
#[path = "kube_scheduler/model.rs"]
mod model;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_core::ids::PodUid;
use kerf_core::labels::{HOSTNAME, NODE_POOL, ZONE};
use kerf_core::node_pool::NodePool;
use kerf_core::plan::{PlacementTarget, PlannedClaim};
use kerf_core::pod::Pod;
use kerf_core::resources::Resources;
use kerf_core::{Plan, Preferences, Snapshot, WorkBudget, schedule};
use proptest::prelude::*;

use model::{Cluster, ModelNode};

/// A node as the claim's first offering makes it.
fn planned_node(name: &str, claim: &PlannedClaim, snapshot: &Snapshot) -> ModelNode {
    let first = &claim.offerings[0];
    let pool = snapshot
        .pools
        .iter()
        .find(|pool| pool.name == claim.pool)
        .unwrap();
    let mut node = fresh_node(name, pool, &first.zone, &first.allocatable, snapshot);
    node.labels.extend(claim.labels.clone());
    node
}

fn fresh_node(
    name: &str,
    pool: &NodePool,
    zone: &str,
    allocatable: &Resources,
    snapshot: &Snapshot,
) -> ModelNode {
    let mut labels = pool.template.labels.clone();
    for (key, value) in [
        (HOSTNAME, name),
        (ZONE, zone),
        (NODE_POOL, &pool.name),
        ("kubernetes.io/arch", "amd64"),
    ] {
        labels.insert(key.to_owned(), value.to_owned());
    }
    let mut free = allocatable.clone();
    for daemon in &snapshot.daemon_pods {
        free.subtract(&daemon.spec.requests);
    }
    ModelNode {
        labels,
        taints: pool.template.taints.clone(),
        free,
        pods: Vec::new(),
    }
}

/// The cluster with the planned nodes, and where each planned pod belongs.
fn cluster(snapshot: &Snapshot, plan: &Plan) -> (Cluster, BTreeMap<PodUid, usize>) {
    let mut nodes: Vec<ModelNode> = snapshot
        .nodes
        .iter()
        .map(|node| ModelNode::existing(node))
        .collect();
    let mut homes = BTreeMap::new();
    for placement in &plan.placements {
        let is_home = |node: &Arc<kerf_core::node::Node>| match &placement.node {
            PlacementTarget::Node(name) => node.name.as_ref() == Some(name),
            PlacementTarget::InFlight(claim) => node.node_claim.as_ref() == Some(claim),
        };
        homes.insert(
            placement.pod.uid.clone(),
            snapshot.nodes.iter().position(is_home).unwrap(),
        );
    }
    for (n, claim) in plan.new_claims.iter().enumerate() {
        homes.extend(claim.pods.iter().map(|pod| (pod.uid.clone(), nodes.len())));
        nodes.push(planned_node(&format!("claim-{n}"), claim, snapshot));
    }
    (Cluster { nodes }, homes)
}

/// A pod that was refused although it was planned, or accepted although it was not.
fn mismatch(snapshot: &Snapshot) -> Option<String> {
    let plan = schedule(
        snapshot,
        &Preferences::none(),
        WorkBudget::ROUND,
        Timestamp::UNIX_EPOCH,
    );
    let (mut cluster, homes) = cluster(snapshot, &plan);
    let pods: BTreeMap<&PodUid, &Arc<Pod>> = snapshot
        .pending_pods
        .iter()
        .map(|pod| (&pod.uid, pod))
        .collect();
    for uid in &plan.order {
        let (pod, home) = (pods[uid], homes[uid]);
        if let Some(refusal) = cluster.refusal(pod, home) {
            return Some(format!(
                "{} on {}: {refusal}\n{:#?}",
                pod.name, cluster.nodes[home].labels[HOSTNAME], pod.spec
            ));
        }
        cluster.bind(pod, home);
    }
    let without = plan
        .unschedulable
        .iter()
        .flat_map(|group| group.pods.iter().map(move |pod| (pod, &group.reason)));
    for (pod, reason) in without {
        for pool in &snapshot.pools {
            for it in pool.instance_types.iter() {
                for offering in &it.offerings {
                    let node =
                        fresh_node("fresh", pool, &offering.zone, &it.allocatable(), snapshot);
                    cluster.nodes.push(node);
                    let refusal = cluster.refusal(pod, cluster.nodes.len() - 1);
                    cluster.nodes.pop();
                    if refusal.is_none() {
                        let place = format!("{} in {} of {}", it.name, offering.zone, pool.name);
                        return Some(format!(
                            "{} would be accepted on {place}, but: {reason}\n{:#?}",
                            pod.name, pod.spec
                        ));
                    }
                }
            }
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn kube_scheduler_agrees_with_every_plan(snapshot in generate::snapshot()) {
        let mismatch = mismatch(&snapshot);
        prop_assert!(mismatch.is_none(), "{}", mismatch.unwrap_or_default());
    }
}
