//! What single decisions about disruption were like.

use std::collections::BTreeMap;

use kerf_core::disruption::CommandKind;
use kerf_core::disruption::report::PassReport;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::{TypeLabels, reason_name};
use crate::metrics::Durations;

/// A way to look at nodes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MethodLabels {
    reason: &'static str,
    consolidation_type: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

/// What a NodePool with a policy that weighs thinks of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MoveLabels {
    /// `approved` or `rejected`.
    decision: &'static str,
    nodepool: String,
    policy: &'static str,
}

/// Karpenter: same.
#[derive(Debug, Clone)]
struct Scores;

impl MetricConstructor<Histogram> for Scores {
    fn new_metric(&self) -> Histogram {
        Histogram::new([0.1, 0.25, 0.33, 0.5, 1.0, 2.0, 5.0, 10.0])
    }
}

/// One sample of each per decision; drift of static pools counts as drift.
const METHODS: [CommandKind; 4] = [
    CommandKind::Empty,
    CommandKind::Drift,
    CommandKind::Multi,
    CommandKind::Single,
];

/// The only policy that weighs.
const BALANCED: &str = "balanced";

/// What decisions measure.
#[derive(Debug)]
pub(super) struct PassMetrics {
    timeouts: Family<TypeLabels, Counter>,
    eligible: Family<ReasonLabels, Gauge>,
    durations: Family<MethodLabels, Histogram, Durations>,
    scores: Family<MoveLabels, Histogram, Scores>,
    moves: Family<MoveLabels, Counter>,
}

impl PassMetrics {
    pub(super) fn new(karpenter: &mut Registry) -> Self {
        let metrics = Self {
            timeouts: Family::default(),
            eligible: Family::default(),
            durations: Family::new_with_constructor(Durations),
            scores: Family::new_with_constructor(Scores),
            moves: Family::default(),
        };
        for kind in [CommandKind::Multi, CommandKind::Single] {
            // From the start, so that a rate over it is there before the first.
            metrics.timeouts.get_or_create_owned(&type_of(kind));
        }
        metrics.register(karpenter);
        metrics
    }

    fn register(&self, karpenter: &mut Registry) {
        karpenter.register(
            "voluntary_disruption_eligible_nodes",
            "Nodes that the last decision could have taken for a reason, budgets not asked",
            self.eligible.clone(),
        );
        karpenter.register(
            "voluntary_disruption_consolidation_timeouts",
            "Searches that ended before all was tried: here by their budget of work, never by the clock",
            self.timeouts.clone(),
        );
        karpenter.register(
            "voluntary_disruption_decision_evaluation_duration_seconds",
            "Time of decisions about disruption with their policies; one decision looks for everything, and each search \
             gets its share of the time by the work that it was",
            self.durations.clone(),
        );
        karpenter.register(
            "consolidation_score",
            "What commands save by what they disrupt, as NodePools with consolidationPolicy Balanced see it",
            self.scores.clone(),
        );
        karpenter.register(
            "consolidation_moves",
            "Commands that NodePools with consolidationPolicy Balanced have judged",
            self.moves.clone(),
        );
    }

    /// A decision took so long.
    pub(super) fn decided(&self, seconds: f64, report: &PassReport) {
        for (kind, seconds) in shares(seconds, &report.work) {
            let labels = MethodLabels {
                reason: reason_name(kind.reason()),
                consolidation_type: kind.consolidation_type(),
            };
            self.durations.get_or_create(&labels).observe(seconds);
        }
        for (reason, nodes) in &report.eligible {
            let labels = ReasonLabels {
                reason: reason_name(*reason),
            };
            let nodes = i64::try_from(*nodes).unwrap_or(i64::MAX);
            self.eligible.get_or_create(&labels).set(nodes);
        }
        for kind in &report.cut_off {
            self.timeouts.get_or_create(&type_of(*kind)).inc();
        }
        for score in &report.scores {
            let labels = MoveLabels {
                decision: match score.is_approved {
                    true => "approved",
                    false => "rejected",
                },
                nodepool: score.pool.to_string(),
                policy: BALANCED,
            };
            let value = f64::from(score.percent) / 100.0;
            self.scores.get_or_create(&labels).observe(value);
            self.moves.get_or_create(&labels).inc();
        }
    }
}

fn type_of(kind: CommandKind) -> TypeLabels {
    TypeLabels {
        consolidation_type: kind.consolidation_type(),
    }
}

/// The time of each search by its share of the work. Looking for empty nodes is none, so it gets all the time where
/// nothing else was looked for.
fn shares(seconds: f64, work: &BTreeMap<CommandKind, u64>) -> [(CommandKind, f64); 4] {
    let of = |kind: CommandKind| work.get(&kind).copied().unwrap_or(0);
    let whole: u64 = METHODS.into_iter().map(of).sum();
    METHODS.map(|kind| {
        let share = match (whole, kind) {
            (0, CommandKind::Empty) => 1.0,
            (0, _) => 0.0,
            (whole, kind) => fraction(of(kind), whole),
        };
        (kind, seconds * share)
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a share of a time needs no more digits"
)]
fn fraction(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
pub(super) mod tests;
