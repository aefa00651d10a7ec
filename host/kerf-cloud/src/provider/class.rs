//! The part of an ECSNodeClass that shapes a node, as plain values, and what its selectors resolve to.
//!
//! The controllers fill a [`NodeClassSpec`] from the object; nothing here knows the Kubernetes type. Field names in
//! [`ResolveProblem`] are the object's, because people read them next to their manifest.

use std::collections::BTreeMap;
use std::fmt;

/// What the class asks for. Empty text and empty lists mean "not given".
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeClassSpec {
    /// Name of the object, for messages and tags.
    pub name: String,
    /// ACK cluster to join; empty means the controller's own.
    pub cluster_id: String,
    /// Name and address of a self-managed cluster, for its join template.
    pub cluster_name: String,
    pub cluster_endpoint: String,
    pub vswitch_selector_terms: Vec<VSwitchTerm>,
    pub security_group_selector_terms: Vec<SecurityGroupTerm>,
    pub image_selector_terms: Vec<ImageTerm>,
    pub system_disk: SystemDisk,
    pub data_disks: Vec<DataDisk>,
    /// Whether the attach script formats and mounts the first data disk.
    pub format_data_disk: bool,
    /// `RAID0` makes one file system of the local NVMe disks.
    pub instance_store_policy: String,
    pub spot: SpotSettings,
    /// RAM role of the node.
    pub role: String,
    pub key_pair_name: String,
    pub key_pair_selector_terms: Vec<KeyPairTerm>,
    /// Whether the password of the image is kept.
    pub password_inherit: bool,
    pub launch_template_id: String,
    pub private_pools: PrivatePools,
    pub resource_group_id: String,
    /// Extra instance tags; they never override ours.
    pub tags: BTreeMap<String, String>,
    /// The user's own cloud-init part.
    pub user_data: String,
    /// How a node of a cluster without an ACK id joins: a shell script with `{{…}}` places (see `bootstrap`).
    pub join_template: String,
    pub metadata_options: MetadataOptions,
    pub internet_max_bandwidth_out: Option<u32>,
    pub internet_charge_type: String,
    pub kubelet: KubeletSettings,
}

/// One vSwitch selector term; what is given must all match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VSwitchTerm {
    pub id: String,
    /// Value `*` matches any value.
    pub tags: BTreeMap<String, String>,
    pub zone_id: String,
}

/// One security group selector term.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecurityGroupTerm {
    pub id: String,
    pub name: String,
    pub tags: BTreeMap<String, String>,
}

/// One image selector term.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageTerm {
    pub id: String,
    /// For example `acs:alibaba_cloud_linux_3_2104_lts_x64`.
    pub image_family: String,
    /// `AlibabaCloudLinux3` or `ContainerOS`, optionally with `@version`.
    pub alias: String,
    pub name: String,
    /// `system`, `self`, `others` or `marketplace`.
    pub owner_alias: String,
    /// The id of the account that owns the image.
    pub owner_id: String,
    pub tags: BTreeMap<String, String>,
}

/// One key pair selector term.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyPairTerm {
    pub name: String,
    pub tags: BTreeMap<String, String>,
}

/// Which private capacity pools are used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrivatePools {
    /// `open`, `target` or `none`; empty leaves it to the account.
    pub preference: String,
    pub selector_terms: Vec<PrivatePoolTerm>,
}

impl PrivatePools {
    /// Whether instances may come from the selected pools only.
    #[must_use]
    pub fn is_targeted(&self) -> bool {
        self.preference == "target"
    }
}

/// One selector term of private pools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrivatePoolTerm {
    pub id: String,
    pub tags: BTreeMap<String, String>,
}

/// The boot disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemDisk {
    /// In order of preference; the next one is tried where the first does not exist.
    pub categories: Vec<String>,
    pub size_gib: u32,
    pub performance_level: String,
    pub encrypted: bool,
    pub kms_key_id: String,
}

impl Default for SystemDisk {
    fn default() -> Self {
        Self {
            categories: vec!["cloud_essd".to_owned()],
            size_gib: 40,
            performance_level: String::new(),
            encrypted: false,
            kms_key_id: String::new(),
        }
    }
}

/// One data disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataDisk {
    /// In order of preference; the next one is tried where the first does not exist.
    pub categories: Vec<String>,
    pub size_gib: u32,
    pub performance_level: String,
    pub device: String,
    pub snapshot_id: String,
    pub encrypted: bool,
    pub kms_key_id: String,
    /// `None` means true: a disk that outlives its node is a leak.
    pub delete_with_instance: Option<bool>,
    /// Where it is mounted before the node joins; empty leaves the disk as it is.
    pub mount_target: String,
    /// What an empty disk is formatted with before it is mounted.
    pub file_system: String,
}

/// How spot instances are bought.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SpotSettings {
    /// `SpotAsPriceGo` (the default) or `SpotWithPriceLimit`.
    pub strategy: String,
    pub price_limit_per_hour: Option<f64>,
    pub duration_hours: Option<u32>,
    /// `Terminate` or `Stop`.
    pub interruption_behavior: String,
}

/// Instance metadata options; empty means the account's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetadataOptions {
    pub http_endpoint: String,
    pub http_tokens: String,
    pub http_put_response_hop_limit: Option<u32>,
}

/// Kubelet settings of the class. What is set here reaches the node and is counted in the capacity model.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeletSettings {
    #[serde(rename = "clusterDNS", skip_serializing_if = "Vec::is_empty")]
    pub cluster_dns: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pods: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods_per_core: Option<u32>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub system_reserved: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kube_reserved: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub eviction_hard: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub eviction_soft: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub eviction_soft_grace_period: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eviction_max_pod_grace_period: Option<u32>,
    #[serde(
        rename = "imageGCHighThresholdPercent",
        skip_serializing_if = "Option::is_none"
    )]
    pub image_gc_high_threshold_percent: Option<u32>,
    #[serde(
        rename = "imageGCLowThresholdPercent",
        skip_serializing_if = "Option::is_none"
    )]
    pub image_gc_low_threshold_percent: Option<u32>,
    #[serde(rename = "cpuCFSQuota", skip_serializing_if = "Option::is_none")]
    pub cpu_cfs_quota: Option<bool>,
}

/// A class whose selectors all found something.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedNodeClass {
    pub spec: NodeClassSpec,
    /// The cluster to join: the class's own id, else the controller's; empty for self-managed.
    pub cluster_id: String,
    /// Sorted by id.
    pub vswitches: Vec<VSwitch>,
    /// Sorted by id.
    pub security_groups: Vec<SecurityGroup>,
    /// Newest first within an architecture; terms keep their order.
    pub images: Vec<Image>,
    /// For logins; empty if there is none.
    pub key_pair_name: String,
    /// Sorted by id; only with the preference `target`.
    pub private_pools: Vec<PrivatePool>,
    /// Terms that found nothing although others of their kind did.
    pub warnings: Vec<ResolveProblem>,
}

impl ResolvedNodeClass {
    /// The image for an architecture: of the first term that has one, the newest.
    #[must_use]
    pub fn image_for(&self, architecture: Architecture) -> Option<&Image> {
        self.images
            .iter()
            .find(|image| image.architecture == architecture)
    }

    /// Whether the class takes instances of a type from a zone at all, as far as its private pools decide.
    #[must_use]
    pub fn has_pool_for(&self, instance_type: &str, zone_id: &str) -> bool {
        !self.spec.private_pools.is_targeted() || self.pool_for(instance_type, zone_id).is_some()
    }

    /// The first private pool that an instance can come from.
    #[must_use]
    pub fn pool_for(&self, instance_type: &str, zone_id: &str) -> Option<&PrivatePool> {
        let is_of = |it: &&PrivatePool| {
            it.zone_id == zone_id && it.instance_type == instance_type && it.left > 0
        };
        self.private_pools.iter().find(is_of)
    }

    /// The zones of the vSwitches, in order.
    #[must_use]
    pub fn zone_ids(&self) -> Vec<&str> {
        let mut zones: Vec<_> = self
            .vswitches
            .iter()
            .map(|vswitch| vswitch.zone_id.as_str())
            .collect();
        zones.sort_unstable();
        zones.dedup();
        zones
    }
}

/// A vSwitch that the class may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VSwitch {
    pub id: String,
    pub zone_id: String,
    pub vpc_id: String,
    pub ips_available: u64,
}

/// A security group that the class's instances join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityGroup {
    pub id: String,
    pub name: String,
    pub vpc_id: String,
}

/// Room for instances of one type in one zone that is kept for the account.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrivatePool {
    pub id: String,
    pub zone_id: String,
    pub instance_type: String,
    pub left: u64,
}

/// An image that the class's instances may boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub id: String,
    pub name: String,
    pub architecture: Architecture,
    /// As the API writes it; sorts by time.
    pub created_at: String,
    /// The least system disk that the image needs.
    pub size_gib: u32,
}

/// A processor architecture in Kubernetes' words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Architecture {
    Amd64,
    Arm64,
}

impl Architecture {
    /// The value of `kubernetes.io/arch`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// From `CpuArchitecture` of an instance type.
    #[must_use]
    pub fn from_cpu(text: &str) -> Option<Self> {
        match text {
            "X86" => Some(Self::Amd64),
            "ARM" => Some(Self::Arm64),
            _ => None,
        }
    }

    /// From `Architecture` of an image.
    #[must_use]
    pub fn from_image(text: &str) -> Option<Self> {
        match text {
            "x86_64" => Some(Self::Amd64),
            "arm64" => Some(Self::Arm64),
            _ => None,
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One reason why a class cannot be used, for its conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolveProblem {
    pub kind: ResolveKind,
    /// Path in the object, for example `spec.vSwitchSelectorTerms[1].id`.
    pub field: String,
    /// The value that found nothing, if there is one.
    pub value: String,
    /// One sentence for the condition: what happened and the next step.
    pub message: String,
    /// True if the cloud could not be asked: keep the last known good result and try again.
    pub is_transient: bool,
}

/// Which condition a problem belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResolveKind {
    VSwitch,
    SecurityGroup,
    Image,
    KeyPair,
    CapacityReservation,
    /// Cluster id or join template.
    Cluster,
}

impl ResolveKind {
    /// The condition reason.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::VSwitch => "VSwitchesNotFound",
            Self::SecurityGroup => "SecurityGroupsNotFound",
            Self::Image => "ImagesNotFound",
            Self::KeyPair => "KeyPairsNotFound",
            Self::CapacityReservation => "CapacityReservationsNotFound",
            Self::Cluster => "ClusterNotConfigured",
        }
    }
}
