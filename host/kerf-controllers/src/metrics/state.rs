//! What the cluster is like now: nodes, NodePools and pods that wait, computed when somebody asks.
//!
//! Karpenter renews these series every five seconds; here a scrape reads the cluster index, so that no series outlives
//! what it is about. Amounts are in cores for CPU and in whole units for everything else.

mod pool;
mod strength;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;

use jiff::Timestamp;
use kerf_core::labels;
use kerf_core::node::Node;
use kerf_core::pod::{OwnerKind, Pod, PodPhase};
use kerf_core::resources::{CPU, MEMORY, PODS, Resources};
use kerf_core::snapshot::Snapshot;
use prometheus_client::encoding::prometheus_text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::cost::CostErrors;
use super::pods::PodMetrics;
use super::pods::limits::NodeLimits;

/// Names and values; which ones there are depends on the node.
type Labels = Vec<(String, String)>;
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;

/// Families by metric name.
#[derive(Debug, Default)]
struct Table(BTreeMap<&'static str, (&'static str, Gauges)>);

impl Table {
    fn set(&mut self, name: &'static str, help: &'static str, labels: &Labels, value: f64) {
        let (_, family) = self
            .0
            .entry(name)
            .or_insert_with(|| (help, Gauges::default()));
        family.get_or_create(labels).set(value);
    }
}

/// The text of these series, with those of single pods where they are shown; counts nodes without a price.
///
/// # Errors
/// Only when the formatter fails, which a `String` does not.
pub fn render(
    snapshot: &Snapshot,
    pods: &PodMetrics,
    costs: &CostErrors,
    now: Timestamp,
) -> Result<String, fmt::Error> {
    let mut table = Table::default();
    let limits = pods.limits();
    for node in &snapshot.nodes {
        let limits = limits.of(node.name.as_deref().unwrap_or_default());
        node_series(node, &limits, now, &mut table);
    }
    utilization(snapshot, &mut table);
    let mut unpriced = BTreeMap::new();
    for pool in &snapshot.pools {
        let nodes = pool::series(pool, snapshot, &mut table);
        unpriced.extend(nodes.into_iter().map(|node| (node, pool.name.to_string())));
    }
    costs.note(unpriced);
    let mut registry = Registry::default();
    let karpenter = registry.sub_registry_with_prefix("karpenter");
    for (name, (help, family)) in table.0 {
        karpenter.register(name, help, family);
    }
    pods.register_waiting(karpenter, now);
    strength::register(snapshot, &mut registry);
    let mut text = String::new();
    encode(&mut text, &registry)?;
    pods.render_states(snapshot, &mut text);
    Ok(text)
}

/// All series, for the reference.
#[cfg(test)]
pub(super) fn example(metrics: &super::Metrics) -> String {
    let snapshot = tests::snapshot();
    render(
        &snapshot,
        &metrics.pods,
        &metrics.costs,
        Timestamp::UNIX_EPOCH,
    )
    .expect("a String takes it")
}

fn node_series(node: &Node, limits: &NodeLimits, now: Timestamp, table: &mut Table) {
    let labels = node_labels(node);
    for (name, help, resources) in amounts(node, limits) {
        for (resource, amount) in resources.iter() {
            let mut labels = labels.clone();
            labels.push(("resource_type".to_owned(), snake(resource)));
            table.set(name, help, &labels, value_of(resource, amount));
        }
    }
    if let Some(created) = node.created_at {
        table.set(
            "nodes_current_lifetime_seconds",
            "Age of a node",
            &labels,
            now.duration_since(created).as_secs_f64(),
        );
    }
}

/// Name, meaning and amount of what a node has and what is asked of it.
fn amounts(node: &Node, limits: &NodeLimits) -> [(&'static str, &'static str, Resources); 6] {
    let is_daemon = |pod: &&Pod| pod.spec.owner == OwnerKind::DaemonSet;
    let pods = || {
        let pods = node.pods.iter().map(|pod| &**pod);
        pods.filter(|pod| pod.phase != PodPhase::Terminal)
    };
    let mut overhead = node.capacity.clone();
    overhead.subtract(&node.allocatable);
    let count = |pods: usize| i64::try_from(pods).unwrap_or(i64::MAX);
    let with_count = |limits: &Resources, pods| limits.clone().with(PODS, count(pods));
    [
        (
            "nodes_allocatable",
            "What the pods of a node can use",
            node.allocatable.clone(),
        ),
        (
            "nodes_total_pod_requests",
            "What the pods of a node ask for, daemons not counted",
            requests(pods().filter(|pod| !is_daemon(pod))),
        ),
        (
            "nodes_total_daemon_requests",
            "What the daemons of a node ask for",
            requests(pods().filter(is_daemon)),
        ),
        (
            "nodes_total_pod_limits",
            "What the pods of a node may use at most as far as they have limits, daemons not counted",
            with_count(&limits.pods, pods().filter(|pod| !is_daemon(pod)).count()),
        ),
        (
            "nodes_total_daemon_limits",
            "What the daemons of a node may use at most as far as they have limits",
            with_count(&limits.daemons, pods().filter(is_daemon).count()),
        ),
        (
            "nodes_system_overhead",
            "What system and kubelet of a node keep back",
            overhead,
        ),
    ]
}

fn requests<'a>(pods: impl Iterator<Item = &'a Pod>) -> Resources {
    let mut total = Resources::default();
    for pod in pods {
        total.add(&pod.spec.requests);
    }
    total
}

/// The node's name, phase and owner, and every label that Karpenter knows, in snake case.
fn node_labels(node: &Node) -> Labels {
    let phase = match node {
        it if it.is_deleting => "Terminating",
        it if it.is_ready => "Running",
        _ => "Pending",
    };
    let mut found = vec![
        (
            "node_name".to_owned(),
            node.name
                .as_ref()
                .map_or_else(String::new, ToString::to_string),
        ),
        ("phase".to_owned(), phase.to_owned()),
        ("managed".to_owned(), node.is_managed().to_string()),
    ];
    for key in labels::WELL_KNOWN {
        let name = snake(key.rsplit('/').next().unwrap_or(key));
        let value = node.labels.get(key).unwrap_or_default().to_owned();
        found.push((name, value));
    }
    found
}

/// Requests over allocatable of all nodes, in percent.
fn utilization(snapshot: &Snapshot, table: &mut Table) {
    let mut asked = Resources::default();
    let mut allocatable = Resources::default();
    for node in &snapshot.nodes {
        let pods = node.pods.iter().map(|pod| &**pod);
        asked.add(&requests(
            pods.filter(|pod| pod.phase != PodPhase::Terminal),
        ));
        allocatable.add(&node.allocatable);
    }
    for resource in [CPU, MEMORY] {
        let has = value_of(resource, allocatable.amount(resource));
        if has > 0.0 {
            table.set(
                "cluster_utilization_percent",
                "What all pods ask for, in percent of what all nodes have",
                &vec![("resource_type".to_owned(), resource.to_owned())],
                value_of(resource, asked.amount(resource)) / has * 100.0,
            );
        }
    }
}

/// Cores for CPU, whole units for everything else. Beyond 2^53 a digit may be lost, which no machine has.
#[expect(clippy::cast_precision_loss, reason = "see above")]
fn value_of(resource: &str, amount: i64) -> f64 {
    match resource {
        CPU => amount as f64 / 1000.0,
        _ => amount as f64,
    }
}

/// As Karpenter writes names in labels.
fn snake(name: &str) -> String {
    name.replace(['-', '/', '.'], "_").to_lowercase()
}

#[cfg(test)]
mod tests;
