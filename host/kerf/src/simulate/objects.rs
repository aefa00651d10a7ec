//! Manifests with types: what planning looks at, and what it leaves aside.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodTemplate,
    ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use kerf_api::capacitybuffer::CapacityBuffer;
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodeoverlay::NodeOverlay;
use kerf_api::nodepool::NodePool;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::document::{self, Document};
use crate::simulate::complaint::Complaint;

/// An object and the index of the item that it was written as.
pub(crate) type Written<T> = (usize, T);

/// All objects by kind.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    pub(crate) pods: Vec<Written<Pod>>,
    pub(crate) deployments: Vec<Written<Deployment>>,
    pub(crate) replica_sets: Vec<Written<ReplicaSet>>,
    pub(crate) stateful_sets: Vec<Written<StatefulSet>>,
    pub(crate) daemon_sets: Vec<Written<DaemonSet>>,
    pub(crate) jobs: Vec<Written<Job>>,
    pub(crate) cron_jobs: Vec<Written<CronJob>>,
    pub(crate) node_pools: Vec<Written<NodePool>>,
    pub(crate) node_classes: Vec<Written<EcsNodeClass>>,
    pub(crate) node_claims: Vec<Written<NodeClaim>>,
    pub(crate) nodes: Vec<Written<Node>>,
    pub(crate) csi_nodes: Vec<Written<CSINode>>,
    pub(crate) namespaces: Vec<Written<Namespace>>,
    pub(crate) volume_claims: Vec<Written<PersistentVolumeClaim>>,
    pub(crate) volumes: Vec<Written<PersistentVolume>>,
    pub(crate) storage_classes: Vec<Written<StorageClass>>,
    pub(crate) priority_classes: Vec<Written<PriorityClass>>,
    pub(crate) config_maps: Vec<Written<ConfigMap>>,
    pub(crate) node_overlays: Vec<Written<NodeOverlay>>,
    pub(crate) capacity_buffers: Vec<Written<CapacityBuffer>>,
    pub(crate) pod_templates: Vec<Written<PodTemplate>>,
    /// They only matter for default spread constraints, as ReplicationControllers do.
    pub(crate) services: Vec<Written<Service>>,
    pub(crate) replication_controllers: Vec<Written<ReplicationController>>,
    /// They only matter for disruption.
    pub(crate) budgets: Vec<Written<PodDisruptionBudget>>,
    /// Objects of kinds that planning does not look at.
    unused: BTreeMap<String, usize>,
    /// Fields that no such kind has: typing mistakes that an API server would warn of.
    unknown_fields: Vec<Complaint>,
}

impl Objects {
    /// Gives every item its type, or says of each what is wrong.
    pub(crate) fn parse(items: &[Document]) -> Result<Self, Vec<Complaint>> {
        let mut objects = Self::default();
        let mut complaints = Vec::new();
        for (index, item) in items.iter().enumerate() {
            complaints.extend(objects.add(index, item).err());
        }
        if complaints.is_empty() {
            Ok(objects)
        } else {
            Err(complaints)
        }
    }

    /// What was ignored, for the notes.
    pub(crate) fn remarks(&self, has_default_spread: bool) -> Vec<Complaint> {
        let mut remarks = self.unknown_fields.clone();
        let mut unused = self.unused.clone();
        let siblings = [
            ("Service", self.services.len()),
            ("ReplicationController", self.replication_controllers.len()),
        ];
        let siblings = siblings
            .into_iter()
            .filter(|(_, count)| *count > 0 && !has_default_spread);
        unused.extend(siblings.map(|(kind, count)| (kind.to_owned(), count)));
        if !unused.is_empty() {
            let kinds = unused.iter();
            let kinds: Vec<String> = kinds
                .map(|(kind, count)| format!("{count} {kind}"))
                .collect();
            let message = format!("of no matter for the plan: {}", kinds.join(", "));
            remarks.push(Complaint::note(&message));
        }
        remarks
    }

    fn add(&mut self, index: usize, item: &Document) -> Result<(), Complaint> {
        let unknown = &mut self.unknown_fields;
        match item.kind() {
            "Pod" => self.pods.push((index, read(item, unknown)?)),
            "Deployment" => self.deployments.push((index, read(item, unknown)?)),
            "ReplicaSet" => self.replica_sets.push((index, read(item, unknown)?)),
            "StatefulSet" => self.stateful_sets.push((index, read(item, unknown)?)),
            "DaemonSet" => self.daemon_sets.push((index, read(item, unknown)?)),
            "Job" => self.jobs.push((index, read(item, unknown)?)),
            "CronJob" => self.cron_jobs.push((index, read(item, unknown)?)),
            "NodePool" => self.node_pools.push((index, read(item, unknown)?)),
            "ECSNodeClass" => self.node_classes.push((index, read(item, unknown)?)),
            "NodeClaim" => self.node_claims.push((index, read(item, unknown)?)),
            "Node" => self.nodes.push((index, read(item, unknown)?)),
            "CSINode" => self.csi_nodes.push((index, read(item, unknown)?)),
            "Namespace" => self.namespaces.push((index, read(item, unknown)?)),
            "PersistentVolumeClaim" => self.volume_claims.push((index, read(item, unknown)?)),
            "PersistentVolume" => self.volumes.push((index, read(item, unknown)?)),
            "StorageClass" => self.storage_classes.push((index, read(item, unknown)?)),
            "PriorityClass" => self.priority_classes.push((index, read(item, unknown)?)),
            "PodDisruptionBudget" => self.budgets.push((index, read(item, unknown)?)),
            "NodeOverlay" => self.node_overlays.push((index, read(item, unknown)?)),
            "CapacityBuffer" => self.capacity_buffers.push((index, read(item, unknown)?)),
            "PodTemplate" => self.pod_templates.push((index, read(item, unknown)?)),
            "Service" => self.services.push((index, read(item, unknown)?)),
            "ReplicationController" => self
                .replication_controllers
                .push((index, read(item, unknown)?)),
            "ConfigMap" => self.config_maps.push((index, read(item, unknown)?)),
            // Read by --hpa.
            "HorizontalPodAutoscaler" => {}
            kind => *self.unused.entry(kind.to_owned()).or_default() += 1,
        }
        Ok(())
    }
}

fn read<T: DeserializeOwned + Serialize>(
    item: &Document,
    unknown: &mut Vec<Complaint>,
) -> Result<T, Complaint> {
    match T::deserialize(&item.value) {
        Ok(object) => {
            if let Ok(kept) = serde_json::to_value(&object) {
                let mut lost = Vec::new();
                find_lost(&item.value, &kept, "", &mut lost);
                let notes = lost
                    .iter()
                    .map(|field| Complaint::at(item, field, "no such field; it is ignored"));
                unknown.extend(notes);
            }
            Ok(object)
        }
        Err(error) => Err(misfit::<T>(item, &error.to_string())),
    }
}

/// A value that does not fit its type, named by the field that is to blame.
fn misfit<T: DeserializeOwned>(item: &Document, message: &str) -> Complaint {
    let hint = format!(
        "`kubectl explain {}` lists the fields and their types",
        item.kind().to_lowercase()
    );
    let mut path = String::new();
    let mut pointer = String::new();
    while let Some((below, step)) = culprit::<T>(item, &pointer, message) {
        path = match step {
            Step::Field(key) => document::join(&path, &key),
            Step::Item(index) => format!("{path}[{index}]"),
        };
        pointer = below;
    }
    Complaint::at(item, &path, message).hint(&hint)
}

/// One step down in a document.
enum Step {
    Field(String),
    Item(usize),
}

/// The child of a place without which the object has another fault or none.
fn culprit<T: DeserializeOwned>(
    item: &Document,
    pointer: &str,
    message: &str,
) -> Option<(String, Step)> {
    let children: Vec<(String, Step)> = match item.value.pointer(pointer)? {
        Value::Object(fields) => {
            let fields = fields.keys().map(|key| {
                let escaped = key.replace('~', "~0").replace('/', "~1");
                (format!("{pointer}/{escaped}"), Step::Field(key.clone()))
            });
            fields.collect()
        }
        Value::Array(list) => (0..list.len())
            .map(|index| (format!("{pointer}/{index}"), Step::Item(index)))
            .collect(),
        _ => Vec::new(),
    };
    children.into_iter().find(|(child, step)| {
        let mut without = item.value.clone();
        match (without.pointer_mut(pointer), step) {
            (Some(Value::Object(fields)), Step::Field(key)) => drop(fields.shift_remove(key)),
            (Some(Value::Array(list)), Step::Item(index)) => drop(list.remove(*index)),
            _ => tracing::debug!(child, "a child without a parent"),
        }
        match T::deserialize(&without) {
            Ok(_) => true,
            // A field that is needed is missed once it is gone; it was not to blame.
            Err(error) => {
                let error = error.to_string();
                error != message && !error.starts_with("missing field")
            }
        }
    })
}

/// Fields that were written with a value and that the type does not have.
fn find_lost(written: &Value, kept: &Value, path: &str, lost: &mut Vec<String>) {
    match (written, kept) {
        (Value::Object(written), Value::Object(kept)) => {
            for (key, value) in written.iter().filter(|(_, value)| !is_empty(value)) {
                let below = document::join(path, key);
                match kept.get(key) {
                    Some(kept) => find_lost(value, kept, &below, lost),
                    None => lost.push(below),
                }
            }
        }
        (Value::Array(written), Value::Array(kept)) => {
            for (index, (value, kept)) in written.iter().zip(kept).enumerate() {
                find_lost(value, kept, &format!("{path}[{index}]"), lost);
            }
        }
        _ => {}
    }
}

/// Values that a type may leave out when it is written.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(is_empty),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(true) => false,
    }
}
