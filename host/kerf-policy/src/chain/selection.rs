//! A chain of InstanceSelection policies: each sees what the earlier ones left, and the answers become one verdict.

use super::{Chain, ChainError, Now, PolicyRun, ask};
use crate::hook::Hook;
use crate::memo::Fingerprint;
use crate::selection::{Candidate, Context, Exclusion, Selection, SelectionInput};
use std::borrow::Cow;
use std::collections::BTreeSet;

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
        self.select_in(input, input.fingerprint_of_shape(), now)
    }

    /// The same for a caller who has the [`SelectionInput::fingerprint_of_shape`] already.
    pub(crate) fn select_in(
        &self,
        input: &SelectionInput,
        shape: Fingerprint,
        now: Now,
    ) -> Result<Verdict, ChainError> {
        let mut progress = Progress::new(input, shape);
        for link in self.links_for(Hook::InstanceSelection, &input.context.node_pool) {
            let as_of = link.as_of(now);
            let asked = ask(
                link,
                &self.memos.selections,
                (now, &progress.runs),
                progress.fingerprint(as_of),
                |policy, config, limits| {
                    policy.select_among(
                        config,
                        limits,
                        &progress.context(as_of),
                        &progress.candidates(),
                    )
                },
            );
            let mut answer = None;
            let run = asked.into_run(link, Selection::changes_anything, |it| answer = Some(it))?;
            progress.runs.push(run);
            if let Some(answer) = answer {
                progress.apply(&link.spec.name, &answer);
            }
        }
        Ok(progress.into_verdict())
    }
}

/// How far a decision is: what the policies said, and with that which of the first candidates the next one is asked about.
struct Progress<'a> {
    input: &'a SelectionInput,
    /// Of the candidates that are left, and of what else does not change from claim to claim.
    shape: Fingerprint,
    /// For each candidate that is left, its index in the input and those of its offerings; `None` while all are as they were.
    origins: Option<Vec<(usize, Vec<usize>)>>,
    /// The scores of each policy that gave any, by first index, in the order of the chain.
    layers: Vec<Vec<(usize, i32)>>,
    exclusions: Vec<(String, Exclusion)>,
    runs: Vec<PolicyRun>,
}

impl<'a> Progress<'a> {
    fn new(input: &'a SelectionInput, shape: Fingerprint) -> Self {
        Self {
            input,
            shape,
            origins: None,
            layers: vec![],
            exclusions: vec![],
            runs: vec![],
        }
    }

    fn fingerprint(&self, as_of: u32) -> Fingerprint {
        Fingerprint::of(&(self.shape, &self.input.context.demand, as_of))
    }

    fn context(&self, as_of: u32) -> Cow<'a, Context> {
        let context = &self.input.context;
        if context.as_of_unix_s == as_of {
            return Cow::Borrowed(context);
        }
        Cow::Owned(Context {
            as_of_unix_s: as_of,
            ..context.clone()
        })
    }

    /// As the next policy sees them. Only a call needs them, and the second one of a decision is the first that copies.
    fn candidates(&self) -> Cow<'a, [Candidate]> {
        let all = &self.input.candidates;
        let Some(origins) = &self.origins else {
            return Cow::Borrowed(all);
        };
        let left = |(candidate, offerings): &(usize, Vec<usize>)| {
            let first = &all[*candidate];
            let offering = |i: &usize| first.offerings[*i].clone();
            Candidate {
                offerings: offerings.iter().map(offering).collect(),
                ..first.clone()
            }
        };
        Cow::Owned(origins.iter().map(left).collect())
    }

    fn apply(&mut self, policy: &str, selection: &Selection) {
        let origins = self
            .origins
            .take()
            .unwrap_or_else(|| self.input.all_indexes());
        let scores = selection.scores.iter().enumerate();
        let layer: Vec<_> = scores
            .filter_map(|(i, score)| Some((origins[i].0, (*score)?)))
            .collect();
        if !layer.is_empty() {
            self.layers.push(layer);
        }
        for exclusion in &selection.exclusions {
            let (candidate, offerings) = &origins[exclusion.candidate];
            let offering = exclusion.offering.map(|i| offerings[i]);
            let reason = exclusion.reason.clone();
            let exclusion = Exclusion {
                candidate: *candidate,
                offering,
                reason,
            };
            self.exclusions.push((policy.to_owned(), exclusion));
        }
        let left = left_by(selection, origins);
        self.shape = Fingerprint::of(&(self.shape, &left));
        self.origins = Some(left);
    }

    fn into_verdict(self) -> Verdict {
        Verdict {
            scores: combine(&self.layers, self.input.candidates.len()),
            exclusions: self.exclusions,
            runs: self.runs,
        }
    }
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
