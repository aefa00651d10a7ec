//! Elastic strength as statuses show it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many combinations of instance type, zone and capacity type can be launched now, of all that may.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElasticStrength {
    /// Launchable and all, such as 12/48.
    #[serde(default)]
    pub summary: String,
    /// Combinations that can be launched now.
    #[serde(default)]
    pub launchable: i64,
    /// All combinations that the requirements allow.
    #[serde(default)]
    pub total: i64,
    /// How many cannot be launched, by the reason: NotSold, NoStock, NoAddresses, RecentFailure, NoImage, DiskTooSmall,
    /// TooFewPodAddresses, NoPrivatePool or Other.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, i64>,
}
