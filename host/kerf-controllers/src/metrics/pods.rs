//! How long pods wait: until they are bound, and until they run.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::DURATION_BUCKETS;

/// Namespace and name.
type PodLabels = Vec<(&'static str, String)>;
type Ages = Family<PodLabels, Gauge<f64, AtomicU64>>;

/// How far a pod has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Unbound,
    Bound,
    Started,
}

/// A pod that does not run yet.
#[derive(Debug, Clone)]
struct Waiting {
    namespace: String,
    name: String,
    created: Timestamp,
    stage: Stage,
}

/// Watches pods come to life.
#[derive(Debug)]
pub struct PodTimes {
    bound: Histogram,
    started: Histogram,
    known: Mutex<Known>,
}

/// By a hash of the uid.
#[derive(Debug, Default)]
struct Known {
    stages: HashMap<u64, Stage>,
    waiting: BTreeMap<u64, Waiting>,
}

impl PodTimes {
    /// Registers the durations; the registry's prefix is Karpenter's.
    #[must_use]
    pub fn new(karpenter: &mut Registry) -> Self {
        let times = Self {
            bound: Histogram::new(DURATION_BUCKETS),
            started: Histogram::new(DURATION_BUCKETS),
            known: Mutex::default(),
        };
        karpenter.register(
            "pods_bound_duration_seconds",
            "Time from the creation of a pod until it was bound",
            times.bound.clone(),
        );
        karpenter.register(
            "pods_startup_duration_seconds",
            "Time from the creation of a pod until it was ready",
            times.started.clone(),
        );
        times
    }

    /// Takes in a pod that is new or changed. What it was when it was first seen is nothing that happened.
    pub fn observe(&self, pod: &Pod) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.observe(pod, |stage, seconds| match stage {
            Stage::Unbound => {}
            Stage::Bound => self.bound.observe(seconds),
            Stage::Started => self.started.observe(seconds),
        });
    }

    /// Forgets a pod that is gone.
    pub fn forget(&self, pod: &Pod) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(pod);
        known.stages.remove(&key);
        known.waiting.remove(&key);
    }

    /// Takes in all pods, and forgets those that are not among them.
    pub fn reset(&self, pods: &[Pod]) {
        for pod in pods {
            self.observe(pod);
        }
        let keys: std::collections::HashSet<u64> = pods.iter().map(key).collect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.stages.retain(|key, _| keys.contains(key));
        known.waiting.retain(|key, _| keys.contains(key));
    }

    /// Series of the pods that wait now.
    pub fn register_waiting(&self, karpenter: &mut Registry, now: Timestamp) {
        let (unbound, unstarted) = (Ages::default(), Ages::default());
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for pod in known.waiting.values() {
            let labels = vec![
                ("name", pod.name.clone()),
                ("namespace", pod.namespace.clone()),
            ];
            let age = now.duration_since(pod.created).as_secs_f64();
            unstarted.get_or_create(&labels).set(age);
            if pod.stage == Stage::Unbound {
                unbound.get_or_create(&labels).set(age);
            }
        }
        karpenter.register(
            "pods_unbound_time_seconds",
            "Age of a pod that is not bound yet",
            unbound,
        );
        karpenter.register(
            "pods_unstarted_time_seconds",
            "Age of a pod that is not ready yet",
            unstarted,
        );
    }
}

#[cfg(test)]
impl PodTimes {
    /// One pod waits.
    pub(super) fn example() -> Self {
        let times = Self::new(&mut Registry::default());
        times.observe(&tests::pod("waits", &serde_json::Value::Null, &[]));
        times
    }
}

impl Known {
    fn observe(&mut self, pod: &Pod, mut reached: impl FnMut(Stage, f64)) {
        let key = key(pod);
        let (stage, at) = stage(pod);
        let before = self.stages.insert(key, stage);
        let Some(created) = pod.metadata.creation_timestamp.as_ref().map(|it| it.0) else {
            return;
        };
        if let Some(before) = before {
            for passed in [Stage::Bound, Stage::Started] {
                let at = at[passed as usize].filter(|_| before < passed && passed <= stage);
                if let Some(at) = at {
                    reached(passed, at.duration_since(created).as_secs_f64().max(0.0));
                }
            }
        }
        if stage == Stage::Started {
            self.waiting.remove(&key);
        } else {
            let waiting = Waiting {
                namespace: pod.namespace().unwrap_or_default(),
                name: pod.name_any(),
                created,
                stage,
            };
            self.waiting.insert(key, waiting);
        }
    }
}

/// The stage, and when each stage began as far as the pod says so. A finished pod waits for nothing.
fn stage(pod: &Pod) -> (Stage, [Option<Timestamp>; 3]) {
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

fn key(pod: &Pod) -> u64 {
    let mut hasher = DefaultHasher::new();
    pod.metadata.uid.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use serde_json::{Value, json};

    use super::*;

    pub(super) fn pod(uid: &str, node: &Value, conditions: &[(&str, i64)]) -> Pod {
        let time = |second| Timestamp::from_second(second).unwrap().to_string();
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(type_, at)| json!({"type": type_, "status": "True", "lastTransitionTime": time(*at)}))
            .collect();
        let object = json!({
            "metadata": {"name": uid, "namespace": "shop", "uid": uid, "creationTimestamp": time(100)},
            "spec": {"containers": [], "nodeName": node},
            "status": {"phase": "Running", "conditions": conditions},
        });
        serde_json::from_value(object).unwrap()
    }

    fn text(times: &PodTimes, mut registry: Registry) -> String {
        times.register_waiting(&mut registry, Timestamp::from_second(130).unwrap());
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn a_pod_is_counted_when_it_is_bound_and_when_it_is_ready_and_ages_until_then() {
        let mut registry = Registry::default();
        let times = PodTimes::new(&mut registry);
        let node = json!("node-1");
        times.observe(&pod("quick", &Value::Null, &[]));
        times.observe(&pod("quick", &node, &[("PodScheduled", 103)]));
        times.observe(&pod(
            "quick",
            &node,
            &[("PodScheduled", 103), ("Ready", 110)],
        ));
        times.observe(&pod("slow", &node, &[("PodScheduled", 104)]));
        times.observe(&pod("waits", &Value::Null, &[]));
        times.observe(&pod("gone", &Value::Null, &[]));
        times.forget(&pod("gone", &Value::Null, &[]));

        let text = text(&times, registry);

        for line in [
            "pods_bound_duration_seconds_sum 3.0",
            "pods_startup_duration_seconds_sum 10.0",
            "pods_unbound_time_seconds{name=\"waits\",namespace=\"shop\"} 30.0",
            "pods_unstarted_time_seconds{name=\"slow\",namespace=\"shop\"} 30.0",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(
            !text.contains("gone") && !text.contains("\"quick\""),
            "{text}"
        );
    }

    #[test]
    fn pods_that_ran_before_the_start_are_no_news() {
        let mut registry = Registry::default();
        let times = PodTimes::new(&mut registry);
        let old = pod(
            "old",
            &json!("node-1"),
            &[("PodScheduled", 103), ("Ready", 110)],
        );

        times.reset(std::slice::from_ref(&old));
        times.observe(&old);
        times.reset(&[]);

        let text = text(&times, registry);
        assert!(
            text.contains("pods_bound_duration_seconds_count 0"),
            "{text}"
        );
    }
}
