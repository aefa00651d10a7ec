//! Objects as the API server last told them, shared by all reconcilers. Each kind is watched once.

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kerf_api::capacitybuffer::CapacityBuffer;
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::names::{annotation, condition, taint};
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodeoverlay::NodeOverlay;
use kerf_api::nodepool::NodePool;
use kube::runtime::reflector::Store;

use crate::interruption::sources;
use crate::kept::{self, Kept, KeptWriter};
use crate::lifecycle::tagging::TAGGED;

/// Of all claims, few say one of these, and those are asked for every second.
pub fn nodeclaims() -> (Kept<NodeClaim>, KeptWriter<NodeClaim>) {
    kept::store(&[
        annotation::INTERRUPTION,
        annotation::DISRUPTION_COMMAND,
        condition::DISRUPTION_REASON,
        &kept::pair(annotation::TAGGED, TAGGED),
    ])
}

/// As [`nodeclaims`], of Nodes.
pub fn nodes() -> (Kept<Node>, KeptWriter<Node>) {
    kept::store(&[sources::IS_EXPIRED, taint::DISRUPTED])
}

/// One store per kind that reconcilers read whole.
#[derive(Debug, Clone)]
pub struct Stores {
    /// All NodeClaims; as many as nodes, so as little of each as can be.
    pub nodeclaims: Kept<NodeClaim>,
    /// All Nodes.
    pub nodes: Kept<Node>,
    /// All NodePools.
    pub nodepools: Store<NodePool>,
    /// All NodeOverlays; none while the gate is closed.
    pub overlays: Store<NodeOverlay>,
    /// All CapacityBuffers; none while the gate is closed.
    pub buffers: Store<CapacityBuffer>,
    /// All ECSNodeClasses.
    pub node_classes: Store<EcsNodeClass>,
    /// The policy ConfigMaps of our namespace.
    pub config_maps: Store<ConfigMap>,
}
