//! Metrics of disruption. The names are Karpenter's.

use kerf_core::disruption::CommandKind;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

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

/// What disruption counts.
#[derive(Debug)]
pub struct DisruptionMetrics {
    decisions: Family<DecisionLabels, Counter>,
    failures: Family<DecisionLabels, Counter>,
    failed_validations: Family<TypeLabels, Counter>,
    allowed: Family<AllowedLabels, Gauge>,
    duration: Histogram,
}

impl DisruptionMetrics {
    /// Registers them; the registry's prefix is Karpenter's.
    #[must_use]
    pub fn new(karpenter: &mut Registry, buckets: impl IntoIterator<Item = f64>) -> Self {
        let metrics = Self {
            decisions: Family::default(),
            failures: Family::default(),
            failed_validations: Family::default(),
            allowed: Family::default(),
            duration: Histogram::new(buckets),
        };
        karpenter.register(
            "voluntary_disruption_decisions",
            "Disruption commands that were started",
            metrics.decisions.clone(),
        );
        karpenter.register(
            "voluntary_disruption_queue_failures",
            "Disruption commands that were taken back",
            metrics.failures.clone(),
        );
        karpenter.register(
            "voluntary_disruption_failed_validations",
            "Disruption commands that no longer held at the last look, before their start or before the deletion",
            metrics.failed_validations.clone(),
        );
        karpenter.register(
            "nodepools_allowed_disruptions",
            "Nodes that the budgets of a NodePool allow to go now, by reason",
            metrics.allowed.clone(),
        );
        karpenter.register(
            "voluntary_disruption_decision_evaluation_duration_seconds",
            "Time of one decision about disruption with its policies",
            metrics.duration.clone(),
        );
        metrics
    }

    /// A command was started.
    pub fn started(&self, labels: &DecisionLabels) {
        self.decisions.get_or_create(labels).inc();
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
    pub fn decided(&self, seconds: f64) {
        self.duration.observe(seconds);
    }

    /// A family without members does not show.
    #[cfg(test)]
    pub(super) fn touch(&self) {
        let labels = DecisionLabels {
            decision: "",
            reason: "",
            consolidation_type: "",
        };
        self.started(&labels);
        self.failed(&labels, true);
        let labels = AllowedLabels {
            nodepool: String::new(),
            reason: "",
        };
        self.allow(&labels, 0);
    }
}
