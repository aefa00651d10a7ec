//! Conditions of objects and how long objects take to go, as Karpenter's library shows them (`operator_*`).
//!
//! Counters and durations come from the watches; what holds now is written from the stores at a scrape.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

pub use self::object::Observed;
use self::object::{KINDS, Said, Status};
pub use self::scrape::render;
#[cfg(test)]
pub(super) use self::scrape::render_kind;
use crate::hash_of::hash_of;
use crate::watch::OwnedChange;

mod object;
mod scrape;

type Labels = Vec<(&'static str, String)>;
type Durations = Family<Labels, Histogram, Halves>;

/// Doubling from half a second. Karpenter: same.
#[derive(Debug, Clone)]
struct Halves;

impl MetricConstructor<Histogram> for Halves {
    fn new_metric(&self) -> Histogram {
        Histogram::new(exponential_buckets(0.5, 2.0, 15))
    }
}

/// What conditions count, for the kinds of [`KINDS`].
#[derive(Debug)]
pub struct ConditionMetrics(Vec<KindMetrics>);

#[derive(Debug)]
struct KindMetrics {
    transition_seconds: Durations,
    transitions: Family<Labels, Counter>,
    termination_seconds: Durations,
    /// The conditions of each object when it was last seen, by a hash of its uid.
    seen: Mutex<HashMap<u64, Box<[Seen]>>>,
}

/// A condition that was seen; a dozen for each node, so as small as can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    /// A hash of the type. Equal ones in one object would take a condition for another and cost a wrong count.
    type_: u32,
    /// Since 1970, as conditions have no fractions (Kubernetes API conventions, "Typical status properties").
    since_secs: u32,
    status: Status,
}

impl Seen {
    fn of(said: &Said<'_>) -> Self {
        let since_secs = said.since.as_second().max(0);
        Self {
            type_: type_hash(said.type_),
            since_secs: u32::try_from(since_secs).unwrap_or(u32::MAX),
            status: said.status,
        }
    }

    fn since(self) -> Timestamp {
        Timestamp::from_second(self.since_secs.into()).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

impl ConditionMetrics {
    /// Registers them; the registry's prefix is `operator`.
    #[must_use]
    pub fn new(operator: &mut Registry) -> Self {
        let kinds = KINDS.map(|kind| {
            let it = KindMetrics {
                transition_seconds: Family::new_with_constructor(Halves),
                termination_seconds: Family::new_with_constructor(Halves),
                transitions: Family::default(),
                seen: Mutex::default(),
            };
            operator.register(
                format!("{kind}_status_condition_transition_seconds"),
                "How long a condition had had the status that it left",
                it.transition_seconds.clone(),
            );
            operator.register(
                format!("{kind}_status_condition_transitions"),
                "How often a condition came to a status",
                it.transitions.clone(),
            );
            operator.register(
                format!("{kind}_termination_duration_seconds"),
                "Time from the deletion of an object until it was gone",
                it.termination_seconds.clone(),
            );
            it
        });
        Self(kinds.into())
    }

    /// Takes in what a watch told. What an object was when it was first listed is nothing that happened.
    pub fn observe<K: Observed>(&self, change: &OwnedChange<K>, now: Timestamp) {
        let Some(kind) = self.0.get(K::PLACE) else {
            return;
        };
        let mut seen = kind.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match change {
            OwnedChange::Applied(object) => {
                let conditions = object.said();
                let before = seen.insert(key(&**object), remembered(&conditions));
                kind.count(&**object, &conditions, &before.unwrap_or_default());
            }
            OwnedChange::Deleted(object) => {
                seen.remove(&key(&**object));
                if let Some(deleted) = &object.meta().deletion_timestamp {
                    let seconds = now.duration_since(deleted.0).as_secs_f64().max(0.0);
                    let labels = object.more_labels();
                    kind.termination_seconds
                        .get_or_create(&labels)
                        .observe(seconds);
                }
            }
            OwnedChange::Listed(objects) => {
                for object in objects {
                    let conditions = object.said();
                    if let Some(before) = seen.insert(key(object), remembered(&conditions)) {
                        kind.count(object, &conditions, &before);
                    }
                }
                let keys: HashSet<u64> = objects.iter().map(key).collect();
                seen.retain(|key, _| keys.contains(key));
            }
        }
    }

    /// A family without members does not show.
    #[cfg(test)]
    pub(super) fn touch<K: Observed>(&self, before: K, after: K, now: Timestamp) {
        let mut deleted = after.clone();
        deleted.meta_mut().deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now));
        for change in [
            OwnedChange::Applied(before.into()),
            OwnedChange::Applied(after.into()),
            OwnedChange::Deleted(deleted.into()),
        ] {
            self.observe(&change, now);
        }
    }
}

impl KindMetrics {
    /// Counts what is other than before; a condition that is new has left no status.
    fn count<K: Observed>(&self, object: &K, conditions: &[Said<'_>], before: &[Seen]) {
        for condition in conditions {
            let type_ = type_hash(condition.type_);
            let old = before.iter().find(|it| it.type_ == type_);
            if old.is_some_and(|old| old.status == condition.status) {
                continue;
            }
            let labels = |status: &str| {
                let mut labels = vec![
                    ("type", condition.type_.to_owned()),
                    ("status", status.to_owned()),
                ];
                labels.extend(object.more_labels());
                labels
            };
            let mut to = labels(condition.status.as_str());
            to.insert(2, ("reason", condition.reason.to_owned()));
            self.transitions.get_or_create(&to).inc();
            if let Some(old) = old {
                let seconds = condition.since.duration_since(old.since()).as_secs_f64();
                let from = self
                    .transition_seconds
                    .get_or_create_owned(&labels(old.status.as_str()));
                from.observe(seconds.max(0.0));
            }
        }
    }
}

fn remembered(conditions: &[Said<'_>]) -> Box<[Seen]> {
    conditions.iter().map(Seen::of).collect()
}

fn key<K: Observed>(object: &K) -> u64 {
    hash_of(object.meta().uid.as_deref().unwrap_or_default())
}

/// The lower half of the hash.
fn type_hash(type_: &str) -> u32 {
    u32::try_from(hash_of(type_) & u64::from(u32::MAX)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
