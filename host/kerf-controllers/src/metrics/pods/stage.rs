//! How far a pod has come. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

/// How far a pod has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Unbound,
    Bound,
    Started,
}

/// A pod that does not run yet.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) created: Timestamp,
    pub(super) stage: Stage,
    /// When it was first seen to wait for a node.
    pub(super) seen: Option<Timestamp>,
    /// Whether it has been in a plan since.
    pub(super) is_decided: bool,
    /// When the first plan with a place for it was made; none after a plan without one.
    pub(super) planned: Option<Timestamp>,
}

impl Waiting {
    pub(super) fn is_unbound(&self) -> bool {
        self.stage == Stage::Unbound
    }

    /// Notes when the pod is first seen to wait for a node.
    pub(super) fn see(&mut self, pod: &Pod, now: Timestamp) {
        if self.is_unbound() && is_unschedulable(pod) {
            self.seen.get_or_insert(now);
        }
    }

    /// Notes a plan with the pod. After the first, how many seconds that took.
    pub(super) fn decided(&mut self, has_place: bool, now: Timestamp) -> Option<f64> {
        if !has_place {
            self.planned = None;
        } else if self.is_unbound() {
            self.planned.get_or_insert(now);
        }
        let seen = self.seen.filter(|_| !self.is_decided)?;
        self.is_decided = true;
        Some(now.duration_since(seen).as_secs_f64().max(0.0))
    }
}

/// The stage, and when each stage began as far as the pod says so. A finished pod waits for nothing.
pub(super) fn stage(pod: &Pod) -> (Stage, [Option<Timestamp>; 3]) {
    let status = pod.status.as_ref();
    let since = |type_: &str| {
        let conditions = status.and_then(|it| it.conditions.as_deref());
        let mut found = conditions.unwrap_or_default().iter();
        let found = found.find(|it| it.type_ == type_ && it.status == "True")?;
        found.last_transition_time.as_ref().map(|it| it.0)
    };
    let phase = status.and_then(|it| it.phase.as_deref());
    let (bound, ready) = (since("PodScheduled"), since("Ready"));
    let is_bound = pod.spec.as_ref().is_some_and(|it| it.node_name.is_some());
    let stage = match phase {
        Some("Succeeded" | "Failed") => Stage::Started,
        _ if ready.is_some() => Stage::Started,
        _ if is_bound => Stage::Bound,
        _ => Stage::Unbound,
    };
    (stage, [None, bound, ready])
}

/// Whether kube-scheduler has found no node for it.
fn is_unschedulable(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|it| it.conditions.as_deref());
    conditions.unwrap_or_default().iter().any(|condition| {
        condition.type_ == "PodScheduled"
            && condition.status == "False"
            && condition.reason.as_deref() == Some("Unschedulable")
    })
}
