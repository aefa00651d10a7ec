//! CapacityBuffer: room that is kept free for pods which do not exist yet.

use crate::condition::Condition;
use crate::schema;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The one strategy that exists: the room is real nodes.
pub const ACTIVE_CAPACITY: &str = "buffer.x-k8s.io/active-capacity";

fn strategy_default() -> Option<String> {
    Some(ACTIVE_CAPACITY.to_owned())
}

/// How much room to keep, and for what kind of pod.
#[derive(CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "autoscaling.x-k8s.io",
    version = "v1beta1",
    kind = "CapacityBuffer",
    namespaced,
    category = "autoscaling",
    shortname = "cb",
    status = "CapacityBufferStatus",
    derive = "PartialEq",
    doc = "A CapacityBuffer keeps room free for pods that do not exist yet.",
    // Without this note the API server refuses CRDs of groups that belong to the Kubernetes project.
    annotation("api-approved.kubernetes.io", "https://github.com/kubernetes/autoscaler/pull/8151"),
    printcolumn(name = "Strategy", type_ = "string", json_path = ".spec.provisioningStrategy"),
    printcolumn(name = "PodTemplate", type_ = "string", json_path = ".status.podTemplateRef.name"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".status.replicas"),
    printcolumn(name = "ConditionsType", type_ = "string", json_path = ".status.conditions[*].type"),
    printcolumn(name = "ConditionsStatus", type_ = "string", json_path = ".status.conditions[*].status"),
    printcolumn(name = "ConditionsReason", type_ = "string", json_path = ".status.conditions[*].reason"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("!has(self.podTemplateRef) || !has(self.scalableRef)", "set podTemplateRef or scalableRef, not both"),
    validation = ("!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)", "podTemplateRef needs replicas or limits")
)]
pub struct CapacityBufferSpec {
    /// How the room is provided.
    #[serde(default = "strategy_default", skip_serializing_if = "Option::is_none")]
    pub provisioning_strategy: Option<String>,
    /// A PodTemplate of the same namespace that says how large one pod is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<LocalReference>,
    /// A Deployment, ReplicaSet or StatefulSet whose pods the room is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scalable_ref: Option<ScalableReference>,
    /// Room for this many pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// Room for this percentage of the replicas of scalableRef.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub percentage: Option<i32>,
    /// The most that the room may have of each resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantities")]
    pub limits: Option<BTreeMap<String, Quantity>>,
}

/// An object of the same namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LocalReference {
    /// The name of the object.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// An object of the same namespace that can be scaled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScalableReference {
    /// The API group; empty means apps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Deployment, ReplicaSet or StatefulSet.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// The name of the object.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// What the buffer stands for now.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBufferStatus {
    /// The pod template that was resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<LocalReference>,
    /// The number of pods that room is kept for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The generation of the pod template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_generation: Option<i64>,
    /// The strategy in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning_strategy: Option<String>,
    /// Observations: ReadyForProvisioning and Provisioning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
