//! A case: the objects of a cluster, what can be bought for it, and which kinds of constraint it has.
//!
//! It is kept as the objects that an API server takes, so that kerf's own conversion is tried with it, and a shrunk case
//! is a YAML file that people can read.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodepool::NodePool;
use kerf_core::Snapshot;
use kerf_core::instance_type::InstanceType;
use kerf_core::snapshot::{MinValuesPolicy, PreferencePolicy, Settings};
use kerf_state::{Catalog, Cluster, PoolOffers, Tracked};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::catalog;
use super::draw::Draw;
use super::manifest::NODE_CLASS;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Case {
    pub(super) seed: u64,
    /// What was drawn; empty in a case from a file.
    pub(super) kinds: BTreeSet<&'static str>,
    pub(super) settings: Settings,
    /// Instance types as [`catalog`] writes them.
    pub(super) types: Vec<Value>,
    pub(super) objects: Vec<Value>,
}

impl Case {
    pub(super) fn draw(seed: u64) -> Self {
        Draw::new(seed).case()
    }

    /// The cluster as kerf sees it.
    pub(super) fn snapshot(&self) -> Result<Arc<Snapshot>> {
        let mut cluster = Cluster::new();
        cluster.apply(&read::<EcsNodeClass>(&node_class())?);
        for object in &self.objects {
            apply(&mut cluster, object)?;
        }
        if let Some(problem) = cluster.problems().next() {
            bail!("kerf cannot use an object as written: {problem:?}");
        }
        let types = self.types.iter().map(catalog::read);
        let types: Vec<Arc<InstanceType>> =
            types.map(|it| it.map(Arc::new)).collect::<Result<_>>()?;
        let offers = PoolOffers {
            instance_types: Arc::new(types),
            ..PoolOffers::default()
        };
        let pools = self.of_kind("NodePool").map(name);
        let catalog: Catalog = pools.map(|pool| (pool.into(), offers.clone())).collect();
        Ok(cluster.snapshot(&catalog, self.settings, jiff::Timestamp::UNIX_EPOCH))
    }

    /// The pod of that name.
    pub(super) fn pod(&self, of_namespace: &str, of_name: &str) -> Option<&Value> {
        self.of_kind("Pod")
            .find(|pod| namespace(pod) == of_namespace && name(pod) == of_name)
    }

    pub(super) fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.objects
            .iter()
            .filter(move |object| object["kind"] == kind)
    }

    pub(super) fn load(path: &Path) -> Result<Self> {
        let read = || format!("cannot read {}", path.display());
        let text = fs::read_to_string(path).with_context(read)?;
        let file: Value = serde_saphyr::from_str(&text).with_context(read)?;
        let list = |name: &str| file[name].as_array().cloned().unwrap_or_default();
        let settings = Settings {
            preference_policy: match file["preferencePolicy"].as_str() {
                Some("Ignore") => PreferencePolicy::Ignore,
                _ => PreferencePolicy::Respect,
            },
            min_values_policy: match file["minValuesPolicy"].as_str() {
                Some("BestEffort") => MinValuesPolicy::BestEffort,
                _ => MinValuesPolicy::Strict,
            },
        };
        Ok(Self {
            seed: file["seed"]
                .as_u64()
                .with_context(|| format!("{}: no seed", path.display()))?,
            kinds: BTreeSet::new(),
            settings,
            types: list("instanceTypes"),
            objects: list("objects"),
        })
    }

    pub(super) fn save(&self, path: &Path, comment: &str) -> Result<()> {
        let preferences = match self.settings.preference_policy {
            PreferencePolicy::Respect => "Respect",
            PreferencePolicy::Ignore => "Ignore",
        };
        let min_values = match self.settings.min_values_policy {
            MinValuesPolicy::Strict => "Strict",
            MinValuesPolicy::BestEffort => "BestEffort",
        };
        let mut objects = json!(self.objects);
        prune(&mut objects);
        let file = json!({
            "seed": self.seed,
            "preferencePolicy": preferences,
            "minValuesPolicy": min_values,
            "instanceTypes": self.types,
            "objects": objects,
        });
        let comment: String = comment.lines().map(|line| format!("# {line}\n")).collect();
        let text = format!("{comment}{}", serde_saphyr::to_string(&file)?);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(super) fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

/// Takes away what is empty.
pub(super) fn prune(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(prune);
            // An empty selector selects everything, and an absent one nothing; a NodeClaim must have its list.
            fields.retain(|key, field| {
                !field.is_null()
                    && (key.ends_with("elector")
                        || key == "requirements"
                        || (field.as_array().is_none_or(|it| !it.is_empty())
                            && field.as_object().is_none_or(|it| !it.is_empty())))
            });
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The class of all pools: what it says does not matter here, only that it is ready.
fn node_class() -> Value {
    json!({
        "apiVersion": "karpenter.alibabacloud.com/v1alpha1", "kind": "ECSNodeClass",
        "metadata": {"name": NODE_CLASS}, "spec": {},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ]},
    })
}

fn apply(cluster: &mut Cluster, object: &Value) -> Result<()> {
    use k8s_openapi::api::{apps::v1 as apps, core::v1 as core, storage::v1 as storage};
    match object["kind"].as_str().unwrap_or_default() {
        "Namespace" => put::<core::Namespace>(cluster, object),
        "Node" => put::<core::Node>(cluster, object),
        "Pod" => put::<core::Pod>(cluster, &as_waiting(object)),
        "PersistentVolume" => put::<core::PersistentVolume>(cluster, object),
        "PersistentVolumeClaim" => put::<core::PersistentVolumeClaim>(cluster, &as_bound(object)),
        "DaemonSet" => put::<apps::DaemonSet>(cluster, object),
        "StorageClass" => put::<storage::StorageClass>(cluster, object),
        "CSINode" => put::<storage::CSINode>(cluster, object),
        "NodePool" => put::<NodePool>(cluster, object),
        "NodeClaim" => put::<NodeClaim>(cluster, object),
        kind => bail!("kerf knows no objects of kind {kind:?}"),
    }
}

fn put<K: Tracked + DeserializeOwned>(cluster: &mut Cluster, object: &Value) -> Result<()> {
    cluster.apply(&read::<K>(object)?);
    Ok(())
}

fn read<K: DeserializeOwned>(object: &Value) -> Result<K> {
    serde_json::from_value(object.clone()).with_context(|| format!("cannot read {object}"))
}

/// A pod with what the API server and kube-scheduler write: a uid and, without a node, that there is none for it.
fn as_waiting(pod: &Value) -> Value {
    let mut pod = pod.clone();
    pod["metadata"]["uid"] = json!(format!("{}/{}", namespace(&pod), name(&pod)));
    if pod["spec"]["nodeName"].is_null() {
        let refused = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
        pod["status"]["conditions"] = json!([refused]);
    }
    pod
}

/// A claim that names its volume has been bound to it by the time that kerf looks.
fn as_bound(claim: &Value) -> Value {
    let mut claim = claim.clone();
    if claim["spec"]["volumeName"].is_string() {
        claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = json!("yes");
    }
    claim
}
