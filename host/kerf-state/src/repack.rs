//! Moving what is kept to where it lies close together.
//!
//! Pods and nodes are read among thousands of values that live for a moment. What stays of them lies scattered over pages
//! that are otherwise empty, and an allocator cannot give those back. Made anew in a quiet moment, the same entries fill the
//! gaps of the oldest pages, and the others become free.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_core::pod::Pod;

use crate::cluster::Cluster;
use crate::convert::pod::PodEntry;
use crate::nodes::{NodeClaimEntry, NodeEntry};
use crate::problem::ObjectKey;
use crate::provider_ids::ProviderIds;

impl Cluster {
    /// Makes the entries of pods, Nodes and NodeClaims anew, and forgets what no object shares any more. Nothing of what they
    /// say changes.
    pub fn repack(&mut self) {
        self.pods = self.pods.iter().map(|it| of_pod(it.0, it.1)).collect();
        self.bound = self.pods.values().collect();
        self.sets = self.pods.iter().collect();
        repack(&mut self.nodes, |it| it.anew());
        repack(&mut self.node_claims, |it| it.anew());
        self.node_ids = ids(&self.nodes, NodeEntry::provider_id);
        self.claim_ids = ids(&self.node_claims, NodeClaimEntry::provider_id);
        self.shared.sweep();
    }
}

/// A copy has its strings and lists anew; what it shares is passed to it.
fn repack<E>(table: &mut BTreeMap<ObjectKey, E>, anew: impl Fn(&E) -> E) {
    let anew = table.iter().map(|(key, entry)| {
        let key = ObjectKey {
            namespace: Arc::clone(&key.namespace),
            name: Arc::from(&*key.name),
        };
        (key, anew(entry))
    });
    *table = anew.collect();
}

fn of_pod(key: &ObjectKey, entry: &PodEntry) -> (ObjectKey, PodEntry) {
    let name: Arc<str> = Arc::from(&*entry.pod.name);
    let pod = Pod {
        name: Arc::clone(&name),
        ..(*entry.pod).clone()
    };
    let key = ObjectKey {
        namespace: Arc::clone(&key.namespace),
        name,
    };
    let mut entry = entry.clone();
    entry.pod = Arc::new(pod);
    (key, entry)
}

/// The ids of a table, shared with its entries.
fn ids<E>(table: &BTreeMap<ObjectKey, E>, id: impl Fn(&E) -> Option<&Arc<str>>) -> ProviderIds {
    let ids = table.iter().filter_map(|(key, entry)| {
        let id = id(entry)?;
        Some((Arc::clone(id), Arc::clone(&key.name)))
    });
    ids.collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1 as k8s;
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn what_was_moved_says_the_same() {
        let mut cluster = Cluster::new();
        for name in ["web-1", "web-2"] {
            let pod: k8s::Pod = from_value(json!({
                "metadata": {"namespace": "shop", "name": name, "uid": format!("uid of {name}")},
                "spec": {"nodeName": "node-1", "containers": []},
            }))
            .unwrap();
            cluster.apply(&pod);
        }
        let node: k8s::Node = from_value(json!({
            "metadata": {"name": "node-1", "labels": {"arch": "amd64"}},
            "spec": {"providerID": "cn-hangzhou.i-1"},
        }))
        .unwrap();
        cluster.apply(&node);
        let before = (cluster.pods.clone(), cluster.nodes.clone());

        cluster.repack();

        assert_eq!(before, (cluster.pods.clone(), cluster.nodes.clone()));
        let of_id: Vec<&str> = cluster.nodes_of("cn-hangzhou.i-1").collect();
        assert_eq!(of_id, ["node-1"]);
        let is_shared = |(key, entry): (&ObjectKey, &PodEntry)| {
            Arc::ptr_eq(&key.name, &entry.pod.name) && !Arc::ptr_eq(&entry.pod, &before.0[key].pod)
        };
        assert!(cluster.pods.iter().all(is_shared));
    }
}
