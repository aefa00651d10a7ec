//! One policy of one NodeClass: the version that serves, its configuration, and how it has fared.

use crate::call::{CallReport, LogLine};
use crate::chain::{Now, RunResult};
use crate::circuit::Circuit;
use crate::digest::PolicyDigest;
use crate::error::{CallError, LoadError};
use crate::hook::Hook;
use crate::limits::CallLimits;
use crate::memo::Memo;
use crate::policy::Policy;
use crate::selection::{Selection, SelectionInput};
use crate::spec::{CallCounts, CircuitState, PolicySpec, PolicyState, PolicyStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A version with a configuration that it accepted. Shared by all links that differ only in how the host uses it.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) policy: Arc<Policy>,
    /// JSON text, as it is handed to each call.
    pub(crate) config: String,
    pub(crate) record: Record,
}

/// What happened since this version took over.
#[derive(Debug, Default)]
pub(crate) struct Record {
    circuit: Circuit,
    last_error: Mutex<Option<String>>,
    calls: AtomicU64,
    memo_hits: AtomicU64,
    failures: AtomicU64,
    skipped: AtomicU64,
    would_change: AtomicU64,
}

/// An entry of a chain.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) spec: PolicySpec,
    pub(crate) serving: Option<Arc<Serving>>,
    /// Why the newest version or configuration does not serve.
    pub(crate) load_error: Option<String>,
    /// What was refused, so that it is not tried at every reconciliation.
    pub(crate) refused: Option<Refused>,
}

/// Bytes and a configuration that did not load, and would not load if they were tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) digest: PolicyDigest,
    pub(crate) hook: Hook,
    pub(crate) pin: Option<PolicyDigest>,
    pub(crate) config: Option<serde_json::Value>,
    pub(crate) error: LoadError,
}

impl Refused {
    /// `None` for a failure that another try may not have, such as a time-out on a busy machine.
    pub(crate) fn new(spec: &PolicySpec, bytes: &[u8], error: &LoadError) -> Option<Self> {
        (!error.is_transient()).then(|| Self {
            digest: PolicyDigest::of(bytes),
            hook: spec.hook,
            pin: spec.digest,
            config: spec.config.clone(),
            error: error.clone(),
        })
    }

    /// Whether `spec` and `bytes` are what was refused.
    pub(crate) fn is_same(&self, spec: &PolicySpec, bytes: &[u8]) -> bool {
        self.hook == spec.hook
            && self.pin == spec.digest
            && self.config == spec.config
            && self.digest == PolicyDigest::of(bytes)
    }
}

impl Link {
    pub(crate) fn digest(&self) -> Option<PolicyDigest> {
        self.serving.as_ref().map(|serving| serving.policy.digest())
    }

    /// Asks the policy, or remembers what it said. `Err` means that it was not asked.
    pub(crate) fn select(
        &self,
        input: &mut SelectionInput,
        memo: &Memo,
        now: Now,
        time_left: Duration,
    ) -> Result<(CallReport<Arc<Selection>>, bool), RunResult> {
        let Some(serving) = &self.serving else {
            let reason = self
                .load_error
                .clone()
                .unwrap_or_else(|| "no version was loaded yet".into());
            return Err(RunResult::NotLoaded { reason });
        };
        input.context.as_of_unix_s = as_of(now.unix_secs, serving.policy.metadata().time_step_secs);
        let key = memo.key(serving.policy.digest(), &serving.config, input);
        if let Some(answer) = memo.find(&key) {
            serving.record.memo_hits.fetch_add(1, Ordering::Relaxed);
            return Ok((CallReport::remembered(answer), true));
        }
        if !serving.record.circuit.admit(now.instant) {
            serving.record.skipped.fetch_add(1, Ordering::Relaxed);
            return Err(RunResult::CircuitOpen);
        }
        let limits = CallLimits {
            timeout: self.spec.limits.timeout.min(time_left),
            ..self.spec.limits.clone()
        };
        let report = serving
            .policy
            .select(&serving.config, &limits, input)
            .and_then(|it| Ok(Arc::new(it)));
        write_log(&self.spec.name, &report);
        serving.record.note(&report.result, now.instant);
        if let Ok(answer) = &report.result {
            memo.keep(key, Arc::clone(answer));
        }
        Ok((report, false))
    }

    /// Counts an answer in Monitor mode; whether it would have changed anything.
    pub(crate) fn count_change(&self, selection: &Selection) -> bool {
        let would_change = selection.changes_anything();
        if let (true, Some(serving)) = (would_change, &self.serving) {
            serving.record.would_change.fetch_add(1, Ordering::Relaxed);
        }
        would_change
    }

    pub(crate) fn status(&self, now: Instant) -> PolicyStatus {
        let state = match (&self.serving, &self.load_error) {
            (Some(_), None) => PolicyState::Ready,
            (Some(_), Some(_)) => PolicyState::Stale,
            (None, _) => PolicyState::Failed,
        };
        let serving = self.serving.as_deref();
        let call_error = || serving.and_then(|it| it.record.last_error());
        PolicyStatus {
            name: self.spec.name.clone(),
            hook: self.spec.hook,
            digest: self.digest(),
            version: serving.map(|it| it.policy.metadata().version.clone()),
            state,
            last_error: self.load_error.clone().or_else(call_error),
            circuit: serving.map_or(CircuitState::Closed, |it| it.record.circuit.state(now)),
            counts: serving.map(|it| it.record.counts()).unwrap_or_default(),
        }
    }
}

impl Record {
    fn note<T>(&self, result: &Result<T, CallError>, now: Instant) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let error = match result {
            Ok(_) => {
                self.circuit.succeed();
                None
            }
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                self.circuit.fail(now);
                Some(format!("it {error}"))
            }
        };
        *self
            .last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = error;
    }

    fn last_error(&self) -> Option<String> {
        self.last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn counts(&self) -> CallCounts {
        CallCounts {
            calls: self.calls.load(Ordering::Relaxed),
            memo_hits: self.memo_hits.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            skipped: self.skipped.load(Ordering::Relaxed),
            would_change: self.would_change.load(Ordering::Relaxed),
        }
    }
}

/// The time at the policy's step, so that answers can be re-used within one; 0 when it asked for no time.
fn as_of(unix_secs: u32, step_secs: u32) -> u32 {
    unix_secs
        .checked_rem(step_secs)
        .map_or(0, |past| unix_secs - past)
}

fn write_log<T>(policy: &str, report: &CallReport<T>) {
    use crate::bindings::selection::kerf::policy::log::Level;
    for LogLine { level, text } in &report.log {
        match level {
            Level::Trace | Level::Debug => tracing::debug!(policy, "{text}"),
            Level::Info => tracing::info!(policy, "{text}"),
            Level::Warn => tracing::warn!(policy, "{text}"),
            // A policy's error is not ours: it must not page whoever watches the controller's own errors.
            Level::Error => tracing::warn!(policy, severity = "error", "{text}"),
        }
    }
    if report.log_lines_dropped > 0 {
        tracing::warn!(
            policy,
            dropped = report.log_lines_dropped,
            "policy wrote too many log lines"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_rounded_down_to_the_step_that_was_asked_for() {
        assert_eq!(as_of(1_000_000_123, 60), 1_000_000_080);
        assert_eq!(as_of(1_000_000_123, 0), 0);
    }
}
