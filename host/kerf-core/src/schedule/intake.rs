//! Which pods a round plans, in which order, and which it only reports.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::labels;
use crate::pod::Pod;
use crate::reason::UnschedulableReason;
use crate::requirement::Operator;
use crate::requirements::Requirements;
use crate::snapshot::Snapshot;

/// The pods of a round.
pub(super) struct Intake {
    /// Those to plan, in their order.
    pub(super) pods: Vec<Arc<Pod>>,
    /// Those that cannot be planned.
    pub(super) rejected: Vec<(Vec<Arc<Pod>>, UnschedulableReason)>,
}

/// Collects the pending pods, and those of nodes that are being removed.
pub(super) fn collect(snapshot: &Snapshot) -> Intake {
    let leaving = snapshot
        .nodes
        .iter()
        .filter(|node| !node.is_active())
        .flat_map(|node| &node.pods);
    let moving = leaving.filter(|pod| pod.is_reschedulable());
    let mut intake = Intake {
        pods: Vec::new(),
        rejected: Vec::new(),
    };
    for pod in snapshot.pending_pods.iter().chain(moving) {
        match objection(pod) {
            None => intake.pods.push(Arc::clone(pod)),
            Some(reason) => intake.rejected.push((vec![Arc::clone(pod)], reason)),
        }
    }
    intake.pods.sort_by(|a, b| planning_order(a, b));
    intake
}

/// Real pods first, and of them the large ones, since small ones fit into what they leave; then the oldest.
pub(super) fn planning_order(a: &Pod, b: &Pod) -> Ordering {
    let size = |pod: &Pod| {
        (
            pod.spec.requests.cpu_milli(),
            pod.spec.requests.memory_bytes(),
        )
    };
    let by_age = || {
        (a.created_at, &a.uid, &a.namespace, &a.name).cmp(&(
            b.created_at,
            &b.uid,
            &b.namespace,
            &b.name,
        ))
    };
    let by_size = || size(b).cmp(&size(a));
    a.is_virtual()
        .cmp(&b.is_virtual())
        .then_with(by_size)
        .then_with(by_age)
}

fn objection(pod: &Pod) -> Option<UnschedulableReason> {
    let spec = &pod.spec;
    if !spec.scheduling_gates.is_empty() {
        return Some(UnschedulableReason::Gated {
            gates: spec.scheduling_gates.clone(),
        });
    }
    if let Some(message) = &pod.invalid {
        return Some(UnschedulableReason::Invalid {
            message: message.clone(),
        });
    }
    if spec.has_resource_claims {
        return Some(UnschedulableReason::ResourceClaims);
    }
    let broken = spec
        .volumes
        .iter()
        .find_map(|volume| Some((volume.claim.clone(), volume.problem.clone()?)));
    if let Some((claim, problem)) = broken {
        return Some(UnschedulableReason::Volume { claim, problem });
    }
    let is_refused = |key: &str| labels::is_restricted(key) && !labels::is_set_by_registration(key);
    let selected = spec
        .node_selector
        .keys()
        .map(|key| labels::normalize_key(key));
    if let Some(key) = selected.into_iter().find(|key| is_refused(key)) {
        return Some(UnschedulableReason::RestrictedLabel {
            key: key.into_owned(),
        });
    }
    let required: Vec<&Requirements> = spec.required_node_terms.iter().collect();
    let keys = required
        .iter()
        .flat_map(|term| term.iter())
        .map(crate::requirement::Requirement::key);
    if let Some(key) = keys.into_iter().find(|key| is_refused(key)) {
        return Some(UnschedulableReason::RestrictedLabel {
            key: key.to_owned(),
        });
    }
    let refuses = |term: &&Requirements| {
        term.on(labels::NODE_POOL)
            .is_some_and(|requirement| requirement.operator() == Operator::DoesNotExist)
    };
    (!required.is_empty() && required.iter().all(refuses))
        .then_some(UnschedulableReason::RefusesNodePools)
}
