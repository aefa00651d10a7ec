//! The life of a NodeClaim up to its deletion: launch, registration, initialization, and giving up.
//!
//! Each step looks only at what is written down (the claim, its Node, the cloud's tags), so a restart at any point
//! goes on where the last process stopped.

pub mod consistency;
pub mod expiration;
pub mod groups;
pub mod health;
pub mod hydration;
pub mod initialization;
pub mod launch;
pub mod liveness;
pub mod offerings;
pub mod registration;
pub mod tagging;
mod together;

use std::sync::Arc;
use std::time::Duration;

use kerf_api::names::finalizer;
use kerf_api::nodeclaim::NodeClaim;
use kube::{Api, ResourceExt};

use crate::context::Context;
use crate::draft::Draft;
use crate::error::Error;
use crate::reconciler::Action;
use crate::{clock, failpoint, termination};

/// Claims whose pass is written at the same time, which is two requests one after the other. Of a hundred that were launched by
/// one call the first were written when the last were, and their nodes stayed closed to pods for so long. Most of what the client
/// lets go: with half of it a claim waited for 6 s where an answer takes 0.3.
pub const WRITES_MAX: usize = 16;

/// One pass over one claim.
///
/// # Errors
/// When the API server or the cloud could not be asked; the pass is then repeated.
pub async fn reconcile(claim: Arc<NodeClaim>, context: Arc<Context>) -> Result<Action, Error> {
    if !context.manages(&claim.spec.node_class_ref) {
        return Ok(Action::await_change());
    }
    if claim.metadata.deletion_timestamp.is_some() {
        return termination::claim::finalize(&claim, &context).await;
    }
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    context
        .reach_if(claim.status.is_none(), failpoint::CLAIM_CREATED)
        .await;
    let mut draft = Draft::open(&claim, clock::now());
    guard(&mut draft, &api).await?;
    hydration::claim(&mut draft);
    let steps = advance(&mut draft, &api, &context).await;
    // What was found out is written even when a step failed: its message is what the user looks for.
    let written = write(&mut draft, &api, &context).await;
    context.stores.nodeclaims.note_written(&draft.claim);
    written?;
    let is_launched_now = claim.provider_id().is_none() && draft.claim.provider_id().is_some();
    context
        .reach_if(is_launched_now, failpoint::LAUNCH_RECORDED)
        .await;
    let next = steps?;
    Ok(next.map_or_else(Action::await_change, Action::requeue))
}

async fn write(draft: &mut Draft, api: &Api<NodeClaim>, context: &Context) -> Result<(), Error> {
    // The semaphore is never closed, and without it the claim is written all the same.
    let _place = context.claim_writes.acquire().await;
    draft.write(api).await
}

/// The finalizer comes before everything else: an instance must never outlive its claim unnoticed.
async fn guard(draft: &mut Draft, api: &Api<NodeClaim>) -> Result<(), Error> {
    if draft
        .claim
        .finalizers()
        .iter()
        .any(|found| found == finalizer::TERMINATION)
    {
        return Ok(());
    }
    draft
        .claim
        .finalizers_mut()
        .push(finalizer::TERMINATION.to_owned());
    draft.note(api).await
}

async fn advance(
    draft: &mut Draft,
    api: &Api<NodeClaim>,
    context: &Arc<Context>,
) -> Result<Option<Duration>, Error> {
    let launched = launch::advance(draft, api, context).await?;
    if launched == launch::Step::GaveUp {
        return Ok(None);
    }
    let mut nodes = draft
        .claim
        .provider_id()
        .map(|id| context.nodes_of(id))
        .unwrap_or_default();
    let registered = registration::advance(draft, &mut nodes, context).await?;
    hydration::node(draft, &nodes, context).await?;
    let initialized = initialization::advance(draft, &nodes, context).await?;
    consistency::advance(draft, &nodes, context).await;
    let alive = liveness::advance(draft, api, context).await?;
    let expired = expiration::advance(draft, api, context).await?;
    Ok([
        launched.again_after(),
        registered,
        initialized,
        alive,
        expired,
    ]
    .into_iter()
    .flatten()
    .min())
}
