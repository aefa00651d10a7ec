//! Selector terms: what a class names in the cloud, by id or by what it looks like.
//!
//! In one term all fields must match; of several terms one is enough. A tag value of `*` matches any value.

use crate::schema;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// vSwitches by id, tags or zone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = ("has(self.id) || has(self.tags)", "a term needs id or tags; zoneID alone would take every vSwitch of the zone: say which ones by tags, any value is *"),
    validation = ("!has(self.id) || !(has(self.tags) || has(self.zoneID))", "id stands alone in a term: move tags and zoneID to a term of their own")
)]
pub struct VSwitchSelectorTerm {
    /// The id of one vSwitch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^vsw-.+$"), length(max = 64))]
    pub id: Option<String>,
    /// Tags that the vSwitch has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::tags")]
    #[x_kube(validation = ("self.all(key, key != '')", "tag keys may not be empty"))]
    pub tags: BTreeMap<String, String>,
    /// The zone that the vSwitch is in, besides its tags.
    #[serde(default, rename = "zoneID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub zone_id: Option<String>,
}

/// Security groups by id, name or tags.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = ("has(self.id) || has(self.tags) || has(self.name)", "a term needs id, tags or name"),
    validation = ("!has(self.id) || !(has(self.tags) || has(self.name))", "id stands alone in a term: move tags and name to a term of their own")
)]
pub struct SecurityGroupSelectorTerm {
    /// The id of one security group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^sg-.+$"), length(max = 64))]
    pub id: Option<String>,
    /// The name of the security group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub name: Option<String>,
    /// Tags that the security group has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::tags")]
    #[x_kube(validation = ("self.all(key, key != '')", "tag keys may not be empty"))]
    pub tags: BTreeMap<String, String>,
}

/// Images by id, family, alias, name, owner or tags.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("has(self.id) || has(self.alias) || has(self.imageFamily) || has(self.name) || has(self.tags)", "a term needs id, alias, imageFamily, name or tags"),
    validation = ("!has(self.id) || !(has(self.alias) || has(self.imageFamily) || has(self.name) || has(self.tags))", "id stands alone in a term: move the rest to a term of its own"),
    validation = ("!has(self.alias) || !(has(self.imageFamily) || has(self.name) || has(self.tags))", "alias stands alone in a term"),
    validation = ("!(has(self.imageOwnerAlias) || has(self.imageOwnerID)) || !(has(self.id) || has(self.alias))", "imageOwnerAlias and imageOwnerID narrow imageFamily, name and tags: leave them out beside id and alias")
)]
pub struct ImageSelectorTerm {
    /// The id of one image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub id: Option<String>,
    /// The image family, such as `acs:alibaba_cloud_linux_3_2104_lts_x64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub image_family: Option<String>,
    /// The newest image of a family: `AlibabaCloudLinux3` or `ContainerOS`, with or without `@latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = ("self.matches('^(AlibabaCloudLinux3|ContainerOS)(@latest)?$')", "alias is <family> or <family>@latest, families: AlibabaCloudLinux3, ContainerOS; for a fixed version name the image by id"))]
    pub alias: Option<String>,
    /// The name of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub name: Option<String>,
    /// Whose images are searched: `system`, `self`, `others` or `marketplace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(system|self|others|marketplace)$"))]
    pub image_owner_alias: Option<String>,
    /// The account whose images are searched.
    #[serde(
        default,
        rename = "imageOwnerID",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(min = 1, max = 64))]
    pub image_owner_id: Option<String>,
    /// Tags that the image has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::tags")]
    #[x_kube(validation = ("self.all(key, key != '')", "tag keys may not be empty"))]
    pub tags: BTreeMap<String, String>,
}

/// Key pairs by name or tags.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = ("has(self.name) || has(self.tags)", "a term needs name or tags"))]
pub struct SshKeySelectorTerm {
    /// The name of the key pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 128))]
    pub name: Option<String>,
    /// Tags that the key pair has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::tags")]
    #[x_kube(validation = ("self.all(key, key != '')", "tag keys may not be empty"))]
    pub tags: BTreeMap<String, String>,
}

/// Private capacity pools by id or tags.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = ("has(self.id) || has(self.tags)", "a term needs id or tags"),
    validation = ("!has(self.id) || !has(self.tags)", "id stands alone in a term: move tags to a term of their own")
)]
pub struct ReservationSelectorTerm {
    /// The id of one pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(cr|crp|eap)-.+$"), length(max = 64))]
    pub id: Option<String>,
    /// Tags that the pool has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::tags")]
    #[x_kube(validation = ("self.all(key, key != '')", "tag keys may not be empty"))]
    pub tags: BTreeMap<String, String>,
}
