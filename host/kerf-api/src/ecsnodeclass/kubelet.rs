//! Settings of the kubelet that the join script passes on and the capacity model counts with.

use crate::duration::NillableDuration;
use crate::schema;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Settings of the kubelet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("!has(self.imageGCHighThresholdPercent) || !has(self.imageGCLowThresholdPercent) || self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent", "imageGCHighThresholdPercent must be above imageGCLowThresholdPercent"),
    validation = ("!has(self.evictionSoft) || self.evictionSoft.all(signal, has(self.evictionSoftGracePeriod) && signal in self.evictionSoftGracePeriod)", "each signal of evictionSoft needs an entry in evictionSoftGracePeriod"),
    validation = ("!has(self.evictionSoftGracePeriod) || self.evictionSoftGracePeriod.all(signal, has(self.evictionSoft) && signal in self.evictionSoft)", "each signal of evictionSoftGracePeriod needs an entry in evictionSoft")
)]
pub struct KubeletConfiguration {
    /// Addresses of the cluster's DNS servers.
    #[serde(
        default,
        rename = "clusterDNS",
        skip_serializing_if = "Option::is_none"
    )]
    pub cluster_dns: Option<Vec<String>>,
    /// The most pods on a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_pods: Option<i32>,
    /// The most pods per CPU; maxPods still counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub pods_per_core: Option<i32>,
    /// What is kept for the operating system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "reserved")]
    #[x_kube(validation = ("self.all(name, !string(self[name]).startsWith('-'))", "reserved amounts may not be negative"))]
    pub system_reserved: Option<BTreeMap<String, Quantity>>,
    /// What is kept for Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "reserved")]
    #[x_kube(validation = ("self.all(name, !string(self[name]).startsWith('-'))", "reserved amounts may not be negative"))]
    pub kube_reserved: Option<BTreeMap<String, Quantity>>,
    /// Below what pods are evicted at once: a quantity or a percentage per signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "signals")]
    pub eviction_hard: Option<BTreeMap<String, String>>,
    /// Below what pods are evicted after a grace period: a quantity or a percentage per signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "signals")]
    pub eviction_soft: Option<BTreeMap<String, String>>,
    /// The grace period of each signal of evictionSoft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "grace_periods")]
    pub eviction_soft_grace_period: Option<BTreeMap<String, NillableDuration>>,
    /// The most seconds that a pod may take to end when it is evicted for evictionSoft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction_max_pod_grace_period: Option<i32>,
    /// The disk usage at which unused images are always removed.
    #[serde(
        default,
        rename = "imageGCHighThresholdPercent",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_high_threshold_percent: Option<i32>,
    /// The disk usage down to which unused images are removed.
    #[serde(
        default,
        rename = "imageGCLowThresholdPercent",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_low_threshold_percent: Option<i32>,
    /// Whether CPU limits are enforced.
    #[serde(
        default,
        rename = "cpuCFSQuota",
        skip_serializing_if = "Option::is_none"
    )]
    pub cpu_cfs_quota: Option<bool>,
}

/// Resources that can be reserved on a node.
const RESERVABLE: &[&str] = &["cpu", "memory", "ephemeral-storage", "pid"];

/// Signals that the kubelet evicts by.
const SIGNALS: &[&str] = &[
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
];

/// A map with a closed set of keys, so that a misspelt key is refused by name.
fn closed_map(keys: &[&str], value: &schemars::Schema) -> schemars::Schema {
    let allowed = keys
        .iter()
        .map(|key| format!("'{key}'"))
        .collect::<Vec<_>>()
        .join(", ");
    schemars::json_schema!({
        "type": "object",
        "maxProperties": keys.len(),
        "additionalProperties": value,
        "x-kubernetes-validations": [{
            "rule": format!("self.all(key, key in [{allowed}])"),
            "message": format!("keys allowed here: {}", keys.join(", "))
        }]
    })
}

fn reserved(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    closed_map(RESERVABLE, &schema::quantity(generator))
}

fn signals(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let value = schemars::json_schema!({
        "type": "string",
        "maxLength": 32,
        "pattern": r"^([0-9]+(\.[0-9]+)?%|[0-9]+(\.[0-9]+)?([KMGTPE]i|[kMGTPE])?)$"
    });
    closed_map(SIGNALS, &value)
}

fn grace_periods(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    closed_map(SIGNALS, &schema::duration(generator))
}
