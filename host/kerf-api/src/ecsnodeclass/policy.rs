//! Policies: WebAssembly components that take part in decisions.

use crate::duration::NillableDuration;
use crate::open_enum::open_enum;
use crate::schema;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

open_enum! {
    /// What a policy is asked.
    PolicyHook {
        /// The price that ordering uses per offering.
        PricingPreference = "PricingPreference",
        /// A ranking of instance types and exclusions with reasons, per planned NodeClaim.
        InstanceSelection = "InstanceSelection",
        /// Further parts of the user data, per launch group.
        BootstrapUserData = "BootstrapUserData",
    }
}

open_enum! {
    /// What a failing policy means.
    FailurePolicy {
        /// Decide without it.
        Ignore = "Ignore",
        /// Do not launch.
        Fail = "Fail",
    }
}

open_enum! {
    /// Whether a policy's answer counts.
    PolicyMode {
        /// It counts.
        Enforce = "Enforce",
        /// It is asked, and its answer is only told in metrics and explanations.
        Monitor = "Monitor",
    }
}

open_enum! {
    /// What a policy's language runtime finds of WASI.
    PolicyWasi {
        /// Nothing.
        None = "None",
        /// A fixed clock and a seeded random source; no files, network or environment.
        Inert = "Inert",
    }
}

/// One policy of a class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// The name of the policy, unique in the class.
    #[schemars(
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
        length(min = 1, max = 63)
    )]
    pub name: String,
    /// What the policy is asked.
    pub hook: PolicyHook,
    /// Where the component comes from.
    pub source: PolicySource,
    /// The component must have this digest; BootstrapUserData needs one, or a signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: Option<String>,
    /// Policies of one hook are asked from the lowest order to the highest; equal ones by name.
    #[serde(default)]
    #[schemars(range(min = -1000, max = 1000))]
    pub order: i32,
    /// Settings of the policy, checked against the JSON Schema that the policy itself gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub config: Option<serde_json::Value>,
    /// What a failing policy means; Fail for BootstrapUserData and Ignore for the others when not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// Whether the policy's answer counts.
    #[serde(default = "mode_default")]
    pub mode: PolicyMode,
    /// How much a call may use; the controller's limits when not set, and never more than those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<PolicyLimits>,
    /// What the policy's language runtime finds of WASI.
    #[serde(default = "wasi_default")]
    pub wasi: PolicyWasi,
    /// The policy's answers count for these NodePools only; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "set"))]
    pub node_pools: Vec<String>,
    /// Whether nodes that an older version decided on drift; true for BootstrapUserData only when not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout_on_change: Option<bool>,
}

impl Policy {
    /// What a failing policy means, with the hook's default.
    #[must_use]
    pub fn effective_failure_policy(&self) -> FailurePolicy {
        match (&self.failure_policy, &self.hook) {
            (Some(policy), _) => policy.clone(),
            (None, PolicyHook::BootstrapUserData) => FailurePolicy::Fail,
            (
                None,
                PolicyHook::PricingPreference
                | PolicyHook::InstanceSelection
                | PolicyHook::Other(_),
            ) => FailurePolicy::Ignore,
        }
    }

    /// Whether nodes that an older version decided on drift, with the hook's default.
    #[must_use]
    pub fn effective_rollout_on_change(&self) -> bool {
        self.rollout_on_change
            .unwrap_or(self.hook == PolicyHook::BootstrapUserData)
    }

    /// What a NodeClaim remembers of the version that decided on it: `name=digest/hash of the config`.
    #[must_use]
    pub fn mark(&self, digest: &str) -> String {
        let config = self.config.as_ref().map_or(0, super::hash::of);
        format!("{}={digest}/{config:x}", self.name)
    }

    /// Whether the policy's answers count for this NodePool.
    #[must_use]
    pub fn is_for(&self, node_pool: &str) -> bool {
        self.node_pools.is_empty() || self.node_pools.iter().any(|name| name == node_pool)
    }
}

fn mode_default() -> PolicyMode {
    PolicyMode::Enforce
}

fn wasi_default() -> PolicyWasi {
    PolicyWasi::None
}

/// Where a component comes from: exactly one of the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("(has(self.configMap) ? 1 : 0) + (has(self.oci) ? 1 : 0) + (has(self.path) ? 1 : 0) == 1", "source is exactly one of configMap, oci and path"))]
pub struct PolicySource {
    /// A ConfigMap in the controller's namespace, labelled karpenter.alibabacloud.com/policy: "true".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapSource>,
    /// An artifact in a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<OciSource>,
    /// A file in the controller's container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^/.+$"), length(max = 1024))]
    pub path: Option<String>,
}

/// A component in one key of a ConfigMap, or in several ConfigMaps where one would be too large.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = ("has(self.name) != has(self.shards)", "set name (with key) or shards"),
    validation = ("!has(self.key) || has(self.name)", "key needs name")
)]
pub struct ConfigMapSource {
    /// The name of the ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// The key under binaryData; policy.wasm when not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[-._a-zA-Z0-9]+$"), length(min = 1, max = 253))]
    pub key: Option<String>,
    /// Parts of the component, joined in this order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    pub shards: Option<Vec<ConfigMapShard>>,
}

/// The key of a ConfigMap that holds a component when no key is named.
pub const POLICY_KEY_DEFAULT: &str = "policy.wasm";

/// One part of a component.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct ConfigMapShard {
    /// The name of the ConfigMap.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key under binaryData.
    #[schemars(regex(pattern = r"^[-._a-zA-Z0-9]+$"), length(min = 1, max = 253))]
    pub key: String,
}

/// A component in a registry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct OciSource {
    /// The artifact, as `<host>/<repository>:<tag>`.
    #[serde(rename = "ref")]
    #[schemars(length(min = 1, max = 512))]
    pub reference: String,
    /// The digest of the artifact's manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: Option<String>,
    /// A Secret of type kubernetes.io/dockerconfigjson in the controller's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub pull_secret: Option<String>,
}

/// How much one call may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyLimits {
    /// Instructions, roughly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub fuel: Option<i64>,
    /// Time, such as 1s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(ms|s))+$"))]
    pub timeout: Option<NillableDuration>,
    /// Memory in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4096))]
    pub memory_mib: Option<i32>,
    /// Size of the answer in KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65536))]
    pub output_kib: Option<i32>,
}
