//! Counters per action, for the controller's metrics.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::error::CloudError;

/// What happened to the calls of one action since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActionStats {
    /// Attempts that were sent.
    pub attempts: u64,
    /// Failed attempts by error class.
    pub errors: BTreeMap<&'static str, u64>,
    /// Time from sending to the last byte, all attempts together.
    pub latency: Duration,
    /// Time spent waiting for the limiter.
    pub throttle_wait: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Stats(Mutex<BTreeMap<&'static str, ActionStats>>);

impl Stats {
    pub(crate) fn on_wait(&self, action: &'static str, wait: Duration) {
        self.with(action, |stats| stats.throttle_wait += wait);
    }

    pub(crate) fn on_attempt(
        &self,
        action: &'static str,
        latency: Duration,
        error: Option<&CloudError>,
    ) {
        self.with(action, |stats| {
            stats.attempts += 1;
            stats.latency += latency;
            if let Some(error) = error {
                *stats.errors.entry(error.class().name()).or_default() += 1;
            }
        });
    }

    pub(crate) fn snapshot(&self) -> BTreeMap<&'static str, ActionStats> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn with(&self, action: &'static str, update: impl FnOnce(&mut ActionStats)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        update(all.entry(action).or_default());
    }
}
