//! Conditions with the semantics that `kubectl wait` and dashboards expect of Karpenter's objects.
//!
//! Everything here is a pure function of its arguments: `now` and the object's generation are passed in, and the same
//! calls give the same list. Start with [`Conditions`].

use crate::names::{condition, reason};
use crate::open_enum::open_enum;
use crate::schema;
use crate::time::whole_seconds;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

open_enum! {
    /// Whether a condition holds.
    ConditionStatus {
        /// It holds.
        True = "True",
        /// It does not hold.
        False = "False",
        /// Nobody knows yet.
        Unknown = "Unknown",
    }
}

#[expect(
    clippy::derivable_impls,
    reason = "open_enum leaves no place for a default variant"
)]
impl Default for ConditionStatus {
    fn default() -> Self {
        Self::Unknown
    }
}

/// One observation about an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What is observed, in CamelCase.
    #[serde(rename = "type")]
    #[schemars(length(max = 316))]
    pub type_: String,
    /// True, False or Unknown.
    pub status: ConditionStatus,
    /// When the status last changed.
    #[schemars(schema_with = "schema::time")]
    pub last_transition_time: Timestamp,
    /// Why, in one CamelCase word.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// Why, for people: what happened, to which object, and the next step.
    #[serde(default)]
    #[schemars(length(max = 32768))]
    pub message: String,
    /// The generation of the object that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// Whether the status is True.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::True
    }
}

/// The conditions that a kind has from its first day: `Ready` and what it is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConditionSet {
    /// `Ready` is True when all of these are.
    pub dependents: &'static [&'static str],
}

/// A change to one condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<'a> {
    /// The condition.
    pub type_: &'a str,
    /// Its new status.
    pub status: ConditionStatus,
    /// Its new reason; the type's name when empty.
    pub reason: &'a str,
    /// Its new message.
    pub message: &'a str,
}

/// The conditions of one object, opened for change.
///
/// Opening adds what is missing as Unknown; every change recomputes `Ready`; [`Self::finish`] gives the list back,
/// sorted by transition time (then type) with `Ready` last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conditions {
    set: ConditionSet,
    list: Vec<Condition>,
    generation: i64,
    now: Timestamp,
}

impl Conditions {
    /// Opens the conditions of an object of the given generation. `created` is the time of what nobody has looked at yet.
    #[must_use]
    pub fn open(
        set: ConditionSet,
        current: &[Condition],
        generation: i64,
        created: Timestamp,
        now: Timestamp,
    ) -> Self {
        let mut list = current.to_vec();
        for type_ in set.dependents.iter().copied().chain([condition::READY]) {
            if list.iter().all(|condition| condition.type_ != type_) {
                list.push(Condition {
                    type_: type_.to_owned(),
                    status: ConditionStatus::Unknown,
                    last_transition_time: whole_seconds(created),
                    reason: reason::AWAITING_RECONCILIATION.to_owned(),
                    message: String::new(),
                    observed_generation: Some(generation),
                });
            }
        }
        Self {
            set,
            list,
            generation,
            now: whole_seconds(now),
        }
    }

    /// Sets a condition True; the reason is the type's name and the message is empty.
    pub fn set_true(&mut self, type_: &str) {
        self.set(&Change {
            type_,
            status: ConditionStatus::True,
            reason: "",
            message: "",
        });
    }

    /// Sets a condition True for a reason worth telling.
    pub fn set_true_because(&mut self, type_: &str, reason: &str, message: &str) {
        self.set(&Change {
            type_,
            status: ConditionStatus::True,
            reason,
            message,
        });
    }

    /// Sets a condition False.
    pub fn set_false(&mut self, type_: &str, reason: &str, message: &str) {
        self.set(&Change {
            type_,
            status: ConditionStatus::False,
            reason,
            message,
        });
    }

    /// Sets a condition Unknown.
    pub fn set_unknown(&mut self, type_: &str, reason: &str, message: &str) {
        self.set(&Change {
            type_,
            status: ConditionStatus::Unknown,
            reason,
            message,
        });
    }

    /// Makes one change and recomputes `Ready`. The transition time moves only when the status does.
    pub fn set(&mut self, change: &Change<'_>) {
        self.write(change);
        self.write_ready();
    }

    /// Takes a condition away. Those that `Ready` is made of, and `Ready` itself, stay: their absence would read as health.
    pub fn clear(&mut self, type_: &str) {
        let is_kept = type_ == condition::READY || self.set.dependents.contains(&type_);
        if !is_kept {
            self.list.retain(|condition| condition.type_ != type_);
        }
    }

    /// The condition of that type.
    #[must_use]
    pub fn find(&self, type_: &str) -> Option<&Condition> {
        find(&self.list, type_)
    }

    /// Whether the condition is True.
    #[must_use]
    pub fn is_true(&self, type_: &str) -> bool {
        is_true(&self.list, type_)
    }

    /// The list to write back.
    #[must_use]
    pub fn finish(mut self) -> Vec<Condition> {
        self.write_ready();
        self.list.sort_by(|a, b| {
            let key = |c: &Condition| (c.type_ == condition::READY, c.last_transition_time);
            key(a).cmp(&key(b)).then_with(|| a.type_.cmp(&b.type_))
        });
        self.list
    }

    fn write(&mut self, change: &Change<'_>) {
        let Change {
            type_,
            status,
            reason,
            message,
        } = change;
        let reason = if reason.is_empty() { type_ } else { reason };
        let next = |last_transition_time| Condition {
            type_: (*type_).to_owned(),
            status: status.clone(),
            last_transition_time,
            reason: (*reason).to_owned(),
            message: (*message).to_owned(),
            observed_generation: Some(self.generation),
        };
        match self
            .list
            .iter_mut()
            .find(|condition| condition.type_ == *type_)
        {
            Some(current) if current.status == *status => {
                *current = next(current.last_transition_time);
            }
            Some(current) => *current = next(self.now),
            None => self.list.push(next(self.now)),
        }
    }

    fn write_ready(&mut self) {
        let unhealthy = self.dependents_where(|condition| {
            condition.is_some_and(|c| c.status == ConditionStatus::False && self.is_current(c))
        });
        let pending = self.dependents_where(|condition| {
            !condition.is_some_and(|c| c.is_true() && self.is_current(c))
        });

        let (status, reason, message) = if !unhealthy.is_empty() {
            (
                ConditionStatus::False,
                reason::UNHEALTHY_DEPENDENTS,
                unhealthy,
            )
        } else if !pending.is_empty() {
            (
                ConditionStatus::Unknown,
                reason::RECONCILING_DEPENDENTS,
                pending,
            )
        } else {
            (ConditionStatus::True, "", String::new())
        };
        self.write(&Change {
            type_: condition::READY,
            status,
            reason,
            message: &message,
        });
    }

    /// `Type=Status` of the dependents that satisfy the predicate, joined by comma and space.
    fn dependents_where(&self, predicate: impl Fn(Option<&Condition>) -> bool) -> String {
        let mut parts = Vec::new();
        for type_ in self.set.dependents {
            let condition = self.find(type_);
            if predicate(condition) {
                let status = condition.map_or("Unknown", |c| c.status.as_str());
                parts.push(format!("{type_}={status}"));
            }
        }
        parts.join(", ")
    }

    fn is_current(&self, condition: &Condition) -> bool {
        condition.observed_generation == Some(self.generation)
    }
}

/// The condition of that type in a list.
#[must_use]
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition is there and True.
#[must_use]
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(Condition::is_true)
}

#[cfg(test)]
mod tests;
