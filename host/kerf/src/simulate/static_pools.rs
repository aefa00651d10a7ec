//! Static NodePools of a simulation: the nodes that `spec.replicas` asks for are there before pods look for a place.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_controllers::provision::rounds::{Question, plan_claims_with};
use kerf_core::plan::{Placement, PlacementTarget, Plan, PlannedClaim, PoolProblem};
use kerf_core::preferences::Preferences;
use kerf_core::snapshot::Snapshot;
use kerf_core::static_capacity::{SurplusClaim, static_capacity};
use kerf_policy::PolicyRun;

use crate::simulate::complaint::Complaint;
use crate::simulate::machine;

/// What static NodePools lack and have too much of.
#[derive(Debug, Default)]
pub(crate) struct StaticPools {
    /// Nodes to make, by the name that each has in [`Self::snapshot`].
    pub(crate) made: BTreeMap<String, PlannedClaim>,
    /// NodeClaims to remove.
    pub(crate) surplus: Vec<SurplusClaim>,
    short: Vec<PoolProblem>,
}

impl StaticPools {
    /// Decides with the policies.
    pub(crate) fn decide(
        question: &Question<'_>,
        told: &mut dyn FnMut(&str, &PolicyRun),
        notes: &mut Vec<Complaint>,
    ) -> Self {
        let Question { snapshot, now, .. } = *question;
        if snapshot.pools.iter().all(|pool| pool.replicas.is_none()) {
            return Self::default();
        }
        notes.push(Complaint::note(
            "static NodePools get their replicas; the controller does so only with --feature-gates StaticCapacity=true",
        ));
        let mut make = |preferences: &Preferences| Plan {
            new_claims: static_capacity(snapshot, preferences, now).create,
            ..Plan::default()
        };
        let plan = plan_claims_with(question, &mut make, told);
        let found = static_capacity(snapshot, &Preferences::none(), now);
        let short = found.short.into_iter().map(|it| PoolProblem {
            pool: it.pool,
            message: format!(
                "{} of its replicas cannot be made now: {}",
                it.missing, it.reason
            ),
        });
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let made = plan.new_claims.into_iter().map(|claim| {
            let count = counts.entry(claim.pool.to_string()).or_default();
            *count += 1;
            (format!("{}-static-{count:05}", claim.pool), claim)
        });
        Self {
            made: made.collect(),
            surplus: found.remove,
            short: short.collect(),
        }
    }

    /// The world with the nodes on their way.
    pub(crate) fn snapshot(&self, before: &Arc<Snapshot>, now: Timestamp) -> Arc<Snapshot> {
        if self.made.is_empty() {
            return Arc::clone(before);
        }
        let mut after = (**before).clone();
        let made = self.made.iter();
        let made = made.map(|(name, claim)| machine::on_its_way(name, claim, &before.pools, now));
        after.nodes.extend(made.map(Arc::new));
        Arc::new(after)
    }

    /// Puts the nodes into the plan that was made with them: each with the pods that were placed on it.
    pub(crate) fn join(&mut self, plan: &mut Plan) {
        let made = &mut self.made;
        plan.placements.retain(|Placement { pod, node, .. }| {
            let claim = match node {
                PlacementTarget::InFlight(name) => made.get_mut(name.as_str()),
                PlacementTarget::Node(_) => None,
            };
            if let Some(claim) = claim {
                claim.requests.add(&pod.spec.requests);
                claim.pods.push(Arc::clone(pod));
                return false;
            }
            true
        });
        let of_pods = std::mem::take(&mut plan.new_claims);
        plan.new_claims = std::mem::take(made).into_values().chain(of_pods).collect();
        plan.pool_problems.append(&mut self.short);
    }
}
