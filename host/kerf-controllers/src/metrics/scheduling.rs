//! Planning. The names are Karpenter's.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::Durations;

/// Who planned.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PlannerLabels {
    controller: &'static str,
}

/// One planning.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RunLabels {
    controller: &'static str,
    scheduling_id: String,
}

/// Where pods can run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EffectiveZoneLabels {
    controller: &'static str,
    zone: String,
}

/// The planner of all these series: what disruption simulates is measured with its decisions.
const PROVISIONER: &str = "provisioner";
const PLANNER: PlannerLabels = PlannerLabels {
    controller: PROVISIONER,
};

type Seconds = Gauge<f64, AtomicU64>;

/// What planning measures.
#[derive(Debug)]
pub struct SchedulingMetrics {
    durations: Family<PlannerLabels, Histogram, Durations>,
    queue_depth: Family<RunLabels, Gauge>,
    unfinished: Family<RunLabels, Seconds>,
    unschedulable: Family<PlannerLabels, Gauge>,
    ignored: Gauge,
    zones: Family<EffectiveZoneLabels, Gauge>,
    running: Mutex<Option<(RunLabels, Instant)>>,
}

/// A planning that is under way; its series end with it.
#[derive(Debug)]
pub struct Run<'a> {
    metrics: &'a SchedulingMetrics,
    labels: RunLabels,
}

impl SchedulingMetrics {
    /// Registers them; the registry's prefix is Karpenter's.
    #[must_use]
    pub fn new(karpenter: &mut Registry) -> Self {
        let it = Self {
            durations: Family::new_with_constructor(Durations),
            queue_depth: Family::default(),
            unfinished: Family::default(),
            unschedulable: Family::default(),
            ignored: Gauge::default(),
            zones: Family::default(),
            running: Mutex::default(),
        };
        karpenter.register(
            "scheduler_scheduling_duration_seconds",
            "Time of one planning with its policies",
            it.durations.clone(),
        );
        karpenter.register(
            "scheduler_queue_depth",
            "Pods that the running plan has to place; no series between plans",
            it.queue_depth.clone(),
        );
        karpenter.register(
            "scheduler_unfinished_work_seconds",
            "For how long the running plan has been made; no series between plans",
            it.unfinished.clone(),
        );
        karpenter.register(
            "scheduler_unschedulable_pods_count",
            "Pods that the last plan could not place",
            it.unschedulable.clone(),
        );
        karpenter.register(
            "scheduler_ignored_pods_count",
            "Pods that the last plan left out, because they cannot be planned as they are",
            it.ignored.clone(),
        );
        karpenter.register(
            "scheduler_pending_pods_by_effective_zone_count",
            "Pods of the last plan by the one zone that node selectors, required node affinity and volumes leave them, \
             flexible for several, none for no zone",
            it.zones.clone(),
        );
        it
    }

    /// A plan for so many pods begins.
    #[must_use]
    pub fn begin(&self, pods: usize, now: Timestamp) -> Run<'_> {
        let labels = RunLabels {
            controller: PROVISIONER,
            scheduling_id: format!("{:x}", now.as_nanosecond()),
        };
        self.queue_depth.get_or_create(&labels).set(count(pods));
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((labels.clone(), Instant::now()));
        Run {
            metrics: self,
            labels,
        }
    }

    /// A plan took so long and left so many pods out; `ignored` of them for what they are.
    pub fn planned(&self, seconds: f64, unschedulable: usize, ignored: usize) {
        self.durations.get_or_create(&PLANNER).observe(seconds);
        self.left_out(unschedulable, ignored);
    }

    /// There was nothing to plan.
    pub fn idle(&self) {
        self.left_out(0, 0);
        self.pending(&BTreeMap::new());
    }

    fn left_out(&self, unschedulable: usize, ignored: usize) {
        let unschedulable = count(unschedulable);
        self.unschedulable
            .get_or_create(&PLANNER)
            .set(unschedulable);
        self.ignored.set(count(ignored));
    }

    /// So many pods by zone are being planned; a zone that is not among these has no series any more.
    pub fn pending(&self, zones: &BTreeMap<String, usize>) {
        self.zones.clear();
        for (zone, pods) in zones {
            let labels = EffectiveZoneLabels {
                controller: PROVISIONER,
                zone: zone.clone(),
            };
            self.zones.get_or_create(&labels).set(count(*pods));
        }
    }

    /// Brings up to date what grows by itself.
    pub(super) fn refresh(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((labels, started)) = &*running {
            let seconds = started.elapsed().as_secs_f64();
            self.unfinished.get_or_create(labels).set(seconds);
        }
    }

    /// A family without members does not show.
    #[cfg(test)]
    pub(super) fn touch(&self) -> Run<'_> {
        self.planned(0.0, 0, 0);
        self.pending(&[(String::new(), 0)].into());
        let run = self.begin(0, Timestamp::UNIX_EPOCH);
        self.refresh();
        run
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        let metrics = self.metrics;
        let mut running = metrics
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *running = None;
        metrics.queue_depth.remove(&self.labels);
        metrics.unfinished.remove(&self.labels);
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::prometheus_text::encode;

    use super::*;

    #[test]
    fn a_plan_that_is_being_made_shows_its_pods_and_its_time_and_one_that_is_made_does_not() {
        let mut registry = Registry::default();
        let metrics = SchedulingMetrics::new(&mut registry);
        let text = || {
            metrics.refresh();
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            text
        };

        let run = metrics.begin(3, Timestamp::from_second(1).unwrap());
        let during = text();
        drop(run);
        let after = text();

        let labels = "{controller=\"provisioner\",scheduling_id=\"3b9aca00\"}";
        let unfinished = format!("scheduler_unfinished_work_seconds{labels} ");
        assert!(
            during.contains(&format!("scheduler_queue_depth{labels} 3\n")),
            "{during}"
        );
        let seconds = during.split_once(&unfinished).unwrap().1;
        let seconds: f64 = seconds.lines().next().unwrap().parse().unwrap();
        assert!(seconds > 0.0, "{during}");
        assert!(!after.contains("scheduling_id"), "{after}");
    }

    #[test]
    fn a_zone_without_pods_has_no_series_any_more() {
        let mut registry = Registry::default();
        let metrics = SchedulingMetrics::new(&mut registry);
        metrics.pending(&[("cn-hangzhou-h".to_owned(), 2)].into());
        metrics.pending(&[("flexible".to_owned(), 5)].into());

        let mut text = String::new();
        encode(&mut text, &registry).unwrap();

        assert!(
            text.contains("controller=\"provisioner\",zone=\"flexible\"} 5"),
            "{text}"
        );
        assert!(!text.contains("cn-hangzhou-h"), "{text}");
    }
}
