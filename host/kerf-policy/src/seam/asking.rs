//! Asking about many claims at the same time: each call is an instance of its own, so that they share nothing but the
//! memory of answers.

use crate::chain::{Chain, ChainError, Now, PolicyRun};
use crate::view::{Heard, PoolView, Shape, place_of};
use kerf_core::ids::NodePoolName;
use kerf_core::node_pool::NodePool;
use kerf_core::plan::PlannedClaim;
use kerf_core::preferences::{Bar, OfferingKey};
use std::collections::{BTreeMap, HashMap};
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Threads that ask at the same time. An instance may take 64 MiB by default, which the controller's limit has to hold.
const THREADS_MAX: usize = 4;
/// Kinds of claims for each thread, so that a small plan starts none.
const KINDS_PER_THREAD: usize = 4;

/// A claim that policies are asked about.
pub(super) struct Inquiry<'a> {
    /// Of the claim in its plan.
    pub(super) index: usize,
    pub(super) claim: &'a PlannedClaim,
    pub(super) pool: &'a NodePool,
    pub(super) chain: Arc<Chain>,
}

/// What the policies of one claim said.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) runs: Vec<PolicyRun>,
    pub(super) said: Said,
}

/// What becomes preferences; empty where a claim of the same kind has just heard the same.
#[derive(Default)]
pub(super) struct Said {
    pub(super) bars: Vec<Bar>,
    pub(super) scores: Vec<(OfferingKey, i64)>,
}

type Answers = Vec<(usize, Result<Answer, ChainError>)>;

/// The answers in the order of the inquiries. The same whatever the number of threads: policies have no memory.
pub(super) fn ask_all<'a, V>(
    inquiries: &[Inquiry<'a>],
    view: &V,
    now: Now,
) -> Vec<Result<Answer, ChainError>>
where
    V: Fn(&'a NodePool) -> PoolView<'a> + Sync,
{
    let kinds = kinds(inquiries);
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cores.min(THREADS_MAX).min(kinds.len() / KINDS_PER_THREAD);
    let next = AtomicUsize::new(0);
    let work = || -> Answers {
        let mut asker = Asker {
            inquiries,
            view,
            views: BTreeMap::new(),
            now,
        };
        let taken = || kinds.get(next.fetch_add(1, Ordering::Relaxed));
        std::iter::from_fn(taken)
            .flatten()
            .map(|place| (*place, asker.ask(*place)))
            .collect()
    };
    let mut answers = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut answers = work();
        for other in others {
            match other.join() {
                Ok(more) => answers.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        answers
    });
    answers.sort_unstable_by_key(|(place, _)| *place);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// The inquiries by what their claims can be, which is one question but for the demand.
fn kinds(inquiries: &[Inquiry<'_>]) -> Vec<Vec<usize>> {
    let mut kinds: Vec<Vec<usize>> = Vec::new();
    let mut known = HashMap::new();
    for (place, inquiry) in inquiries.iter().enumerate() {
        let key = (&inquiry.pool.name, place_of(inquiry.claim));
        let kind = *known.entry(key).or_insert(kinds.len());
        if kind == kinds.len() {
            kinds.push(Vec::new());
        }
        kinds[kind].push(place);
    }
    kinds
}

/// One thread's part.
struct Asker<'w, 'a, V> {
    inquiries: &'w [Inquiry<'a>],
    view: &'w V,
    views: BTreeMap<&'a NodePoolName, PoolView<'a>>,
    now: Now,
}

impl<'a, V: Fn(&'a NodePool) -> PoolView<'a>> Asker<'_, 'a, V> {
    fn ask(&mut self, place: usize) -> Result<Answer, ChainError> {
        let inquiry = &self.inquiries[place];
        let view = self.views.entry(&inquiry.pool.name);
        let view = view.or_insert_with(|| (self.view)(inquiry.pool));
        let mut question = view.question(inquiry.claim);
        let verdict = inquiry.chain.select_in(&mut question, self.now)?;
        let heard = (verdict.scores, verdict.exclusions);
        let shape = question.shape;
        // Claims of one shape mostly hear the same, and hearing it again changes nothing.
        let said = match shape.heard.as_ref() == Some(&heard) {
            true => Said::default(),
            false => said(&heard, shape, inquiry.claim),
        };
        shape.heard = Some(heard);
        Ok(Answer {
            runs: verdict.runs,
            said,
        })
    }
}

/// What was heard as bars and scores.
fn said((scores, exclusions): &Heard, shape: &Shape, claim: &PlannedClaim) -> Said {
    let mut said = Said::default();
    let offering = |candidate: usize, i: usize| &claim.offerings[shape.place(candidate, i)];
    for (policy, exclusion) in exclusions {
        let one = exclusion.offering.map(|i| offering(exclusion.candidate, i));
        said.bars.push(Bar {
            instance_type: offering(exclusion.candidate, 0).instance_type.clone(),
            zone: one.map(|it| it.zone.clone()),
            capacity_type: one.map(|it| it.capacity_type),
            policy: policy.clone(),
            reason: exclusion.reason.clone(),
        });
    }
    for (score, group) in scores.iter().zip(shape.groups()) {
        let Some(score) = score else { continue };
        for i in group {
            let offering = &claim.offerings[*i];
            let key = OfferingKey {
                instance_type: offering.instance_type.clone(),
                zone: offering.zone.clone(),
                capacity_type: offering.capacity_type,
            };
            said.scores.push((key, *score));
        }
    }
    said
}
