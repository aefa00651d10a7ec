//! Metrics of disruption. The names are Karpenter's.

mod pass;

use kerf_core::disruption::CommandKind;
use kerf_core::disruption::budget::DisruptionReason;
use kerf_core::disruption::report::PassReport;
use kerf_core::ids::NodePoolName;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use self::pass::PassMetrics;

/// A command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct DecisionLabels {
    /// `delete` or `replace`.
    pub decision: &'static str,
    /// `underutilized`, `empty` or `drifted`.
    pub reason: &'static str,
    /// `empty`, `multi`, `single`, or nothing for drift.
    pub consolidation_type: &'static str,
}

/// A kind of consolidation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct TypeLabels {
    /// As in [`DecisionLabels`].
    pub consolidation_type: &'static str,
}

/// A budget.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct AllowedLabels {
    /// The NodePool's name.
    pub nodepool: String,
    /// As in [`DecisionLabels`].
    pub reason: &'static str,
}

/// A command, for one of the NodePools that it takes nodes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PoolDecisionLabels {
    nodepool: String,
    decision: &'static str,
    reason: &'static str,
    consolidation_type: &'static str,
}

/// What disruption counts.
#[derive(Debug)]
pub struct DisruptionMetrics {
    decisions: Family<DecisionLabels, Counter>,
    pool_decisions: Family<PoolDecisionLabels, Counter>,
    failures: Family<DecisionLabels, Counter>,
    failed_validations: Family<TypeLabels, Counter>,
    allowed: Family<AllowedLabels, Gauge>,
    passes: PassMetrics,
}

impl DisruptionMetrics {
    /// Registers them; the registry's prefix is Karpenter's.
    #[must_use]
    pub fn new(karpenter: &mut Registry) -> Self {
        let metrics = Self {
            decisions: Family::default(),
            pool_decisions: Family::default(),
            failures: Family::default(),
            failed_validations: Family::default(),
            allowed: Family::default(),
            passes: PassMetrics::new(karpenter),
        };
        metrics.register_commands(karpenter);
        metrics
    }

    fn register_commands(&self, karpenter: &mut Registry) {
        karpenter.register(
            "voluntary_disruption_decisions",
            "Disruption commands that were started",
            self.decisions.clone(),
        );
        karpenter.register(
            "voluntary_disruption_decisions_by_nodepool",
            "Disruption commands that were started, once for each NodePool that they take nodes from",
            self.pool_decisions.clone(),
        );
        karpenter.register(
            "voluntary_disruption_queue_failures",
            "Disruption commands that were taken back",
            self.failures.clone(),
        );
        karpenter.register(
            "voluntary_disruption_failed_validations",
            "Disruption commands that no longer held at the last look, before their start or before the deletion",
            self.failed_validations.clone(),
        );
        karpenter.register(
            "nodepools_allowed_disruptions",
            "Nodes that the budgets of a NodePool allow to go now, by reason",
            self.allowed.clone(),
        );
    }

    /// A command was started, which takes nodes from these pools.
    pub fn started(&self, labels: &DecisionLabels, pools: &[NodePoolName]) {
        self.decisions.get_or_create(labels).inc();
        for pool in pools {
            let labels = PoolDecisionLabels {
                nodepool: pool.to_string(),
                decision: labels.decision,
                reason: labels.reason,
                consolidation_type: labels.consolidation_type,
            };
            self.pool_decisions.get_or_create(&labels).inc();
        }
    }

    /// A command was taken back; `is_invalid` when its candidates might not go any more.
    pub fn failed(&self, labels: &DecisionLabels, is_invalid: bool) {
        self.failures.get_or_create(labels).inc();
        if is_invalid {
            let labels = TypeLabels {
                consolidation_type: labels.consolidation_type,
            };
            self.failed_validations.get_or_create(&labels).inc();
        }
    }

    /// A command was not started: the cluster had changed since it was decided.
    pub fn refused(&self, kind: CommandKind) {
        let labels = TypeLabels {
            consolidation_type: kind.consolidation_type(),
        };
        self.failed_validations.get_or_create(&labels).inc();
    }

    /// So many nodes may go.
    pub fn allow(&self, labels: &AllowedLabels, nodes: usize) {
        let nodes = i64::try_from(nodes).unwrap_or(i64::MAX);
        self.allowed.get_or_create(labels).set(nodes);
    }

    /// A decision took so long.
    pub fn decided(&self, seconds: f64, report: &PassReport) {
        self.passes.decided(seconds, report);
    }

    /// A family without members does not show.
    #[cfg(test)]
    pub(super) fn touch(&self) {
        let labels = DecisionLabels {
            decision: "",
            reason: "",
            consolidation_type: "",
        };
        self.started(&labels, &["".into()]);
        self.failed(&labels, true);
        let labels = AllowedLabels {
            nodepool: String::new(),
            reason: "",
        };
        self.allow(&labels, 0);
        self.decided(0.0, &pass::tests::report());
    }
}

/// The value of the label `reason`.
#[must_use]
pub fn reason_name(reason: DisruptionReason) -> &'static str {
    match reason {
        DisruptionReason::Underutilized => "underutilized",
        DisruptionReason::Empty => "empty",
        DisruptionReason::Drifted => "drifted",
    }
}
