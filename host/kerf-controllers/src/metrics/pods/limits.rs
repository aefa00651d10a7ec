//! What the pods of each node may use at most. Decisions look at requests only, so the cluster index has no limits.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use kerf_core::resources::Resources;
use kube::ResourceExt;

use super::key;
use crate::hash_of::hash_of;

/// The limits of bound pods, by a hash of the uid. Pods without any are not in it.
#[derive(Debug, Default)]
pub struct PodLimits(Mutex<HashMap<u64, Limited>>);

#[derive(Debug)]
struct Limited {
    /// A hash of the node's name.
    node: u64,
    is_daemon: bool,
    limits: Resources,
}

/// The limits of one node's pods together.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct NodeLimits {
    /// Of pods that are no daemons.
    pub pods: Resources,
    /// Of daemons.
    pub daemons: Resources,
}

impl PodLimits {
    /// Takes in a pod that is new or changed.
    pub fn observe(&self, pod: &Pod) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match limited(pod) {
            Some(limited) => drop(known.insert(key(pod), limited)),
            None => drop(known.remove(&key(pod))),
        }
    }

    /// Forgets a pod that is gone.
    pub fn forget(&self, pod: &Pod) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(&key(pod));
    }

    /// Forgets the pods that are not among these.
    pub fn retain(&self, keys: &HashSet<u64>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|key, _| keys.contains(key));
    }

    /// The sums by node.
    #[must_use]
    pub fn by_node(&self) -> ByNode {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sums: HashMap<u64, NodeLimits> = HashMap::new();
        #[expect(clippy::iter_over_hash_type, reason = "sums are the same in any order")]
        for pod in known.values() {
            let node = sums.entry(pod.node).or_default();
            match pod.is_daemon {
                true => node.daemons.add(&pod.limits),
                false => node.pods.add(&pod.limits),
            }
        }
        ByNode(sums)
    }
}

/// The limits of all nodes' pods.
#[derive(Debug, Default)]
pub struct ByNode(HashMap<u64, NodeLimits>);

impl ByNode {
    /// Those of one node; nothing where no pod has any.
    #[must_use]
    pub fn of(&self, node: &str) -> NodeLimits {
        self.0.get(&hash_of(node)).cloned().unwrap_or_default()
    }
}

/// None where the pod is not bound, has ended or has no limits. Pure.
fn limited(pod: &Pod) -> Option<Limited> {
    let spec = pod.spec.as_ref()?;
    let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
    if matches!(phase, Some("Succeeded" | "Failed")) {
        return None;
    }
    let node = spec.node_name.as_deref()?;
    let limits = kerf_state::pod_limits(spec);
    let mut owners = pod.owner_references().iter();
    (!limits.is_empty()).then(|| Limited {
        node: hash_of(node),
        is_daemon: owners.any(|it| it.kind == "DaemonSet" && it.controller == Some(true)),
        limits,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, phase: &str, owner: &str) -> Pod {
        let object = json!({
            "metadata": {"name": name, "uid": name, "ownerReferences": [
                {"kind": owner, "name": "x", "uid": "x", "apiVersion": "apps/v1", "controller": true},
            ]},
            "spec": {"nodeName": "node-1", "containers": [
                {"name": "a", "resources": {"limits": {"cpu": "500m"}}},
                {"name": "b", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
            ]},
            "status": {"phase": phase},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn limits_of_running_pods_add_up_by_node_and_daemons_apart() {
        let limits = PodLimits::default();
        for (name, phase, owner) in [
            ("web", "Running", "ReplicaSet"),
            ("logs", "Running", "DaemonSet"),
            ("job", "Succeeded", "Job"),
            ("gone", "Running", "ReplicaSet"),
        ] {
            limits.observe(&pod(name, phase, owner));
        }
        limits.forget(&pod("gone", "Running", "ReplicaSet"));

        let one = Resources::of(1500, 1 << 30);
        let found = limits.by_node();
        assert_eq!(found.of("node-1").pods, one);
        assert_eq!(found.of("node-1").daemons, one);
        assert_eq!(found.of("node-2"), NodeLimits::default());
    }
}
