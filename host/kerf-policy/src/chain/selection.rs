//! A chain of InstanceSelection policies: each sees what the earlier ones left, and the answers become one verdict.

use super::{Chain, ChainError, Now, PolicyRun, ask};
use crate::hook::Hook;
use crate::memo::Fingerprint;
use crate::selection::{Candidate, Context, Demand, Exclusion, Selection, SelectionInput};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

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

impl Chain {
    /// Whether any InstanceSelection policy would be asked for this pool. Saves building the input.
    pub fn has_selection_for(&self, node_pool: &str) -> bool {
        self.links_for(Hook::InstanceSelection, node_pool)
            .next()
            .is_some()
    }

    /// Asks all InstanceSelection policies. The `as-of` of the input is set per policy from `now`.
    pub fn select(&self, input: &SelectionInput, now: Now) -> Result<Verdict, ChainError> {
        self.select_in(&mut Ready(input), now)
    }

    /// The same about a question that is made when some policy has not heard it before.
    pub(crate) fn select_in(
        &self,
        question: &mut dyn Source,
        now: Now,
    ) -> Result<Verdict, ChainError> {
        let mut progress = Progress::new(question.shape());
        let node_pool = question.node_pool().to_owned();
        for link in self.links_for(Hook::InstanceSelection, &node_pool) {
            progress.narrow(question);
            let as_of = link.as_of(now);
            let asked = ask(
                link,
                &self.memos.selections,
                (now, &progress.runs),
                Fingerprint::of(&(progress.shape, question.demand(), as_of)),
                |policy, config, limits| {
                    let input = question.input();
                    let context = context(&input.context, as_of);
                    let candidates = progress.candidates(&input.candidates);
                    link.record(|| SelectionInput {
                        context: Context::clone(&context),
                        candidates: candidates.to_vec(),
                    });
                    policy.select_among(config, limits, &context, &candidates)
                },
            );
            let mut answer = None;
            let run = asked.into_run(link, Selection::changes_anything, |it| answer = Some(it))?;
            progress.runs.push(run);
            if let Some(answer) = answer {
                progress.apply(&link.spec.name, answer);
            }
        }
        Ok(progress.into_verdict(question.candidates()))
    }
}

/// A question, known by its fingerprint before it is made.
pub(crate) trait Source {
    fn node_pool(&self) -> &str;
    /// Of all of the question but the demand and the time.
    fn shape(&self) -> Fingerprint;
    fn demand(&self) -> &Demand;
    /// How many there are.
    fn candidates(&self) -> usize;
    /// Each candidate and its offerings, by index.
    fn all_indexes(&self) -> Vec<(usize, Vec<usize>)>;
    /// The question itself, without the time.
    fn input(&mut self) -> &SelectionInput;
}

/// A question that somebody made.
struct Ready<'a>(&'a SelectionInput);

impl Source for Ready<'_> {
    fn node_pool(&self) -> &str {
        &self.0.context.node_pool
    }

    fn shape(&self) -> Fingerprint {
        self.0.fingerprint_of_shape()
    }

    fn demand(&self) -> &Demand {
        &self.0.context.demand
    }

    fn candidates(&self) -> usize {
        self.0.candidates.len()
    }

    fn all_indexes(&self) -> Vec<(usize, Vec<usize>)> {
        self.0.all_indexes()
    }

    fn input(&mut self) -> &SelectionInput {
        self.0
    }
}

/// How far a decision is: what the policies said, and with that which of the first candidates the next one is asked about.
struct Progress {
    /// Of the candidates that are left, and of what else does not change from claim to claim.
    shape: Fingerprint,
    /// For each candidate that is left, its index in the input and those of its offerings; `None` while all are as they were.
    origins: Option<Vec<(usize, Vec<usize>)>>,
    /// What the last policy said of those; only a further policy needs to know what is left.
    last: Option<Arc<Selection>>,
    /// The scores of each policy that gave any, by first index, in the order of the chain.
    layers: Vec<Vec<(usize, i32)>>,
    exclusions: Vec<(String, Exclusion)>,
    runs: Vec<PolicyRun>,
}

impl Progress {
    fn new(shape: Fingerprint) -> Self {
        Self {
            shape,
            origins: None,
            last: None,
            layers: vec![],
            exclusions: vec![],
            runs: vec![],
        }
    }

    /// Takes in what the last policy left.
    fn narrow(&mut self, question: &dyn Source) {
        let Some(last) = self.last.take() else {
            return;
        };
        let origins = self.origins.take();
        let origins = origins.unwrap_or_else(|| question.all_indexes());
        let left = left_by(&last, origins);
        self.shape = Fingerprint::of(&(self.shape, &left));
        self.origins = Some(left);
    }

    /// As the next policy sees them. Only a call needs them, and the second one of a decision is the first that copies.
    fn candidates<'a>(&self, all: &'a [Candidate]) -> Cow<'a, [Candidate]> {
        let Some(origins) = &self.origins else {
            return Cow::Borrowed(all);
        };
        let left = |(candidate, offerings): &(usize, Vec<usize>)| {
            let first = &all[*candidate];
            let offering = |i: &usize| first.offerings[*i].clone();
            first.with_offerings(offerings.iter().map(offering).collect())
        };
        Cow::Owned(origins.iter().map(left).collect())
    }

    fn apply(&mut self, policy: &str, selection: Arc<Selection>) {
        let origins = self.origins.as_ref();
        let first = |i: usize| origins.map_or(i, |it| it[i].0);
        let scores = selection.scores.iter().enumerate();
        let layer: Vec<_> = scores
            .filter_map(|(i, score)| Some((first(i), (*score)?)))
            .collect();
        if !layer.is_empty() {
            self.layers.push(layer);
        }
        for exclusion in &selection.exclusions {
            let own = |i| origins.map_or(i, |it| it[exclusion.candidate].1[i]);
            let offering = exclusion.offering.map(own);
            let reason = exclusion.reason.clone();
            let exclusion = Exclusion {
                candidate: first(exclusion.candidate),
                offering,
                reason,
            };
            self.exclusions.push((policy.to_owned(), exclusion));
        }
        self.last = Some(selection);
    }

    fn into_verdict(self, candidates: usize) -> Verdict {
        Verdict {
            scores: combine(&self.layers, candidates),
            exclusions: self.exclusions,
            runs: self.runs,
        }
    }
}

fn context(context: &Context, as_of: u32) -> Cow<'_, Context> {
    if context.as_of_unix_s == as_of {
        return Cow::Borrowed(context);
    }
    Cow::Owned(Context {
        as_of_unix_s: as_of,
        ..context.clone()
    })
}

/// What the next policy is asked about, in the order that this one wants.
fn left_by(
    selection: &Selection,
    mut origins: Vec<(usize, Vec<usize>)>,
) -> Vec<(usize, Vec<usize>)> {
    let gone: BTreeSet<(usize, usize)> = selection
        .exclusions
        .iter()
        .filter_map(|it| Some((it.candidate, it.offering?)))
        .collect();
    let left = selection.order().into_iter().filter_map(|i| {
        let (candidate, mut offerings) = std::mem::take(&mut origins[i]);
        if !gone.is_empty() {
            retain_indexed(&mut offerings, |offering| !gone.contains(&(i, offering)));
        }
        (!offerings.is_empty()).then_some((candidate, offerings))
    });
    left.collect()
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
