//! The kinds that the index takes, and how each becomes an entry.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{DaemonSet, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{
    Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodepool::NodePool;
use kerf_core::pod::PodPhase;

use crate::cluster::Cluster;
use crate::convert::node_pool::node_pool;
use crate::convert::pod::{PodEntry, pod};
use crate::pod_budgets::pod_budget;
use crate::problem::{Kind, ObjectKey, Problem, Problems};
use crate::waiting::Waiting;
use crate::{daemons, default_spread, nodes, pools, volumes};

/// A kind that the index takes. Implemented here only.
pub trait Tracked: sealed::Sealed {
    /// Which kind it is.
    const KIND: Kind;

    /// The object's metadata.
    fn metadata(&self) -> &ObjectMeta;

    /// Takes the object in; whether anything changed that a decision looks at.
    #[doc(hidden)]
    fn put(&self, cluster: &mut Cluster) -> bool;

    /// Forgets an object; whether it was there.
    #[doc(hidden)]
    fn remove(cluster: &mut Cluster, key: &ObjectKey) -> bool;

    /// All objects of the kind.
    #[doc(hidden)]
    fn keys(cluster: &Cluster) -> Vec<ObjectKey>;

    /// The object's key.
    fn key(&self) -> ObjectKey {
        let metadata = self.metadata();
        ObjectKey {
            namespace: metadata.namespace.as_deref().unwrap_or_default().into(),
            name: metadata.name.as_deref().unwrap_or_default().into(),
        }
    }
}

mod sealed {
    /// Keeps [`Tracked`](super::Tracked) to this crate, so that kinds can be added.
    pub trait Sealed {}
}

/// `kind in table: conversion`, where the conversion sees the object, what is shared and the problems.
macro_rules! tracked {
    ($($type:ty, $kind:ident in $($table:ident).+: $convert:expr;)+) => {$(
        impl sealed::Sealed for $type {}

        impl Tracked for $type {
            const KIND: Kind = Kind::$kind;

            fn metadata(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn put(&self, cluster: &mut Cluster) -> bool {
                let mut problems = Problems::default();
                let entry = $convert(self, &mut cluster.shared, &mut problems);
                let key = self.key();
                cluster.note_problems(Self::KIND, &key, problems.finish());
                let provider_id = cluster.provider_id(Self::KIND, &key);
                let is_changed = replace(&mut cluster.$($table).+, key.clone(), entry);
                cluster.note_provider_id(Self::KIND, &key, provider_id);
                is_changed
            }

            fn remove(cluster: &mut Cluster, key: &ObjectKey) -> bool {
                cluster.note_problems(Self::KIND, key, Vec::new());
                let provider_id = cluster.provider_id(Self::KIND, key);
                let was_there = cluster.$($table).+.remove(key).is_some();
                cluster.note_provider_id(Self::KIND, key, provider_id);
                was_there
            }

            fn keys(cluster: &Cluster) -> Vec<ObjectKey> {
                cluster.$($table).+.keys().cloned().collect()
            }
        }
    )+};
}

impl sealed::Sealed for Pod {}

impl Tracked for Pod {
    const KIND: Kind = Kind::Pod;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// Pods get ready thousands at a time; that is news only where a budget lets those go that are not.
    fn put(&self, cluster: &mut Cluster) -> bool {
        let mut problems = Problems::default();
        let entry = pod(self, &mut cluster.shared, &mut problems);
        let key = self.key();
        cluster.note_problems(Self::KIND, &key, problems.finish());
        note_news(cluster, &key, &entry);
        if entry.node.is_some() || entry.pod.phase != PodPhase::Active {
            cluster.nominations.arrived(&entry.pod.uid);
        }
        let before = cluster.pods.get(&key);
        if before == Some(&entry) {
            return false;
        }
        let is_looked_at = before.is_none_or(|before| !before.is_same_but_ready(&entry))
            || cluster.pod_budgets.values().any(|it| it.lets_unready_go);
        let key = ObjectKey {
            namespace: cluster.shared.words.share(&*key.namespace),
            name: Arc::clone(&entry.pod.name),
        };
        // Taken out first, because a map keeps the key that it has: the key and the pod share the name.
        if let Some(before) = cluster.pods.remove(&key) {
            cluster.forget(&key, &before);
        }
        cluster.bound.add(&entry);
        cluster.sets.add(&key, &entry);
        cluster.pods.insert(key, entry);
        is_looked_at
    }

    fn remove(cluster: &mut Cluster, key: &ObjectKey) -> bool {
        cluster.note_problems(Self::KIND, key, Vec::new());
        let Some(gone) = cluster.pods.remove(key) else {
            return false;
        };
        cluster.forget(key, &gone);
        cluster.nominations.arrived(&gone.pod.uid);
        cluster.news.left += 1;
        true
    }

    fn keys(cluster: &Cluster) -> Vec<ObjectKey> {
        cluster.pods.keys().cloned().collect()
    }
}

/// Counts a pod that came to wait, or that got a verdict before a plan, and one that ended.
fn note_news(cluster: &mut Cluster, key: &ObjectKey, entry: &PodEntry) {
    let before = cluster.pods.get(key);
    let was_active = before.is_some_and(|it| it.pod.phase == PodPhase::Active);
    let known = before.filter(|it| it.pod.uid == entry.pod.uid);
    let waited_as = known.map_or(Waiting::No, |it| it.waiting);
    let is_open = entry.waiting.is_some() && !cluster.is_planned(&entry.pod.uid);
    cluster.news.arrived += u64::from(is_open && !waited_as.is_some());
    cluster.news.judged += u64::from(is_open && waited_as.is_some() && waited_as != entry.waiting);
    let left = was_active && entry.pod.phase != PodPhase::Active;
    cluster.news.left += u64::from(left);
}

tracked! {
    Node, Node in nodes: nodes::node;
    NodeClaim, NodeClaim in node_claims: nodes::node_claim;
    NodePool, NodePool in node_pools: |it, _, problems| {
        let converted = node_pool(it);
        note_all(converted.problems.iter().chain(&converted.ignored), problems);
        converted
    };
    EcsNodeClass, EcsNodeClass in node_classes: |it, _, _| pools::node_class(it);
    DaemonSet, DaemonSet in daemon_sets: daemons::daemon_set;
    PersistentVolumeClaim, PersistentVolumeClaim in volume_claims: |it, _, _| volumes::claim(it);
    PersistentVolume, PersistentVolume in volumes: |it, _, problems| volumes::volume(it, problems);
    StorageClass, StorageClass in storage_classes: |it, _, _| volumes::class(it);
    CSINode, CsiNode in csi_nodes: |it, _, _| volumes::attachment_limits(it);
    Namespace, Namespace in namespaces: |it, _, _| labels(it);
    PodDisruptionBudget, PodDisruptionBudget in pod_budgets: |it, _, problems| pod_budget(it, problems);
    Service, Service in default_spread.services: |it, _, _| default_spread::service(it);
    ReplicationController, ReplicationController in default_spread.replication_controllers:
        |it, _, _| default_spread::replication_controller(it);
    ReplicaSet, ReplicaSet in default_spread.replica_sets:
        |it, _, problems| default_spread::replica_set(it, problems);
    StatefulSet, StatefulSet in default_spread.stateful_sets:
        |it, _, problems| default_spread::stateful_set(it, problems);
}

fn labels(namespace: &Namespace) -> kerf_core::selector::Labels {
    namespace.metadata.labels.clone().unwrap_or_default()
}

fn note_all<'a>(found: impl Iterator<Item = &'a Problem>, problems: &mut Problems) {
    for problem in found {
        problems.add(problem.field.as_str(), &problem.message);
    }
}

/// Puts the entry; whether it differs from what was there.
fn replace<E: PartialEq>(table: &mut BTreeMap<ObjectKey, E>, key: ObjectKey, entry: E) -> bool {
    if table.get(&key) == Some(&entry) {
        return false;
    }
    table.insert(key, entry);
    true
}
