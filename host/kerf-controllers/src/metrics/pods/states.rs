//! Where each pod is and how it does: one series per pod, so only on wish.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use kerf_core::labels;
use kerf_core::node::Node;
use kerf_core::snapshot::Snapshot;
use kube::ResourceExt;

use super::key;
use super::stage::stage;
use crate::metrics::text;

const NAME: &str = "karpenter_pods_state";
const HELP: &str = "Where a pod is and how it does; always 1";

/// What is told of pods, by a hash of the uid.
#[derive(Debug, Default)]
pub(super) struct PodStates(Mutex<BTreeMap<u64, State>>);

#[derive(Debug)]
struct State {
    namespace: String,
    name: String,
    /// The path of its first owner in the API.
    owner: String,
    node: String,
    phase: String,
    is_ready: bool,
}

impl PodStates {
    /// Takes in a pod that is new or changed.
    pub(super) fn observe(&self, pod: &Pod) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(key(pod), state(pod));
    }

    /// Forgets a pod that is gone.
    pub(super) fn forget(&self, pod: &Pod) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(&key(pod));
    }

    /// Forgets the pods that are not among these.
    pub(super) fn retain(&self, keys: &HashSet<u64>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|key, _| keys.contains(key));
    }

    /// The text of all pods.
    pub(super) fn render(&self, snapshot: &Snapshot, out: &mut String) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            return;
        }
        let named = snapshot.nodes.iter();
        let named = named.filter_map(|node| Some((node.name.as_deref()?, &**node)));
        let nodes: BTreeMap<&str, &Node> = named.collect();
        text::head(NAME, "gauge", HELP, out);
        for pod in known.values() {
            sample(pod, nodes.get(pod.node.as_str()).copied(), out);
        }
    }
}

fn sample(pod: &State, node: Option<&Node>, out: &mut String) {
    let label = |key: &str| {
        node.and_then(|node| node.labels.get(key))
            .unwrap_or_default()
    };
    let flag = |is: bool| if is { "true" } else { "false" };
    let labels = [
        ("name", pod.name.as_str()),
        ("namespace", pod.namespace.as_str()),
        ("owner", pod.owner.as_str()),
        ("node", pod.node.as_str()),
        ("scheduled", flag(!pod.node.is_empty())),
        ("nodepool", label(labels::NODE_POOL)),
        ("zone", label(labels::ZONE)),
        ("arch", label(labels::ARCH)),
        ("capacity_type", label(labels::CAPACITY_TYPE)),
        ("instance_type", label(labels::INSTANCE_TYPE)),
        ("phase", pod.phase.as_str()),
        ("ready", flag(pod.is_ready)),
        ("managed", flag(node.is_some_and(Node::is_managed))),
    ];
    text::sample(NAME, labels, 1.0, out);
}

/// Pure.
fn state(pod: &Pod) -> State {
    let namespace = pod.namespace().unwrap_or_default();
    let owner = pod.owner_references().first().map(|it| {
        let (version, kind) = (&it.api_version, it.kind.to_lowercase());
        format!("/apis/{version}/namespaces/{namespace}/{kind}s/{}", it.name)
    });
    let status = pod.status.as_ref();
    let (_, [_, _, ready]) = stage(pod);
    State {
        owner: owner.unwrap_or_default(),
        name: pod.name_any(),
        node: pod
            .spec
            .as_ref()
            .and_then(|it| it.node_name.clone())
            .unwrap_or_default(),
        phase: status.and_then(|it| it.phase.clone()).unwrap_or_default(),
        is_ready: ready.is_some(),
        namespace,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_shows_its_owner_its_node_and_how_it_does_until_it_is_gone() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "web-1", "namespace": "shop", "uid": "u", "ownerReferences": [
                {"kind": "ReplicaSet", "name": "web", "uid": "x", "apiVersion": "apps/v1"},
            ]},
            "spec": {"nodeName": "node-1", "containers": []},
            "status": {"phase": "Running"},
        }))
        .unwrap();
        let node = Node {
            name: Some("node-1".into()),
            node_claim: Some("general-1".into()),
            labels: [(labels::ZONE, "cn-hangzhou-h")].into_iter().collect(),
            ..Node::default()
        };
        let snapshot = Snapshot {
            nodes: vec![Arc::new(node)],
            ..Snapshot::default()
        };
        let states = PodStates::default();
        states.observe(&pod);
        let mut text = String::new();
        states.render(&snapshot, &mut text);

        for label in [
            "owner=\"/apis/apps/v1/namespaces/shop/replicasets/web\"",
            "node=\"node-1\",scheduled=\"true\"",
            "zone=\"cn-hangzhou-h\"",
            "phase=\"Running\",ready=\"false\",managed=\"true\"} 1\n",
        ] {
            assert!(text.contains(label), "{label} in {text}");
        }
        states.forget(&pod);
        let mut text = String::new();
        states.render(&snapshot, &mut text);
        assert_eq!(text, "");
    }
}
