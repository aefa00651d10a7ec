//! The finalizer of a NodeClaim: its Node goes first, then its instance, then itself.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Node;
use kerf_api::names::{annotation, condition, event, finalizer, label};
use kerf_api::nodeclaim::NodeClaim;
use kerf_cloud::provider::instance::parse_provider_id;
use kerf_cloud::provider::launch::Attempt;
use kerf_cloud::provider::tags;
use kerf_core::node_pool::ConsolidationPolicy;
use kube::api::{DeleteParams, Preconditions};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt};

use crate::api_call::{bounded, gone_is_fine};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::Error;
use crate::lifecycle::groups::{self, Place};
use crate::reconciler::Action;
use crate::termination::{instance, node};
use crate::{clock, failpoint};

/// Karpenter's name for it, in metrics.
pub const CONTROLLER: &str = "nodeclaim.lifecycle";

/// How often a deleted instance is looked at until it is gone (Karpenter: same).
const INSTANCE_POLL: Duration = Duration::from_secs(5);

/// How often the instance of a launch that was cut off is looked for.
const UNSEEN_POLL: Duration = Duration::from_secs(1);

/// An instance shows in lists within this time after its launch: twice what launches wait for.
pub const SHOWS_WITHIN: SignedDuration = SignedDuration::from_secs(60);

/// The watch on Nodes triggers; this only covers a lost trigger.
const NODE_POLL: Duration = Duration::from_secs(10);

/// Why a claim goes.
#[derive(Debug, Clone, Copy)]
pub struct Disruption<'a> {
    /// The label value of metrics.
    pub reason: &'static str,
    /// For people.
    pub note: &'a str,
}

/// Deletes a claim that kerf itself decided to remove. Its pods are evicted by its finalizer's work, not here.
///
/// # Errors
/// When the claim cannot be deleted.
pub async fn disrupt(
    claim: &NodeClaim,
    api: &Api<NodeClaim>,
    context: &Context,
    disruption: &Disruption<'_>,
) -> Result<(), Error> {
    let pods = reschedulable_pods(claim, context);
    delete(claim, api, disruption.reason, disruption.note).await?;
    let policy = consolidation_policy(claim, disruption.reason, context);
    let metrics = &context.metrics.termination;
    metrics.disrupted(claim, disruption.reason, policy, pods);
    Ok(())
}

/// How many pods must run elsewhere when the claim's Node goes; none where it has no Node.
fn reschedulable_pods(claim: &NodeClaim, context: &Context) -> Option<usize> {
    let nodes = context.nodes_of(claim.provider_id()?);
    let pods = nodes
        .iter()
        .map(|node| context.cluster.reschedulable_pods(&node.name_any()));
    (!nodes.is_empty()).then(|| pods.sum())
}

/// Deletes a claim without counting it as a disruption. Its pods are evicted by its finalizer's work, not here.
///
/// # Errors
/// When the claim cannot be deleted.
pub async fn delete(
    claim: &NodeClaim,
    api: &Api<NodeClaim>,
    reason: &'static str,
    note: &str,
) -> Result<(), Error> {
    // A claim of the same name made since this decision is another claim.
    let preconditions = Preconditions {
        uid: claim.uid(),
        resource_version: None,
    };
    let params = DeleteParams {
        preconditions: Some(preconditions),
        ..DeleteParams::default()
    };
    gone_is_fine(bounded(api.delete(&claim.name_any(), &params)).await)
        .map_err(|source| Error::kube("delete", claim, source))?;
    tracing::info!(nodeclaim = %claim.name_any(), reason, note, "deleted NodeClaim");
    Ok(())
}

/// The policy of the claim's NodePool, as Karpenter's metrics write it, where consolidation has chosen the claim.
fn consolidation_policy(
    claim: &NodeClaim,
    reason: &str,
    context: &Context,
) -> Option<&'static str> {
    if !matches!(reason, "underutilized" | "empty") {
        return None;
    }
    let name = claim.labels().get(label::NODEPOOL)?;
    let pool = context.stores.nodepools.get(&ObjectRef::new(name))?;
    Some(match kerf_state::node_pool(&pool).pool.disruption.policy {
        ConsolidationPolicy::WhenEmpty => "when_empty",
        ConsolidationPolicy::WhenEmptyOrUnderutilized => "when_empty_or_underutilized",
        ConsolidationPolicy::Balanced => "balanced",
    })
}

/// One pass over a claim that is being deleted.
///
/// # Errors
/// When the API server or the cloud could not be asked; the claim then keeps its finalizer.
pub async fn finalize(claim: &NodeClaim, context: &Context) -> Result<Action, Error> {
    if !claim
        .finalizers()
        .iter()
        .any(|found| found == finalizer::TERMINATION)
    {
        return Ok(Action::await_change());
    }
    context.reach(failpoint::DELETION_SEEN).await;
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    let mut draft = Draft::open(claim, clock::now());
    set_deadline(&mut draft, &api, context).await?;
    if delete_nodes(claim, context).await? > 0 {
        context.reach(failpoint::NODES_DELETED).await;
        return Ok(Action::requeue(NODE_POLL));
    }
    let Some(ids) = instance_ids(claim, context).await? else {
        return Ok(Action::requeue(UNSEEN_POLL));
    };
    record_instance(&mut draft, &ids, &api, context).await?;
    if ids.is_empty() && may_still_show(claim, context) {
        return Ok(Action::requeue(UNSEEN_POLL));
    }
    let is_gone = ids.is_empty() || instance::delete(&ids, claim, CONTROLLER, context).await?;
    if !is_gone {
        draft.conditions.set_true(condition::INSTANCE_TERMINATING);
        draft.write(&api).await?;
        return Ok(Action::requeue(INSTANCE_POLL));
    }
    context.reach(failpoint::INSTANCE_DELETED).await;
    draft
        .claim
        .finalizers_mut()
        .retain(|found| found != finalizer::TERMINATION);
    match draft.write(&api).await {
        Err(error) if !error.is_not_found() => return Err(error),
        Ok(()) | Err(_) => {}
    }
    context.metrics.termination.claim_gone(claim, clock::now());
    let note = match &ids[..] {
        [] => "it is gone and had no instance".to_owned(),
        ids => format!("it is gone and so is its instance {}", ids.join(", ")),
    };
    context.events.normal(claim, event::FINALIZED, &note).await;
    tracing::info!(nodeclaim = %claim.name_any(), "NodeClaim is gone");
    Ok(Action::await_change())
}

/// Writes down which instance of its launch group is a claim's: once it is being deleted its place shows that no more.
async fn record_instance(
    draft: &mut Draft,
    ids: &[String],
    api: &Api<NodeClaim>,
    context: &Context,
) -> Result<(), Error> {
    let ([id], None, Some(_)) = (ids, draft.claim.provider_id(), Place::of(&draft.claim)) else {
        return Ok(());
    };
    draft.status_mut().provider_id = Some(format!("{}.{id}", context.settings.region));
    draft.write(api).await
}

/// Whether a process before this one called for an instance so shortly ago that it need not show yet. Calls of this
/// process have been answered, or are looked after by the launch.
fn may_still_show(claim: &NodeClaim, context: &Context) -> bool {
    let attempt = claim.annotations().get(annotation::LAUNCH_ATTEMPT);
    let attempt = attempt.and_then(|text| serde_json::from_str::<Attempt>(text).ok());
    // One that was found, deleted and is gone has shown.
    let has_shown = claim.is_true(condition::INSTANCE_TERMINATING);
    claim.provider_id().is_none()
        // Of a group it is known by then what its call made.
        && Place::of(claim).is_none()
        && !has_shown
        && attempt.is_some_and(|attempt| {
            let was_cut_off = attempt.at < context.started_at;
            was_cut_off && clock::now().duration_since(attempt.at) < SHOWS_WITHIN
        })
}

/// Writes down when the drain must be over, once; from then on an edit of the clock or of the claim moves it no more.
async fn set_deadline(
    draft: &mut Draft,
    api: &Api<NodeClaim>,
    context: &Context,
) -> Result<(), Error> {
    let annotations = draft.claim.annotations();
    if annotations.contains_key(annotation::TERMINATION_TIMESTAMP) {
        return Ok(());
    }
    let Some(deadline) = node::deadline(&draft.claim) else {
        return Ok(());
    };
    let text = kerf_api::time::whole_seconds(deadline).to_string();
    let note = format!(
        "pods are deleted at {text} whatever protects them: terminationGracePeriod is over then"
    );
    draft
        .claim
        .annotations_mut()
        .insert(annotation::TERMINATION_TIMESTAMP.to_owned(), text);
    draft.write(api).await?;
    context
        .events
        .warning(
            &draft.claim,
            event::TERMINATION_GRACE_PERIOD_EXPIRING,
            &note,
        )
        .await;
    Ok(())
}

/// Deletes the claim's Nodes that are not being deleted yet; returns how many are still there.
async fn delete_nodes(claim: &NodeClaim, context: &Context) -> Result<usize, Error> {
    let Some(provider_id) = claim.provider_id() else {
        return Ok(0);
    };
    let nodes = context.nodes_of(provider_id);
    let api: Api<Node> = Api::all(context.client.clone());
    for node in nodes
        .iter()
        .filter(|node| node.metadata.deletion_timestamp.is_none())
    {
        gone_is_fine(bounded(api.delete(&node.name_any(), &DeleteParams::default())).await)
            .map_err(|source| Error::kube("delete", &**node, source))?;
        let note = format!(
            "node {} is drained and removed with its NodeClaim {}",
            node.name_any(),
            claim.name_any()
        );
        context
            .events
            .normal(&**node, event::DISRUPTION_TERMINATING, &note)
            .await;
    }
    // A Node that never got our finalizer goes at once; only those that must be drained keep the claim waiting.
    let is_drained_first = |node: &&Arc<Node>| {
        node.finalizers()
            .iter()
            .any(|found| found == finalizer::TERMINATION)
    };
    Ok(nodes.iter().filter(is_drained_first).count())
}

/// The recorded instance; without one, those that the launch group's tags show. A claim that was never launched has
/// none, and a launch that nobody remembers is found. None while that is not known.
async fn instance_ids(claim: &NodeClaim, context: &Context) -> Result<Option<Vec<String>>, Error> {
    if let Some((_, id)) = claim.provider_id().and_then(parse_provider_id) {
        return Ok(Some(vec![id.to_owned()]));
    }
    let Some(group) = claim.annotations().get(annotation::LAUNCH_GROUP) else {
        return Ok(Some(Vec::new()));
    };
    if !claim.annotations().contains_key(annotation::LAUNCH_ATTEMPT) {
        return Ok(Some(Vec::new()));
    }
    if Place::of(claim).is_some() {
        return Ok(groups::of_deleted(claim, context).await);
    }
    let found = context
        .cloud
        .on(CONTROLLER)
        .find_by_tags(&[(tags::LAUNCH_GROUP, group)])
        .await
        .map_err(|error| Error::Cloud {
            operation: "look up the instances of",
            object: crate::error::describe(claim),
            message: crate::error::chain(&error),
        })?;
    Ok(Some(
        found.into_iter().map(|instance| instance.id).collect(),
    ))
}
