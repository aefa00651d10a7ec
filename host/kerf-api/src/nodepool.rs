//! NodePool: what nodes may look like, how many there may be, and when they may be disrupted.

use crate::condition::{Condition, ConditionSet};
use crate::duration::NillableDuration;
use crate::names::condition;
use crate::requirement::{NodeClassReference, Requirement};
use crate::schema;
use crate::strength::ElasticStrength;
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod disruption;
mod hash;

pub use hash::NODEPOOL_HASH_VERSION;

pub use disruption::{Budget, ConsolidationPolicy, Disruption, DisruptionReason};

/// Nodes without an explicit expireAfter are replaced after thirty days. Karpenter: same.
pub(crate) fn expire_after_default() -> Option<NillableDuration> {
    Some(NillableDuration::new("720h"))
}

/// What a NodePool asks for.
#[derive(CustomResource, KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodePool",
    category = "karpenter",
    status = "NodePoolStatus",
    derive = "PartialEq",
    doc = "A NodePool says what nodes may look like, how many there may be and when they may be disrupted.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.nodes"
    ),
    printcolumn(
        name = "NodeClass",
        type_ = "string",
        json_path = ".spec.template.spec.nodeClassRef.name"
    ),
    printcolumn(name = "Nodes", type_ = "string", json_path = ".status.nodes"),
    printcolumn(
        name = "Launchable",
        type_ = "string",
        json_path = ".status.elasticStrength.summary"
    ),
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
        name = "Weight",
        type_ = "integer",
        priority = "1",
        json_path = ".spec.weight"
    ),
    printcolumn(
        name = "CPU",
        type_ = "string",
        priority = "1",
        json_path = ".status.resources.cpu"
    ),
    printcolumn(
        name = "Memory",
        type_ = "string",
        priority = "1",
        json_path = ".status.resources.memory"
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("has(self.replicas) == has(oldSelf.replicas)", "replicas can neither be added nor taken away: make another NodePool"),
    validation = ("!has(self.replicas) || !has(self.limits) || self.limits.all(name, name == 'nodes')", "with replicas, limits may only hold nodes"),
    validation = ("!has(self.replicas) || !has(self.weight)", "with replicas, weight may not be set")
)]
pub struct NodePoolSpec {
    /// What each NodeClaim of this pool is made from.
    pub template: NodeClaimTemplate,
    /// When nodes of this pool may be disrupted.
    #[serde(default)]
    pub disruption: Disruption,
    /// The most that all nodes of this pool together may have of each resource; `nodes` counts the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantities")]
    pub limits: Option<BTreeMap<String, Quantity>>,
    /// Pools with a higher weight are tried first; no weight counts as 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<i32>,
    /// A fixed number of nodes, whatever the pods ask for (alpha, feature gate StaticCapacity).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i64>,
}

/// Metadata and spec of the NodeClaims of a pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
pub struct NodeClaimTemplate {
    /// Labels and annotations for the NodeClaims and their Nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// The spec of the NodeClaims.
    pub spec: NodeClaimTemplateSpec,
}

/// Labels and annotations for NodeClaims and their Nodes. Empty and absent are kept apart, since the hash sees them so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct TemplateMetadata {
    /// Labels that every Node of this pool gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::labels")]
    #[x_kube(
        validation = schema::label_keys(),
        validation = schema::reserved_labels(0),
        validation = schema::reserved_labels(1),
        validation = schema::reserved_labels(2),
        validation = ("self.all(key, key != 'karpenter.sh/nodepool')", "karpenter.sh/nodepool is set by the controller")
    )]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations that every Node of this pool gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// The spec of a pool's NodeClaims. Empty and absent are kept apart, since the hash sees them so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimTemplateSpec {
    /// Taints that every Node has; pods must tolerate them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::taints")]
    pub taints: Option<Vec<Taint>>,
    /// Taints that every Node starts with and that something else takes away; pods need not tolerate them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::taints")]
    pub startup_taints: Option<Vec<Taint>>,
    /// What the nodes may be: instance types, zones, capacity types, architectures and any other label.
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    #[x_kube(validation = ("self.all(item, item.key != 'karpenter.sh/nodepool')", "karpenter.sh/nodepool is set by the controller"))]
    pub requirements: Vec<Requirement>,
    /// The node class with the cloud's settings.
    #[x_kube(
        validation = ("self.group == oldSelf.group", "nodeClassRef.group cannot change: make another NodePool"),
        validation = ("self.kind == oldSelf.kind", "nodeClassRef.kind cannot change: make another NodePool")
    )]
    pub node_class_ref: NodeClassReference,
    /// How long a node may drain before its pods are deleted; without it, for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub termination_grace_period: Option<NillableDuration>,
    /// How long a node may live before it is replaced, or Never.
    #[serde(
        default = "expire_after_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub expire_after: Option<NillableDuration>,
}

/// What is known about a NodePool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// What all nodes of this pool together have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub resources: BTreeMap<String, Quantity>,
    /// How many nodes this pool has.
    #[serde(default)]
    pub nodes: i64,
    /// How much of what the pool allows can be launched now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic_strength: Option<ElasticStrength>,
    /// The generation of the node class for which NodeRegistrationHealthy was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_class_observed_generation: Option<i64>,
    /// Observations: Ready and what it is made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

impl NodePool {
    /// What `Ready` is made of. NodeRegistrationHealthy is informational only.
    pub const CONDITIONS: ConditionSet = ConditionSet {
        dependents: &[condition::VALIDATION_SUCCEEDED, condition::NODE_CLASS_READY],
    };

    /// The conditions as last written.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        self.status
            .as_ref()
            .map_or(&[], |status| &status.conditions)
    }
}
