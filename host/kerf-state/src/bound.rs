//! Which pods are on which node, kept as pods come and go: a snapshot takes the lists as they are.

use std::collections::HashMap;
use std::sync::Arc;

use kerf_core::bound_pods::BoundPods;
use kerf_core::pod::Pod;

use crate::convert::pod::PodEntry;
use crate::counted::Counted;

/// The bound pods of the index.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Bound {
    on: HashMap<Arc<str>, OnNode>,
    priorities: Counted<i32>,
}

/// The pods of one node.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct OnNode {
    /// By namespace and name.
    pub(crate) pods: BoundPods,
    /// How many of them have volumes, which depend on other objects.
    pub(crate) with_volumes: usize,
}

impl Bound {
    /// The pods on the node.
    pub(crate) fn on(&self, node: &str) -> Option<&OnNode> {
        self.on.get(node)
    }

    /// The least priority of all.
    pub(crate) fn least_priority(&self) -> Option<i32> {
        self.priorities.least()
    }

    /// Takes in a pod, if it has a node.
    pub(crate) fn add(&mut self, entry: &PodEntry) {
        let Some(node) = &entry.node else { return };
        let here = self.on.entry(Arc::clone(node)).or_default();
        let (Ok(at) | Err(at)) = here.find(&entry.pod);
        here.pods.insert(at, Arc::clone(&entry.pod));
        here.with_volumes += usize::from(!entry.claims().is_empty());
        self.priorities.add(entry.pod.spec.priority);
    }

    /// Forgets a pod that was taken in.
    pub(crate) fn remove(&mut self, entry: &PodEntry) {
        let Some(node) = &entry.node else { return };
        let Some(here) = self.on.get_mut(node) else {
            return;
        };
        let Ok(at) = here.find(&entry.pod) else {
            return;
        };
        here.pods.remove(at);
        here.with_volumes -= usize::from(!entry.claims().is_empty());
        if here.pods.is_empty() {
            self.on.remove(node);
        }
        self.priorities.remove(entry.pod.spec.priority);
    }
}

impl<'a> FromIterator<&'a PodEntry> for Bound {
    fn from_iter<I: IntoIterator<Item = &'a PodEntry>>(entries: I) -> Self {
        let mut bound = Self::default();
        for entry in entries {
            bound.add(entry);
        }
        bound
    }
}

impl OnNode {
    fn find(&self, pod: &Pod) -> Result<usize, usize> {
        let place = (&pod.namespace, &pod.name);
        self.pods
            .binary_search_by(|it| (&it.namespace, &it.name).cmp(&place))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1 as k8s;
    use serde_json::{from_value, json};

    use super::*;
    use crate::cluster::Cluster;

    fn pod(name: &str, node: Option<&str>, priority: i32, volumes: &[&str]) -> k8s::Pod {
        let volumes = volumes
            .iter()
            .map(|claim| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}));
        from_value(json!({
            "metadata": {"namespace": "shop", "name": name, "uid": format!("uid of {name}")},
            "spec": {
                "nodeName": node, "priority": priority, "containers": [],
                "volumes": volumes.collect::<Vec<_>>(),
            },
        }))
        .unwrap()
    }

    fn names(cluster: &Cluster, node: &str) -> Vec<String> {
        let pods = cluster.bound.on(node).into_iter().flat_map(|it| &it.pods);
        pods.map(|pod| pod.name.to_string()).collect()
    }

    #[test]
    fn lists_follow_pods_that_come_change_move_and_go() {
        let mut cluster = Cluster::new();
        let as_made_anew = |cluster: &Cluster| {
            assert_eq!(cluster.bound, cluster.pods.values().collect::<Bound>());
        };
        for step in [
            pod("b", None, 0, &[]),
            pod("b", Some("node-1"), 0, &["disk"]),
            pod("a", Some("node-1"), 7, &[]),
            pod("a", Some("node-1"), -1, &["disk"]),
            // Another pod of that name, as a StatefulSet makes it.
            pod("b", Some("node-2"), 0, &[]),
        ] {
            cluster.apply(&step);
            as_made_anew(&cluster);
        }
        assert_eq!(names(&cluster, "node-1"), ["a"]);
        assert_eq!(names(&cluster, "node-2"), ["b"]);
        assert_eq!(cluster.bound.least_priority(), Some(-1));

        cluster.repack();
        as_made_anew(&cluster);
        let listed = &cluster.bound.on("node-2").unwrap().pods[0];
        assert!(cluster.pods.values().any(|it| Arc::ptr_eq(&it.pod, listed)));

        cluster.delete(&pod("a", None, 0, &[]));
        cluster.reset::<k8s::Pod>([]);
        assert_eq!(cluster.bound, Bound::default());
    }
}
