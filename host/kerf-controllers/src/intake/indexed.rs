//! What a change of each kind means for those who wait.

use kerf_state::{Kind, Tracked};

use crate::cluster::Effect;

/// The effect of a change in an object of the kind.
///
/// Pods, nodes, pools and volumes can make pods need or find a place; daemons, labels of namespaces and limits of
/// drivers only change what the next plan sees, as do those of which default spread constraints ask what they select.
pub(super) fn effect<K: Tracked>(is_changed: bool) -> Effect {
    if !is_changed {
        return Effect::None;
    }
    match K::KIND {
        Kind::Pod
        | Kind::Node
        | Kind::NodePool
        | Kind::EcsNodeClass
        | Kind::PersistentVolumeClaim
        | Kind::PersistentVolume => Effect::Demand,
        Kind::NodeClaim
        | Kind::DaemonSet
        | Kind::StorageClass
        | Kind::CsiNode
        | Kind::Namespace
        | Kind::PodDisruptionBudget
        | Kind::Service
        | Kind::ReplicationController
        | Kind::ReplicaSet
        | Kind::StatefulSet => Effect::Changed,
    }
}
