//! Which pods wait for a node, by what kube-scheduler said of them, or did not get to say.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as k8s;
use kerf_core::pod::{OwnerKind, PodPhase};

use crate::convert::pod::PodEntry;

/// kube-scheduler counts as working for so long after its last verdict on any pod. Nothing is launched for pods that it
/// has not seen while it is down: nobody would fill the nodes. A busy one speaks several times a second; the rest is for
/// clocks that differ.
const SCHEDULER_WORKS_FOR: SignedDuration = SignedDuration::from_secs(30);

/// A busy kube-scheduler's verdicts are written some seconds late, so a pod may be that much younger than the last one.
const VERDICTS_LAG: SignedDuration = SignedDuration::from_secs(5);

/// What a pod waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Nothing: it has a node, needs none, or no node of ours would help.
    No,
    /// kube-scheduler found no node for it (Karpenter: same, and only these).
    Refused,
    /// For kube-scheduler's verdict, on which alone its node depends.
    Unseen {
        /// Whether kube-scheduler could make room for it by evicting pods of less priority.
        may_preempt: bool,
    },
}

/// What the index tells those who plan about its pods; each number only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PodNews {
    /// Pods that came to wait for a node.
    pub arrived: u64,
    /// Verdicts on pods that no plan has looked at.
    pub judged: u64,
    /// Pods that ended or were deleted, and nodes whose pods must move.
    pub left: u64,
}

impl Waiting {
    /// Of a pod as the API server has it. The scheduler's name matters only for pods without a verdict: another
    /// scheduler may take its time. A gated pod waits for whoever gated it.
    pub(crate) fn of(pod: &k8s::Pod, owner: OwnerKind, phase: PodPhase) -> Self {
        let (Some(spec), Some(status)) = (&pod.spec, &pod.status) else {
            return Self::No;
        };
        let has_node = is_set(spec.node_name.as_deref());
        let will_have_node = is_set(status.nominated_node_name.as_deref());
        let is_bound_to_its_node = matches!(owner, OwnerKind::DaemonSet | OwnerKind::Node);
        if has_node || will_have_node || is_bound_to_its_node || phase != PodPhase::Active {
            return Self::No;
        }
        match verdict(status) {
            Some(verdict) if is_refusal(verdict) => Self::Refused,
            None if is_for_kube_scheduler(spec) => Self::Unseen {
                may_preempt: spec.preemption_policy.as_deref() != Some("Never"),
            },
            _ => Self::No,
        }
    }

    /// Whether a plan may look at it, now or once kube-scheduler is known to be busy.
    pub(crate) fn is_some(self) -> bool {
        self != Self::No
    }
}

/// When kube-scheduler last said anything about the pod.
pub(crate) fn verdict_at(status: Option<&k8s::PodStatus>) -> Option<Timestamp> {
    let at = verdict(status?)?.last_transition_time.as_ref()?;
    Some(at.0)
}

fn verdict(status: &k8s::PodStatus) -> Option<&k8s::PodCondition> {
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|it| it.type_ == "PodScheduled")
}

fn is_refusal(verdict: &k8s::PodCondition) -> bool {
    verdict.status == "False" && verdict.reason.as_deref() == Some("Unschedulable")
}

fn is_for_kube_scheduler(spec: &k8s::PodSpec) -> bool {
    let scheduler = spec.scheduler_name.as_deref().unwrap_or_default();
    matches!(scheduler, "" | "default-scheduler")
        && spec.scheduling_gates.as_ref().is_none_or(Vec::is_empty)
}

pub(crate) fn is_set(text: Option<&str>) -> bool {
    text.is_some_and(|text| !text.is_empty())
}

/// What tells whether pods without a verdict are planned: what all pods of the index say of kube-scheduler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scheduler {
    last_verdict: Option<Timestamp>,
    /// Of all bound pods.
    least_priority: Option<i32>,
}

impl Scheduler {
    /// What it said last, and the least priority of the pods that it could evict.
    pub(crate) fn new(
        last_verdict: Option<Timestamp>,
        least_priority: Option<i32>,
        now: Timestamp,
    ) -> Self {
        let works_since = now.saturating_sub(SCHEDULER_WORKS_FOR);
        let is_of_now = |at: &Timestamp| works_since.is_ok_and(|since| *at >= since);
        Self {
            last_verdict: last_verdict.filter(is_of_now),
            least_priority,
        }
    }

    /// Whether a plan looks at the pod. One without a verdict counts where kube-scheduler was at work when the pod came,
    /// so that it is behind and not down, and cannot make room by preemption.
    pub(crate) fn leaves(&self, entry: &PodEntry) -> bool {
        match entry.waiting {
            Waiting::No => false,
            Waiting::Refused => true,
            Waiting::Unseen { may_preempt } => {
                let was_heard =
                    |at: Timestamp| entry.pod.created_at.duration_since(at) <= VERDICTS_LAG;
                let is_behind = self.last_verdict.is_some_and(was_heard);
                let has_victims = self.least_priority < Some(entry.pod.spec.priority)
                    && self.least_priority.is_some();
                is_behind && !(may_preempt && has_victims)
            }
        }
    }
}
