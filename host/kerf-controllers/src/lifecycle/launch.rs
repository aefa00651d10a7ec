//! Launch: exactly one instance for a claim, whatever dies in between.
//!
//! The write-ahead rule: every attempt is in the claim before its call, the first one with the launch group.
//! What a call that nobody remembers has made is found again by its tags.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kerf_api::names::{annotation, condition, event, label, reason};
use kerf_api::nodeclaim::NodeClaim;
use kerf_cloud::provider::bootstrap::NodeSettings;
use kerf_cloud::provider::launch::{
    Attempt, LaunchOutcome, LaunchRequest, Launched, OfferingFailure,
};
use kerf_core::instance_type::InstanceType;
use kerf_core::labels;
use kerf_core::resources::{Resources, quantity_of};
use kerf_core::sabotage::{self, Sabotage};
use kube::{Api, ResourceExt};
use tokio::sync::Mutex;

use crate::adoption;
use crate::context::Context;
use crate::disruption::origin::Origin;
use crate::draft::Draft;
use crate::error::{Error, chain};
use crate::failpoint;
use crate::lifecycle::groups::{self, Joined, Place, Share};
use crate::lifecycle::offerings;
use crate::lifecycle::registration::is_unknown;
use crate::node_class::ClassState;
use crate::termination::claim::{CONTROLLER, Disruption, disrupt};

/// How long to wait for a class that is not resolved yet: its own reconcile is faster than this.
const CLASS_RETRY: Duration = Duration::from_secs(2);

/// Offering failures that a message lists; the rest is counted.
const FAILURES_SHOWN_MAX: usize = 5;

/// What a pass over the launch came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing more to do.
    Done,
    /// Look again after a while.
    Again(Duration),
    /// The claim was deleted; its pods are planned anew.
    GaveUp,
}

impl Step {
    /// When to look again.
    #[must_use]
    pub fn again_after(self) -> Option<Duration> {
        match self {
            Self::Again(after) => Some(after),
            Self::Done | Self::GaveUp => None,
        }
    }
}

/// Launches the claim's instance if that is still to be done.
///
/// # Errors
/// When the claim cannot be written.
pub async fn advance(
    draft: &mut Draft,
    api: &Api<NodeClaim>,
    context: &Arc<Context>,
) -> Result<Step, Error> {
    if !is_unknown(draft, condition::LAUNCHED) {
        return Ok(Step::Done);
    }
    if adoption::is_adopted(&draft.claim.spec.node_class_ref) {
        // Liveness gives it up, and its pods are planned anew.
        draft.conditions.set_unknown(
            condition::LAUNCHED,
            reason::NODE_CLASS_NOT_FOUND,
            "made by another provider, which had not launched it; kerf does not launch from its class",
        );
        return Ok(Step::Done);
    }
    let class_name = draft.claim.spec.node_class_ref.name.clone();
    let class = match context.classes.usable(&class_name) {
        Ok(class) => class,
        Err(message) => {
            draft.conditions.set_unknown(
                condition::LAUNCHED,
                reason::NODE_CLASS_NOT_READY,
                &message,
            );
            return Ok(Step::Again(CLASS_RETRY));
        }
    };
    let origin = Origin::of(&draft.claim, &class, context);
    let mut request = request(&draft.claim, &class, context);
    if let Some(share) = share(draft, &request, &origin, context).await {
        return match share {
            Share::Outcome(outcome) => settle(draft, api, context, &class, *outcome).await,
            Share::Another => {
                Place::leave(&mut draft.claim);
                Ok(Step::Again(Duration::ZERO))
            }
        };
    }
    request.group = choose_group(draft);
    context.reach(failpoint::TOKEN_CHOSEN).await;
    let outcome = launch(draft, api, context, (&request, &origin)).await;
    context.reach(failpoint::LAUNCHED_UNRECORDED).await;
    settle(draft, api, context, &class, outcome).await
}

/// What the claim gets of a launch group; none where it is launched by itself.
async fn share(
    draft: &mut Draft,
    request: &LaunchRequest,
    origin: &Origin,
    context: &Arc<Context>,
) -> Option<Share> {
    if Place::of(&draft.claim).is_some() {
        return Some(groups::resume(&draft.claim, request, context).await);
    }
    if !request.group.is_empty() {
        return None;
    }
    match groups::join(&draft.claim, request, origin, context).await {
        Joined::Alone => None,
        Joined::Shared(claim, share) => {
            *draft = Draft::open(&claim, draft.now);
            Some(share)
        }
    }
}

/// Gives the claim its launch group. It is written with the first attempt; until then the same one is chosen again.
fn choose_group(draft: &mut Draft) -> String {
    if let Some(group) = draft.claim.annotations().get(annotation::LAUNCH_GROUP) {
        return group.clone();
    }
    // The uid is unique for all time, so nothing of a deleted claim of the same name can be taken for this one's.
    let mut group = draft.claim.uid().unwrap_or_else(|| draft.name());
    if sabotage::is_on(Sabotage::NoWriteAhead) {
        // As a client that draws a new token for every call.
        group = format!("{group}-{}", draft.now.as_nanosecond());
    }
    let annotations = draft.claim.annotations_mut();
    annotations.insert(annotation::LAUNCH_GROUP.to_owned(), group.clone());
    annotations.insert(annotation::LAUNCH_ORDINAL.to_owned(), "0".to_owned());
    annotations.insert(annotation::LAUNCH_SIZE.to_owned(), "1".to_owned());
    group
}

/// Calls the cloud; each attempt is stored in the claim before it is sent, with what it is made from.
async fn launch(
    draft: &mut Draft,
    api: &Api<NodeClaim>,
    context: &Context,
    (request, origin): (&LaunchRequest, &Origin),
) -> LaunchOutcome {
    let shared = Arc::new(Mutex::new(draft.clone()));
    let record = |attempt: Attempt| {
        let shared = Arc::clone(&shared);
        async move {
            record_attempt(&mut *shared.lock().await, api, &attempt, origin).await?;
            context.reach(failpoint::ATTEMPT_RECORDED).await;
            Ok(())
        }
    };
    let outcome = context.cloud.on(CONTROLLER).launch(request, record).await;
    *draft = shared.lock().await.clone();
    outcome
}

async fn record_attempt(
    draft: &mut Draft,
    api: &Api<NodeClaim>,
    attempt: &Attempt,
    origin: &Origin,
) -> Result<(), String> {
    let text = serde_json::to_string(attempt).map_err(|error| error.to_string())?;
    let annotations = draft.claim.annotations_mut();
    annotations.insert(
        annotation::LAUNCH_PARAMS_HASH.to_owned(),
        attempt.params_hash.clone(),
    );
    annotations.insert(annotation::LAUNCH_ATTEMPT.to_owned(), text);
    origin.put(annotations);
    if sabotage::is_on(Sabotage::NoWriteAhead) {
        return Ok(());
    }
    draft.note(api).await.map_err(|error| chain(&error))
}

/// What the claim asks for, in the cloud's words.
fn request(claim: &NodeClaim, class: &ClassState, context: &Context) -> LaunchRequest {
    let annotations = claim.annotations();
    let planned = annotations
        .get(annotation::LAUNCH_OFFERINGS)
        .map(|text| offerings::decode(text));
    let offerings = planned
        .filter(|offerings| !offerings.is_empty())
        .unwrap_or_else(|| {
            offerings::from_requirements(
                &offerings::requirements(claim),
                &instance_types(claim, class, context),
            )
        });
    let node_pool = claim
        .labels()
        .get(label::NODEPOOL)
        .cloned()
        .unwrap_or_default();
    let node = node_settings(claim);
    LaunchRequest {
        class: Arc::clone(&class.resolved),
        renderer: context.policies.renderer(claim, &node_pool, &node, context),
        node_pool,
        node_claim: claim.name_any(),
        amount: 1,
        group: annotations
            .get(annotation::LAUNCH_GROUP)
            .cloned()
            .unwrap_or_default(),
        last_attempt: annotations
            .get(annotation::LAUNCH_ATTEMPT)
            .and_then(|text| serde_json::from_str(text).ok()),
        offerings,
        node,
    }
}

/// What the claim can be: as its pool sees the types, or as the class has them when the pool is gone.
fn instance_types(
    claim: &NodeClaim,
    class: &ClassState,
    context: &Context,
) -> Arc<Vec<Arc<InstanceType>>> {
    let pool = claim.labels().get(label::NODEPOOL);
    pool.and_then(|pool| context.instance_types_of(pool))
        .unwrap_or_else(|| Arc::clone(&class.instance_types))
}

/// What the node must register with.
fn node_settings(claim: &NodeClaim) -> NodeSettings {
    let taints = |taints: &[k8s_openapi::api::core::v1::Taint]| {
        taints.iter().filter_map(kerf_state::taint).collect()
    };
    NodeSettings {
        labels: claim.labels().clone(),
        taints: taints(&claim.spec.taints),
        startup_taints: taints(&claim.spec.startup_taints),
    }
}

async fn settle(
    draft: &mut Draft,
    api: &Api<NodeClaim>,
    context: &Context,
    class: &ClassState,
    outcome: LaunchOutcome,
) -> Result<Step, Error> {
    match outcome {
        LaunchOutcome::Launched(launched) => {
            let types = instance_types(&draft.claim, class, context);
            record_instance(draft, &types, &launched);
            context
                .events
                .normal(&draft.claim, event::LAUNCHED, &launched_note(&launched))
                .await;
            Ok(Step::Done)
        }
        LaunchOutcome::InsufficientCapacity { offerings } => {
            let note = capacity_note(&offerings);
            context
                .events
                .warning(&draft.claim, event::INSUFFICIENT_CAPACITY_ERROR, &note)
                .await;
            draft
                .conditions
                .set_unknown(condition::LAUNCHED, reason::INSUFFICIENT_CAPACITY, &note);
            let disruption = Disruption {
                reason: "insufficient_capacity",
                note: &note,
            };
            disrupt(&draft.claim, api, context, &disruption).await?;
            Ok(Step::GaveUp)
        }
        LaunchOutcome::NotReady { reason, message } => {
            draft
                .conditions
                .set_unknown(condition::LAUNCHED, reason.as_str(), &message);
            context
                .events
                .warning(&draft.claim, event::LAUNCH_FAILED, &message)
                .await;
            Ok(Step::Again(context.settings.launch_retry))
        }
        LaunchOutcome::Retry { after, message } => {
            draft
                .conditions
                .set_unknown(condition::LAUNCHED, reason::LAUNCH_FAILED, &message);
            context
                .events
                .warning(&draft.claim, event::LAUNCH_FAILED, &message)
                .await;
            Ok(Step::Again(after))
        }
    }
}

/// Writes down what the instance is. Pure.
fn record_instance(draft: &mut Draft, types: &[Arc<InstanceType>], launched: &Launched) {
    let instance = &launched.instance;
    let instance_type = types.iter().find(|it| *it.name == *instance.instance_type);
    let labels = draft.claim.labels_mut();
    if let Some(instance_type) = instance_type {
        for requirement in instance_type.requirements.iter() {
            if let Some(value) = requirement.single_value() {
                labels
                    .entry(requirement.key().to_owned())
                    .or_insert_with(|| value.to_owned());
            }
        }
    }
    // What the instance really is wins over what was asked for.
    labels.insert(
        labels::INSTANCE_TYPE.to_owned(),
        instance.instance_type.clone(),
    );
    labels.insert(labels::ZONE.to_owned(), instance.zone_id.clone());
    labels.insert(
        labels::CAPACITY_TYPE.to_owned(),
        instance.capacity_type.as_str().to_owned(),
    );
    labels.insert(
        labels::ARCH.to_owned(),
        launched.architecture.as_str().to_owned(),
    );
    labels.insert(labels::REGION.to_owned(), instance.region_id.clone());
    let status = draft.status_mut();
    status.provider_id = Some(instance.provider_id());
    status.image_id = Some(instance.image_id.clone());
    if let Some(instance_type) = instance_type {
        let sold = instance_type.offering(&instance.zone_id, instance.capacity_type);
        let capacity = sold.map_or(&instance_type.capacity, |it| instance_type.capacity_of(it));
        let allocatable = sold.map(|it| instance_type.allocatable_of(it));
        status.capacity = quantities(capacity);
        status.allocatable =
            quantities(&allocatable.unwrap_or_else(|| instance_type.allocatable()));
    }
    draft.conditions.set_true(condition::LAUNCHED);
}

fn quantities(resources: &Resources) -> BTreeMap<String, Quantity> {
    resources
        .iter()
        .map(|(name, amount)| {
            (
                name.to_owned(),
                Quantity(quantity_of(name, amount).to_string()),
            )
        })
        .collect()
}

fn launched_note(launched: &Launched) -> String {
    let instance = &launched.instance;
    let how = if launched.is_adopted {
        "found"
    } else {
        "launched"
    };
    format!(
        "{how} instance {} ({}, {}, {})",
        instance.id, instance.instance_type, instance.zone_id, instance.capacity_type
    )
}

fn capacity_note(failures: &[OfferingFailure]) -> String {
    if failures.is_empty() {
        return "no offering of the claim can be bought now; its pods are planned again".to_owned();
    }
    let shown = failures.iter().take(FAILURES_SHOWN_MAX).map(|failure| {
        let offering = &failure.offering;
        format!(
            "{} in {} ({}): {}",
            offering.instance_type, offering.zone_id, offering.capacity_type, failure.message
        )
    });
    let mut note = shown.collect::<Vec<_>>().join("; ");
    if let Some(more) = failures
        .len()
        .checked_sub(FAILURES_SHOWN_MAX)
        .filter(|more| *more > 0)
    {
        note.push_str(&format!("; and {more} more"));
    }
    note
}
