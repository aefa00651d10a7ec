//! What the volumes of a pod ask of its node.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::api::storage::v1 as storage;
use kerf_core::labels;
use kerf_core::requirement::Requirement;
use kerf_core::requirements::Requirements;
use kerf_core::volume::{Attachment, Volume, VolumeProblem};

use crate::convert::requirements::node_selector;
use crate::problem::{ObjectKey, Problems};

/// A PersistentVolumeClaim in the index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClaimEntry {
    volume: Option<String>,
    class: Option<String>,
    is_deleting: bool,
    is_lost: bool,
    bind_completed: bool,
}

/// A PersistentVolume in the index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VolumeEntry {
    is_deleting: bool,
    alternatives: Vec<Requirements>,
    attachment: Option<Attachment>,
}

/// A StorageClass in the index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClassEntry {
    provisioner: String,
    binds_immediately: bool,
    alternatives: Vec<Requirements>,
}

/// Set by Kubernetes when a claim and its volume agree on each other.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

pub(crate) fn claim(claim: &k8s::PersistentVolumeClaim) -> ClaimEntry {
    let spec = claim.spec.clone().unwrap_or_default();
    let phase = claim
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let annotations = claim.metadata.annotations.as_ref();
    ClaimEntry {
        volume: spec.volume_name.filter(|name| !name.is_empty()),
        class: spec.storage_class_name.filter(|name| !name.is_empty()),
        is_deleting: claim.metadata.deletion_timestamp.is_some(),
        is_lost: phase == Some("Lost"),
        bind_completed: annotations.is_some_and(|all| all.contains_key(BIND_COMPLETED)),
    }
}

pub(crate) fn volume(volume: &k8s::PersistentVolume, problems: &mut Problems) -> VolumeEntry {
    let spec = volume.spec.clone().unwrap_or_default();
    let is_of_one_node = spec.local.is_some() || spec.host_path.is_some();
    let required = spec.node_affinity.and_then(|affinity| affinity.required);
    let mut alternatives = required.map_or_else(Vec::new, |selector| {
        node_selector(&selector, "spec.nodeAffinity.required", problems)
    });
    if is_of_one_node {
        drop_hostname(&mut alternatives);
    }
    let attachment = spec.csi.map(|csi| Attachment {
        driver: csi.driver,
        handle: csi.volume_handle,
    });
    VolumeEntry {
        is_deleting: volume.metadata.deletion_timestamp.is_some(),
        alternatives,
        attachment,
    }
}

/// Karpenter: same. The data stays behind when the node goes, so the pod may as well start on a new one.
fn drop_hostname(alternatives: &mut Vec<Requirements>) {
    for term in &mut *alternatives {
        term.remove(labels::HOSTNAME);
    }
    if alternatives.iter().any(Requirements::is_empty) {
        alternatives.clear();
    }
}

pub(crate) fn class(class: &storage::StorageClass) -> ClassEntry {
    let mode = class.volume_binding_mode.as_deref().unwrap_or("Immediate");
    let topologies = class.allowed_topologies.as_deref().unwrap_or_default();
    let alternatives = topologies.iter().map(|term| {
        let expressions = term.match_label_expressions.iter().flatten();
        expressions
            .map(|it| Requirement::in_values(&it.key, it.values.iter().cloned()))
            .collect::<Requirements>()
    });
    ClassEntry {
        provisioner: class.provisioner.clone(),
        binds_immediately: mode == "Immediate",
        alternatives: alternatives.filter(|term| !term.is_empty()).collect(),
    }
}

/// Volumes per CSI driver that a node can attach.
pub(crate) fn attachment_limits(node: &storage::CSINode) -> BTreeMap<String, u32> {
    let drivers = node.spec.drivers.iter();
    drivers
        .filter_map(|driver| {
            let count = driver.allocatable.as_ref()?.count?;
            Some((driver.name.clone(), u32::try_from(count).ok()?))
        })
        .collect()
}

/// The objects that a claim leads to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Storage<'a> {
    pub(crate) claims: &'a BTreeMap<ObjectKey, ClaimEntry>,
    pub(crate) volumes: &'a BTreeMap<ObjectKey, VolumeEntry>,
    pub(crate) classes: &'a BTreeMap<ObjectKey, ClassEntry>,
}

impl Storage<'_> {
    /// What the claim asks of a node, or why it keeps its pod waiting.
    pub(crate) fn resolve(&self, namespace: &str, name: &str) -> Volume {
        let key = ObjectKey {
            namespace: namespace.into(),
            name: name.into(),
        };
        let claim = key.to_string();
        match self.find(&key) {
            Ok((alternatives, attachment)) => Volume {
                claim,
                alternatives,
                attachment,
                problem: None,
            },
            Err(problem) => Volume {
                claim,
                alternatives: Vec::new(),
                attachment: None,
                problem: Some(problem),
            },
        }
    }

    fn find(
        &self,
        key: &ObjectKey,
    ) -> Result<(Vec<Requirements>, Option<Attachment>), VolumeProblem> {
        let claim = self.claims.get(key).filter(|claim| !claim.is_deleting);
        let claim = claim.ok_or(VolumeProblem::ClaimMissing)?;
        if claim.is_lost {
            return Err(VolumeProblem::ClaimLost);
        }
        if let Some(name) = &claim.volume {
            let volume = self.volumes.get(&ObjectKey::cluster(name.as_str()));
            let volume = volume
                .filter(|volume| !volume.is_deleting)
                .ok_or_else(|| VolumeProblem::VolumeMissing { name: name.clone() })?;
            if !claim.bind_completed {
                return Err(VolumeProblem::BindingIncomplete);
            }
            return Ok((volume.alternatives.clone(), volume.attachment.clone()));
        }

        let name = claim
            .class
            .as_ref()
            .ok_or(VolumeProblem::ClassMissingInClaim)?;
        let class = self.classes.get(&ObjectKey::cluster(name.as_str()));
        let class = class.ok_or_else(|| VolumeProblem::ClassMissing { name: name.clone() })?;
        if class.binds_immediately {
            return Err(VolumeProblem::ImmediateBinding { name: name.clone() });
        }
        let attachment = Attachment {
            driver: class.provisioner.clone(),
            handle: key.to_string(),
        };
        Ok((class.alternatives.clone(), Some(attachment)))
    }
}
