//! Tagging: the instances of claims that were launched with others carry their claims' names too.
//!
//! An instance that was launched by itself has it from its launch. One call tags one instance, since each name is
//! another, so that this works beside the reconcilers: no node waits for it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use kerf_api::names::annotation;
use kerf_api::nodeclaim::NodeClaim;
use kerf_cloud::provider::instance::parse_provider_id;
use kerf_cloud::provider::tags;
use kube::{Api, ResourceExt};
use tokio::time::interval;

use crate::context::Context;
use crate::error::{Error, chain};
use crate::lifecycle::groups::Place;
use crate::patch;

/// Karpenter's name for it, in metrics.
const CONTROLLER: &str = "nodeclaim.tagging";
/// A look that finds nothing waits for a change of the claims, and one that finds something reads those only.
const EVERY: Duration = Duration::from_secs(1);
/// Calls that are under way at the same time: enough to hide the API's latency; how many a second is the client's to say.
const CONCURRENCY: usize = 16;

/// What the annotation says of an instance that is tagged.
pub(crate) const TAGGED: &str = "true";

/// Tags until the process ends.
pub async fn run(context: Arc<Context>) {
    let mut ticks = interval(EVERY);
    // By uid: the watch may lag behind what was written.
    let mut done = BTreeSet::new();
    let mut seen = None;
    loop {
        ticks.tick().await;
        let claims = &context.stores.nodeclaims;
        let changes = Some(claims.changes());
        if seen == changes {
            continue;
        }
        let untagged = claims.iter_without(annotation::TAGGED, TAGGED);
        let mut waiting: Vec<_> = untagged.filter(|it| is_waiting(it)).collect();
        // What fails is tried again with the next tick.
        seen = changes.filter(|_| waiting.is_empty());
        let uids: BTreeSet<String> = waiting.iter().filter_map(|it| it.uid()).collect();
        done.retain(|uid| uids.contains(uid));
        waiting.retain(|it| it.uid().is_some_and(|uid| !done.contains(&uid)));
        waiting.retain(|it| !claims.is_behind(it));
        let calls: Vec<_> = waiting.iter().map(|claim| tag(claim, &context)).collect();
        let tagged: Vec<Option<String>> = stream::iter(calls)
            .buffer_unordered(CONCURRENCY)
            .collect()
            .await;
        done.extend(tagged.into_iter().flatten());
    }
}

/// Whether the claim has an instance of a group that does not carry its name yet. Pure.
fn is_waiting(claim: &NodeClaim) -> bool {
    let tagged = claim.annotations().get(annotation::TAGGED);
    claim.metadata.deletion_timestamp.is_none()
        && claim.provider_id().is_some()
        && tagged.is_none_or(|it| it != TAGGED)
        && Place::of(claim).is_some()
}

/// The claim's uid, once its instance is tagged and that is written down.
async fn tag(claim: &NodeClaim, context: &Context) -> Option<String> {
    match try_tag(claim, context).await {
        Ok(()) => claim.uid(),
        Err(error) => {
            tracing::warn!(nodeclaim = %claim.name_any(), error = %chain(&error), "cannot tag the instance; tried again");
            None
        }
    }
}

async fn try_tag(claim: &NodeClaim, context: &Context) -> Result<(), Error> {
    let Some((_, id)) = claim.provider_id().and_then(parse_provider_id) else {
        return Ok(());
    };
    let tag = (tags::NODE_CLAIM.to_owned(), claim.name_any());
    let outcome = context.cloud.on(CONTROLLER).tag(id, &[tag]).await;
    outcome.map_err(|error| Error::Cloud {
        operation: "tag",
        object: format!("instance {id}"),
        message: chain(&error),
    })?;
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    // It is launched: what else it might have been is a fifth of the object, which the API server goes through at each write.
    let obsolete = annotation::LAUNCH_OFFERINGS;
    match patch::annotate(&api, claim, (annotation::TAGGED, TAGGED), obsolete).await {
        Ok(written) => {
            context.stores.nodeclaims.note_written(&written);
            Ok(())
        }
        // The claim is gone, or another has its name: it is nobody's any more.
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
        Err(error) => Err(error),
    }
}
