//! How long pods wait: until kerf has decided, until they are bound, and until they run.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kerf_core::pod::Pod as PlannedPod;
use kube::ResourceExt;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::key;
use super::stage::{Stage, Waiting, stage};
use crate::hash_of::hash_of;
use crate::metrics::DURATION_BUCKETS;
use crate::metrics::summary::Summary;
use crate::stages::Stages;

/// Namespace and name.
type PodLabels = Vec<(&'static str, String)>;
type Ages = Family<PodLabels, Gauge<f64, AtomicU64>>;

/// Watches pods come to life.
#[derive(Debug)]
pub(super) struct PodTimes {
    decided: Histogram,
    bound: Histogram,
    started: Summary,
    planned_to_bound: Histogram,
    planned_to_started: Histogram,
    known: Mutex<Known>,
}

/// By a hash of the uid.
#[derive(Debug, Default)]
struct Known {
    stages: Stages,
    waiting: BTreeMap<u64, Waiting>,
}

impl PodTimes {
    /// Registers the durations, those of single pods' lives only where `has_state`; the registry's prefix is
    /// Karpenter's.
    #[must_use]
    pub(super) fn new(karpenter: &mut Registry, has_state: bool) -> Self {
        let times = Self {
            decided: Histogram::new(DURATION_BUCKETS),
            bound: Histogram::new(DURATION_BUCKETS),
            started: Summary::new(
                "karpenter_pods_startup_duration_seconds",
                "Time from the creation of a pod until it was ready",
                None,
            ),
            planned_to_bound: Histogram::new(DURATION_BUCKETS),
            planned_to_started: Histogram::new(DURATION_BUCKETS),
            known: Mutex::default(),
        };
        karpenter.register(
            "pods_scheduling_decision_duration_seconds",
            "Time from when a pod that waits for a node was seen until the first plan with it",
            times.decided.clone(),
        );
        if has_state {
            times.register(karpenter);
        }
        times
    }

    fn register(&self, karpenter: &mut Registry) {
        karpenter.register(
            "pods_bound_duration_seconds",
            "Time from the creation of a pod until it was bound",
            self.bound.clone(),
        );
        karpenter.register(
            "pods_provisioning_bound_duration_seconds",
            "Time from the first plan with a place for a pod until it was bound",
            self.planned_to_bound.clone(),
        );
        karpenter.register(
            "pods_provisioning_startup_duration_seconds",
            "Time from the first plan with a place for a pod until it was ready",
            self.planned_to_started.clone(),
        );
    }

    /// Takes in a pod that is new or changed. What it was when it was first seen is nothing that happened.
    pub(super) fn observe(&self, pod: &Pod, now: Timestamp) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.observe(pod, now, |stage, seconds, since_planned| {
            let since_planned = since_planned.into_iter();
            match stage {
                Stage::Unbound => {}
                Stage::Bound => {
                    self.bound.observe(seconds);
                    since_planned.for_each(|it| self.planned_to_bound.observe(it));
                }
                Stage::Started => {
                    self.started.observe("", seconds, now);
                    since_planned.for_each(|it| self.planned_to_started.observe(it));
                }
            }
        });
    }

    /// Forgets a pod that is gone.
    pub(super) fn forget(&self, pod: &Pod) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(pod);
        known.stages.remove(key);
        known.waiting.remove(&key);
    }

    /// Forgets the pods that are not among these.
    pub(super) fn retain(&self, keys: &HashSet<u64>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.stages.retain(keys);
        known.waiting.retain(|key, _| keys.contains(key));
    }

    /// A plan was made: these pods have a place in it, those have none.
    pub(super) fn planned<'a>(
        &self,
        placed: impl Iterator<Item = &'a PlannedPod>,
        left_out: impl Iterator<Item = &'a PlannedPod>,
        now: Timestamp,
    ) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let placed = placed.map(|pod| (pod, true));
        for (pod, has_place) in placed.chain(left_out.map(|pod| (pod, false))) {
            let Some(waiting) = known.waiting.get_mut(&hash_of(&*pod.uid.text())) else {
                continue;
            };
            if let Some(seconds) = waiting.decided(has_place, now) {
                self.decided.observe(seconds);
            }
        }
    }

    /// The text of the summary.
    pub(super) fn render(&self, now: Timestamp, out: &mut String) {
        self.started.render(now, out);
    }

    /// Series of the pods that wait now.
    pub(super) fn register_waiting(&self, karpenter: &mut Registry, now: Timestamp) {
        type Age = fn(&Waiting) -> Option<Timestamp>;
        let families: [(&str, &str, Age); 5] = [
            (
                "pods_unbound_time_seconds",
                "Age of a pod that is not bound yet",
                |pod| pod.is_unbound().then_some(pod.created),
            ),
            (
                "pods_unstarted_time_seconds",
                "Age of a pod that is not ready yet",
                |pod| Some(pod.created),
            ),
            (
                "pods_provisioning_unbound_time_seconds",
                "Time since the first plan with a place for a pod that is not bound yet",
                |pod| pod.planned.filter(|_| pod.is_unbound()),
            ),
            (
                "pods_provisioning_unstarted_time_seconds",
                "Time since the first plan with a place for a pod that is not ready yet",
                |pod| pod.planned,
            ),
            (
                "pods_provisioning_scheduling_undecided_time_seconds",
                "Time since a pod was seen that waits for a node and has been in no plan yet",
                |pod| pod.seen.filter(|_| !pod.is_decided && pod.is_unbound()),
            ),
        ];
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, help, since) in families {
            let ages = Ages::default();
            for pod in known.waiting.values() {
                let Some(since) = since(pod) else { continue };
                let labels = vec![
                    ("name", pod.name.clone()),
                    ("namespace", pod.namespace.clone()),
                ];
                let age = now.duration_since(since).as_secs_f64();
                ages.get_or_create(&labels).set(age);
            }
            karpenter.register(name, help, ages);
        }
    }
}

impl Known {
    fn observe(
        &mut self,
        pod: &Pod,
        now: Timestamp,
        mut reached: impl FnMut(Stage, f64, Option<f64>),
    ) {
        let key = key(pod);
        let (stage, at) = stage(pod);
        let before = self.stages.insert(key, stage as u8);
        let Some(created) = pod.metadata.creation_timestamp.as_ref().map(|it| it.0) else {
            return;
        };
        let mut waiting = self.waiting.remove(&key).unwrap_or_else(|| Waiting {
            namespace: pod.namespace().unwrap_or_default(),
            name: pod.name_any(),
            created,
            stage,
            seen: None,
            is_decided: false,
            planned: None,
        });
        if let Some(before) = before {
            for passed in [Stage::Bound, Stage::Started] {
                let at = at[passed as usize].filter(|_| before < passed as u8 && passed <= stage);
                if let Some(at) = at {
                    let since = |then| at.duration_since(then).as_secs_f64().max(0.0);
                    reached(passed, since(created), waiting.planned.map(since));
                }
            }
        }
        waiting.stage = stage;
        waiting.see(pod, now);
        if stage != Stage::Started {
            self.waiting.insert(key, waiting);
        }
    }
}

#[cfg(test)]
mod tests;
