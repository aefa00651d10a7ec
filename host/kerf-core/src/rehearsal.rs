//! Large plans, rehearsed: kube-scheduler binds the pods of a plan and does not know where the plan has put them.
//!
//! It prefers the emptiest node that fits, in the order of its queue, and spreads equal pods over zones, so that nodes which
//! a plan has filled to the brim leave some pods over. A second look would launch for those, but it comes when
//! kube-scheduler has tried all others, which takes it seconds where pods are thousands. So [`schedule`] plans with
//! kube-scheduler's spread and a little room, binds the pods as it would, and plans again with room for those that were left.

mod binding;
mod evened;
mod stand;

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

use binding::extra;
pub use binding::{Guest, PODS_MIN, left_over};
use evened::{evened, restore};

/// Plans of one call. The second seldom leaves any pod; what it leaves or what is too dear takes a few more.
const PLANS_MAX: usize = 8;
/// What the room may cost, of the plan without it: as much as the nodes that 4 % of the pods would need, which the brim of
/// a plan leaves. Where many small nodes leave more over, a second look is cheaper: then it is known which pods are left.
const DEARER_PERCENT_MAX: u64 = 5;

/// As [`schedule_from`], with enough room that kube-scheduler need not bind as planned.
pub fn schedule(
    snapshot: &Snapshot,
    preferences: &Preferences,
    homes: &Homes,
    budget: WorkBudget,
    now: Timestamp,
) -> Plan {
    let draft = schedule_from(snapshot, preferences, homes, budget, now);
    rehearse(draft, snapshot, preferences, homes, budget, now)
}

/// As [`schedule`], for a caller who has made the `draft`: what [`schedule_from`] makes of the same.
pub fn rehearse(
    draft: Plan,
    snapshot: &Snapshot,
    preferences: &Preferences,
    homes: &Homes,
    budget: WorkBudget,
    now: Timestamp,
) -> Plan {
    let from = |snapshot: &Snapshot, homes: &Homes| {
        schedule_from(snapshot, preferences, homes, budget, now)
    };
    let make = |snapshot: &Snapshot| cheaper(from(snapshot, homes), snapshot, homes, &from);
    let plain = cheaper(draft, snapshot, homes, &from);
    let Some(left) = left_over(snapshot, &plain) else {
        return plain;
    };
    let is_too_dear = |plan: &Plan| {
        plan.price_per_hour() > dearest(plain.price_per_hour())
            || plan.unschedulable_pods() > plain.unschedulable_pods()
    };
    let even = evened(snapshot);
    let mut spares = Spares {
        extra: spares_for(&extra(snapshot, &plain), "extra"),
        left: Vec::new(),
    };
    let (mut least, mut best) = (left.len(), None);
    for nth in 1..PLANS_MAX {
        let mut plan = make(&spares.beside(&even));
        if is_too_dear(&plan) {
            if spares.give_up_some() {
                continue;
            }
            break;
        }
        restore(&mut plan, snapshot);
        let left = left_over(snapshot, &plan).unwrap_or_default();
        let is_enough = left.is_empty();
        let more = spares_for(&left, &format!("left-{nth}"));
        spares.left.extend(more);
        if left.len() <= least {
            (least, best) = (left.len(), Some(plan));
        }
        if is_enough {
            break;
        }
    }
    best.unwrap_or(plain)
}

/// Pods that exist in one call only, to keep room.
struct Spares {
    /// What no rehearsal asked for, given up where it is too dear.
    extra: Vec<Arc<Pod>>,
    /// As large as pods that a rehearsal left.
    left: Vec<Arc<Pod>>,
}

impl Spares {
    /// Leaves out what is too dear: first what no rehearsal asked for, then every second of the rest; false when that is
    /// nothing.
    fn give_up_some(&mut self) -> bool {
        if !self.extra.is_empty() {
            self.extra.clear();
            return true;
        }
        let mut nth = 0;
        let before = self.left.len();
        self.left.retain(|_| {
            nth += 1;
            nth % 2 == 0
        });
        before > 0
    }

    fn beside(&self, snapshot: &Snapshot) -> Snapshot {
        let mut roomier = snapshot.clone();
        let spares = self.extra.iter().chain(&self.left);
        roomier.pending_pods.extend(spares.cloned());
        roomier
    }
}

/// The plan with the homes, `kept`, or one without any where pods have lost theirs to others and that is cheaper: many small holes, each kept for
/// one pod, hold less than the same room that is filled anew, large pods first.
fn cheaper(
    kept: Plan,
    snapshot: &Snapshot,
    homes: &Homes,
    from: &dyn Fn(&Snapshot, &Homes) -> Plan,
) -> Plan {
    let mut launched_for = kept.new_claims.iter().flat_map(|claim| &claim.pods);
    if !launched_for.any(|pod| homes.contains_key(&pod.uid)) {
        return kept;
    }
    let anew = from(snapshot, &Homes::new());
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

fn spares_for(guests: &[Guest<'_>], name: &str) -> Vec<Arc<Pod>> {
    let made = guests.iter().map(|guest| spare(guest, name));
    made.collect()
}

/// A pod as large as the other and as particular about nodes.
fn spare(Guest { pod, zone }: &Guest<'_>, name: &str) -> Arc<Pod> {
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
        uid: PodUid::from(format!("spare-{name}-{}", pod.uid)),
        phase: PodPhase::Active,
        spec: Arc::new(spec),
        ..Pod::clone(pod)
    })
}
