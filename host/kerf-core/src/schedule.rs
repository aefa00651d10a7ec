//! Scheduling: which pending pod goes where, and which nodes to make for the rest.
//!
//! [`schedule`] reads as the sequence of a round: collect and check the pods (`intake`), prepare the tables
//! (`round`), place pods one by one (`place`, `settle`, `commit`), and turn the result into a plan (`finalize`,
//! `explain`). What makes it fast: pods are classes, requirement sets are numbers whose combinations are remembered
//! (`sets`), each pair of pool and set has one sorted list of shapes (`view`), and full hosts are skipped in blocks
//! (`shelf`).

mod bits;
mod claims;
mod class;
mod commit;
mod daemon;
mod domains;
mod explain;
mod finalize;
mod improve;
mod intake;
mod limits;
mod nodes;
mod pack;
mod place;
mod pool;
mod round;
mod sets;
mod settle;
mod shelf;
mod taints;
mod topology;
mod vector;
mod view;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;

use crate::plan::{Placement, Plan, PoolProblem, WorkBudget};
use crate::pod::Pod;
use crate::preferences::Preferences;
use crate::reason::{Unschedulable, UnschedulableReason};
use crate::snapshot::Snapshot;

use class::{Class, Guest};
use place::Spot;
use round::Round;

/// Plans the pending pods of a snapshot and the pods of nodes that are being removed.
///
/// The plan is the same for the same input in any order. Every pod of the plan is in exactly one place: on a node, in
/// a claim, or unschedulable with a reason. `now` is not used yet; nothing that is planned depends on the time.
pub fn schedule(
    snapshot: &Snapshot,
    preferences: &Preferences,
    budget: WorkBudget,
    now: Timestamp,
) -> Plan {
    let _ = now;
    let intake = intake::collect(snapshot);
    let mut round = Round::new(snapshot, preferences, intake.pods);
    let mut classes = std::mem::take(&mut round.classes.classes);
    let outcome = place_all(&mut round, &mut classes, budget);
    round.improve(&classes);
    let mut rejected = intake.rejected;
    for class in &outcome.unplaced {
        let reason = match class.was_tried {
            true => round.explain(&classes[class.idx]),
            false => UnschedulableReason::BudgetExhausted,
        };
        rejected.push((class.pods.clone(), reason));
    }
    let mut plan = Plan {
        placements: outcome.placements,
        unschedulable: grouped(rejected),
        pool_problems: pool_problems(&mut round),
        is_partial: outcome.is_partial,
        ..Plan::default()
    };
    plan.work_used = round.work;
    plan.new_claims = finalize::Finalizer::new(&mut round).planned_claims();
    plan
}

/// What became of the pods of a round, apart from the claims.
struct Outcome {
    placements: Vec<Placement>,
    unplaced: Vec<Unplaced>,
    is_partial: bool,
}

/// Pods of one class without a place.
struct Unplaced {
    idx: usize,
    was_tried: bool,
    pods: Vec<Arc<Pod>>,
}

/// Places pods until a whole pass over those that are left changes nothing.
fn place_all(round: &mut Round<'_>, classes: &mut [Class], budget: WorkBudget) -> Outcome {
    let mut queue: VecDeque<(usize, Option<usize>)> =
        (0..round.pods.len()).map(|pod| (pod, None)).collect();
    let mut placements = Vec::new();
    let mut placed = 0;
    let mut hopeless: Vec<usize> = Vec::new();
    while let Some((pod, tried_at)) = queue.pop_front() {
        // The rest was tried after this pod was, and nothing has changed since.
        if tried_at == Some(placed) || round.work >= budget.0 {
            queue.push_front((pod, tried_at));
            break;
        }
        let class = &mut classes[round.class_of[pod]];
        let spot = match class.failed_at {
            Some(at) if at == placed || !class.depends_on_others() => None,
            _ => find_with_preferences(round, class),
        };
        match spot {
            Some(spot) => {
                round.commit(pod, class, &spot);
                placed += 1;
                if let Spot::Node(node) = spot {
                    let pod = Arc::clone(&round.pods[pod]);
                    placements.push(Placement {
                        pod,
                        node: round.nodes.target(node),
                    });
                }
            }
            None => {
                class.failed_at = Some(placed);
                if class.depends_on_others() {
                    queue.push_back((pod, Some(placed)));
                } else {
                    hopeless.push(pod);
                }
            }
        }
    }
    let is_partial = queue.iter().any(|(_, tried_at)| tried_at.is_none());
    let left = hopeless.into_iter().map(|pod| (pod, true));
    let left = left.chain(
        queue
            .into_iter()
            .map(|(pod, tried_at)| (pod, tried_at.is_some())),
    );
    Outcome {
        placements,
        unplaced: unplaced(round, left),
        is_partial,
    }
}

/// Tries the class with all its preferences, then with one less each.
fn find_with_preferences(round: &mut Round<'_>, class: &Class) -> Option<Spot> {
    class
        .variants
        .iter()
        .find_map(|variant| round.find_spot(Guest { class, variant }))
}

fn unplaced(round: &Round<'_>, pods: impl Iterator<Item = (usize, bool)>) -> Vec<Unplaced> {
    let mut by_class: BTreeMap<(usize, bool), Vec<usize>> = BTreeMap::new();
    for (pod, was_tried) in pods {
        by_class
            .entry((round.class_of[pod], was_tried))
            .or_default()
            .push(pod);
    }
    let of_class = by_class.into_iter().map(|((idx, was_tried), mut pods)| {
        pods.sort_unstable();
        let pods = pods
            .into_iter()
            .map(|pod| Arc::clone(&round.pods[pod]))
            .collect();
        Unplaced {
            idx,
            was_tried,
            pods,
        }
    });
    of_class.collect()
}

/// Groups pods by equal reasons; the groups and the pods in them are in the order of planning.
fn grouped(rejected: Vec<(Vec<Arc<Pod>>, UnschedulableReason)>) -> Vec<Unschedulable> {
    let mut by_reason: BTreeMap<UnschedulableReason, Vec<Arc<Pod>>> = BTreeMap::new();
    for (mut pods, reason) in rejected {
        by_reason.entry(reason).or_default().append(&mut pods);
    }
    let mut groups: Vec<Unschedulable> = by_reason
        .into_iter()
        .map(|(reason, mut pods)| {
            pods.sort_by(|a, b| intake::planning_order(a, b));
            Unschedulable { pods, reason }
        })
        .collect();
    groups.sort_by(|a, b| intake::planning_order(&a.pods[0], &b.pods[0]));
    groups
}

fn pool_problems(round: &mut Round<'_>) -> Vec<PoolProblem> {
    let mut problems = Vec::new();
    for pool in 0..round.pools.len() {
        let view = round.view(pool, round.pools[pool].set);
        if view.order.is_empty() {
            let entry = &round.pools[pool];
            let message = format!(
                "no instance type can be bought that meets {}",
                round.sets.at(entry.set)
            );
            problems.push(PoolProblem {
                pool: entry.pool.name.clone(),
                message,
            });
        }
    }
    problems
}

#[cfg(test)]
mod tests;
