//! ECSNodeClass: the cloud's settings of a pool's nodes, and the policies that decide with us.
//!
//! The fields are the union of both public Alibaba Cloud providers, in the spelling of the ACK team's where they differ
//! (`kubelet`, `systemDisk.category` beside `categories`); there is no plain-text password. docs/node-class-fields.md
//! says of each field of either what became of it. Parts: [`selector`], [`disk`], [`kubelet`], [`network`], [`policy`],
//! [`status`].

use crate::condition::{Condition, ConditionSet};
use crate::names::condition;
use crate::open_enum::open_enum;
use crate::schema;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub mod disk;
mod hash;
pub mod kubelet;
pub mod network;
pub mod policy;
pub mod selector;
pub mod status;

pub use disk::{DataDisk, SystemDisk};
pub use hash::ECSNODECLASS_HASH_VERSION;
pub use kubelet::KubeletConfiguration;
pub use network::InternetAccessible;
pub use policy::{Policy, PolicyHook, PolicySource};
pub use selector::{
    ImageSelectorTerm, ReservationSelectorTerm, SecurityGroupSelectorTerm, SshKeySelectorTerm,
    VSwitchSelectorTerm,
};
pub use status::EcsNodeClassStatus;

open_enum! {
    /// How a vSwitch is chosen among those that a launch may use.
    VSwitchSelectionPolicy {
        /// The vSwitch of the cheapest offering.
        Cheapest = "cheapest",
        /// The zone with the fewest nodes of the pool.
        Balanced = "balanced",
    }
}

open_enum! {
    /// What becomes of local NVMe disks.
    InstanceStorePolicy {
        /// One striped file system, on which the kubelet and the containers keep their files.
        Raid0 = "RAID0",
    }
}

open_enum! {
    /// What we offer for a spot instance.
    SpotStrategy {
        /// Whatever the market asks, up to the on-demand price.
        SpotAsPriceGo = "SpotAsPriceGo",
        /// Up to spotPriceLimit per hour.
        SpotWithPriceLimit = "SpotWithPriceLimit",
    }
}

open_enum! {
    /// Whether private capacity pools are used.
    CapacityReservationPreference {
        /// Pools that are open to all instances, and what is sold to everybody when none has room.
        Open = "open",
        /// Only the pools that capacityReservationSelectorTerms find; offerings without one cannot be had.
        Target = "target",
        /// No pools.
        None = "none",
    }
}

/// The cloud's settings of a pool's nodes.
#[derive(CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "karpenter.alibabacloud.com",
    version = "v1alpha1",
    kind = "ECSNodeClass",
    root = "EcsNodeClass",
    plural = "ecsnodeclasses",
    shortname = "ecsnc",
    shortname = "ecsncs",
    category = "karpenter",
    status = "EcsNodeClassStatus",
    derive = "PartialEq",
    doc = "An ECSNodeClass holds the cloud's settings of a pool's nodes, and the policies that take part in decisions.",
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
        name = "Policies",
        type_ = "string",
        priority = "1",
        json_path = ".status.conditions[?(@.type==\"PoliciesReady\")].status"
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("!has(self.spotPriceLimit) || (has(self.spotStrategy) && self.spotStrategy == 'SpotWithPriceLimit')", "spotPriceLimit needs spotStrategy: SpotWithPriceLimit"),
    validation = ("!has(self.spotStrategy) || self.spotStrategy != 'SpotWithPriceLimit' || has(self.spotPriceLimit)", "spotStrategy SpotWithPriceLimit needs spotPriceLimit"),
    validation = ("(has(self.keyPairName) ? 1 : 0) + (has(self.sshKeySelectorTerms) ? 1 : 0) + (has(self.passwordInherit) && self.passwordInherit ? 1 : 0) <= 1", "set one of keyPairName, sshKeySelectorTerms and passwordInherit: an instance has one way to log in"),
    validation = ("!has(self.formatDataDisk) || !self.formatDataDisk || !has(self.dataDisks) || !self.dataDisks.exists(disk, has(disk.mountTarget))", "formatDataDisk lets the join script format the first data disk: use it or dataDisks[].mountTarget, not both"),
    validation = ("!has(self.formatDataDisk) || !self.formatDataDisk || !has(self.instanceStorePolicy)", "formatDataDisk and instanceStorePolicy both say where the kubelet keeps its files: use one of them"),
    validation = ("!has(self.capacityReservationPreference) || self.capacityReservationPreference != 'target' || has(self.capacityReservationSelectorTerms)", "capacityReservationPreference target needs capacityReservationSelectorTerms"),
    validation = ("!has(self.capacityReservationSelectorTerms) || (has(self.capacityReservationPreference) && self.capacityReservationPreference == 'target')", "capacityReservationSelectorTerms needs capacityReservationPreference: target")
)]
pub struct EcsNodeClassSpec {
    /// The ACK cluster to join; empty means the one that the controller was given.
    #[serde(default, rename = "clusterID", skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// The name of a self-managed cluster, for {{clusterName}} in its join template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[-A-Za-z0-9._/]+$"), length(max = 128))]
    pub cluster_name: Option<String>,
    /// The API server's address of a self-managed cluster, for {{clusterEndpoint}} in its join template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[-A-Za-z0-9._:/\[\]]+$"), length(max = 512))]
    pub cluster_endpoint: Option<String>,
    /// The shell script that joins an instance to a self-managed cluster; ACK clusters need none. {{labels}}, {{taints}},
    /// {{nodeConfig}}, {{maxPods}}, {{clusterName}} and {{clusterEndpoint}} are filled in; {{taints}} must be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_template: Option<String>,
    /// Which vSwitches instances may be in; a vSwitch that any term matches is used.
    #[serde(default)]
    #[schemars(length(min = 1, max = 30))]
    pub v_switch_selector_terms: Vec<VSwitchSelectorTerm>,
    /// How a vSwitch is chosen among those that a launch may use.
    #[serde(
        default = "vswitch_selection_policy_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub v_switch_selection_policy: Option<VSwitchSelectionPolicy>,
    /// Which security groups instances are in; all groups that any term matches are used.
    #[serde(default)]
    #[schemars(length(min = 1, max = 30))]
    pub security_group_selector_terms: Vec<SecurityGroupSelectorTerm>,
    /// Which images instances start from; the newest match of an architecture is used.
    #[serde(default)]
    #[schemars(length(min = 1, max = 30))]
    #[x_kube(validation = ("size(self) == 1 || !self.exists(term, has(term.alias))", "a term with alias must be the only one"))]
    pub image_selector_terms: Vec<ImageSelectorTerm>,
    /// The resource group that instances belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^rg-[0-9a-zA-Z]+$"))]
    pub resource_group_id: Option<String>,
    /// The disk with the operating system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_disk: Option<SystemDisk>,
    /// Further disks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(validation = ("self.all(disk, !has(disk.mountTarget) || self.exists_one(other, has(other.mountTarget) && other.mountTarget == disk.mountTarget))", "two data disks have one mountTarget: give each a folder of its own"))]
    pub data_disks: Vec<DataDisk>,
    /// What becomes of local NVMe disks; they stay as they are when this is not set. What is on them ends with the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_store_policy: Option<InstanceStorePolicy>,
    /// Whether the join script formats and mounts the data disk for container data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format_data_disk: Option<bool>,
    /// What we offer for a spot instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot_strategy: Option<SpotStrategy>,
    /// The most that a spot instance may cost per hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self > 0.0", "spotPriceLimit must be above 0"))]
    pub spot_price_limit: Option<f64>,
    /// The RAM role that instances get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub role: Option<String>,
    /// Which private capacity pools instances may come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 30))]
    pub capacity_reservation_selector_terms: Vec<ReservationSelectorTerm>,
    /// Whether private capacity pools are used; the account's own setting counts when this is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_reservation_preference: Option<CapacityReservationPreference>,
    /// How instances reach their metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_options: Option<MetadataOptions>,
    /// A launch template whose settings apply where this class says nothing.
    #[serde(
        default,
        rename = "launchTemplateID",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(regex(pattern = r"^lt-[0-9a-z]+$"))]
    pub launch_template_id: Option<String>,
    /// Tags on everything that is launched, besides the controller's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::tags")]
    #[x_kube(
        validation = ("self.all(key, key != '')", "tag keys may not be empty"),
        validation = ("self.all(key, !key.startsWith('kubernetes.io/cluster') && !key.startsWith('ecs:') && !key.startsWith('acs:') && !key.startsWith('aliyun'))", "tags that begin with kubernetes.io/cluster, ecs:, acs: or aliyun are reserved"),
        validation = ("self.all(key, !key.matches('^([^/]*[.])?karpenter[.](sh|alibabacloud[.]com)/') || key == 'karpenter.sh/discovery')", "tags of the domains karpenter.sh and karpenter.alibabacloud.com are set by the controller")
    )]
    pub tags: BTreeMap<String, String>,
    /// A script, or a MIME archive of scripts, that runs on the instance besides the join script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
    /// The key pair for logins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 128))]
    pub key_pair_name: Option<String>,
    /// Which key pair is for logins; of those that any term matches the first by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 30))]
    pub ssh_key_selector_terms: Vec<SshKeySelectorTerm>,
    /// Whether instances get a public address, and how its traffic is paid for; they get none when this is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internet_accessible: Option<InternetAccessible>,
    /// Whether the password of the image is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_inherit: Option<bool>,
    /// Settings of the kubelet; what is not said is left to the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet: Option<KubeletConfiguration>,
    /// WebAssembly policies that take part in decisions, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub policies: Vec<Policy>,
}

/// How instances reach their metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetadataOptions {
    /// `required` refuses requests without a token.
    #[serde(
        default = "http_tokens_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub http_tokens: Option<HttpTokens>,
    /// How many network hops an answer may take.
    #[serde(default = "hop_limit_default", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub http_put_response_hop_limit: Option<i32>,
    /// Whether there is metadata at all.
    #[serde(
        default = "http_endpoint_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub http_endpoint: Option<HttpEndpoint>,
}

open_enum! {
    /// Whether metadata requests need a token.
    HttpTokens {
        /// A token is not needed.
        Optional = "optional",
        /// A token is needed.
        Required = "required",
    }
}

open_enum! {
    /// Whether instances have metadata.
    HttpEndpoint {
        /// They have.
        Enabled = "enabled",
        /// They have not.
        Disabled = "disabled",
    }
}

fn vswitch_selection_policy_default() -> Option<VSwitchSelectionPolicy> {
    Some(VSwitchSelectionPolicy::Cheapest)
}

fn http_tokens_default() -> Option<HttpTokens> {
    Some(HttpTokens::Optional)
}

fn hop_limit_default() -> Option<i32> {
    Some(1)
}

fn http_endpoint_default() -> Option<HttpEndpoint> {
    Some(HttpEndpoint::Enabled)
}

impl EcsNodeClass {
    /// What `Ready` is made of. Policies are not: failurePolicy decides what a failing one means for a launch.
    pub const CONDITIONS: ConditionSet = ConditionSet {
        dependents: &[
            condition::CLUSTER_RESOLVED,
            condition::VSWITCH_RESOLVED,
            condition::SECURITY_GROUP_RESOLVED,
            condition::IMAGE_RESOLVED,
            condition::KEY_PAIR_RESOLVED,
            condition::CAPACITY_RESERVATION_RESOLVED,
        ],
    };

    /// The conditions as last written.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        self.status
            .as_ref()
            .map_or(&[], |status| &status.conditions)
    }
}
