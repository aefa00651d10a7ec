//! What goes, why, and how long it took. The names are Karpenter's.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kerf_api::names::label;
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::labels;
use kube::{Resource, ResourceExt};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::{PoolLabels, ZoneLabels};

/// What a NodeClaim was.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PlaceLabels {
    nodepool: String,
    capacity_type: String,
    zone: String,
}

/// Why a NodeClaim goes, and how.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DisruptedLabels {
    reason: &'static str,
    nodepool: String,
    capacity_type: String,
    /// Of consolidation only: the policy of the NodePool.
    consolidation_policy: &'static str,
    /// `graceful`, `eventual` or `forceful`.
    termination_mode: &'static str,
}

/// What the API server said to an eviction.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    code: u16,
}

/// Doubling from one second, as Karpenter's.
#[derive(Debug, Clone)]
struct Doubling;

impl MetricConstructor<Histogram> for Doubling {
    fn new_metric(&self) -> Histogram {
        Histogram::new(exponential_buckets(1.0, 2.0, 12))
    }
}

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

/// What termination counts.
#[derive(Debug)]
pub struct TerminationMetrics {
    claims_disrupted: Family<DisruptedLabels, Counter>,
    claims_terminated: Family<PlaceLabels, Counter>,
    claim_durations: Family<PoolLabels, Histogram, Doubling>,
    nodes_drained: Family<PoolLabels, Counter>,
    nodes_terminated: Family<ZoneLabels, Counter>,
    lifetimes: Family<PoolLabels, Histogram, Lifetimes>,
    evictions: Family<CodeLabels, Counter>,
}

impl TerminationMetrics {
    /// Registers them; the registry's prefix is Karpenter's.
    #[must_use]
    pub fn new(karpenter: &mut Registry) -> Self {
        let it = Self {
            claims_disrupted: Family::default(),
            claims_terminated: Family::default(),
            claim_durations: Family::new_with_constructor(Doubling),
            nodes_drained: Family::default(),
            nodes_terminated: Family::default(),
            lifetimes: Family::new_with_constructor(Lifetimes),
            evictions: Family::default(),
        };
        karpenter.register(
            "nodeclaims_disrupted",
            "NodeClaims that the controller decided to remove",
            it.claims_disrupted.clone(),
        );
        karpenter.register(
            "nodeclaims_terminated",
            "NodeClaims terminated",
            it.claims_terminated.clone(),
        );
        karpenter.register(
            "nodeclaims_termination_duration_seconds",
            "Time from the deletion of a NodeClaim until it was gone",
            it.claim_durations.clone(),
        );
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
        it
    }

    /// A claim was chosen; `consolidation_policy` is that of its NodePool where consolidation chose it.
    pub fn disrupted(
        &self,
        claim: &NodeClaim,
        reason: &'static str,
        consolidation_policy: Option<&'static str>,
    ) {
        let labels = DisruptedLabels {
            reason,
            nodepool: label_of(claim, label::NODEPOOL),
            capacity_type: label_of(claim, labels::CAPACITY_TYPE),
            consolidation_policy: consolidation_policy.unwrap_or_default(),
            termination_mode: termination_mode(claim),
        };
        self.claims_disrupted.get_or_create(&labels).inc();
    }

    /// A claim is gone.
    pub fn claim_gone(&self, claim: &NodeClaim, now: Timestamp) {
        let nodepool = label_of(claim, label::NODEPOOL);
        if let Some(deleted) = &claim.metadata.deletion_timestamp {
            let seconds = now.duration_since(deleted.0).as_secs_f64().max(0.0);
            let pool = PoolLabels {
                nodepool: nodepool.clone(),
            };
            self.claim_durations.get_or_create(&pool).observe(seconds);
        }
        let labels = PlaceLabels {
            nodepool,
            capacity_type: label_of(claim, labels::CAPACITY_TYPE),
            zone: label_of(claim, labels::ZONE),
        };
        self.claims_terminated.get_or_create(&labels).inc();
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
        let nodepool = label_of(node, label::NODEPOOL);
        if let Some(created) = &node.metadata.creation_timestamp {
            let seconds = now.duration_since(created.0).as_secs_f64().max(0.0);
            let pool = PoolLabels {
                nodepool: nodepool.clone(),
            };
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

    /// A family without members does not show.
    #[cfg(test)]
    pub(super) fn touch(&self) {
        let claim = NodeClaim::new("", Default::default());
        self.disrupted(&claim, "", None);
        self.claim_gone(&claim, Timestamp::UNIX_EPOCH);
        self.drained(&Node::default());
        self.node_gone(&Node::default(), Timestamp::UNIX_EPOCH);
        self.eviction(0);
        let pool = PoolLabels {
            nodepool: String::new(),
        };
        self.claim_durations.get_or_create_owned(&pool);
        self.lifetimes.get_or_create_owned(&pool);
    }
}

fn label_of(object: &impl Resource, key: &str) -> String {
    object.labels().get(key).cloned().unwrap_or_default()
}

/// Karpenter: same.
fn termination_mode(claim: &NodeClaim) -> &'static str {
    let grace = claim.spec.termination_grace_period.as_ref();
    match grace.map(|it| it.parse()) {
        Some(Ok(Some(grace))) if grace.is_positive() => "eventual",
        Some(Ok(Some(_))) => "forceful",
        None | Some(Ok(None) | Err(_)) => "graceful",
    }
}
