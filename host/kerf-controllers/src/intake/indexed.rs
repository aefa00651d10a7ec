//! What a change of each kind means for those who wait.

use kerf_state::{Cluster, Kind, Tracked};

use crate::cluster::Effect;

/// Changes the index; what that meant.
pub(super) fn applied<K: Tracked>(
    index: &mut Cluster,
    change: impl FnOnce(&mut Cluster) -> bool,
) -> Effect {
    let before = index.pod_news();
    let is_changed = change(index);
    let after = index.pod_news();
    if after.arrived != before.arrived {
        return Effect::Arrival;
    }
    effect::<K>(is_changed, before != after)
}

/// The effect of a change in an object of the kind; `have_left` says that pods did, or that nodes are about to.
///
/// Pools and volumes, and what leaves, can make pods find a place or need one. A pod that gets its node gives nobody a
/// place, and a node that joins gives one that was planned for, or that kube-scheduler finds by itself. Daemons, labels of
/// namespaces and limits of drivers only change what the next plan sees, as do those of which default spread constraints ask
/// what they select.
fn effect<K: Tracked>(is_changed: bool, have_left: bool) -> Effect {
    if !is_changed {
        return Effect::None;
    }
    match K::KIND {
        Kind::Pod | Kind::Node if have_left => Effect::Demand,
        Kind::NodePool
        | Kind::EcsNodeClass
        | Kind::PersistentVolumeClaim
        | Kind::PersistentVolume => Effect::Demand,
        Kind::Pod
        | Kind::Node
        | Kind::NodeClaim
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
