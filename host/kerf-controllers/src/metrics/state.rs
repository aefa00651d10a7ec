//! What the cluster is like now: nodes, NodePools and pods that wait, computed when somebody asks.
//!
//! Karpenter renews these series every five seconds; here a scrape reads the cluster index, so that no series outlives
//! what it is about. Amounts are in cores for CPU and in whole units for everything else.

mod nodes;
mod pool;
mod strength;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;

use jiff::Timestamp;
use kerf_core::pod::{Pod, PodPhase};
use kerf_core::resources::{CPU, MEMORY, Resources};
use kerf_core::snapshot::Snapshot;
use prometheus_client::encoding::prometheus_text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::cost::CostErrors;
use super::pods::PodMetrics;
use super::text::Sink;

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

/// Passes on the text of these series, with those of single pods where they are shown; counts nodes without a price.
///
/// # Errors
/// When nobody takes the text any more.
pub fn render(
    snapshot: &Snapshot,
    pods: &PodMetrics,
    costs: &CostErrors,
    now: Timestamp,
    pass_on: Sink<'_>,
) -> fmt::Result {
    nodes::render(snapshot, &pods.limits(), now, pass_on)?;
    let mut table = Table::default();
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
    pass_on(text)?;
    let mut text = String::new();
    pods.render_states(snapshot, &mut text);
    pass_on(text)
}

/// All series, for the reference.
#[cfg(test)]
pub(super) fn example(metrics: &super::Metrics) -> String {
    let snapshot = tests::snapshot();
    let now = Timestamp::UNIX_EPOCH;
    super::text::gathered(|pass_on| render(&snapshot, &metrics.pods, &metrics.costs, now, pass_on))
}

fn requests<'a>(pods: impl Iterator<Item = &'a Pod>) -> Resources {
    let mut total = Resources::default();
    for pod in pods {
        total.add(&pod.spec.requests);
    }
    total
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
