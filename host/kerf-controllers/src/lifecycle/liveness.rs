//! Giving up: a claim that was not launched or whose Node did not register in time is deleted.

use std::time::Duration;

use jiff::Timestamp;
use kerf_api::condition::{Condition, Conditions};
use kerf_api::names::{condition, event, reason};
use kerf_api::nodeclaim::NodeClaim;
use kube::Api;

use crate::context::Context;
use crate::draft::Draft;
use crate::error::Error;
use crate::lifecycle::health::Failure;
use crate::lifecycle::registration::{left, since};
use crate::settings::Settings;
use crate::termination::claim::{Disruption, disrupt};

/// What a claim waits for.
#[derive(Debug, PartialEq, Eq)]
struct Wait<'a> {
    /// The condition that is not True yet.
    on: &'a Condition,
    since: Timestamp,
    timeout: Duration,
    /// The label value of metrics when it takes too long.
    reason: &'static str,
}

/// Deletes the claim if its time is up. Returns when it will be.
///
/// # Errors
/// When the claim cannot be deleted.
pub async fn advance(
    draft: &Draft,
    api: &Api<NodeClaim>,
    context: &Context,
) -> Result<Option<Duration>, Error> {
    let Some(wait) = wait(&draft.conditions, &context.settings) else {
        return Ok(None);
    };
    let left = left(wait.timeout, since(wait.since, draft.now));
    if left.is_some() {
        return Ok(left);
    }
    let note = format!(
        "given up after {} s: {}; hint: the instance's boot log and the ECSNodeClass's conditions tell more",
        wait.timeout.as_secs(),
        wait.on.message
    );
    context
        .events
        .warning(&draft.claim, event::LAUNCH_FAILED, &note)
        .await;
    if let Some(failure) = failure(wait.on) {
        context.registrations.failed(&draft.claim, failure);
    }
    let disruption = Disruption {
        reason: wait.reason,
        note: &note,
    };
    disrupt(&draft.claim, api, context, &disruption).await?;
    Ok(None)
}

/// For the launch a claim waits since it exists, for the Node since the launch, for its readiness since it joined.
/// Pure.
///
/// Karpenter: differs, because there a Node that never gets ready is waited for without end.
fn wait<'a>(conditions: &'a Conditions, settings: &Settings) -> Option<Wait<'a>> {
    let launched = conditions.find(condition::LAUNCHED)?;
    if !launched.is_true() {
        return Some(Wait {
            on: launched,
            since: launched.last_transition_time,
            timeout: settings.launch_timeout,
            reason: "launch_timeout",
        });
    }
    let registered = conditions.find(condition::REGISTERED)?;
    if !registered.is_true() {
        return Some(Wait {
            on: registered,
            since: launched.last_transition_time,
            timeout: settings.registration_timeout,
            reason: "registration_timeout",
        });
    }
    let initialized = conditions.find(condition::INITIALIZED)?;
    let is_limited = !initialized.is_true() && !settings.initialization_timeout.is_zero();
    is_limited.then_some(Wait {
        on: initialized,
        since: registered.last_transition_time,
        timeout: settings.initialization_timeout,
        reason: "initialization_timeout",
    })
}

/// What the pool's registration health remembers; a Node that joined counts as registered.
fn failure(on: &Condition) -> Option<Failure> {
    let reason = match on.type_.as_str() {
        condition::LAUNCHED => on.reason.clone(),
        condition::REGISTERED => reason::REGISTRATION_FAILED.to_owned(),
        _ => return None,
    };
    Some(Failure {
        reason,
        message: on.message.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(done: &[&str]) -> Conditions {
        let epoch = Timestamp::UNIX_EPOCH;
        let mut conditions = Conditions::open(NodeClaim::CONDITIONS, &[], 1, epoch, epoch);
        for type_ in done {
            conditions.set_true(type_);
        }
        conditions
    }

    fn settings() -> Settings {
        Settings::new(String::new(), String::new(), String::new())
    }

    #[test]
    fn five_minutes_to_launch_fifteen_to_register_an_hour_to_get_ready() {
        let minutes = |done: &[&str]| {
            wait(&conditions(done), &settings()).map(|it| (it.reason, it.timeout.as_secs() / 60))
        };
        let (launched, registered) = (condition::LAUNCHED, condition::REGISTERED);

        assert_eq!(minutes(&[]), Some(("launch_timeout", 5)));
        assert_eq!(minutes(&[launched]), Some(("registration_timeout", 15)));
        assert_eq!(
            minutes(&[launched, registered]),
            Some(("initialization_timeout", 60))
        );
        assert_eq!(
            minutes(&[launched, registered, condition::INITIALIZED]),
            None
        );
    }

    #[test]
    fn without_an_initialization_timeout_a_node_may_take_for_ever_to_get_ready() {
        let mut settings = settings();
        settings.initialization_timeout = Duration::ZERO;
        let conditions = conditions(&[condition::LAUNCHED, condition::REGISTERED]);

        assert_eq!(wait(&conditions, &settings), None);
    }
}
