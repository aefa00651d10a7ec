//! Giving away the pods of claims that end soon: set apart, wait for room, drain.
//!
//! While such a claim counts as going, provisioning plans its pods elsewhere and launches what they need. Each step looks
//! at what is there, so it can be repeated and a restart goes on.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_api::names::{annotation, condition, event, reason};
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::ids::{NodeClaimName, PodUid};
use kerf_core::node::Node;
use kerf_core::plan::WorkBudget;
use kerf_core::preferences::Preferences;
use kerf_core::schedule::schedule;
use kerf_core::snapshot::Snapshot;
use kube::{Api, ResourceExt};

use crate::clock;
use crate::context::Context;
use crate::disruption::edit::{self, edit};
use crate::error::{Error, chain};
use crate::interruption::notice::Notice;
use crate::termination::claim::{Disruption, disrupt};

/// The label value of metrics.
const REASON: &str = "interrupted";

/// Moves every claim that ends soon on by one step.
pub async fn advance(context: &Context) {
    let now = clock::now();
    let claims = context
        .stores
        .nodeclaims
        .iter_saying(&[annotation::INTERRUPTION]);
    let going: Vec<(Arc<NodeClaim>, Notice)> = claims
        .into_iter()
        .filter(|claim| context.manages(&claim.spec.node_class_ref))
        .filter(|claim| claim.metadata.deletion_timestamp.is_none())
        .filter_map(|claim| {
            let notice = Notice::of(&claim).filter(|it| it.is_urgent(now))?;
            Some((claim, notice))
        })
        .collect();
    if going.is_empty() {
        return;
    }
    for (claim, notice) in &going {
        tell_failure(claim, set_apart(claim, notice, context).await);
    }
    let placed = places(context.snapshot(), now).await;
    for (claim, notice) in &going {
        let name = NodeClaimName::from(claim.name_any());
        let has_room = placed.as_ref().is_some_and(|it| it.contains(&name));
        if has_room || now >= notice.drains_at() {
            tell_failure(claim, drain(claim, notice, has_room, context).await);
        }
    }
}

fn tell_failure(claim: &NodeClaim, outcome: Result<(), Error>) {
    match outcome {
        Err(error) if !error.is_conflict() && !error.is_not_found() => {
            tracing::warn!(nodeclaim = %claim.name_any(), error = %chain(&error), "cannot evacuate the node; tried again");
        }
        Ok(()) | Err(_) => {}
    }
}

/// No new pods come, and its pods are planned elsewhere from now on.
async fn set_apart(claim: &NodeClaim, notice: &Notice, context: &Context) -> Result<(), Error> {
    let nodes = Api::all(context.client.clone());
    for node in nodes_of(claim, context) {
        edit(&nodes, &*node, edit::tainted).await?;
    }
    if !claim.is_true(condition::DISRUPTION_REASON) {
        let api: Api<NodeClaim> = Api::all(context.client.clone());
        let now = clock::now();
        let text = notice.to_string();
        let marked = |it: &NodeClaim| {
            edit::with_conditions(it, now, |draft| {
                let type_ = condition::DISRUPTION_REASON;
                draft
                    .conditions
                    .set_true_because(type_, reason::INTERRUPTED, &text);
                draft.conditions.clear(condition::DISRUPTABLE);
            })
        };
        edit(&api, claim, marked).await?;
        let name = NodeClaimName::from(claim.name_any());
        context.cluster.mark_for_deletion(&name);
    }
    Ok(())
}

fn nodes_of(claim: &NodeClaim, context: &Context) -> Vec<Arc<k8s_openapi::api::core::v1::Node>> {
    let id = claim.provider_id();
    id.map(|id| context.nodes_of(id)).unwrap_or_default()
}

/// The claims whose pods all fit on nodes that are ready now; none when that could not be found out.
async fn places(snapshot: Arc<Snapshot>, now: Timestamp) -> Option<BTreeSet<NodeClaimName>> {
    let found = tokio::task::spawn_blocking(move || roomy(&snapshot, now)).await;
    found
        .inspect_err(|error| tracing::error!(%error, "a look for room died: our bug; tried again"))
        .ok()
}

/// Pure. All nodes that go are looked at together, so that no two count on the same room.
fn roomy(snapshot: &Snapshot, now: Timestamp) -> BTreeSet<NodeClaimName> {
    let is_there = |node: &Arc<Node>| {
        !node.is_active() || !node.is_managed() || (node.is_initialized && node.is_ready)
    };
    let today = Snapshot {
        // Without pools nothing new is planned.
        pools: Vec::new(),
        pending_pods: Vec::new(),
        nodes: snapshot
            .nodes
            .iter()
            .filter(|it| is_there(it))
            .cloned()
            .collect(),
        ..snapshot.clone()
    };
    let plan = schedule(&today, &Preferences::none(), WorkBudget::ROUND, now);
    let placed: BTreeSet<&PodUid> = plan.placements.iter().map(|it| &it.pod.uid).collect();
    let going = today.nodes.iter().filter(|node| !node.is_active());
    let has_room = |node: &&Arc<Node>| {
        let mut movers = node.pods.iter().filter(|pod| pod.is_reschedulable());
        movers.all(|pod| placed.contains(&pod.uid))
    };
    going
        .filter(has_room)
        .filter_map(|node| node.node_claim.clone())
        .collect()
}

/// Lets the claim go. Its drain ends with the notice, or earlier where the claim's own time does.
async fn drain(
    claim: &NodeClaim,
    notice: &Notice,
    has_room: bool,
    context: &Context,
) -> Result<(), Error> {
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    let written = edit(&api, claim, |it| hurried(it, notice)).await?;
    let why = match has_room {
        true => "there is room for its pods",
        false => "there is no time left to wait for room",
    };
    let note = format!("{notice}: {why}");
    context
        .events
        .normal(claim, event::DISRUPTION_TERMINATING, &note)
        .await;
    for node in nodes_of(claim, context) {
        context
            .events
            .normal(&*node, event::DISRUPTION_TERMINATING, &note)
            .await;
    }
    let disruption = Disruption {
        reason: REASON,
        note: &note,
    };
    disrupt(&written, &api, context, &disruption).await?;
    let metrics = &context.metrics.interruptions;
    metrics.drained(notice, has_room, clock::now());
    Ok(())
}

/// The claim with an end of its drain that is not after that of the notice. Pure.
pub(super) fn hurried(claim: &NodeClaim, notice: &Notice) -> NodeClaim {
    let mut claim = claim.clone();
    let wanted = kerf_api::time::whole_seconds(notice.forces_at());
    let annotations = claim.annotations_mut();
    let set: Option<Timestamp> = annotations
        .get(annotation::TERMINATION_TIMESTAMP)
        .and_then(|text| text.parse().ok());
    if set.is_none_or(|set| set > wanted) {
        annotations.insert(
            annotation::TERMINATION_TIMESTAMP.to_owned(),
            wanted.to_string(),
        );
    }
    claim
}
