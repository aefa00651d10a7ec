//! NodeOverlay: changes the prices and capacities of instance types for scheduling.

use crate::condition::{Condition, ConditionSet};
use crate::names::condition;
use crate::requirement::Requirement;
use crate::schema;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which offerings are changed, and how.
#[derive(CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "karpenter.sh",
    version = "v1alpha1",
    kind = "NodeOverlay",
    category = "karpenter",
    shortname = "overlays",
    status = "NodeOverlayStatus",
    derive = "PartialEq",
    doc = "A NodeOverlay changes the prices and capacities of instance types for scheduling.",
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
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!has(self.price) || !has(self.priceAdjustment)", "set price or priceAdjustment, not both"))]
pub struct NodeOverlaySpec {
    /// Which instance types and offerings are meant.
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    #[x_kube(validation = ("self.all(item, item.operator != 'NotIn' || (has(item.values) && size(item.values) > 0))", "operator NotIn needs at least one value"))]
    pub requirements: Vec<Requirement>,
    /// A signed number that is added to the price, or a signed percentage of it; not below -100%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(
        pattern = r"^([+-][0-9]+(\.[0-9]+)?|\+[0-9]+(\.[0-9]+)?%|-([0-9]{1,2}(\.[0-9]+)?|100(\.0+)?)%)$"
    ))]
    pub price_adjustment: Option<String>,
    /// The price per hour instead of the real one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]+)?$"))]
    pub price: Option<String>,
    /// Resources that the types have besides cpu, memory, ephemeral-storage and pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantities")]
    #[x_kube(validation = ("self.all(name, !(name in ['cpu', 'memory', 'ephemeral-storage', 'pods']))", "cpu, memory, ephemeral-storage and pods cannot be overlaid"))]
    pub capacity: Option<BTreeMap<String, Quantity>>,
    /// Of two overlays on the same offering, the heavier one counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub weight: Option<i32>,
}

/// Whether the overlay applies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeOverlayStatus {
    /// Observations: Ready and what it is made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

impl NodeOverlay {
    /// What `Ready` is made of.
    pub const CONDITIONS: ConditionSet = ConditionSet {
        dependents: &[condition::VALIDATION_SUCCEEDED],
    };

    /// The conditions as last written.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        self.status
            .as_ref()
            .map_or(&[], |status| &status.conditions)
    }
}
