//! The policies of one NodeClass, asked in order.
//!
//! Each sees what the earlier ones left. A policy that gives no answer is skipped as a whole or stops the decision, as
//! its failure policy says. One file per hook says what becomes of the answers.

mod bootstrap;
mod pricing;
mod selection;

use crate::bootstrap::Part;
use crate::call::{CallReport, LogLine};
use crate::digest::PolicyDigest;
use crate::error::CallError;
use crate::hook::Hook;
use crate::limits::CallLimits;
use crate::link::Link;
use crate::memo::{Fingerprint, Key, Memo};
use crate::policy::Policy;
use crate::pricing::Prices;
use crate::selection::Selection;
use crate::spec::{FailurePolicy, Mode, PolicyStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use pricing::PriceVerdict;
pub(crate) use selection::Source;
pub use selection::Verdict;

/// What all policies of one decision may take together, so that a long chain cannot hold up pods.
const CHAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// An immutable list of policies; an update makes a new one, and whoever holds this one finishes with it.
#[derive(Debug, Default)]
pub struct Chain {
    links: Vec<Arc<Link>>,
    memos: Arc<Memos>,
}

/// Answers of all chains, by hook.
#[derive(Debug)]
pub(crate) struct Memos {
    selections: Memo<Selection>,
    prices: Memo<Prices>,
    user_data: Memo<Vec<Part>>,
}

impl Default for Memos {
    fn default() -> Self {
        Self {
            // 3 KiB for 300 candidates: below 4 MiB in all.
            selections: Memo::new(512),
            // 150 KiB for a whole catalog: below 10 MiB in all.
            prices: Memo::new(32),
            // Up to 32 KiB each: below 4 MiB in all.
            user_data: Memo::new(64),
        }
    }
}

/// The wall and the monotonic clock at the time of a question.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// For the circuit breaker.
    pub instant: Instant,
    /// For policies that asked for the time; rounded down to their step.
    pub unix_secs: u32,
}

/// A policy with failure policy Fail gave no answer, so there is no decision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policy {policy:?} {message}; nothing is launched because its failurePolicy is Fail")]
pub struct ChainError {
    pub policy: String,
    pub message: String,
    /// The metric label of what happened, as [`RunResult::class`] spells it.
    pub class: &'static str,
}

/// What happened to one policy in one decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRun {
    pub policy: String,
    pub digest: Option<PolicyDigest>,
    pub result: RunResult,
    pub is_from_memo: bool,
    pub fuel: u64,
    pub elapsed: Duration,
    pub memory_bytes_max: usize,
    pub log: Vec<LogLine>,
}

/// The result of a run, spelt as in the label `result` of `kerf_policy_calls_total`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunResult {
    /// It was asked; whether its answer differs from what it was given.
    Answered { changes: bool },
    /// The same in Monitor mode, where nothing follows.
    Monitored { would_change: bool },
    /// It gave no answer.
    Failed(CallError),
    /// No version of it serves.
    NotLoaded { reason: String },
    /// It failed too often in a row.
    CircuitOpen,
}

impl RunResult {
    /// The metric label.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Answered { .. } => "ok",
            Self::Monitored { .. } => "monitored",
            Self::Failed(error) => error.class(),
            Self::NotLoaded { .. } => "not_loaded",
            Self::CircuitOpen => "circuit_open",
        }
    }
}

/// What came of one question to one policy: a report of the call (or of the memo), or why there was no call.
struct Asked<A> {
    outcome: Result<CallReport<Arc<A>>, RunResult>,
    is_from_memo: bool,
}

impl Chain {
    pub(crate) fn new(mut links: Vec<Arc<Link>>, memos: Arc<Memos>) -> Self {
        links.sort_by(|a, b| (a.spec.order, &a.spec.name).cmp(&(b.spec.order, &b.spec.name)));
        Self { links, memos }
    }

    pub(crate) fn links(&self) -> &[Arc<Link>] {
        &self.links
    }

    /// The state of each policy, in the order in which they are asked.
    pub fn statuses(&self, now: Instant) -> Vec<PolicyStatus> {
        self.links.iter().map(|link| link.status(now)).collect()
    }

    fn links_for<'a>(&'a self, hook: Hook, node_pool: &'a str) -> impl Iterator<Item = &'a Link> {
        let asks =
            move |link: &&Arc<Link>| link.spec.hook == hook && link.spec.applies_to(node_pool);
        self.links.iter().filter(asks).map(|link| &**link)
    }
}

/// Asks one policy, or remembers what it said. `earlier` are the runs of the same decision, whose time counts; `input` stands
/// for the whole question.
fn ask<A>(
    link: &Link,
    memo: &Memo<A>,
    (now, earlier): (Now, &[PolicyRun]),
    input: Fingerprint,
    call: impl FnOnce(&Policy, &str, &CallLimits) -> CallReport<A>,
) -> Asked<A> {
    let no_call = |result| Asked {
        outcome: Err(result),
        is_from_memo: false,
    };
    let Some(serving) = &link.serving else {
        let reason = match &link.obstacle {
            Some(obstacle) => obstacle.reason.clone(),
            None => "no version was loaded yet".to_owned(),
        };
        return no_call(RunResult::NotLoaded { reason });
    };
    let key = Key {
        digest: serving.policy.digest(),
        config: serving.config_fingerprint,
        input,
    };
    if let Some(answer) = memo.find(&key) {
        serving.record.note_memo_hit();
        return Asked {
            outcome: Ok(CallReport::remembered(answer)),
            is_from_memo: true,
        };
    }
    if !serving.record.admit(now.instant) {
        return no_call(RunResult::CircuitOpen);
    }
    let time_left = CHAIN_TIMEOUT.saturating_sub(earlier.iter().map(|run| run.elapsed).sum());
    let limits = CallLimits {
        timeout: link.spec.limits.timeout.min(time_left),
        ..link.spec.limits.clone()
    };
    let report =
        call(&serving.policy, &serving.config, &limits).and_then(|answer| Ok(Arc::new(answer)));
    serving.note(&report.result, now.instant);
    if let Ok(answer) = &report.result {
        memo.keep(key, Arc::clone(answer));
    }
    Asked {
        outcome: Ok(report),
        is_from_memo: false,
    }
}

impl<A> Asked<A> {
    /// The record of it; `apply` gets the answer when it counts. Fails when the policy had to answer and did not.
    fn into_run(
        self,
        link: &Link,
        changes: impl FnOnce(&A) -> bool,
        apply: impl FnOnce(Arc<A>),
    ) -> Result<PolicyRun, ChainError> {
        let mut run = PolicyRun {
            policy: link.spec.name.clone(),
            digest: link.digest(),
            result: RunResult::CircuitOpen,
            is_from_memo: self.is_from_memo,
            fuel: 0,
            elapsed: Duration::ZERO,
            memory_bytes_max: 0,
            log: Vec::new(),
        };
        run.result = match self.outcome {
            Err(result) => result,
            Ok(report) => {
                let CallReport {
                    result,
                    fuel,
                    elapsed,
                    memory_bytes_max,
                    log,
                    ..
                } = report;
                run = PolicyRun {
                    fuel,
                    elapsed,
                    memory_bytes_max,
                    log,
                    ..run
                };
                result_of(link, result, changes, apply)
            }
        };
        match stops(link, &run.result) {
            Some(message) => Err(ChainError {
                policy: run.policy,
                message,
                class: run.result.class(),
            }),
            None => Ok(run),
        }
    }
}

fn result_of<A>(
    link: &Link,
    result: Result<Arc<A>, CallError>,
    changes: impl FnOnce(&A) -> bool,
    apply: impl FnOnce(Arc<A>),
) -> RunResult {
    match (result, link.spec.mode) {
        (Err(error), _) => RunResult::Failed(error),
        (Ok(answer), Mode::Monitor) => {
            let would_change = changes(&answer);
            if let (true, Some(serving)) = (would_change, &link.serving) {
                serving.record.note_would_change();
            }
            RunResult::Monitored { would_change }
        }
        (Ok(answer), Mode::Enforce) => {
            let changes = changes(&answer);
            apply(answer);
            RunResult::Answered { changes }
        }
    }
}

fn stops(link: &Link, result: &RunResult) -> Option<String> {
    let is_enforced = link.spec.mode == Mode::Enforce;
    if !is_enforced || link.spec.failure_policy == FailurePolicy::Ignore {
        return None;
    }
    match result {
        RunResult::Answered { .. } | RunResult::Monitored { .. } => None,
        RunResult::Failed(error) => Some(error.to_string()),
        RunResult::NotLoaded { reason } => Some(format!("is not loaded: {reason}")),
        RunResult::CircuitOpen => {
            Some("failed too often in a row and is left alone for now".to_owned())
        }
    }
}
