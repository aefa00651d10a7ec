//! Disks of an instance.

use crate::open_enum::open_enum;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

open_enum! {
    /// What kind of cloud disk.
    DiskCategory {
        /// Basic disk of old types.
        Cloud = "cloud",
        /// Ultra disk.
        CloudEfficiency = "cloud_efficiency",
        /// Standard SSD.
        CloudSsd = "cloud_ssd",
        /// Enterprise SSD.
        CloudEssd = "cloud_essd",
        /// Enterprise SSD that scales its performance.
        CloudAuto = "cloud_auto",
        /// Enterprise SSD of entry size.
        CloudEssdEntry = "cloud_essd_entry",
        /// Enterprise SSD with copies in several zones.
        CloudRegionalDiskAuto = "cloud_regional_disk_auto",
    }
}

open_enum! {
    /// How fast an enterprise SSD is.
    PerformanceLevel {
        /// Up to 10,000 operations per second.
        Pl0 = "PL0",
        /// Up to 50,000 operations per second.
        Pl1 = "PL1",
        /// Up to 100,000 operations per second.
        Pl2 = "PL2",
        /// Up to 1,000,000 operations per second.
        Pl3 = "PL3",
    }
}

open_enum! {
    /// What a disk is formatted with.
    FileSystem {
        /// ext4.
        Ext4 = "ext4",
        /// XFS.
        Xfs = "xfs",
    }
}

/// Size in GiB of a system disk about which nothing is said.
pub const SYSTEM_DISK_GIB_DEFAULT: i32 = 40;

/// The disk with the operating system.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("!has(self.category) || !has(self.categories)", "set category or categories, not both"),
    validation = ("!has(self.size) || !has(self.volumeSize)", "set size or volumeSize, not both"),
    validation = ("!has(self.kmsKeyID) || (has(self.encrypted) && self.encrypted)", "kmsKeyID needs encrypted: true")
)]
pub struct SystemDisk {
    /// The kind of disk; cloud_essd when neither this nor categories is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<DiskCategory>,
    /// Kinds of disk in the order of preference; the first that the instance type and zone have is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 7))]
    pub categories: Option<Vec<DiskCategory>>,
    /// The size in GiB; 40 when neither this nor volumeSize is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 20, max = 2048))]
    pub size: Option<i32>,
    /// The size as a quantity, such as 100Gi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::quantity")]
    pub volume_size: Option<Quantity>,
    /// How fast an enterprise SSD is; PL0 when not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performance_level: Option<PerformanceLevel>,
    /// Whether the disk is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// The key that encrypts the disk; the account's service key when not set.
    #[serde(default, rename = "kmsKeyID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub kms_key_id: Option<String>,
}

/// A further disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("!has(self.category) || !has(self.categories)", "set category or categories, not both"),
    validation = ("!has(self.size) || !has(self.volumeSize)", "set size or volumeSize, not both"),
    validation = ("!has(self.fileSystem) || has(self.mountTarget)", "fileSystem needs mountTarget: a disk that is not mounted is not formatted"),
    validation = ("has(self.size) || has(self.volumeSize) || has(self.snapshotID)", "a data disk needs size, volumeSize or snapshotID"),
    validation = ("!has(self.kmsKeyID) || (has(self.encrypted) && self.encrypted)", "kmsKeyID needs encrypted: true")
)]
pub struct DataDisk {
    /// The kind of disk; cloud_essd when neither this nor categories is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<DiskCategory>,
    /// Kinds of disk in the order of preference; the first that the instance type and zone have is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 7))]
    pub categories: Option<Vec<DiskCategory>>,
    /// The size in GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 20, max = 65536))]
    pub size: Option<i32>,
    /// The size as a quantity, such as 100Gi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::quantity")]
    pub volume_size: Option<Quantity>,
    /// The device name, such as /dev/xvdb; chosen by ECS when not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^/dev/xvd[b-z]$"))]
    pub device: Option<String>,
    /// How fast an enterprise SSD is; PL0 when not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performance_level: Option<PerformanceLevel>,
    /// Whether the disk is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// The key that encrypts the disk; the account's service key when not set.
    #[serde(default, rename = "kmsKeyID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub kms_key_id: Option<String>,
    /// The snapshot that the disk starts from.
    #[serde(
        default,
        rename = "snapshotID",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(regex(pattern = r"^s-.+$"), length(max = 64))]
    pub snapshot_id: Option<String>,
    /// Whether the disk goes with its instance.
    #[serde(
        default = "delete_with_instance_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub delete_with_instance: Option<bool>,
    /// The folder that the disk is mounted at before the node joins; an empty disk is formatted first, one from a snapshot
    /// keeps what it has. At /var/lib/kubelet its size is the node's ephemeral storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        regex(pattern = r"^(/[A-Za-z0-9._][-A-Za-z0-9._]*)+$"),
        length(max = 128)
    )]
    pub mount_target: Option<String>,
    /// What an empty disk is formatted with; ext4 when not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<FileSystem>,
}

fn delete_with_instance_default() -> Option<bool> {
    Some(true)
}
