//! One YAML stream in, what decisions would see out.

use std::fmt::Write as _;
use std::sync::Arc;

use expect_test::{Expect, expect};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{DaemonSet, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{
    Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodepool::NodePool;
use kerf_core::plan::PlacementTarget;
use kerf_core::resources::Resources;
use kerf_core::snapshot::{Settings, Snapshot};
use serde_json::Value;

use crate::{Catalog, Cluster, Kind, PoolOffers, Tracked};

mod buffers;
mod default_spread;
mod join;
mod pods;
mod pools;
mod updates;
mod volumes;
mod waiting;

/// Long after everything that the tests write.
const NOW: Timestamp = Timestamp::constant(4_000_000_000, 0);

/// The objects of a YAML stream.
fn documents(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).unwrap()
}

fn apply(cluster: &mut Cluster, object: &Value) -> bool {
    fn typed<K: Tracked + serde::de::DeserializeOwned>(
        cluster: &mut Cluster,
        object: &Value,
    ) -> bool {
        cluster.apply(&serde_json::from_value::<K>(object.clone()).unwrap())
    }
    match object["kind"].as_str().unwrap() {
        "Pod" => typed::<Pod>(cluster, object),
        "Node" => typed::<Node>(cluster, object),
        "NodeClaim" => typed::<NodeClaim>(cluster, object),
        "NodePool" => typed::<NodePool>(cluster, object),
        "ECSNodeClass" => typed::<EcsNodeClass>(cluster, object),
        "DaemonSet" => typed::<DaemonSet>(cluster, object),
        "PersistentVolumeClaim" => typed::<PersistentVolumeClaim>(cluster, object),
        "PersistentVolume" => typed::<PersistentVolume>(cluster, object),
        "StorageClass" => typed::<StorageClass>(cluster, object),
        "CSINode" => typed::<CSINode>(cluster, object),
        "Namespace" => typed::<Namespace>(cluster, object),
        "Service" => typed::<Service>(cluster, object),
        "ReplicationController" => typed::<ReplicationController>(cluster, object),
        "ReplicaSet" => typed::<ReplicaSet>(cluster, object),
        "StatefulSet" => typed::<StatefulSet>(cluster, object),
        other => panic!("unknown kind {other}"),
    }
}

fn cluster(yaml: &str) -> Cluster {
    let mut cluster = Cluster::new();
    for object in documents(yaml) {
        apply(&mut cluster, &object);
    }
    cluster
}

/// A catalog in which the pool `general` has offers.
fn catalog() -> Catalog {
    Catalog::from([("general".into(), PoolOffers::default())])
}

fn snapshot(cluster: &Cluster) -> Arc<Snapshot> {
    cluster.snapshot(&catalog(), Settings::default(), NOW)
}

#[track_caller]
fn check(yaml: &str, expect: &Expect) {
    let forwards = render(&cluster(yaml));

    let mut reversed = Cluster::new();
    for object in documents(yaml).iter().rev() {
        apply(&mut reversed, object);
    }

    expect.assert_eq(&forwards);
    assert_eq!(
        render(&reversed),
        forwards,
        "the order of the objects matters"
    );
}

/// Only what differs from the empty value, so that a test shows what it is about.
fn render(cluster: &Cluster) -> String {
    let snapshot = snapshot(cluster);
    let mut out = String::new();
    for pool in &snapshot.pools {
        let not_ready = pool.not_ready.as_deref().unwrap_or("ready");
        let _ = writeln!(out, "pool {}: {not_ready}", pool.name);
    }
    for node in &snapshot.nodes {
        let claim = node.node_claim.as_ref().map_or("-", |name| name.as_str());
        let name = node.name.as_ref().map_or("-", |name| name.as_str());
        let _ = write!(
            out,
            "node {name} claim {claim}: {}",
            amounts(&node.allocatable)
        );
        for (flag, is_set) in [
            ("ready", node.is_ready),
            ("registered", node.is_registered),
            ("initialized", node.is_initialized),
            ("deleting", node.is_deleting),
            ("marked", node.is_marked_for_deletion),
            ("nominated", node.nominated_until.is_some()),
            ("kept", node.forbids_disruption),
        ] {
            if is_set {
                let _ = write!(out, " {flag}");
            }
        }
        for taint in node.effective_taints() {
            let _ = write!(out, " taint={taint}");
        }
        for pod in &node.pods {
            let _ = write!(out, " pod={}", pod.name);
        }
        out.push('\n');
    }
    for pod in &snapshot.pending_pods {
        let _ = write!(out, "pending {}: {}", pod.name, amounts(&pod.spec.requests));
        if let Some(problem) = &pod.invalid {
            let _ = write!(out, " invalid: {problem}");
        }
        out.push('\n');
    }
    for daemon in &snapshot.daemon_pods {
        let _ = writeln!(
            out,
            "daemon {}: {}",
            daemon.name,
            amounts(&daemon.spec.requests)
        );
    }
    for problem in cluster.problems() {
        let _ = writeln!(out, "problem: {problem}");
    }
    out
}

fn amounts(resources: &Resources) -> String {
    let parts: Vec<String> = resources
        .iter()
        .map(|(name, amount)| format!("{name}={amount}"))
        .collect();
    parts.join(" ")
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}
