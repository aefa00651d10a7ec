//! Everything that Prometheus can read. The names are Karpenter's where the fact is the same.
//!
//! One table: a metric that is not a field of [`Metrics`] does not exist.

pub mod disruption;
pub mod pods;
pub mod state;
pub mod termination;

use std::fmt;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use self::disruption::DisruptionMetrics;
use self::pods::PodTimes;
use self::termination::TerminationMetrics;

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

/// Who planned.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PlannerLabels {
    /// `provisioner`.
    pub controller: &'static str,
}

/// The labels of what the provisioner measures.
pub const PROVISIONER: PlannerLabels = PlannerLabels {
    controller: "provisioner",
};

/// What runs here.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    version: &'static str,
    goversion: &'static str,
    goarch: &'static str,
    commit: &'static str,
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
    /// What goes, why, and how long it took.
    pub termination: TerminationMetrics,
    /// Nodes that registered.
    pub nodes_created: Family<ZoneLabels, Counter>,
    /// Seconds that one planning took, policies included.
    pub scheduling_duration: Family<PlannerLabels, Histogram, Durations>,
    /// Pods that the running plan has to place; 0 between plans.
    pub queue_depth: Family<PlannerLabels, Gauge>,
    /// Pods that the last plan could not place.
    pub unschedulable_pods: Family<PlannerLabels, Gauge>,
    /// Pods that the last plan left out, because they cannot be planned as they are.
    pub ignored_pods: Gauge,
    /// Nodes and claims in flight that the cluster index knows.
    pub state_nodes: Gauge,
    /// 1 when every watch has delivered its first list.
    pub state_synced: Gauge,
    /// For how long watches have been missing; 0 when every one is in sync.
    pub state_unsynced_time: Gauge<f64, AtomicU64>,
    /// How long pods wait.
    pub pod_times: PodTimes,
    /// Reconciles by controller and result.
    pub reconciles: Family<ReconcileLabels, Counter>,
    /// Policy calls by result.
    pub policy_calls: Family<PolicyLabels, Counter>,
    /// What disruption counts.
    pub disruption: DisruptionMetrics,
    /// Instances found without a NodeClaim and deleted.
    pub orphans_deleted: Counter,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let karpenter = registry.sub_registry_with_prefix("karpenter");
        let disruption = DisruptionMetrics::new(karpenter, DURATION_BUCKETS);
        let pod_times = PodTimes::new(karpenter);
        let termination = TerminationMetrics::new(karpenter);
        let mut metrics = Self {
            registry,
            disruption,
            pod_times,
            termination,
            queue_depth: Family::default(),
            ignored_pods: Gauge::default(),
            state_unsynced_time: Gauge::default(),
            nodeclaims_created: Family::default(),
            nodes_created: Family::default(),
            scheduling_duration: Family::new_with_constructor(Durations),
            unschedulable_pods: Family::default(),
            state_nodes: Gauge::default(),
            state_synced: Gauge::default(),
            reconciles: Family::default(),
            policy_calls: Family::default(),
            orphans_deleted: Counter::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
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
        karpenter.register(
            "scheduler_scheduling_duration_seconds",
            "Time of one planning with its policies",
            self.scheduling_duration.clone(),
        );
        karpenter.register(
            "scheduler_unschedulable_pods_count",
            "Pods that the last plan could not place",
            self.unschedulable_pods.clone(),
        );
        karpenter.register(
            "scheduler_queue_depth",
            "Pods that the running plan has to place",
            self.queue_depth.clone(),
        );
        karpenter.register(
            "scheduler_ignored_pods_count",
            "Pods that the last plan left out, because they cannot be planned as they are",
            self.ignored_pods.clone(),
        );
        karpenter.register("build_info", "What runs here; always 1", build_info());
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
    pub fn render(&self, more: &str) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)?;
        text.push_str(more);
        encode_eof(&mut text)?;
        Ok(text)
    }
}

/// Karpenter's labels; there is no Go here.
fn build_info() -> Family<BuildLabels, Gauge> {
    let info = Family::<BuildLabels, Gauge>::default();
    let labels = BuildLabels {
        version: env!("CARGO_PKG_VERSION"),
        goversion: "",
        goarch: match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        },
        commit: option_env!("KERF_COMMIT").unwrap_or_default(),
    };
    info.get_or_create(&labels).set(1);
    info
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;

    /// One row per metric, from the text that a scrape gets.
    fn table(text: &str) -> String {
        let mut rows = vec![
            "# Metrics".to_owned(),
            String::new(),
            "Generated from `host/kerf-controllers/src/metrics.rs`: `UPDATE_EXPECT=1 cargo test -p kerf-controllers metrics`.".to_owned(),
            String::new(),
            "| metric | type | meaning |".to_owned(),
            "|---|---|---|".to_owned(),
        ];
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2) {
            let help = pair[0]
                .strip_prefix("# HELP ")
                .and_then(|it| it.split_once(' '));
            let kind = pair[1]
                .strip_prefix("# TYPE ")
                .and_then(|it| it.split_once(' '));
            if let (Some((name, help)), Some((_, kind))) = (help, kind) {
                let suffix = if kind == "counter" { "_total" } else { "" };
                rows.push(format!(
                    "| `{name}{suffix}` | {kind} | {} |",
                    help.trim_end_matches('.')
                ));
            }
        }
        rows.join("\n") + "\n"
    }

    #[test]
    fn the_reference_lists_every_metric() {
        let metrics = Metrics::default();
        // A family without members does not show.
        let policy = PolicyLabels {
            nodeclass: String::new(),
            policy: String::new(),
            result: String::new(),
        };
        let created = CreatedLabels {
            reason: String::new(),
            nodepool: String::new(),
            min_values_relaxed: String::new(),
        };
        metrics.nodeclaims_created.get_or_create(&created).inc();
        let zone = ZoneLabels {
            nodepool: String::new(),
            zone: String::new(),
        };
        metrics.nodes_created.get_or_create(&zone).inc();
        metrics
            .scheduling_duration
            .get_or_create_owned(&PROVISIONER);
        metrics.queue_depth.get_or_create_owned(&PROVISIONER);
        metrics.unschedulable_pods.get_or_create_owned(&PROVISIONER);
        metrics
            .reconciles
            .get_or_create(&ReconcileLabels {
                controller: "",
                result: "",
            })
            .inc();
        metrics.policy_calls.get_or_create(&policy).inc();
        metrics.disruption.touch();
        metrics.termination.touch();

        let state = state::example();
        let text = metrics.render(&state).unwrap();

        expect_file!["../../../docs/metrics.md"].assert_eq(&table(&text));
    }
}
