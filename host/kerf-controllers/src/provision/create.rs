//! Creating the NodeClaims of a plan. A create may succeed without telling, so each is repeated under its own name.

use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::labels;
use kerf_core::plan::{Plan, PlannedClaim};
use kube::api::PostParams;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt};

use crate::api_call::{bounded, is_conflict};
use crate::context::Context;
use crate::error::{Error, chain};
use crate::lifecycle::offerings;
use crate::metrics::CreatedLabels;
use crate::patch::FIELD_MANAGER;
use crate::provision::claim;

/// Creates that are under way at the same time: enough to hide the API server's latency.
const CONCURRENCY: usize = 8;
/// Tries per claim. What is still not created is planned again in the next round.
const TRIES: u32 = 3;
/// Before a create is repeated.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Creates all claims of the plan; per planned claim the object, or none when it could not be created.
pub async fn create_all(plan: &Plan, context: &Context) -> Vec<Option<NodeClaim>> {
    for planned in &plan.new_claims {
        let offerings = offerings::encode(&planned.offerings);
        context.launches.announce(&planned.pool, &offerings);
    }
    let creates: Vec<_> = plan
        .new_claims
        .iter()
        .map(|planned| create_or_say_why(planned, context))
        .collect();
    stream::iter(creates).buffered(CONCURRENCY).collect().await
}

async fn create_or_say_why(planned: &PlannedClaim, context: &Context) -> Option<NodeClaim> {
    match create(planned, context).await {
        Ok(created) => Some(created),
        Err(error) => {
            let offerings = offerings::encode(&planned.offerings);
            context.launches.cancel(&planned.pool, &offerings);
            tracing::warn!(nodepool = %planned.pool, error = %chain(&error), "NodeClaim not created; its pods are planned again");
            None
        }
    }
}

async fn create(planned: &PlannedClaim, context: &Context) -> Result<NodeClaim, Error> {
    create_named(
        &claim::fresh_name(&planned.pool),
        planned,
        "provisioned",
        context,
    )
    .await
}

/// Creates a planned claim under a name that nobody else uses; `reason` is the label of metrics.
///
/// # Errors
/// When its pool is gone, or the API server refused or did not answer three times in a row. The claim may exist then.
pub async fn create_named(
    name: &str,
    planned: &PlannedClaim,
    reason: &str,
    context: &Context,
) -> Result<NodeClaim, Error> {
    let Some(pool) = context.stores.nodepools.get(&ObjectRef::new(&planned.pool)) else {
        let object = format!("NodePool {}", planned.pool);
        return Err(Error::Cloud {
            operation: "find",
            object,
            message: "it was deleted".to_owned(),
        });
    };
    let object = claim::build(name, planned, &pool);
    let created = create_once(&object, context).await?;
    // The next plan must see the claim, and the watch may be slower than the next pod.
    context.cluster.apply_claim(&created);
    let relaxed = created.annotations().get(labels::MIN_VALUES_RELAXED);
    let labels = CreatedLabels {
        reason: reason.to_owned(),
        nodepool: planned.pool.to_string(),
        min_values_relaxed: relaxed.is_some_and(|it| it == "true").to_string(),
    };
    context
        .metrics
        .nodeclaims_created
        .get_or_create(&labels)
        .inc();
    tracing::info!(
        nodeclaim = created.metadata.name.as_deref().unwrap_or_default(),
        nodepool = %planned.pool,
        pods = planned.pods.len(),
        first_choice = planned.offerings.first().map(|it| format!("{}/{}/{}", it.instance_type, it.zone, it.capacity_type)),
        reason = %planned.reason,
        "created NodeClaim"
    );
    Ok(created)
}

async fn create_once(object: &NodeClaim, context: &Context) -> Result<NodeClaim, Error> {
    let api: Api<NodeClaim> = Api::all(context.urgent_client.clone());
    let params = PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    };
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let mut tries = 0;
    loop {
        tries += 1;
        match bounded(api.create(&params, object)).await {
            Ok(created) => return Ok(created),
            // The name is ours alone: what exists is what an earlier try made without telling.
            Err(error) if tries > 1 && is_conflict(&error) => {
                return bounded(api.get(name))
                    .await
                    .map_err(|source| Error::kube("read", object, source));
            }
            Err(source) if tries >= TRIES || is_refusal(&source) => {
                return Err(Error::kube("create", object, source));
            }
            Err(_) => tokio::time::sleep(RETRY_AFTER).await,
        }
    }
}

/// The API server said no; asking again will not help.
fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 429 && status.code != 409)
}
