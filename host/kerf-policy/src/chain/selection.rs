//! A chain of InstanceSelection policies: each sees what the earlier ones left, and the answers become one verdict.

use super::{Chain, ChainError, Now, PolicyRun, ask};
use crate::hook::Hook;
use crate::selection::{Exclusion, Selection, SelectionInput};

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
        let mut progress = Progress::new(input);
        for link in self.links_for(Hook::InstanceSelection, &input.context.node_pool) {
            progress.input.context.as_of_unix_s = link.as_of(now);
            let input = &progress.input;
            let asked = ask(
                link,
                &self.memos.selections,
                (now, &progress.runs),
                input,
                |policy, config, limits| policy.select(config, limits, input),
            );
            let run = asked.into_run(link, Selection::changes_anything, |answer| {
                progress.apply(&link.spec.name, answer);
            })?;
            progress.runs.push(run);
        }
        Ok(progress.into_verdict(input.candidates.len()))
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
