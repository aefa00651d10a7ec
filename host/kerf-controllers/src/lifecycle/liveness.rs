//! Giving up: a claim that was not launched or whose Node did not register in time is deleted.

use std::time::Duration;

use kerf_api::condition::{Condition, ConditionStatus};
use kerf_api::names::{condition, event};
use kerf_api::nodeclaim::NodeClaim;
use kube::Api;

use crate::context::Context;
use crate::draft::Draft;
use crate::error::Error;
use crate::lifecycle::registration::since;
use crate::termination::claim::{Disruption, disrupt};

/// Deletes the claim if its time is up. Returns when it will be.
///
/// # Errors
/// When the claim cannot be deleted.
pub async fn advance(
    draft: &Draft,
    api: &Api<NodeClaim>,
    context: &Context,
) -> Result<Option<Duration>, Error> {
    let launched = draft.conditions.find(condition::LAUNCHED);
    let registered = draft.conditions.find(condition::REGISTERED);
    let (waiting, timeout, reason) = match (launched, registered) {
        (_, Some(registered)) if registered.is_true() => return Ok(None),
        (Some(launched), Some(registered)) if launched.is_true() => (
            registered,
            context.settings.registration_timeout,
            "registration_timeout",
        ),
        (Some(launched), _) => (launched, context.settings.launch_timeout, "launch_timeout"),
        (None, _) => return Ok(None),
    };
    let started = started_at(launched, waiting);
    let age = since(started, draft.now);
    let Some(left) = timeout.checked_sub(age).filter(|left| !left.is_zero()) else {
        let note = format!(
            "given up after {} s: {}; hint: the instance's boot log and the ECSNodeClass's conditions tell more",
            timeout.as_secs(),
            waiting.message
        );
        context
            .events
            .warning(&draft.claim, event::LAUNCH_FAILED, &note)
            .await;
        disrupt(
            &draft.claim,
            api,
            context,
            &Disruption {
                reason,
                note: &note,
            },
        )
        .await?;
        return Ok(None);
    };
    Ok(Some(left))
}

/// Since when the claim waits: for the launch since it exists, for the Node since the launch.
fn started_at(launched: Option<&Condition>, waiting: &Condition) -> jiff::Timestamp {
    launched
        .filter(|launched| launched.status == ConditionStatus::True)
        .map_or(waiting.last_transition_time, |launched| {
            launched.last_transition_time
        })
}
