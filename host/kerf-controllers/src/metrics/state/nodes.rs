//! What each node has and what is asked of it. There are a hundred kilobytes of text for ten nodes, so one metric after the
//! other is written and passed on.

use std::fmt;

use jiff::Timestamp;
use kerf_core::labels;
use kerf_core::node::Node;
use kerf_core::pod::{OwnerKind, Pod, PodPhase};
use kerf_core::resources::{PODS, Resources};
use kerf_core::snapshot::Snapshot;

use super::{requests, snake, value_of};
use crate::metrics::pods::limits::{ByNode, NodeLimits};
use crate::metrics::text::{self, Sink};

/// Name, meaning and amount.
type Amount = (
    &'static str,
    &'static str,
    fn(&Node, &NodeLimits) -> Resources,
);

const AMOUNTS: [Amount; 6] = [
    (
        "karpenter_nodes_allocatable",
        "What the pods of a node can use",
        |node, _| node.allocatable.clone(),
    ),
    (
        "karpenter_nodes_total_pod_requests",
        "What the pods of a node ask for, daemons not counted",
        |node, _| requests(live(node).filter(|pod| !is_daemon(pod))),
    ),
    (
        "karpenter_nodes_total_daemon_requests",
        "What the daemons of a node ask for",
        |node, _| requests(live(node).filter(|pod| is_daemon(pod))),
    ),
    (
        "karpenter_nodes_total_pod_limits",
        "What the pods of a node may use at most as far as they have limits, daemons not counted",
        |node, limits| with_count(&limits.pods, live(node).filter(|pod| !is_daemon(pod))),
    ),
    (
        "karpenter_nodes_total_daemon_limits",
        "What the daemons of a node may use at most as far as they have limits",
        |node, limits| with_count(&limits.daemons, live(node).filter(|pod| is_daemon(pod))),
    ),
    (
        "karpenter_nodes_system_overhead",
        "What system and kubelet of a node keep back",
        |node, _| {
            let mut overhead = node.capacity.clone();
            overhead.subtract(&node.allocatable);
            overhead
        },
    ),
];

/// Passes on the series of all nodes.
///
/// # Errors
/// When nobody takes the text any more.
pub(super) fn render(
    snapshot: &Snapshot,
    limits: &ByNode,
    now: Timestamp,
    pass_on: Sink<'_>,
) -> fmt::Result {
    let names = label_names();
    // Karpenter: same. Claims of one shape would all have the series of a node without a name.
    let named = || snapshot.nodes.iter().filter(|node| node.name.is_some());
    for (metric, help, amount) in AMOUNTS {
        let mut samples = String::new();
        for node in named() {
            let limits = limits.of(node.name.as_deref().unwrap_or_default());
            let labels = labels_of(node, &names);
            for (resource, amount) in amount(node, &limits).iter() {
                let type_ = snake(resource);
                let own = labels.iter().copied().chain([("resource_type", &*type_)]);
                text::sample(metric, own, value_of(resource, amount), &mut samples);
            }
        }
        pass_on(text::gauge(metric, help, &samples))?;
    }
    let metric = "karpenter_nodes_current_lifetime_seconds";
    let mut samples = String::new();
    for node in named() {
        if let Some(created) = node.created_at {
            let age = now.duration_since(created).as_secs_f64();
            text::sample(metric, labels_of(node, &names), age, &mut samples);
        }
    }
    pass_on(text::gauge(metric, "Age of a node", &samples))
}

fn live(node: &Node) -> impl Iterator<Item = &Pod> {
    let pods = node.pods.iter().map(|pod| &**pod);
    pods.filter(|pod| pod.phase != PodPhase::Terminal)
}

fn is_daemon(pod: &Pod) -> bool {
    pod.spec.owner == OwnerKind::DaemonSet
}

fn with_count<'a>(limits: &Resources, pods: impl Iterator<Item = &'a Pod>) -> Resources {
    let count = i64::try_from(pods.count()).unwrap_or(i64::MAX);
    limits.clone().with(PODS, count)
}

/// Of every label that Karpenter knows, in snake case.
fn label_names() -> Vec<String> {
    let names = labels::WELL_KNOWN.iter();
    names
        .map(|key| snake(key.rsplit('/').next().unwrap_or(key)))
        .collect()
}

/// The node's name, phase and owner, and the labels of those names.
fn labels_of<'a>(node: &'a Node, names: &'a [String]) -> Vec<(&'a str, &'a str)> {
    let phase = match node {
        it if it.is_deleting => "Terminating",
        it if it.is_ready => "Running",
        _ => "Pending",
    };
    let is_managed = if node.is_managed() { "true" } else { "false" };
    let mut found = vec![
        ("node_name", node.name.as_deref().unwrap_or_default()),
        ("phase", phase),
        ("managed", is_managed),
    ];
    let values = labels::WELL_KNOWN
        .iter()
        .map(|key| node.labels.get(key).unwrap_or_default());
    found.extend(names.iter().map(String::as_str).zip(values));
    found
}
