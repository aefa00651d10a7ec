//! Scripted trouble: what goes wrong with which calls, and how often.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::catalog::fingerprint;
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

/// Trouble by chance, after the script: the same seed and the same order of calls give the same trouble.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Weather {
    pub seed: u64,
    /// Of all calls: refused because there were too many.
    pub throttle_percent: u64,
    /// Of all calls: carried out, and the connection ends without a byte.
    pub cut_percent: u64,
    /// Of the launches that are left: sold out.
    pub no_stock_percent: u64,
}

impl Weather {
    fn fault(self, action: &str, number: u64) -> Option<Fault> {
        let draw = |what: &str| {
            let parts = [what, &self.seed.to_string(), &number.to_string()];
            // The low digits of this hash are poor.
            (fingerprint(&parts) >> 32) % 100
        };
        let lot = draw("call");
        let (after, effect) = if lot < self.throttle_percent {
            let code = "Throttling.User".to_owned();
            let throttle = Effect::Throttle {
                status: 400,
                code,
                retry_after_ms: None,
            };
            (false, throttle)
        } else if lot < self.throttle_percent + self.cut_percent {
            (true, Effect::Cut)
        } else if action == "RunInstances" && draw("stock") < self.no_stock_percent {
            let code = "OperationDenied.NoStock".to_owned();
            (false, Effect::Error { status: 403, code })
        } else {
            return None;
        };
        Some(Fault {
            action: action.to_owned(),
            when: BTreeMap::new(),
            skip: 0,
            times: 1,
            after,
            effect,
        })
    }
}

/// The script in force, and the calls that are being held.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    script: Vec<Fault>,
    weather: Weather,
    /// Calls since the weather changed.
    drawn: u64,
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
        self.drawn += 1;
        self.weather.fault(action, self.drawn)
    }

    pub(crate) fn set_weather(&mut self, weather: Weather) {
        self.weather = weather;
        self.drawn = 0;
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
    fn weather_is_the_same_for_the_same_seed_and_as_bad_as_it_says() {
        let weather = |seed| Weather {
            seed,
            throttle_percent: 50,
            cut_percent: 10,
            no_stock_percent: 20,
        };
        let draw = |seed| {
            let calls = 1..=10_000;
            let faults = calls.map(|number| weather(seed).fault("RunInstances", number));
            faults.map(|it| it.map(|it| it.effect)).collect::<Vec<_>>()
        };
        let count =
            |is_it: fn(&Effect) -> bool| draw(1).iter().flatten().filter(|it| is_it(it)).count();

        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!((4_700..5_300).contains(&count(|it| matches!(it, Effect::Throttle { .. }))));
        assert!((900..1_100).contains(&count(|it| matches!(it, Effect::Cut))));
        assert!((700..900).contains(&count(|it| matches!(it, Effect::Error { .. }))));
        assert_eq!(Weather::default().fault("RunInstances", 1), None);
    }

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
