//! Volumes of pods, resolved to what they ask of a node.

use crate::requirements::Requirements;

/// A persistent volume that a pod uses or will use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Volume {
    /// The PersistentVolumeClaim, as `namespace/name`.
    pub claim: String,
    /// Where it can be used: one of these must hold. Empty: anywhere.
    pub alternatives: Vec<Requirements>,
    /// How the node's driver counts it; none when nothing counts it.
    pub attachment: Option<Attachment>,
    /// What is wrong with it; with a problem the pod waits.
    pub problem: Option<VolumeProblem>,
}

/// A volume as a CSI driver counts it against the node's limit. Equal ones count once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attachment {
    /// The CSI driver.
    pub driver: String,
    /// The volume handle, or the claim's name while it is unbound.
    pub handle: String,
}

/// Why a volume keeps its pod from being planned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum VolumeProblem {
    /// The claim does not exist, or is being deleted.
    #[error("claim does not exist or is being deleted")]
    ClaimMissing,
    /// The claim lost its volume.
    #[error("claim has lost its volume")]
    ClaimLost,
    /// The volume does not exist, or is being deleted.
    #[error("volume {name} does not exist or is being deleted")]
    VolumeMissing {
        /// The PersistentVolume.
        name: String,
    },
    /// The claim names a volume, but the binding has not completed.
    #[error("binding has not completed")]
    BindingIncomplete,
    /// The claim is unbound and names no storage class.
    #[error("unbound and without a storage class")]
    ClassMissingInClaim,
    /// The storage class does not exist.
    #[error("storage class {name} does not exist")]
    ClassMissing {
        /// The StorageClass.
        name: String,
    },
    /// The class binds at once, so the volume will exist before the pod has a node.
    #[error("storage class {name} binds immediately and the claim is not bound yet")]
    ImmediateBinding {
        /// The StorageClass.
        name: String,
    },
    /// The class uses a topology key or provisioner that no node of ours can serve.
    #[error("storage class {name} uses {what}, which is not supported")]
    Unsupported {
        /// The StorageClass.
        name: String,
        /// The key or provisioner.
        what: String,
    },
}
