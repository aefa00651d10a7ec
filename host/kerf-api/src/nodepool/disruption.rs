//! When and how fast the nodes of a pool may be disrupted.

use crate::duration::NillableDuration;
use crate::open_enum::open_enum;
use crate::schema;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

open_enum! {
    /// Which nodes consolidation may touch.
    ConsolidationPolicy {
        /// Only nodes without pods.
        WhenEmpty = "WhenEmpty",
        /// Also nodes whose pods fit elsewhere, or on a cheaper node.
        WhenEmptyOrUnderutilized = "WhenEmptyOrUnderutilized",
        /// As WhenEmptyOrUnderutilized, where the savings outweigh the disruption.
        Balanced = "Balanced",
    }
}

open_enum! {
    /// Why a node is disrupted.
    DisruptionReason {
        /// Its pods fit elsewhere, or on a cheaper node.
        Underutilized = "Underutilized",
        /// It has no pods.
        Empty = "Empty",
        /// It is not what its pool would make today.
        Drifted = "Drifted",
    }
}

/// When the nodes of a pool may be disrupted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How long a node must have been quiet before consolidation may touch it, or Never.
    #[serde(default = "consolidate_after_default")]
    pub consolidate_after: NillableDuration,
    /// Which nodes consolidation may touch.
    #[serde(default = "consolidation_policy_default")]
    pub consolidation_policy: ConsolidationPolicy,
    /// How many nodes may be disrupted at once; the smallest budget that applies now counts.
    #[serde(default = "budgets_default")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "atomic"))]
    #[x_kube(validation = ("self.all(item, has(item.schedule) == has(item.duration))", "a budget has both schedule and duration, or neither"))]
    pub budgets: Vec<Budget>,
}

impl Default for Disruption {
    fn default() -> Self {
        Self {
            consolidate_after: consolidate_after_default(),
            consolidation_policy: consolidation_policy_default(),
            budgets: budgets_default(),
        }
    }
}

/// How many nodes may be disrupted at once, always or at some times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// A number of nodes, or a percentage of the pool's nodes.
    #[serde(default = "budget_nodes_default")]
    #[schemars(regex(pattern = r"^(100%|[0-9]{1,2}%|[0-9]+)$"))]
    pub nodes: String,
    /// The reasons that the budget speaks of; none means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "set"))]
    pub reasons: Option<Vec<DisruptionReason>>,
    /// When the budget starts to apply: a cron line in UTC of five fields, or a macro such as @daily.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(
        pattern = r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|[^\s]+(\s+[^\s]+){4})$"
    ))]
    pub schedule: Option<String>,
    /// How long the budget applies after each start: hours and minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "budget_duration")]
    pub duration: Option<NillableDuration>,
}

fn budget_duration(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut schema = schema::duration(generator);
    schema.insert(
        "pattern".to_owned(),
        r"^([0-9]+h([0-9]+m)?|[0-9]+m)(0s)?$".into(),
    );
    schema
}

fn consolidate_after_default() -> NillableDuration {
    NillableDuration::new("0s")
}

fn consolidation_policy_default() -> ConsolidationPolicy {
    ConsolidationPolicy::WhenEmptyOrUnderutilized
}

fn budget_nodes_default() -> String {
    "10%".to_owned()
}

fn budgets_default() -> Vec<Budget> {
    vec![Budget {
        nodes: budget_nodes_default(),
        reasons: None,
        schedule: None,
        duration: None,
    }]
}
