//! Nodes that go and the pods that leave them. The names are Karpenter's.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kerf_api::names::label;
use kerf_core::labels;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::summary::Summary;
use super::termination::label_of;
use super::{PoolLabels, ZoneLabels};

/// What the API server said to an eviction.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    code: u16,
}

/// Why a pod had to leave.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: String,
}

/// The reason of a pod whose node no decision of the controller removes. Karpenter: same.
const NOT_DISRUPTED: &str = "Forceful Termination";

/// From a quarter of an hour to thirty days.
#[derive(Debug, Clone)]
struct Lifetimes;

const MINUTE: f64 = 60.0;
const HOUR: f64 = 60.0 * MINUTE;
const DAY: f64 = 24.0 * HOUR;
const LIFETIMES: [f64; 16] = [
    15.0 * MINUTE,
    30.0 * MINUTE,
    HOUR,
    2.0 * HOUR,
    4.0 * HOUR,
    6.0 * HOUR,
    12.0 * HOUR,
    DAY,
    2.0 * DAY,
    3.0 * DAY,
    5.0 * DAY,
    7.0 * DAY,
    10.0 * DAY,
    15.0 * DAY,
    20.0 * DAY,
    30.0 * DAY,
];

impl MetricConstructor<Histogram> for Lifetimes {
    fn new_metric(&self) -> Histogram {
        Histogram::new(LIFETIMES)
    }
}

/// What the end of nodes counts.
#[derive(Debug)]
pub struct DrainMetrics {
    nodes_drained: Family<PoolLabels, Counter>,
    nodes_terminated: Family<ZoneLabels, Counter>,
    durations: Summary,
    lifetimes: Family<PoolLabels, Histogram, Lifetimes>,
    evictions: Family<CodeLabels, Counter>,
    pods_drained: Family<ReasonLabels, Counter>,
}

impl DrainMetrics {
    /// Registers them; the registry's prefix is Karpenter's.
    #[must_use]
    pub fn new(karpenter: &mut Registry) -> Self {
        let it = Self {
            nodes_drained: Family::default(),
            nodes_terminated: Family::default(),
            durations: Summary::new(
                "karpenter_nodes_termination_duration_seconds",
                "Time from the deletion of a Node until it was gone",
                Some("nodepool"),
            ),
            lifetimes: Family::new_with_constructor(Lifetimes),
            evictions: Family::default(),
            pods_drained: Family::default(),
        };
        karpenter.register(
            "nodes_drained",
            "Nodes whose pods have all left",
            it.nodes_drained.clone(),
        );
        karpenter.register(
            "nodes_terminated",
            "Nodes terminated",
            it.nodes_terminated.clone(),
        );
        karpenter.register(
            "nodes_lifetime_duration_seconds",
            "Age of nodes when they were terminated",
            it.lifetimes.clone(),
        );
        karpenter.register(
            "pods_eviction_requests",
            "Evictions asked for, by the code of the answer",
            it.evictions.clone(),
        );
        karpenter.register(
            "pods_drained",
            "Pods that were evicted, by why their node goes",
            it.pods_drained.clone(),
        );
        it
    }

    /// All pods of a node have left.
    pub fn drained(&self, node: &Node) {
        let labels = PoolLabels {
            nodepool: label_of(node, label::NODEPOOL),
        };
        self.nodes_drained.get_or_create(&labels).inc();
    }

    /// A node is gone.
    pub fn node_gone(&self, node: &Node, now: Timestamp) {
        let since = |at: Timestamp| now.duration_since(at).as_secs_f64().max(0.0);
        let nodepool = label_of(node, label::NODEPOOL);
        if let Some(deleted) = &node.metadata.deletion_timestamp {
            self.durations.observe(&nodepool, since(deleted.0), now);
        }
        if let Some(created) = &node.metadata.creation_timestamp {
            let pool = PoolLabels {
                nodepool: nodepool.clone(),
            };
            let seconds = since(created.0);
            self.lifetimes.get_or_create(&pool).observe(seconds);
        }
        let labels = ZoneLabels {
            nodepool,
            zone: label_of(node, labels::ZONE),
        };
        self.nodes_terminated.get_or_create(&labels).inc();
    }

    /// The API server answered an eviction; 0 where it did not answer.
    pub fn eviction(&self, code: u16) {
        self.evictions.get_or_create(&CodeLabels { code }).inc();
    }

    /// A pod was evicted; `reason` is that of the claim's disruption, if it was disrupted.
    pub fn evicted(&self, reason: Option<&str>) {
        let labels = ReasonLabels {
            reason: reason.unwrap_or(NOT_DISRUPTED).to_owned(),
        };
        self.pods_drained.get_or_create(&labels).inc();
    }

    /// The text of the summaries.
    pub(super) fn render(&self, now: Timestamp, out: &mut String) {
        self.durations.render(now, out);
    }

    /// A family without members does not show.
    #[cfg(test)]
    pub(super) fn touch(&self) {
        self.drained(&Node::default());
        self.node_gone(&Node::default(), Timestamp::UNIX_EPOCH);
        self.durations.observe("", 1.0, Timestamp::UNIX_EPOCH);
        self.eviction(0);
        self.evicted(None);
        let pool = PoolLabels {
            nodepool: String::new(),
        };
        self.lifetimes.get_or_create_owned(&pool);
    }
}
