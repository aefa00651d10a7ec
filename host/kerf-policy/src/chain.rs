//! The policies of one NodeClass, asked in order.
//!
//! Each sees what the earlier ones left. A later score wins and an earlier one breaks its ties. A policy that gives no
//! answer is skipped as a whole or stops the decision, as its failure policy says.

use crate::call::{CallReport, LogLine};
use crate::digest::PolicyDigest;
use crate::error::CallError;
use crate::hook::Hook;
use crate::link::Link;
use crate::memo::Memo;
use crate::selection::{Exclusion, Selection, SelectionInput};
use crate::spec::{FailurePolicy, Mode, PolicyStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What all policies of one decision may take together, so that a long chain cannot hold up pods.
const CHAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// An immutable list of policies; an update makes a new one, and whoever holds this one finishes with it.
#[derive(Debug, Default)]
pub struct Chain {
    links: Vec<Arc<Link>>,
    memo: Arc<Memo>,
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
}

/// What all policies together say about the candidates of the input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Per candidate of the input; higher is better, `None` means no opinion and comes last.
    pub scores: Vec<Option<i64>>,
    /// With the name of the policy that said so.
    pub exclusions: Vec<(String, Exclusion)>,
    /// One per policy that applied to the pool, for metrics, events and explanations.
    pub runs: Vec<PolicyRun>,
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
    /// It was asked; whether its answer differs from the order that it was given.
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

impl Chain {
    pub(crate) fn new(mut links: Vec<Arc<Link>>, memo: Arc<Memo>) -> Self {
        links.sort_by(|a, b| (a.spec.order, &a.spec.name).cmp(&(b.spec.order, &b.spec.name)));
        Self { links, memo }
    }

    pub(crate) fn links(&self) -> &[Arc<Link>] {
        &self.links
    }

    /// Whether any policy would be asked for this pool. Saves building the input.
    pub fn has_selection_for(&self, node_pool: &str) -> bool {
        self.selection_links(node_pool).next().is_some()
    }

    /// The state of each policy, in the order in which they are asked.
    pub fn statuses(&self, now: Instant) -> Vec<PolicyStatus> {
        self.links.iter().map(|link| link.status(now)).collect()
    }

    /// Asks all InstanceSelection policies. The `as-of` of the input is set per policy from `now`.
    pub fn select(&self, input: &SelectionInput, now: Now) -> Result<Verdict, ChainError> {
        let mut progress = Progress::new(input);
        for link in self.selection_links(&input.context.node_pool) {
            let run = self.ask(link, &mut progress, now);
            if let Some(message) = stops(link, &run.result) {
                return Err(ChainError {
                    policy: link.spec.name.clone(),
                    message,
                });
            }
            progress.runs.push(run);
        }
        Ok(progress.into_verdict(input.candidates.len()))
    }

    fn selection_links<'a>(&'a self, node_pool: &'a str) -> impl Iterator<Item = &'a Link> {
        let asks = move |link: &&Arc<Link>| {
            link.spec.hook == Hook::InstanceSelection && link.spec.applies_to(node_pool)
        };
        self.links.iter().filter(asks).map(|link| &**link)
    }

    fn ask(&self, link: &Link, progress: &mut Progress, now: Now) -> PolicyRun {
        let time_left = CHAIN_TIMEOUT.saturating_sub(progress.spent);
        let (report, is_from_memo) =
            match link.select(&mut progress.input, &self.memo, now, time_left) {
                Ok(asked) => asked,
                Err(result) => return PolicyRun::without_call(link, result),
            };
        let CallReport {
            result,
            fuel,
            elapsed,
            memory_bytes_max,
            log,
            ..
        } = report;
        progress.spent += elapsed;
        let result = match result {
            Err(error) => RunResult::Failed(error),
            Ok(selection) => match link.spec.mode {
                Mode::Monitor => RunResult::Monitored {
                    would_change: link.count_change(&selection),
                },
                Mode::Enforce => {
                    let changes = selection.changes_anything();
                    progress.apply(&link.spec.name, &selection);
                    RunResult::Answered { changes }
                }
            },
        };
        let digest = link.digest();
        let policy = link.spec.name.clone();
        PolicyRun {
            policy,
            digest,
            result,
            is_from_memo,
            fuel,
            elapsed,
            memory_bytes_max,
            log,
        }
    }
}

impl PolicyRun {
    fn without_call(link: &Link, result: RunResult) -> Self {
        Self {
            policy: link.spec.name.clone(),
            digest: link.digest(),
            result,
            is_from_memo: false,
            fuel: 0,
            elapsed: Duration::ZERO,
            memory_bytes_max: 0,
            log: Vec::new(),
        }
    }
}

fn stops(link: &Link, result: &RunResult) -> Option<String> {
    let enforced = link.spec.mode == Mode::Enforce;
    if !enforced || link.spec.failure_policy == FailurePolicy::Ignore {
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

/// The input as the next policy sees it, and the way back to the indexes of the first input.
struct Progress {
    input: SelectionInput,
    /// For each candidate of `input`: its index in the first input, and those of its offerings.
    origins: Vec<(usize, Vec<usize>)>,
    /// The scores of each policy that gave any, by first index, in the order of the chain.
    layers: Vec<Vec<(usize, i32)>>,
    exclusions: Vec<(String, Exclusion)>,
    runs: Vec<PolicyRun>,
    spent: Duration,
}

impl Progress {
    fn new(input: &SelectionInput) -> Self {
        let offerings = |len: usize| (0..len).collect();
        let origins = input
            .candidates
            .iter()
            .map(|it| offerings(it.offerings.len()))
            .enumerate()
            .collect();
        let input = input.clone();
        Self {
            input,
            origins,
            layers: vec![],
            exclusions: vec![],
            runs: vec![],
            spent: Duration::ZERO,
        }
    }

    fn apply(&mut self, policy: &str, selection: &Selection) {
        let scores = selection.scores.iter().enumerate();
        let layer: Vec<_> = scores
            .filter_map(|(i, score)| Some((self.origins[i].0, (*score)?)))
            .collect();
        if !layer.is_empty() {
            self.layers.push(layer);
        }
        for exclusion in &selection.exclusions {
            let (candidate, offerings) = &self.origins[exclusion.candidate];
            let offering = exclusion.offering.map(|i| offerings[i]);
            let reason = exclusion.reason.clone();
            let exclusion = Exclusion {
                candidate: *candidate,
                offering,
                reason,
            };
            self.exclusions.push((policy.to_owned(), exclusion));
        }
        self.reorder(selection);
    }

    fn reorder(&mut self, selection: &Selection) {
        let mut candidates: Vec<_> = std::mem::take(&mut self.input.candidates)
            .into_iter()
            .map(Some)
            .collect();
        let mut origins: Vec<_> = std::mem::take(&mut self.origins)
            .into_iter()
            .map(Some)
            .collect();
        for i in selection.order() {
            let (Some(mut candidate), Some((origin, mut offerings))) =
                (candidates[i].take(), origins[i].take())
            else {
                continue;
            };
            let is_kept = |offering: usize| {
                !selection
                    .exclusions
                    .iter()
                    .any(|e| e.candidate == i && e.offering == Some(offering))
            };
            retain_indexed(&mut candidate.offerings, is_kept);
            retain_indexed(&mut offerings, is_kept);
            if !candidate.offerings.is_empty() {
                self.input.candidates.push(candidate);
                self.origins.push((origin, offerings));
            }
        }
    }

    fn into_verdict(self, candidates: usize) -> Verdict {
        let Self {
            layers,
            exclusions,
            runs,
            ..
        } = self;
        Verdict {
            scores: combine(&layers, candidates),
            exclusions,
            runs,
        }
    }
}

fn retain_indexed<T>(items: &mut Vec<T>, is_kept: impl Fn(usize) -> bool) {
    let mut index = 0;
    items.retain(|_| {
        index += 1;
        is_kept(index - 1)
    });
}

/// Packs the scores of several policies into one number each, the last policy in the highest bits.
///
/// They are packed as they are, not as places in a ranking, so that the scores of two decisions can be compared:
/// scheduling keeps one score per offering of a pool. One policy keeps all 32 bits of its scores; with two or three, 31
/// and 20 bits are left and greater scores saturate. Of more policies the last three count.
fn combine(layers: &[Vec<(usize, i32)>], candidates: usize) -> Vec<Option<i64>> {
    const LAYERS_MAX: usize = 3;
    let layers = &layers[layers.len().saturating_sub(LAYERS_MAX)..];
    let bits = match layers.len() {
        0 | 1 => 33,
        2 => 31,
        _ => 20,
    };
    let half = 1_i64 << (bits - 1);
    let mut combined = vec![0_i64; candidates];
    for layer in layers.iter().rev() {
        combined.iter_mut().for_each(|score| *score <<= bits);
        for (candidate, score) in layer {
            // 0 is "no opinion", which comes after every score.
            combined[*candidate] += (i64::from(*score) + half).clamp(1, 2 * half - 1);
        }
    }
    combined
        .into_iter()
        .map(|score| (score > 0).then_some(score))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_score_wins_and_an_earlier_one_breaks_its_ties() {
        let first = vec![(0, 1), (1, 2), (2, 3)];
        let last = vec![(0, 5), (1, 5), (2, -7)];

        let scores = combine(&[first, last], 4);

        assert!(
            scores[1] > scores[0],
            "equal in the last, so the first decides: {scores:?}"
        );
        assert!(scores[0] > scores[2], "the last decides: {scores:?}");
        assert!(
            scores[2] > scores[3],
            "even a low score comes before none: {scores:?}"
        );
        assert_eq!(scores[3], None);
    }

    #[test]
    fn one_policy_keeps_all_bits_of_its_scores() {
        let scores = combine(
            &[vec![
                (0, i32::MIN),
                (1, i32::MIN + 1),
                (2, i32::MAX - 1),
                (3, i32::MAX),
            ]],
            4,
        );

        assert!(
            scores.is_sorted() && scores[0] < scores[1] && scores[2] < scores[3],
            "{scores:?}"
        );
    }

    #[test]
    fn many_policies_do_not_overflow() {
        let layer = vec![(0, i32::MAX), (1, i32::MIN)];

        let scores = combine(&vec![layer; 9], 2);

        assert!(scores[0] > scores[1] && scores[1] > Some(0), "{scores:?}");
    }
}
