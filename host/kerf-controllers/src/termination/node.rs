//! The finalizer of a Node: no new pods, drain, wait for volumes, delete the instance, let go.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use kerf_api::names::{annotation, condition, event, finalizer, label, reason, taint};
use kerf_api::nodeclaim::NodeClaim;
use kerf_cloud::provider::instance::parse_provider_id;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use tokio::time::Instant;

use crate::api_call::{bounded, gone_is_fine};
use crate::context::Context;
use crate::error::Error;
use crate::lifecycle::initialization::is_ready;
use crate::reconciler::Action;
use crate::termination::drain::{self, Drained};
use crate::termination::progress::Progress;
use crate::termination::{instance, volumes};
use crate::{clock, failpoint, patch};

/// Karpenter's name for it, in metrics.
const CONTROLLER: &str = "node.termination";
/// How often a node whose volumes are still attached is looked at (Karpenter: same).
const VOLUMES_POLL: Duration = Duration::from_secs(1);
/// How often a deleted instance is looked at until it is gone. Karpenter: differs, because it waits for five seconds at
/// once, and a node that is being removed counts against its pool's budget for that long.
const INSTANCE_POLL_MIN: Duration = Duration::from_secs(1);
const INSTANCE_POLL_MAX: Duration = Duration::from_secs(5);

/// One pass over one Node. Nodes that are not being deleted, or are not ours, need nothing.
///
/// # Errors
/// When the API server or the cloud could not be asked; the Node then keeps its finalizer.
pub async fn reconcile(node: Arc<Node>, context: Arc<Context>) -> Result<Action, Error> {
    let is_ours = node
        .finalizers()
        .iter()
        .any(|found| found == finalizer::TERMINATION);
    if node.metadata.deletion_timestamp.is_none() || !is_ours {
        return Ok(Action::await_change());
    }
    let claim = context.claim_of(&node);
    delete_claim(claim.as_deref(), &context).await?;
    match machine(&node, &context).await? {
        Machine::Answers => {}
        // Nobody is left there who could end its pods: releasing them is all that a drain could still do.
        Machine::Stopped => {
            return end(&node, &mut Progress::new(claim.as_deref(), &context)).await;
        }
        Machine::Gone => return release(&node, &context).await,
    }
    let node = &set_apart(&node, &context).await?;
    context.reach(failpoint::NODE_SET_APART).await;
    let mut progress = Progress::new(claim.as_deref(), &context);
    progress.tell_deadline(node).await;
    if let Some(again) = empty(node, &mut progress).await? {
        return Ok(Action::requeue(again));
    }
    context.reach(failpoint::DRAINED).await;
    end(node, &mut progress).await
}

/// Deletes the machine and, once it is gone, lets go of the Node.
async fn end(node: &Node, progress: &mut Progress<'_>) -> Result<Action, Error> {
    let context = progress.context;
    let is_gone = delete_instance(node, context).await;
    if let Ok(false) = is_gone {
        progress.done(condition::INSTANCE_TERMINATING);
    }
    // How far it came is seen also where the cloud refuses.
    progress.write().await?;
    if !is_gone? {
        let waited = progress.since(condition::INSTANCE_TERMINATING);
        return Ok(Action::requeue(
            waited.clamp(INSTANCE_POLL_MIN, INSTANCE_POLL_MAX),
        ));
    }
    context.metrics.draining.drained(node);
    context.reach(failpoint::NODE_INSTANCE_DELETED).await;
    release(node, context).await
}

/// Waits for pods, then for volumes. Returns when to look again; none when the machine may go.
async fn empty(node: &Node, progress: &mut Progress<'_>) -> Result<Option<Duration>, Error> {
    let context = progress.context;
    let uid = node.uid().unwrap_or_default();
    // From before the look at its pods.
    let more_may_come_for = context.set_apart.wait(&uid, Instant::now());
    let staying = match drain::drain(node, progress.deadline, context).await? {
        Drained::Yes { staying } => staying,
        Drained::NotYet { waiting, next_look } => {
            context.reach(failpoint::EVICTED).await;
            let message = format!("{waiting} pods are leaving");
            progress
                .waits(condition::DRAINED, reason::DRAINING, &message)
                .await?;
            return Ok(Some(next_look));
        }
    };
    if more_may_come_for.is_some() {
        return Ok(more_may_come_for);
    }
    progress.done(condition::DRAINED);
    let held = volumes::held(node, &staying, context).await;
    if held.is_err() {
        // What it waits for now is not its pods.
        progress.write().await?;
    }
    let Some(message) = held? else {
        progress.done(condition::VOLUMES_DETACHED);
        return Ok(None);
    };
    let type_ = condition::VOLUMES_DETACHED;
    if progress.is_late() {
        let reason = reason::TERMINATION_GRACE_PERIOD_ELAPSED;
        progress.gave_up(type_, reason, &message);
        return Ok(None);
    }
    progress
        .waits(type_, reason::AWAITING_VOLUME_DETACHMENT, &message)
        .await?;
    Ok(Some(VOLUMES_POLL))
}

/// `kubectl delete node` must work too: the claim goes with its Node.
async fn delete_claim(claim: Option<&NodeClaim>, context: &Context) -> Result<(), Error> {
    let Some(claim) = claim.filter(|claim| claim.metadata.deletion_timestamp.is_none()) else {
        return Ok(());
    };
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    gone_is_fine(bounded(api.delete(&claim.name_any(), &DeleteParams::default())).await)
        .map_err(|source| Error::kube("delete", claim, source))
}

/// Whether there is anything left to drain.
enum Machine {
    /// It is there, or its Node says that it is.
    Answers,
    /// The Node does not answer, and the cloud says that its instance is stopped.
    Stopped,
    /// The Node does not answer, and the cloud says that its instance is gone.
    Gone,
}

async fn machine(node: &Node, context: &Context) -> Result<Machine, Error> {
    if is_ready(node) {
        return Ok(Machine::Answers);
    }
    let Some(id) = instance_id(node) else {
        return Ok(Machine::Answers);
    };
    let found = context
        .cloud
        .on(CONTROLLER)
        .describe(std::slice::from_ref(&id))
        .await
        .map_err(|error| Error::Cloud {
            operation: "look up",
            object: format!("instance {id}"),
            message: crate::error::chain(&error),
        })?;
    Ok(match found.first() {
        None => Machine::Gone,
        Some(instance) if instance.has_stopped() => Machine::Stopped,
        Some(_) => Machine::Answers,
    })
}

fn instance_id(node: &Node) -> Option<String> {
    let provider_id = node.spec.as_ref()?.provider_id.as_deref()?;
    parse_provider_id(provider_id).map(|(_, id)| id.to_owned())
}

/// No new pods and no traffic from load balancers.
async fn set_apart(node: &Node, context: &Context) -> Result<Node, Error> {
    let mut wanted = node.clone();
    let taints = wanted
        .spec
        .get_or_insert_default()
        .taints
        .get_or_insert_default();
    taints.retain(|found| found.key != taint::DISRUPTED || found.effect == "NoSchedule");
    if !taints.iter().any(|found| found.key == taint::DISRUPTED) {
        taints.push(Taint {
            key: taint::DISRUPTED.to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        });
    }
    wanted.labels_mut().insert(
        label::EXCLUDE_FROM_EXTERNAL_LOAD_BALANCERS.to_owned(),
        "karpenter".to_owned(),
    );
    patch::write(&Api::all(context.client.clone()), node, &wanted).await
}

/// When the drain must be over, if the claim has a terminationGracePeriod.
#[must_use]
pub fn deadline(claim: &NodeClaim) -> Option<Timestamp> {
    if let Some(text) = claim.annotations().get(annotation::TERMINATION_TIMESTAMP) {
        return text.parse().ok();
    }
    let deleted_at = claim.metadata.deletion_timestamp.as_ref()?.0;
    let grace = claim
        .spec
        .termination_grace_period
        .as_ref()?
        .parse()
        .ok()??;
    deleted_at.checked_add(grace).ok()
}

/// True once the cloud says that the instance is gone.
async fn delete_instance(node: &Node, context: &Context) -> Result<bool, Error> {
    match instance_id(node) {
        Some(id) => instance::delete(&[id], node, CONTROLLER, context).await,
        None => Ok(true),
    }
}

async fn release(node: &Node, context: &Context) -> Result<Action, Error> {
    let mut wanted = node.clone();
    wanted
        .finalizers_mut()
        .retain(|found| found != finalizer::TERMINATION);
    match patch::write(&Api::all(context.client.clone()), node, &wanted).await {
        Err(error) if !error.is_not_found() => return Err(error),
        Ok(_) | Err(_) => {}
    }
    context.metrics.draining.node_gone(node, clock::now());
    let instance = instance_id(node).unwrap_or_default();
    let note = format!("it is gone and so is its instance {instance}");
    context.events.normal(node, event::FINALIZED, &note).await;
    tracing::info!(node = %node.name_any(), "node is gone");
    Ok(Action::await_change())
}
