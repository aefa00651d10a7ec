//! NodeClaim: one instance that was asked for, from before its launch until after its deletion.

use crate::condition::{Condition, ConditionSet};
use crate::duration::NillableDuration;
use crate::names::condition;
use crate::nodepool::expire_after_default;
use crate::requirement::{NodeClassReference, Requirement};
use crate::schema;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a NodeClaim asks for. It never changes.
#[derive(CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodeClaim",
    category = "karpenter",
    status = "NodeClaimStatus",
    derive = "PartialEq",
    doc = "A NodeClaim is one instance that was asked for, from before its launch until after its deletion.",
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".metadata.labels.node\\.kubernetes\\.io/instance-type"
    ),
    printcolumn(
        name = "Capacity",
        type_ = "string",
        json_path = ".metadata.labels.karpenter\\.sh/capacity-type"
    ),
    printcolumn(
        name = "Zone",
        type_ = "string",
        json_path = ".metadata.labels.topology\\.kubernetes\\.io/zone"
    ),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.nodeName"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "ImageID",
        type_ = "string",
        priority = "1",
        json_path = ".status.imageID"
    ),
    printcolumn(
        name = "ID",
        type_ = "string",
        priority = "1",
        json_path = ".status.providerID"
    ),
    printcolumn(
        name = "NodePool",
        type_ = "string",
        priority = "1",
        json_path = ".metadata.labels.karpenter\\.sh/nodepool"
    ),
    printcolumn(
        name = "NodeClass",
        type_ = "string",
        priority = "1",
        json_path = ".spec.nodeClassRef.name"
    ),
    printcolumn(
        name = "Drifted",
        type_ = "string",
        priority = "1",
        json_path = ".status.conditions[?(@.type==\"Drifted\")].status"
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("self == oldSelf", "the spec of a NodeClaim cannot change: delete it, and its NodePool makes another"))]
pub struct NodeClaimSpec {
    /// Taints that the Node has; pods must tolerate them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::taints")]
    pub taints: Vec<Taint>,
    /// Taints that the Node starts with and that something else takes away; pods need not tolerate them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::taints")]
    pub startup_taints: Vec<Taint>,
    /// What the instance may be.
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub requirements: Vec<Requirement>,
    /// What the pods that it is for ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// The node class with the cloud's settings.
    pub node_class_ref: NodeClassReference,
    /// How long the node may drain before its pods are deleted; without it, for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub termination_grace_period: Option<NillableDuration>,
    /// How long the node may live before it is replaced, or Never.
    #[serde(
        default = "expire_after_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub expire_after: Option<NillableDuration>,
}

/// Resources that a NodeClaim must have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceRequirements {
    /// The least that the node must have for its pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub requests: BTreeMap<String, Quantity>,
}

/// What is known about a NodeClaim's instance and Node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimStatus {
    /// The name of the Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The instance, as `<region>.<instance id>`.
    #[serde(
        default,
        rename = "providerID",
        skip_serializing_if = "Option::is_none"
    )]
    pub provider_id: Option<String>,
    /// The image that the instance was started from.
    #[serde(default, rename = "imageID", skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// What the instance has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub capacity: BTreeMap<String, Quantity>,
    /// What of it pods can have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub allocatable: BTreeMap<String, Quantity>,
    /// Observations: Ready and what it is made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// When a pod last came to this node or left it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_pod_event_time: Option<Timestamp>,
}

impl NodeClaim {
    /// What `Ready` is made of.
    pub const CONDITIONS: ConditionSet = ConditionSet {
        dependents: &[
            condition::LAUNCHED,
            condition::REGISTERED,
            condition::INITIALIZED,
        ],
    };

    /// The conditions as last written.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        self.status
            .as_ref()
            .map_or(&[], |status| &status.conditions)
    }

    /// Whether the condition is there and True.
    #[must_use]
    pub fn is_true(&self, type_: &str) -> bool {
        crate::condition::is_true(self.conditions(), type_)
    }

    /// The instance, once it exists.
    #[must_use]
    pub fn provider_id(&self) -> Option<&str> {
        self.status
            .as_ref()?
            .provider_id
            .as_deref()
            .filter(|id| !id.is_empty())
    }
}
