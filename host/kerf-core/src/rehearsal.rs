//! Large plans, rehearsed: kube-scheduler binds the pods of a plan and does not know where the plan has put them.
//!
//! It prefers the emptiest node that fits, in the order of its queue, so that nodes which a plan has filled to the brim leave
//! some pods over: each holds a little room, and none enough. A second look would launch for those, but it comes when
//! kube-scheduler has tried all others, which takes it seconds where pods are thousands. So [`schedule`] binds the pods
//! as kube-scheduler would, and plans again with room for those that were left.

mod binding;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::ids::PodUid;
use crate::labels;
use crate::plan::{Plan, WorkBudget};
use crate::pod::{OwnerKind, Pod, PodPhase, PodSpec};
use crate::preferences::Preferences;
use crate::price::Price;
use crate::schedule::{Homes, schedule_from};
use crate::snapshot::Snapshot;

pub use binding::{Guest, PODS_MIN, left_over};

/// Plans of one call. The second leaves a fifth of what the first left; later ones seldom less.
const PLANS_MAX: usize = 4;
/// What the room may cost, of the plan without it. Where many small nodes leave more over, a second look is cheaper: then
/// it is known which pods are left.
const DEARER_PERCENT_MAX: u64 = 3;

/// As [`schedule_from`], with enough room that kube-scheduler need not bind as planned.
pub fn schedule(
    snapshot: &Snapshot,
    preferences: &Preferences,
    homes: &Homes,
    budget: WorkBudget,
    now: Timestamp,
) -> Plan {
    let make = |snapshot: &Snapshot| cheaper(snapshot, preferences, homes, budget, now);
    let mut plan = make(snapshot);
    let price_max = dearest(plan.price_per_hour());
    let unplaced_max = plan.unschedulable_pods();
    let mut spares = Vec::new();
    let (mut least, mut best) = (usize::MAX, Plan::default());
    for _ in 0..PLANS_MAX {
        let left = left_over(snapshot, &plan);
        let (count, more) = (left.len(), spares_for(&left, spares.len()));
        if count < least {
            (least, best) = (count, plan);
        }
        if count == 0 {
            break;
        }
        spares.extend(more);
        let mut roomier = snapshot.clone();
        roomier.pending_pods.extend(spares.iter().cloned());
        plan = make(&roomier);
        if plan.price_per_hour() > price_max || plan.unschedulable_pods() > unplaced_max {
            break;
        }
    }
    take_out(&mut best, &spares);
    best
}

/// With the homes, or without any where pods have lost theirs to others and that is cheaper: many small holes, each kept for
/// one pod, hold less than the same room that is filled anew, large pods first.
fn cheaper(
    snapshot: &Snapshot,
    preferences: &Preferences,
    homes: &Homes,
    budget: WorkBudget,
    now: Timestamp,
) -> Plan {
    let kept = schedule_from(snapshot, preferences, homes, budget, now);
    let mut launched_for = kept.new_claims.iter().flat_map(|claim| &claim.pods);
    if !launched_for.any(|pod| homes.contains_key(&pod.uid)) {
        return kept;
    }
    let anew = schedule_from(snapshot, preferences, &Homes::new(), budget, now);
    let worth = |plan: &Plan| (plan.unschedulable_pods(), plan.price_per_hour());
    if worth(&anew) < worth(&kept) {
        anew
    } else {
        kept
    }
}

fn dearest(price: Price) -> Price {
    Price::from_micros(price.micros().saturating_mul(100 + DEARER_PERCENT_MAX) / 100)
}

fn spares_for(left: &[Guest<'_>], first: usize) -> Vec<Arc<Pod>> {
    let numbered = left.iter().zip(first..);
    numbered.map(|(guest, nth)| spare(guest, nth)).collect()
}

/// A pod that exists in this call only, as large as the other and as particular about nodes.
fn spare(Guest { pod, zone }: &Guest<'_>, nth: usize) -> Arc<Pod> {
    let mut node_selector = pod.spec.node_selector.clone();
    node_selector.extend(zone.map(|zone| (labels::ZONE.to_owned(), zone.to_owned())));
    let spec = PodSpec {
        requests: pod.spec.requests.clone(),
        node_selector,
        required_node_terms: pod.spec.required_node_terms.clone(),
        tolerations: pod.spec.tolerations.clone(),
        priority: i32::MIN,
        owner: OwnerKind::CapacityBuffer,
        ..PodSpec::default()
    };
    Arc::new(Pod {
        uid: PodUid::from(format!("spare-{nth}-{}", pod.uid)),
        phase: PodPhase::Active,
        spec: Arc::new(spec),
        ..Pod::clone(pod)
    })
}

/// Takes the spares out of the plan; the nodes keep their size.
fn take_out(plan: &mut Plan, spares: &[Arc<Pod>]) {
    let uids: BTreeSet<&PodUid> = spares.iter().map(|pod| &pod.uid).collect();
    let is_real = |pod: &Arc<Pod>| !uids.contains(&pod.uid);
    for claim in &mut plan.new_claims {
        let those = claim.pods.iter().filter(|pod| !is_real(pod));
        those.for_each(|pod| claim.requests.subtract(&pod.spec.requests));
        claim.pods.retain(is_real);
    }
    plan.placements.retain(|it| is_real(&it.pod));
    plan.order.retain(|uid| !uids.contains(uid));
    for group in &mut plan.unschedulable {
        group.pods.retain(is_real);
    }
    plan.unschedulable.retain(|group| !group.pods.is_empty());
}
