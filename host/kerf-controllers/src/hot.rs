//! Settings that change while the controller runs: the log's level and the windows of batches.
//!
//! They are in the ConfigMap [`NAME`] of the controller's namespace, under the names of the environment variables, and win
//! over flags while they are there. What is taken away, or cannot be read, is again as the process was started: a typing
//! error stops nothing. Every replica follows, so that a standby that takes over does not fall back.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kerf_api::names::event;
use tokio::sync::watch;

use crate::context::Context;
use crate::watch::OwnedChange;

/// The ConfigMap's name.
pub const NAME: &str = "kerf-hot-settings";

const LOG_LEVEL: &str = "LOG_LEVEL";
const BATCH_IDLE: &str = "BATCH_IDLE_DURATION";
const BATCH_MAX: &str = "BATCH_MAX_DURATION";
/// An hour without a plan is a typing error: pods would wait, and nothing would say why.
const WINDOW_MAX: Duration = Duration::from_secs(60 * 60);

/// The windows in which pods that come together are gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batching {
    /// A batch is planned when no new pod came for this long (Karpenter: `BATCH_IDLE_DURATION`).
    pub idle: Duration,
    /// A batch is planned at the latest this long after its first pod (Karpenter: `BATCH_MAX_DURATION`).
    pub max: Duration,
}

type Set = dyn Fn(Option<&str>) -> Result<(), String> + Send + Sync;

/// Sets the level of the process's log: this one, or the one of the start. It refuses what is no level.
#[derive(Clone)]
pub struct SetLevel(Arc<Set>);

impl SetLevel {
    /// A log whose level `set` changes.
    #[must_use]
    pub fn new(set: impl Fn(Option<&str>) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(set))
    }

    /// A log whose level stays.
    #[must_use]
    pub fn fixed() -> Self {
        Self::new(|_| Ok(()))
    }
}

impl fmt::Debug for SetLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SetLevel")
    }
}

/// What holds now.
#[derive(Debug)]
pub struct Hot {
    started_with: Batching,
    set_level: SetLevel,
    batching: watch::Sender<Batching>,
}

impl Hot {
    /// As the process was started.
    #[must_use]
    pub fn new(started_with: Batching, set_level: SetLevel) -> Self {
        Self {
            started_with,
            set_level,
            batching: watch::Sender::new(started_with),
        }
    }

    /// The windows of batches.
    #[must_use]
    pub fn batching(&self) -> Batching {
        *self.batching.borrow()
    }

    /// Where a change of the windows can be waited for.
    #[must_use]
    pub fn watch_batching(&self) -> watch::Receiver<Batching> {
        self.batching.subscribe()
    }

    /// Takes over what the ConfigMap says, or that there is none. Returns what it says that cannot be used.
    fn take(&self, data: &BTreeMap<String, String>) -> Vec<String> {
        let (batching, mut problems) = read(data, self.started_with);
        let level = data.get(LOG_LEVEL).map(|it| it.trim());
        if let Err(problem) = (self.set_level.0)(level) {
            problems.push(problem);
            // The level of the start was good when the process started.
            let _ = (self.set_level.0)(None);
        }
        let is_changed = |now: &mut Batching| std::mem::replace(now, batching) != batching;
        self.batching.send_if_modified(is_changed);
        problems
    }
}

/// Windows by the ConfigMap, and what of it cannot be used. Pure.
fn read(data: &BTreeMap<String, String>, started_with: Batching) -> (Batching, Vec<String>) {
    let mut problems = Vec::new();
    let mut window = |key: &str, default: Duration| {
        let Some(text) = data.get(key) else {
            return default;
        };
        duration(text).unwrap_or_else(|problem| {
            problems.push(format!("{key}: {text:?} {problem}"));
            default
        })
    };
    let batching = Batching {
        idle: window(BATCH_IDLE, started_with.idle),
        max: window(BATCH_MAX, started_with.max),
    };
    let known = [LOG_LEVEL, BATCH_IDLE, BATCH_MAX];
    let strange = data.keys().filter(|key| !known.contains(&key.as_str()));
    problems.extend(strange.map(|key| {
        format!(
            "{key} cannot be changed here; hint: {} can, everything else is a flag",
            known.join(", ")
        )
    }));
    (batching, problems)
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed =
        kerf_api::duration::parse_duration(text.trim()).map_err(|error| error.to_string())?;
    match Duration::try_from(parsed) {
        Ok(window) if window <= WINDOW_MAX => Ok(window),
        _ => Err("is not between 0s and 1h".to_owned()),
    }
}

/// Follows the ConfigMap; there is one at most.
pub async fn on_config_map(change: OwnedChange<ConfigMap>, context: Arc<Context>) {
    let none = BTreeMap::new();
    let found = match &change {
        OwnedChange::Deleted(_) => None,
        change => change.objects().first(),
    };
    let data = found.and_then(|it| it.data.as_ref());
    let problems = context.hot.take(data.unwrap_or(&none));
    if data.is_some() || matches!(change, OwnedChange::Deleted(_)) {
        let Batching { idle, max } = context.hot.batching();
        let level = data.and_then(|it| it.get(LOG_LEVEL));
        tracing::info!(?idle, ?max, level, "settings of {NAME} taken over");
    }
    let Some(config_map) = found else { return };
    for problem in problems {
        tracing::warn!("{NAME}: {problem}; it is as at the start");
        let note = format!("{problem}; it is as the controller was started");
        context
            .events
            .warning(config_map, event::INVALID_OBJECT, &note)
            .await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const START: Batching = Batching {
        idle: Duration::from_secs(1),
        max: Duration::from_secs(10),
    };

    fn data(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn a_window_that_cannot_be_read_is_as_at_the_start_and_said() {
        let (batching, problems) = read(
            &data(&[
                (BATCH_IDLE, "soon"),
                (BATCH_MAX, "30s"),
                ("CLUSTER_ID", "c1"),
            ]),
            START,
        );

        assert_eq!((batching.idle, batching.max.as_secs()), (START.idle, 30));
        assert!(
            problems[0].starts_with(r#"BATCH_IDLE_DURATION: "soon" "#),
            "{problems:?}"
        );
        assert!(
            problems[1].starts_with("CLUSTER_ID cannot be changed here"),
            "{problems:?}"
        );
        let (_, problems) = read(&data(&[(BATCH_MAX, "3h")]), START);
        assert_eq!(
            problems,
            [r#"BATCH_MAX_DURATION: "3h" is not between 0s and 1h"#]
        );
    }

    #[test]
    fn what_is_taken_away_is_as_at_the_start() {
        let levels = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&levels);
        let hot = Hot::new(
            START,
            SetLevel::new(move |level| {
                seen.lock().unwrap().push(level.map(str::to_owned));
                if level == Some("loud") {
                    Err("no level".to_owned())
                } else {
                    Ok(())
                }
            }),
        );

        let problems = hot.take(&data(&[(LOG_LEVEL, "loud"), (BATCH_IDLE, "3s")]));
        assert_eq!(
            (problems, hot.batching().idle.as_secs()),
            (vec!["no level".to_owned()], 3)
        );
        assert!(hot.take(&data(&[])).is_empty());

        assert_eq!(hot.batching(), START);
        assert_eq!(
            *levels.lock().unwrap(),
            [Some("loud".to_owned()), None, None]
        );
    }
}
