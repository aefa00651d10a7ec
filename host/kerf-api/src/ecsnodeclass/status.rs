//! What a class resolved to.

use crate::condition::Condition;
use crate::open_enum::open_enum;
use crate::schema;
use crate::strength::ElasticStrength;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a class resolved to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EcsNodeClassStatus {
    /// The cluster that instances join.
    #[serde(default, rename = "clusterID", skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// vSwitches that instances may be in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub v_switches: Vec<VSwitchStatus>,
    /// Security groups that instances are in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<SecurityGroupStatus>,
    /// Images that instances start from, the preferred one of each architecture first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageStatus>,
    /// How much of what the class allows can be launched now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic_strength: Option<ElasticStrength>,
    /// What each policy is doing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicyStatus>,
    /// Observations: Ready and what it is made of, and PoliciesReady.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// A vSwitch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VSwitchStatus {
    /// Its id.
    pub id: String,
    /// Its zone.
    #[serde(default, rename = "zoneID")]
    pub zone_id: String,
    /// How many addresses were free when it was last looked at.
    #[serde(
        default,
        rename = "availableIPAddressCount",
        skip_serializing_if = "Option::is_none"
    )]
    pub available_ip_address_count: Option<i64>,
}

/// A security group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecurityGroupStatus {
    /// Its id.
    pub id: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// An image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageStatus {
    /// Its id.
    pub id: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its architecture as Kubernetes writes it: amd64 or arm64.
    #[serde(default)]
    pub architecture: String,
}

open_enum! {
    /// What a policy is doing.
    PolicyState {
        /// Being fetched, compiled or tried; an older version may serve.
        Loading = "Loading",
        /// Serving.
        Ready = "Ready",
        /// A newer version did not load; the one named here still serves.
        Stale = "Stale",
        /// Nothing serves.
        Failed = "Failed",
    }
}

open_enum! {
    /// The states that a policy's version passes before it serves, in this order.
    PolicyStage {
        /// Its bytes are here.
        Fetched = "Fetched",
        /// They are a component of this contract, of the right digest and with the signature that is asked for.
        Verified = "Verified",
        /// There is machine code.
        Compiled = "Compiled",
        /// It said its name, its version and what its configuration looks like.
        Described = "Described",
        /// It accepted its configuration.
        ConfigValid = "ConfigValid",
        /// It answered a trial call, and serves.
        Active = "Active",
    }
}

open_enum! {
    /// Whether a policy is still asked.
    PolicyCircuit {
        /// It is asked.
        Closed = "Closed",
        /// It failed too often and is not asked for a while.
        Open = "Open",
        /// It is asked once, to see.
        HalfOpen = "HalfOpen",
    }
}

/// What one policy is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyStatus {
    /// The name of the policy.
    pub name: String,
    /// The digest of the component that serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The version that the component gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What the policy is doing.
    pub state: PolicyState,
    /// How far the version that is declared came; not set when not even its bytes are here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<PolicyStage>,
    /// What went wrong last; stays until the next success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// When the version that serves took over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub loaded_at: Option<Timestamp>,
    /// Whether the policy is still asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuit: Option<PolicyCircuit>,
}
