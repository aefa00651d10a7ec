//! Holding launches back for pods that kube-scheduler is still to find a place for.
//!
//! While it binds hundreds of pods to nodes that were planned for them it does not keep to the plan, and any plan in between
//! finds some pods whose places are taken. Nearly all find others; nodes that were launched for them stayed empty.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kerf_core::ids::PodUid;
use kerf_core::plan::{PlacementTarget, Plan, PlannedClaim};
use kerf_core::rehearsal::PODS_MIN;
use kerf_core::schedule::Homes;
use kerf_core::snapshot::Snapshot;

/// Nothing is held back for pods that were planned longer ago: kube-scheduler binds thousands within this time, and a node
/// that was launched for them is there, or will not come.
const HELD_MAX: SignedDuration = SignedDuration::from_secs(10);

/// Since when pods have a place in plans.
#[derive(Debug, Default)]
pub struct Planned {
    since: BTreeMap<PodUid, Timestamp>,
}

impl Planned {
    /// Takes those nodes out of the plan that only hold pods which an earlier plan gave a place; their homes, to be kept.
    pub fn hold_back(
        &self,
        plan: &mut Plan,
        homes: &Homes,
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> Homes {
        let is_young = |pod: &PodUid| {
            let since = self.since.get(pod);
            since.is_some_and(|since| now.duration_since(*since) < HELD_MAX)
        };
        let waiting = snapshot.pending_pods.iter();
        let waiting = waiting.filter(|pod| homes.contains_key(&pod.uid) && is_young(&pod.uid));
        if waiting.count() < PODS_MIN {
            return Homes::new();
        }
        let living = living(snapshot);
        let home = |pod: &PodUid| {
            homes
                .get(pod)
                .filter(|home| living.contains(home) && is_young(pod))
        };
        let is_held = |claim: &PlannedClaim| claim.pods.iter().all(|pod| home(&pod.uid).is_some());
        let mut held = Homes::new();
        for claim in plan.new_claims.iter().filter(|claim| is_held(claim)) {
            let homes = claim
                .pods
                .iter()
                .filter_map(|pod| Some((&pod.uid, home(&pod.uid)?)));
            held.extend(homes.map(|(uid, home)| (uid.clone(), home.clone())));
        }
        plan.new_claims.retain(|claim| !is_held(claim));
        held
    }

    /// Remembers the pods of this plan that have a place, and forgets all others.
    pub fn remember(&mut self, homes: &Homes, now: Timestamp) {
        let mut since = std::mem::take(&mut self.since);
        let with_time = homes.keys().map(|pod| {
            let at = since.remove(pod).unwrap_or(now);
            (pod.clone(), at)
        });
        self.since = with_time.collect();
    }
}

fn living(snapshot: &Snapshot) -> BTreeSet<PlacementTarget> {
    let nodes = snapshot.nodes.iter().filter(|node| node.is_active());
    let targets = nodes.flat_map(|node| {
        let name = node.name.clone().map(PlacementTarget::Node);
        let claim = node.node_claim.clone().map(PlacementTarget::InFlight);
        [name, claim]
    });
    targets.flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kerf_core::node::Node;
    use kerf_core::pod::{Pod, PodSpec};

    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_000, 0);

    fn pod(nth: usize) -> Arc<Pod> {
        Arc::new(Pod::new(&format!("p{nth}"), PodSpec::default()))
    }

    fn claim(pods: Vec<Arc<Pod>>) -> PlannedClaim {
        PlannedClaim {
            pods,
            ..PlannedClaim::default()
        }
    }

    /// Hundreds of pods that were planned on `general-1`, and a plan that launches for `wanted`.
    fn held(count: usize, node: &str, wanted: &[usize], secs: i64) -> usize {
        let pods: Vec<Arc<Pod>> = (0..count).map(pod).collect();
        let home = PlacementTarget::InFlight("general-1".into());
        let homes: Homes = pods
            .iter()
            .map(|pod| (pod.uid.clone(), home.clone()))
            .collect();
        let mut planned = Planned::default();
        planned.remember(&homes, NOW);
        let snapshot = Snapshot {
            nodes: vec![Arc::new(Node {
                node_claim: Some(node.into()),
                ..Node::default()
            })],
            pending_pods: pods,
            ..Snapshot::default()
        };
        let mut plan = Plan {
            new_claims: vec![claim(wanted.iter().map(|nth| pod(*nth)).collect())],
            ..Plan::default()
        };
        let now = NOW.saturating_add(SignedDuration::from_secs(secs)).unwrap();
        let held = planned.hold_back(&mut plan, &homes, &snapshot, now);
        assert_eq!(plan.new_claims.is_empty(), !held.is_empty());
        held.len()
    }

    #[test]
    fn nothing_is_launched_for_pods_that_a_busy_scheduler_will_place() {
        assert_eq!(held(PODS_MIN, "general-1", &[3, 4], 5), 2);
    }

    #[test]
    fn new_pods_few_pods_old_plans_and_lost_nodes_are_not_held_back() {
        assert_eq!(
            held(PODS_MIN, "general-1", &[3, PODS_MIN], 5),
            0,
            "a new pod"
        );
        assert_eq!(held(PODS_MIN - 1, "general-1", &[3, 4], 5), 0, "few");
        assert_eq!(held(PODS_MIN, "general-1", &[3, 4], 10), 0, "old");
        assert_eq!(
            held(PODS_MIN, "general-2", &[3, 4], 5),
            0,
            "the node is gone"
        );
    }
}
