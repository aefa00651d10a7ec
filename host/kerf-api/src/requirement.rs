//! Node selector requirements as NodePools, NodeClaims and NodeOverlays write them.

use crate::names::label;
use crate::open_enum::open_enum;
use crate::schema;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

open_enum! {
    /// How a requirement compares a label with its values. `Gte` and `Lte` are Karpenter's own.
    Operator {
        /// One of the values.
        In = "In",
        /// None of the values.
        NotIn = "NotIn",
        /// The label is there.
        Exists = "Exists",
        /// The label is not there.
        DoesNotExist = "DoesNotExist",
        /// A number above the value.
        Gt = "Gt",
        /// A number below the value.
        Lt = "Lt",
        /// A number not below the value.
        Gte = "Gte",
        /// A number not above the value.
        Lte = "Lte",
    }
}

/// One constraint on the nodes: a label key, an operator and values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("self.operator != 'In' || (has(self.values) && size(self.values) > 0)", "operator In needs at least one value"),
    validation = ("!(self.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(self.values) && size(self.values) == 1 && self.values[0].matches('^[0-9]+$'))", "operators Gt, Lt, Gte and Lte need exactly one value, a whole number that is not negative"),
    validation = ("!has(self.minValues) || self.operator != 'In' || (has(self.values) && size(self.values) >= self.minValues)", "minValues is larger than the number of values: list more values or lower it"),
    validation = schema::closed_values(label::CAPACITY_TYPE, &["spot", "on-demand", "reserved"]),
    validation = schema::closed_values(label::ARCH, &["amd64", "arm64"]),
    validation = schema::closed_values(label::OS, &["linux", "windows"])
)]
pub struct Requirement {
    /// The label that the requirement speaks of.
    #[schemars(schema_with = "schema::label_key")]
    #[x_kube(
        validation = schema::reserved_key(0),
        validation = schema::reserved_key(1),
        validation = schema::reserved_key(2)
    )]
    pub key: String,
    /// How the label is compared with the values.
    pub operator: Operator,
    /// The values: none for Exists and DoesNotExist, one number for Gt, Lt, Gte and Lte, any number for In and NotIn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::label_values")]
    pub values: Vec<String>,
    /// How many different values of this key the instance types of a NodeClaim must offer (alpha).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub min_values: Option<i32>,
}

/// The node class that a NodePool or NodeClaim is launched from.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, KubeSchema,
)]
pub struct NodeClassReference {
    /// The kind of the node class: `ECSNodeClass`.
    #[x_kube(validation = ("self != ''", "kind may not be empty"))]
    pub kind: String,
    /// The name of the node class.
    #[x_kube(validation = ("self != ''", "name may not be empty"))]
    pub name: String,
    /// The API group of the node class, without a version: `karpenter.alibabacloud.com`.
    #[schemars(regex(pattern = r"^[^/]*$"))]
    #[x_kube(validation = ("self != ''", "group may not be empty"))]
    pub group: String,
}
