//! Everything that Prometheus can read. The names are Karpenter's where the fact is the same.
//!
//! One table: a metric that is not a field of [`Metrics`] does not exist.

mod build;
pub mod cloud;
pub mod conditions;
pub mod cost;
pub mod disruption;
pub mod draining;
pub mod interruption;
pub mod offerings;
pub mod pods;
pub mod prices;
pub mod requests;
pub mod scheduling;
pub mod state;
mod summary;
pub mod termination;
pub mod text;
pub mod zones;

#[cfg(test)]
mod parity;

use std::fmt;
use std::sync::atomic::AtomicU64;

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::prometheus_text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use self::cloud::CloudMetrics;
use self::conditions::ConditionMetrics;
use self::cost::CostErrors;
use self::disruption::DisruptionMetrics;
use self::draining::DrainMetrics;
use self::interruption::InterruptionMetrics;
use self::offerings::OfferingMetrics;
use self::pods::PodMetrics;
use self::prices::PriceMetrics;
use self::scheduling::SchedulingMetrics;
use self::termination::TerminationMetrics;

/// What a scrape shows besides what is always shown.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    /// Nodes, NodePools and what they could launch, the lives of pods, and the conditions of objects.
    pub has_state: bool,
    /// Single pods too.
    pub has_pods: bool,
}

impl Scope {
    /// Single pods are part of the state.
    #[must_use]
    pub fn shows_pods(self) -> bool {
        self.has_state && self.has_pods
    }
}

/// A NodePool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PoolLabels {
    /// Its name.
    pub nodepool: String,
}

/// Why a NodeClaim was made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CreatedLabels {
    /// `provisioned`, `drifted` or `underutilized`.
    pub reason: String,
    /// The NodePool's name.
    pub nodepool: String,
    /// Whether it has fewer distinct values than its pool's minValues ask for.
    pub min_values_relaxed: String,
}

/// Where a node is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ZoneLabels {
    /// The NodePool's name.
    pub nodepool: String,
    /// The zone.
    pub zone: String,
}

/// How a reconcile went.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ReconcileLabels {
    /// The reconciler's name.
    pub controller: &'static str,
    /// `ok` or the kind of the error.
    pub result: &'static str,
}

/// How a policy call went.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PolicyLabels {
    /// The ECSNodeClass that declares the policy.
    pub nodeclass: String,
    /// The policy's name there.
    pub policy: String,
    /// `ok` or the class of the failure.
    pub result: String,
}

/// The buckets of durations in seconds. Karpenter: same, in all histograms that name no others.
pub const DURATION_BUCKETS: [f64; 45] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
    25.0, 30.0, 40.0, 50.0, 60.0, 120.0, 150.0, 300.0, 450.0, 600.0,
];

/// Makes the histograms of a family.
#[derive(Debug, Clone)]
pub struct Durations;

impl MetricConstructor<Histogram> for Durations {
    fn new_metric(&self) -> Histogram {
        Histogram::new(DURATION_BUCKETS)
    }
}

/// The metrics of one process.
pub struct Metrics {
    registry: Registry,
    /// NodeClaims made.
    pub nodeclaims_created: Family<CreatedLabels, Counter>,
    /// NodeClaims that go.
    pub termination: TerminationMetrics,
    /// Nodes that go, and the pods that leave them.
    pub draining: DrainMetrics,
    /// Nodes that registered.
    pub nodes_created: Family<ZoneLabels, Counter>,
    /// Planning.
    pub scheduling: SchedulingMetrics,
    /// Nodes and claims in flight that the cluster index knows.
    pub state_nodes: Gauge,
    /// 1 when every watch has delivered its first list.
    pub state_synced: Gauge,
    /// For how long watches have been missing; 0 when every one is in sync.
    pub state_unsynced_time: Gauge<f64, AtomicU64>,
    /// Pods.
    pub pods: PodMetrics,
    /// Nodes whose price nobody knows.
    pub costs: CostErrors,
    /// Calls to the cloud.
    pub cloud: CloudMetrics,
    /// Where prices come from.
    pub prices: PriceMetrics,
    /// What can be launched, where state is shown.
    pub offerings: Option<OfferingMetrics>,
    /// Conditions of objects, where state is shown.
    pub conditions: Option<ConditionMetrics>,
    /// Reconciles by controller and result.
    pub reconciles: Family<ReconcileLabels, Counter>,
    /// Policy calls by result.
    pub policy_calls: Family<PolicyLabels, Counter>,
    /// What disruption counts.
    pub disruption: DisruptionMetrics,
    /// Announced interruptions.
    pub interruptions: InterruptionMetrics,
    /// Instances found without a NodeClaim and deleted.
    pub orphans_deleted: Counter,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// Metrics that have counted nothing.
    #[must_use]
    pub fn new(scope: Scope) -> Self {
        let mut registry = Registry::default();
        let kerf = registry.sub_registry_with_prefix("kerf");
        let interruptions = InterruptionMetrics::new(kerf);
        let prices = PriceMetrics::new(kerf);
        let karpenter = registry.sub_registry_with_prefix("karpenter");
        let mut metrics = Self {
            disruption: DisruptionMetrics::new(karpenter),
            pods: PodMetrics::new(karpenter, scope),
            termination: TerminationMetrics::new(karpenter),
            draining: DrainMetrics::new(karpenter),
            scheduling: SchedulingMetrics::new(karpenter),
            costs: match scope.has_state {
                true => CostErrors::new(karpenter),
                false => CostErrors::default(),
            },
            cloud: CloudMetrics::new(karpenter),
            conditions: scope.has_state.then(|| {
                let operator = registry.sub_registry_with_prefix("operator");
                ConditionMetrics::new(operator)
            }),
            state_unsynced_time: Gauge::default(),
            nodeclaims_created: Family::default(),
            nodes_created: Family::default(),
            state_nodes: Gauge::default(),
            state_synced: Gauge::default(),
            reconciles: Family::default(),
            policy_calls: Family::default(),
            orphans_deleted: Counter::default(),
            interruptions,
            prices,
            offerings: scope.has_state.then(OfferingMetrics::default),
            registry,
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let karpenter = self.registry.sub_registry_with_prefix("karpenter");
        karpenter.register(
            "nodeclaims_created",
            "NodeClaims created",
            self.nodeclaims_created.clone(),
        );
        karpenter.register(
            "nodes_created",
            "Nodes registered",
            self.nodes_created.clone(),
        );
        karpenter.register("build_info", "What runs here; always 1", build::info());
        karpenter.register(
            "cluster_state_unsynced_time_seconds",
            "For how long watches have been missing; 0 when every one is in sync",
            self.state_unsynced_time.clone(),
        );
        karpenter.register(
            "cluster_state_node_count",
            "Nodes and NodeClaims in flight in the cluster index",
            self.state_nodes.clone(),
        );
        karpenter.register(
            "cluster_state_synced",
            "1 when every watch is in sync",
            self.state_synced.clone(),
        );
        let kerf = self.registry.sub_registry_with_prefix("kerf");
        kerf.register(
            "reconciles",
            "Reconciles by controller and result",
            self.reconciles.clone(),
        );
        kerf.register(
            "policy_calls",
            "Policy calls by result",
            self.policy_calls.clone(),
        );
        kerf.register(
            "orphans_deleted",
            "Instances deleted because no NodeClaim claims them",
            self.orphans_deleted.clone(),
        );
    }

    /// The text that a scrape gets, with more series computed for it.
    ///
    /// # Errors
    /// Only when the formatter fails, which a `String` does not.
    pub fn render(&self, now: Timestamp) -> Result<String, fmt::Error> {
        self.scheduling.refresh();
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        self.pods.render(now, &mut text);
        self.draining.render(now, &mut text);
        if let Some(offerings) = &self.offerings {
            offerings.render(&mut text);
        }
        Ok(text)
    }
}
