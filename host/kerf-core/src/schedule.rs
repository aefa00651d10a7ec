//! Scheduling: which pending pod goes where, and which nodes to make for the rest.
//!
//! [`schedule`] reads as the sequence of a round: collect and check the pods (`intake`), prepare the tables
//! (`round`), place pods one by one (`queue`, `place`, `settle`, `commit`), and turn the result into a plan (`finalize`,
//! `explain`). What makes it fast: pods are classes, requirement sets are numbers whose combinations are remembered
//! (`sets`), each pair of pool and set has one sorted list of shapes (`view`), and full hosts are skipped in blocks
//! (`shelf`).

mod bits;
mod claims;
mod class;
mod commit;
mod constraints;
mod daemon;
mod domains;
mod explain;
mod finalize;
mod improve;
mod intake;
mod journal;
mod limits;
mod merge;
mod nodes;
mod pack;
mod place;
mod pool;
mod queue;
mod relax;
mod roomy;
mod round;
mod sayings;
mod sets;
mod settle;
mod shelf;
pub(crate) mod simulate;
mod stock;
mod taints;
mod topology;
mod vector;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::ids::PodUid;
use crate::plan::{PlacementTarget, Plan, PoolProblem, WorkBudget};
use crate::pod::Pod;
use crate::preferences::Preferences;
use crate::reason::{Unschedulable, UnschedulableReason};
use crate::snapshot::Snapshot;

pub(crate) use daemon::{Daemons, outstanding_on, strict_terms};
pub(crate) use finalize::keep_offerings;
pub(crate) use pool::{node_class_label, template_requirements, type_meets};
use round::{Kept, Round};

type Rejected = Vec<(Vec<Arc<Pod>>, UnschedulableReason)>;

/// Where pods were planned in an earlier round that they still wait for.
pub type Homes = BTreeMap<PodUid, PlacementTarget>;

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
    schedule_from(snapshot, preferences, &Homes::new(), budget, now)
}

/// As [`schedule`], with pods sent to their homes first.
///
/// A caller that plans again while nodes are on their way should remember where the pods of the last plan went (its
/// placements, and the claims that it created) and give that here. Homes that are gone, or that a pod no longer fits, do
/// no harm: such pods are planned like the others.
pub fn schedule_from(
    snapshot: &Snapshot,
    preferences: &Preferences,
    homes: &Homes,
    budget: WorkBudget,
    now: Timestamp,
) -> Plan {
    let _ = now;
    let intake = intake::collect(snapshot);
    let mut round = Round::new(snapshot, preferences, intake.pods);
    plan_of(&mut round, intake.rejected, homes, budget)
}

/// Plans one snapshot again and again, with other preferences each time.
#[derive(Debug)]
pub struct Rounds<'a> {
    snapshot: &'a Snapshot,
    kept: Kept,
}

impl<'a> Rounds<'a> {
    /// About this snapshot.
    #[must_use]
    pub fn about(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot,
            kept: Kept::default(),
        }
    }

    /// What [`schedule_from`] makes of the same, sooner after the first time.
    pub fn schedule_from(
        &mut self,
        preferences: &Preferences,
        homes: &Homes,
        budget: WorkBudget,
    ) -> Plan {
        let intake = intake::collect(self.snapshot);
        let kept = Some(&mut self.kept);
        let mut round = Round::in_order(self.snapshot, preferences, intake.pods, &|_| 0, kept);
        let plan = plan_of(&mut round, intake.rejected, homes, budget);
        self.kept.masks = std::mem::take(&mut round.views.masks);
        plan
    }
}

/// Fills an empty round; `rejected` are the pods that it does not try.
fn plan_of(
    round: &mut Round<'_>,
    mut rejected: Rejected,
    homes: &Homes,
    budget: WorkBudget,
) -> Plan {
    let mut classes = std::mem::take(&mut round.classes.classes);
    let mut outcome = queue::place_all(round, &mut classes, homes, budget);
    let claims = round.claims.live().count();
    round.improve(&classes);
    round.merge_claims(&classes);
    if round.claims.live().count() < claims && outcome.left.iter().any(|(_, was_tried)| *was_tried)
    {
        outcome = queue::place_rest(round, &mut classes, outcome, budget);
    }
    for left in queue::unplaced(round, std::mem::take(&mut outcome.left)) {
        let reason = match left.was_tried {
            true => round.explain(&classes[left.class]),
            false => UnschedulableReason::BudgetExhausted,
        };
        rejected.push((left.pods, reason));
    }
    let mut plan = Plan {
        placements: outcome.placements,
        order: outcome.order,
        unschedulable: grouped(rejected),
        pool_problems: pool_problems(round),
        is_partial: outcome.is_partial,
        ..Plan::default()
    };
    plan.work_used = round.work;
    plan.new_claims = finalize::Finalizer::new(round).planned_claims();
    plan
}

/// Groups pods by equal reasons; the groups and the pods in them are in the order of planning.
fn grouped(rejected: Rejected) -> Vec<Unschedulable> {
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
