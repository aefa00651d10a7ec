//! The even spread of equal pods over zones, which kube-scheduler prefers without being asked.
//!
//! Its default constraint fills zones evenly with the pods of each ReplicaSet. A plan that does not count on that may buy
//! little room in one zone, and pods that must run there find it taken.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ids::PodUid;
use crate::labels;
use crate::plan::Plan;
use crate::pod::{Pod, PodSpec, TopologySpread, WhenUnsatisfiable};
use crate::selector::LabelSelector;
use crate::snapshot::Snapshot;

/// The snapshot, whose pending pods without constraints of their own prefer zones with fewer pods of the same labels.
pub(super) fn evened(snapshot: &Snapshot) -> Snapshot {
    let mut specs: BTreeMap<*const PodSpec, Arc<PodSpec>> = BTreeMap::new();
    let mut evened = snapshot.clone();
    for pod in &mut evened.pending_pods {
        if pod.is_virtual() || pod.spec.labels.is_empty() || !pod.spec.topology_spread.is_empty() {
            continue;
        }
        let spec = specs.entry(Arc::as_ptr(&pod.spec));
        let spec = spec.or_insert_with(|| Arc::new(spread(&pod.spec)));
        *pod = Arc::new(Pod {
            spec: Arc::clone(spec),
            ..Pod::clone(pod)
        });
    }
    evened
}

fn spread(spec: &PodSpec) -> PodSpec {
    let kin = LabelSelector {
        match_labels: spec.labels.clone(),
        ..LabelSelector::default()
    };
    let preferred = TopologySpread {
        when_unsatisfiable: WhenUnsatisfiable::ScheduleAnyway,
        ..TopologySpread::new(labels::ZONE, 1, kin)
    };
    PodSpec {
        topology_spread: vec![preferred],
        ..spec.clone()
    }
}

/// Puts the pods of the snapshot into the plan of another like it, and takes out what is not in the snapshot; the nodes
/// keep their size.
pub(super) fn restore(plan: &mut Plan, snapshot: &Snapshot) {
    let bound = snapshot.nodes.iter().flat_map(|node| &node.pods);
    let real = snapshot.pending_pods.iter().chain(bound);
    let real: BTreeMap<&PodUid, &Arc<Pod>> = real.map(|pod| (&pod.uid, pod)).collect();
    let original = |pod: &Arc<Pod>| real.get(&pod.uid).map(|pod| Arc::clone(pod));
    for claim in &mut plan.new_claims {
        let ours = claim.pods.iter().filter(|pod| original(pod).is_none());
        ours.for_each(|pod| claim.requests.subtract(&pod.spec.requests));
        claim.pods = claim.pods.iter().filter_map(original).collect();
    }
    plan.placements.retain_mut(|it| match original(&it.pod) {
        Some(pod) => {
            it.pod = pod;
            true
        }
        None => false,
    });
    plan.order.retain(|uid| real.contains_key(uid));
    for group in &mut plan.unschedulable {
        group.pods = group.pods.iter().filter_map(original).collect();
    }
    plan.unschedulable.retain(|group| !group.pods.is_empty());
}
