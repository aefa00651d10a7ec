//! One policy of one NodeClass: the version that serves, its configuration, and how it has fared.

use crate::chain::Now;
use crate::circuit::Circuit;
use crate::digest::PolicyDigest;
use crate::error::{CallError, LoadError};
use crate::hook::Hook;
use crate::listener::Listener;
use crate::memo::Fingerprint;
use crate::policy::Policy;
use crate::recorder::{Private, Recorder};
use crate::registry::Loaded;
use crate::spec::{CallCounts, CircuitState, PolicySpec, PolicyState, PolicyStatus};
use crate::stage::Obstacle;
use crate::wasi::Wasi;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A version with a configuration that it accepted. Shared by all links that differ only in how the host uses it.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) policy: Arc<Policy>,
    /// JSON text, as it is handed to each call.
    pub(crate) config: String,
    pub(crate) config_fingerprint: Fingerprint,
    pub(crate) record: Record,
    /// Whom to tell when it begins to fail or answers again, and of which NodeClass.
    listener: Option<(Listener, String)>,
    recorder: Option<Arc<Recorder>>,
}

impl Serving {
    pub(crate) fn new(
        policy: Arc<Policy>,
        config: String,
        listener: Option<(Listener, String)>,
        recorder: Option<Arc<Recorder>>,
    ) -> Self {
        Self {
            policy,
            config_fingerprint: Fingerprint::of(&config),
            config,
            record: Record::default(),
            listener,
            recorder,
        }
    }

    pub(crate) fn note<T>(&self, result: &Result<T, CallError>, now: Instant) {
        let is_news = self.record.note(result, now);
        if let (true, Some((listener, node_class))) = (is_news, &self.listener) {
            listener.tell(node_class);
        }
    }
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
    /// Of the bytes that became `serving`, packed or not; `None` when others came after them.
    pub(crate) source: Option<PolicyDigest>,
    pub(crate) serving: Option<Arc<Serving>>,
    /// Why the newest version or configuration does not serve.
    pub(crate) obstacle: Option<Obstacle>,
    /// What was refused, so that it is not tried at every reconciliation.
    pub(crate) refused: Option<Refused>,
}

/// Bytes and a configuration that did not load, and would not load if they were tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) digest: PolicyDigest,
    pub(crate) hook: Hook,
    pub(crate) pin: Option<PolicyDigest>,
    pub(crate) wasi: Wasi,
    pub(crate) signature: Option<Vec<u8>>,
    pub(crate) config: Option<serde_json::Value>,
    pub(crate) error: LoadError,
}

impl Refused {
    /// `None` for a failure that another try may not have, such as a time-out on a busy machine.
    pub(crate) fn new(spec: &PolicySpec, source: PolicyDigest, error: &LoadError) -> Option<Self> {
        (!error.is_transient()).then(|| Self {
            digest: source,
            hook: spec.hook,
            pin: spec.digest,
            wasi: spec.wasi,
            signature: spec.signature.clone(),
            config: spec.config.clone(),
            error: error.clone(),
        })
    }

    /// Whether `spec` and the source of this digest are what was refused.
    pub(crate) fn is_same(&self, spec: &PolicySpec, source: PolicyDigest) -> bool {
        self.hook == spec.hook
            && (self.pin, self.wasi) == (spec.digest, spec.wasi)
            && self.signature == spec.signature
            && self.config == spec.config
            && self.digest == source
    }
}

impl Link {
    /// What serves, if it was made of these bytes for an entry that asks for the same; then nothing has to be unpacked.
    pub(crate) fn serves(
        &self,
        spec: &PolicySpec,
        source: PolicyDigest,
    ) -> Option<(Arc<Serving>, Loaded)> {
        let is_same = self.source == Some(source)
            && self.obstacle.is_none()
            && (self.spec.hook, self.spec.digest, self.spec.wasi)
                == (spec.hook, spec.digest, spec.wasi)
            && self.spec.signature == spec.signature
            && self.spec.config == spec.config;
        let serving = self.serving.as_ref().filter(|_| is_same)?;
        let loaded = Loaded {
            digest: serving.policy.digest(),
            metadata: serving.policy.metadata().clone(),
            is_new: false,
        };
        Some((Arc::clone(serving), loaded))
    }

    /// Lets the recorder have a question that the component is about to be asked.
    pub(crate) fn record<Q: Private>(&self, question: impl FnOnce() -> Q) {
        let Some(serving) = &self.serving else { return };
        if let Some(recorder) = &serving.recorder {
            let about = (
                self.spec.name.as_str(),
                self.spec.hook,
                serving.policy.digest(),
            );
            recorder.offer(about, question);
        }
    }

    pub(crate) fn digest(&self) -> Option<PolicyDigest> {
        self.serving.as_ref().map(|serving| serving.policy.digest())
    }

    /// The time as this policy may know it.
    pub(crate) fn as_of(&self, now: Now) -> u32 {
        let step_secs = self
            .serving
            .as_ref()
            .map_or(0, |serving| serving.policy.metadata().time_step_secs);
        as_of(now.unix_secs, step_secs)
    }

    pub(crate) fn status(&self, now: Instant) -> PolicyStatus {
        let obstacle = self.obstacle.as_ref();
        let state = match (&self.serving, obstacle) {
            (_, Some(obstacle)) if obstacle.is_wait => PolicyState::Loading,
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
            misses: obstacle.map(|it| it.misses),
            last_error: obstacle.map(|it| it.reason.clone()).or_else(call_error),
            circuit: serving.map_or(CircuitState::Closed, |it| it.record.circuit.state(now)),
            counts: serving.map(|it| it.record.counts()).unwrap_or_default(),
        }
    }
}

impl Record {
    /// Whether the policy may be asked now.
    pub(crate) fn admit(&self, now: Instant) -> bool {
        let is_admitted = self.circuit.admit(now);
        if !is_admitted {
            self.skipped.fetch_add(1, Ordering::Relaxed);
        }
        is_admitted
    }

    pub(crate) fn note_memo_hit(&self) {
        self.memo_hits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_would_change(&self) {
        self.would_change.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether it failed and did not before, or the other way round.
    fn note<T>(&self, result: &Result<T, CallError>, now: Instant) -> bool {
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
        let mut last = self
            .last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_news = last.is_some() != error.is_some();
        *last = error;
        is_news
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_rounded_down_to_the_step_that_was_asked_for() {
        assert_eq!(as_of(1_000_000_123, 60), 1_000_000_080);
        assert_eq!(as_of(1_000_000_123, 0), 0);
    }
}
