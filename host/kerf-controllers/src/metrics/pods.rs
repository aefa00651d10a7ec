//! What the watch on pods tells: how long they wait, what they may use, and on wish where each of them is.

pub mod limits;
mod stage;
mod states;
mod times;

use std::collections::HashSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kerf_core::plan::Plan;
use kerf_core::snapshot::Snapshot;
use prometheus_client::registry::Registry;

use self::limits::{ByNode, PodLimits};
use self::states::PodStates;
use self::times::PodTimes;
use super::Scope;
use crate::hash_of::hash_of;

/// What the watch on pods tells.
#[derive(Debug)]
pub struct PodMetrics {
    times: PodTimes,
    /// Where nodes are shown.
    limits: Option<PodLimits>,
    /// Where single pods are shown.
    states: Option<PodStates>,
}

impl PodMetrics {
    /// Registers what is in the scope; the registry's prefix is Karpenter's.
    #[must_use]
    pub fn new(karpenter: &mut Registry, scope: Scope) -> Self {
        Self {
            times: PodTimes::new(karpenter, scope.has_state),
            limits: scope.has_state.then(PodLimits::default),
            states: scope.shows_pods().then(PodStates::default),
        }
    }

    /// Takes in a pod that is new or changed.
    pub fn observe(&self, pod: &Pod, now: Timestamp) {
        self.times.observe(pod, now);
        self.limits.iter().for_each(|it| it.observe(pod));
        self.states.iter().for_each(|it| it.observe(pod));
    }

    /// Forgets a pod that is gone.
    pub fn forget(&self, pod: &Pod) {
        self.times.forget(pod);
        self.limits.iter().for_each(|it| it.forget(pod));
        self.states.iter().for_each(|it| it.forget(pod));
    }

    /// Takes in all pods, and forgets those that are not among them.
    pub fn reset(&self, pods: &[Pod], now: Timestamp) {
        for pod in pods {
            self.observe(pod, now);
        }
        let keys: HashSet<u64> = pods.iter().map(key).collect();
        self.times.retain(&keys);
        self.limits.iter().for_each(|it| it.retain(&keys));
        self.states.iter().for_each(|it| it.retain(&keys));
    }

    /// Takes in what a plan does with the pods that wait.
    pub fn planned(&self, plan: &Plan, now: Timestamp) {
        let on_new = plan.new_claims.iter().flat_map(|it| &it.pods);
        let placed = plan.placements.iter().map(|it| &it.pod).chain(on_new);
        let left_out = plan.unschedulable.iter().flat_map(|it| &it.pods);
        let placed = placed.map(|pod| &**pod);
        self.times.planned(placed, left_out.map(|pod| &**pod), now);
    }

    /// The limits of the nodes' pods.
    #[must_use]
    pub fn limits(&self) -> ByNode {
        let limits = self.limits.as_ref();
        limits.map(PodLimits::by_node).unwrap_or_default()
    }

    /// Series of the pods that wait now, where single pods are shown.
    pub(super) fn register_waiting(&self, karpenter: &mut Registry, now: Timestamp) {
        if self.states.is_some() {
            self.times.register_waiting(karpenter, now);
        }
    }

    /// The text of all pods, where single pods are shown.
    pub(super) fn render_states(&self, snapshot: &Snapshot, out: &mut String) {
        self.states.iter().for_each(|it| it.render(snapshot, out));
    }

    /// The text of the summaries, where nodes and pods are shown.
    pub(super) fn render(&self, now: Timestamp, out: &mut String) {
        if self.limits.is_some() {
            self.times.render(now, out);
        }
    }

    /// One pod waits and is planned.
    #[cfg(test)]
    pub(super) fn touch(&self) {
        let waits = serde_json::json!({
            "metadata": {"name": "waits", "namespace": "shop", "uid": "waits", "creationTimestamp": "1970-01-01T00:00:00Z"},
            "spec": {"containers": []},
            "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
        });
        let waits: Pod = serde_json::from_value(waits).expect("a pod");
        self.observe(&waits, Timestamp::UNIX_EPOCH);
        let mut other = waits;
        other.metadata.uid = Some("planned".to_owned());
        self.observe(&other, Timestamp::UNIX_EPOCH);
        let planned = kerf_core::pod::Pod::new("planned", kerf_core::pod::PodSpec::default());
        let placed = [&planned].into_iter();
        self.times
            .planned(placed, std::iter::empty(), Timestamp::UNIX_EPOCH);
    }
}

fn key(pod: &Pod) -> u64 {
    hash_of(pod.metadata.uid.as_deref().unwrap_or_default())
}
