//! NodeClaims that go: why, and how long it took. The names are Karpenter's.

use jiff::Timestamp;
use kerf_api::condition::find;
use kerf_api::names::{condition, label};
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::labels;
use kube::{Resource, ResourceExt};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::PoolLabels;

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

/// What was broken on the node of a NodeClaim.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct UnhealthyLabels {
    /// The Node's condition, in snake case.
    condition: String,
    nodepool: String,
    capacity_type: String,
    image_id: String,
}

/// Doubling from one second, as Karpenter's.
#[derive(Debug, Clone)]
struct Doubling<const COUNT: u16>;

impl<const COUNT: u16> MetricConstructor<Histogram> for Doubling<COUNT> {
    fn new_metric(&self) -> Histogram {
        Histogram::new(exponential_buckets(1.0, 2.0, COUNT))
    }
}

/// What the end of NodeClaims counts.
#[derive(Debug)]
pub struct TerminationMetrics {
    disrupted: Family<DisruptedLabels, Counter>,
    pods_disrupted: Family<DisruptedLabels, Counter>,
    unhealthy: Family<UnhealthyLabels, Counter>,
    terminated: Family<PlaceLabels, Counter>,
    durations: Family<PoolLabels, Histogram, Doubling<12>>,
    instance_durations: Family<PoolLabels, Histogram, Doubling<11>>,
}

impl TerminationMetrics {
    /// Registers them; the registry's prefix is Karpenter's.
    #[must_use]
    pub fn new(karpenter: &mut Registry) -> Self {
        let it = Self {
            disrupted: Family::default(),
            pods_disrupted: Family::default(),
            unhealthy: Family::default(),
            terminated: Family::default(),
            durations: Family::new_with_constructor(Doubling),
            instance_durations: Family::new_with_constructor(Doubling),
        };
        karpenter.register(
            "nodeclaims_disrupted",
            "NodeClaims that the controller decided to remove",
            it.disrupted.clone(),
        );
        karpenter.register(
            "pods_disruption_initiated",
            "Pods that have to run elsewhere because the controller decided to remove their NodeClaim",
            it.pods_disrupted.clone(),
        );
        karpenter.register(
            "nodeclaims_unhealthy_disrupted",
            "NodeClaims that node repair removed, by what was wrong with their Node",
            it.unhealthy.clone(),
        );
        karpenter.register(
            "nodeclaims_terminated",
            "NodeClaims terminated",
            it.terminated.clone(),
        );
        karpenter.register(
            "nodeclaims_termination_duration_seconds",
            "Time from the deletion of a NodeClaim until it was gone",
            it.durations.clone(),
        );
        karpenter.register(
            "nodeclaims_instance_termination_duration_seconds",
            "Time from the first request to delete a NodeClaim's instance until it was gone",
            it.instance_durations.clone(),
        );
        it
    }

    /// A claim was chosen; `consolidation_policy` is that of its NodePool where consolidation chose it. `pods` must run
    /// elsewhere; none where it has no Node that could have any.
    pub fn disrupted(
        &self,
        claim: &NodeClaim,
        reason: &'static str,
        consolidation_policy: Option<&'static str>,
        pods: Option<usize>,
    ) {
        let labels = DisruptedLabels {
            reason,
            nodepool: label_of(claim, label::NODEPOOL),
            capacity_type: label_of(claim, labels::CAPACITY_TYPE),
            consolidation_policy: consolidation_policy.unwrap_or_default(),
            termination_mode: termination_mode(claim),
        };
        self.disrupted.get_or_create(&labels).inc();
        if let Some(pods) = pods {
            let pods = u64::try_from(pods).unwrap_or(u64::MAX);
            self.pods_disrupted.get_or_create(&labels).inc_by(pods);
        }
    }

    /// Node repair has removed a claim for this condition of its Node.
    pub fn unhealthy(&self, claim: &NodeClaim, condition: &str) {
        let image = claim.status.as_ref().and_then(|it| it.image_id.clone());
        let labels = UnhealthyLabels {
            condition: snake(condition),
            nodepool: label_of(claim, label::NODEPOOL),
            capacity_type: label_of(claim, labels::CAPACITY_TYPE),
            image_id: image.unwrap_or_default(),
        };
        self.unhealthy.get_or_create(&labels).inc();
    }

    /// A claim is gone.
    pub fn claim_gone(&self, claim: &NodeClaim, now: Timestamp) {
        let since = |at: Timestamp| now.duration_since(at).as_secs_f64().max(0.0);
        let pool = PoolLabels {
            nodepool: label_of(claim, label::NODEPOOL),
        };
        if let Some(deleted) = &claim.metadata.deletion_timestamp {
            let seconds = since(deleted.0);
            self.durations.get_or_create(&pool).observe(seconds);
        }
        let asked = find(claim.conditions(), condition::INSTANCE_TERMINATING);
        if let Some(asked) = asked.filter(|it| it.is_true()) {
            let seconds = since(asked.last_transition_time);
            self.instance_durations
                .get_or_create(&pool)
                .observe(seconds);
        }
        let labels = PlaceLabels {
            nodepool: pool.nodepool,
            capacity_type: label_of(claim, labels::CAPACITY_TYPE),
            zone: label_of(claim, labels::ZONE),
        };
        self.terminated.get_or_create(&labels).inc();
    }

    /// A family without members does not show.
    #[cfg(test)]
    pub(super) fn touch(&self) {
        let claim = NodeClaim::new("", Default::default());
        self.disrupted(&claim, "", None, Some(0));
        self.unhealthy(&claim, "");
        self.claim_gone(&claim, Timestamp::UNIX_EPOCH);
        let pool = PoolLabels {
            nodepool: String::new(),
        };
        self.durations.get_or_create_owned(&pool);
        self.instance_durations.get_or_create_owned(&pool);
    }
}

/// The value of a label, empty where it is missing.
pub(super) fn label_of(object: &impl Resource, key: &str) -> String {
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

/// `KernelDeadlock` as `kernel_deadlock`.
fn snake(condition: &str) -> String {
    let mut text = String::new();
    let mut was_lower = false;
    for letter in condition.chars() {
        if letter.is_uppercase() && was_lower {
            text.push('_');
        }
        was_lower = letter.is_lowercase() || letter.is_ascii_digit();
        text.extend(letter.to_lowercase());
    }
    text
}

#[cfg(test)]
mod tests;
