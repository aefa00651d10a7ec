//! Scripted trouble: what goes wrong with which calls, and how often.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::error::ApiError;
use crate::params::Params;

/// One entry of a fault script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Fault {
    /// The action that it hits; `*` for every one.
    pub action: String,
    /// Parameters that a call must have to be hit, `InstanceType: ecs.g7.xlarge`.
    #[serde(default)]
    pub when: BTreeMap<String, String>,
    /// Calls that pass before the first is hit.
    #[serde(default)]
    pub skip: u32,
    /// Calls that are hit.
    #[serde(default = "once")]
    pub times: u32,
    /// Carry the action out first and spoil only the reply: a success that nobody hears of.
    #[serde(default)]
    pub after: bool,
    pub effect: Effect,
}

fn once() -> u32 {
    1
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    deny_unknown_fields,
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum Effect {
    /// The error of the product, with this code.
    Error { status: u16, code: String },
    /// `Throttling`, with or without the header that says when to come back.
    Throttle {
        status: u16,
        code: String,
        #[serde(default)]
        retry_after_ms: Option<u64>,
    },
    /// No answer while the client waits.
    Hang,
    /// The connection ends without a byte.
    Cut,
    /// A gateway's page instead of JSON.
    Html502,
    /// The body trickles in over this time.
    SlowBody { ms: u64 },
    /// The reply waits until it is released through the admin API.
    Hold,
}

/// The script in force, and the calls that are being held.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    script: Vec<Fault>,
    held: BTreeMap<u64, Held>,
    held_count: u64,
    minutes: BTreeMap<String, Minute>,
}

#[derive(Debug)]
struct Held {
    action: String,
    release: oneshot::Sender<()>,
}

/// Calls of one action in one minute of the clock.
#[derive(Debug, Default)]
struct Minute {
    number: i64,
    calls: u32,
}

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.script.push(fault);
    }

    pub(crate) fn clear(&mut self) {
        self.script.clear();
    }

    pub(crate) fn script(&self) -> &[Fault] {
        &self.script
    }

    /// The first fault that hits this call; each call is hit by one at most.
    pub(crate) fn take(&mut self, action: &str, params: &Params) -> Option<Fault> {
        let hits = |fault: &Fault| {
            (fault.action == "*" || fault.action == action)
                && fault.times > 0
                && fault
                    .when
                    .iter()
                    .all(|(name, value)| params.text(name) == Some(value))
        };
        for fault in self.script.iter_mut().filter(|fault| hits(fault)) {
            if fault.skip > 0 {
                fault.skip -= 1;
            } else {
                fault.times -= 1;
                return Some(fault.clone());
            }
        }
        None
    }

    /// Refuses the calls beyond an action's limit per minute.
    pub(crate) fn check_rate(
        &mut self,
        action: &str,
        limit: Option<u32>,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        let Some(limit) = limit else { return Ok(()) };
        let number = now.as_second() / 60;
        let minute = self.minutes.entry(action.to_owned()).or_default();
        if minute.number != number {
            *minute = Minute { number, calls: 0 };
        }
        minute.calls += 1;
        if minute.calls <= limit {
            return Ok(());
        }
        Err(ApiError::new(
            400,
            "Throttling.Api",
            "Request was denied due to api flow control.",
        ))
    }

    /// Registers a call to be held; it waits on the receiver.
    pub(crate) fn hold(&mut self, action: &str) -> oneshot::Receiver<()> {
        let (release, released) = oneshot::channel();
        self.held_count += 1;
        self.held.insert(
            self.held_count,
            Held {
                action: action.to_owned(),
                release,
            },
        );
        released
    }

    /// Actions of the calls that are held and whose clients still wait.
    pub(crate) fn held(&self) -> Vec<&str> {
        self.held
            .values()
            .filter(|held| !held.release.is_closed())
            .map(|held| held.action.as_str())
            .collect()
    }

    /// Lets held calls of an action go on (all actions if none is named), and says how many.
    pub(crate) fn release(&mut self, action: Option<&str>) -> usize {
        let chosen: Vec<_> = self
            .held
            .iter()
            .filter(|(_, held)| action.is_none_or(|action| held.action == action))
            .map(|(id, _)| *id)
            .collect();
        let released = chosen.iter().filter_map(|id| self.held.remove(id));
        released
            .filter_map(|held| held.release.send(()).ok())
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faults_of_the_readme_are_read() {
        let readme = include_str!("../README.md");
        let entries = readme
            .split("```json\n")
            .nth(1)
            .unwrap()
            .split("```")
            .next()
            .unwrap();

        let script: Vec<Fault> = entries
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();

        assert_eq!(script.len(), 3);
        assert_eq!(
            (script[0].effect.clone(), script[1].times),
            (Effect::Cut, 3)
        );
    }
}
