//! Which instance of a group is whose, also after a crash.
//!
//! It is decided once for all claims of a group, from the API server's own list and not from the watch, which may lag:
//! what no claim needs is deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kerf_api::nodeclaim::NodeClaim;
use kerf_cloud::provider::instance::parse_provider_id;
use kerf_cloud::provider::launch::{LaunchOutcome, LaunchRequest, Resent};
use kube::{Api, ResourceExt};
use tokio::time::Instant;

use super::{Place, for_each};
use crate::api_call::list_pages;
use crate::clock;
use crate::context::Context;
use crate::error::chain;
use crate::termination::claim::{CONTROLLER, SHOWS_WITHIN};

/// How often a group whose call was cut off is looked for, however many claims ask.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// What a claim of a group gets.
#[derive(Debug, Clone, PartialEq)]
pub enum Share {
    /// What a launch of its own would have come to.
    Outcome(Box<LaunchOutcome>),
    /// There is none for it: it is to leave the group and join another.
    Another,
}

/// What is known of a group.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// The instance of each claim that has one, by the claim's name; none while it is not known what the call made.
    given: Option<BTreeMap<String, String>>,
    /// When that was tried to be learned last, and why it could not be.
    looked: Option<(Instant, String)>,
}

impl Group {
    /// Writes down whose is whose.
    pub(super) fn settle(&mut self, given: BTreeMap<String, String>) {
        self.given = Some(given);
    }
}

/// An instance, none, or not known yet and why.
enum Found {
    Instance(String),
    Nothing,
    Unknown(String),
}

/// What a claim gets whose group was launched before, by this process or another.
pub async fn resume(claim: &NodeClaim, request: &LaunchRequest, context: &Context) -> Share {
    let Some(place) = Place::of(claim) else {
        return Share::Another;
    };
    let id = match find(claim, &place, Some(request), context).await {
        Found::Instance(id) => id,
        Found::Nothing => return Share::Another,
        Found::Unknown(message) => return later(message),
    };
    let cloud = context.cloud.on(CONTROLLER);
    let shown = match cloud.describe(std::slice::from_ref(&id)).await {
        Ok(shown) => shown,
        Err(error) => return later(chain(&error)),
    };
    let Some(instance) = shown.into_iter().next() else {
        return later(format!("instance {id} is made but does not show yet"));
    };
    if instance.has_stopped() {
        return Share::Another;
    }
    match cloud.identify(request, &place.attempt, instance).await {
        Some(outcome) => for_each(outcome),
        None => {
            discard(&[id], context).await;
            Share::Another
        }
    }
}

fn later(message: String) -> Share {
    for_each(LaunchOutcome::Retry {
        after: LOOK_AGAIN,
        message,
    })
}

/// The instance of a claim of a group that is being deleted and has none recorded; none while it is not known.
pub async fn of_deleted(claim: &NodeClaim, context: &Context) -> Option<Vec<String>> {
    let place = Place::of(claim)?;
    match find(claim, &place, None, context).await {
        Found::Instance(id) => Some(vec![id]),
        Found::Nothing => Some(Vec::new()),
        Found::Unknown(message) => {
            tracing::debug!(nodeclaim = %claim.name_any(), %message, "the instance of a launch group is not known yet");
            None
        }
    }
}

/// One claim of a group at a time: the first to ask learns it for all.
async fn find(
    claim: &NodeClaim,
    place: &Place,
    request: Option<&LaunchRequest>,
    context: &Context,
) -> Found {
    let group = context.launches.group(&place.group);
    let mut group = group.lock().await;
    if let Some(given) = &group.given {
        return match given.get(&claim.name_any()) {
            Some(id) => Found::Instance(id.clone()),
            None => Found::Nothing,
        };
    }
    if let Some((at, message)) = &group.looked
        && at.elapsed() < LOOK_AGAIN
    {
        return Found::Unknown(message.clone());
    }
    match learn(&place.group, request, context).await {
        Ok((given, surplus)) => {
            let own = given.get(&claim.name_any()).cloned();
            group.settle(given);
            discard(&surplus, context).await;
            own.map_or(Found::Nothing, Found::Instance)
        }
        Err(message) => {
            group.looked = Some((Instant::now(), message.clone()));
            Found::Unknown(message)
        }
    }
}

/// Whose is whose, and what is nobody's.
type Shares = (BTreeMap<String, String>, Vec<String>);

/// Asks both sides what the group's last call made and who is there to take it.
async fn learn(
    group: &str,
    request: Option<&LaunchRequest>,
    context: &Context,
) -> Result<Shares, String> {
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    let of_group = |claim: NodeClaim| {
        let place = Place::of(&claim)?;
        (place.group == group).then_some((claim, place))
    };
    let members = list_pages(&api, of_group).await;
    let members =
        members.map_err(|error| format!("cannot list the NodeClaims: {}", chain(&error)))?;
    let ids = made(group, &members, request, context).await?;
    Ok(shares(ids, &members))
}

/// What the group's last call made: from its tags, or by sending it again.
async fn made(
    group: &str,
    members: &[(NodeClaim, Place)],
    request: Option<&LaunchRequest>,
    context: &Context,
) -> Result<Vec<String>, String> {
    let attempts = members.iter().map(|(_, place)| &place.attempt);
    let Some(attempt) = attempts.max_by_key(|it| it.number) else {
        return Ok(Vec::new());
    };
    let cloud = context.cloud.on(CONTROLLER);
    let shown = cloud.group_members(group).await;
    let shown = shown.map_err(|error| chain(&error))?;
    let ids: Vec<String> = shown.into_iter().map(|it| it.id).collect();
    let amount = usize::try_from(attempt.amount).unwrap_or(usize::MAX);
    if ids.len() >= amount {
        return Ok(ids);
    }
    // Nobody needs more than what was made for claims that go, and what others need is not to be had by a larger call.
    let living = members
        .iter()
        .filter(|(claim, _)| is_waiting(claim))
        .count();
    if let Some(request) = request.filter(|_| living >= amount) {
        let request = request.for_group(group.to_owned(), attempt.amount);
        match cloud.resend_group(&request, attempt).await {
            Resent::Made(made) => return Ok(made),
            Resent::Not(
                LaunchOutcome::Retry { message, .. } | LaunchOutcome::NotReady { message, .. },
            ) => return Err(message),
            Resent::Refused | Resent::Changed | Resent::Not(_) => {}
        }
    }
    match clock::now().duration_since(attempt.at) >= SHOWS_WITHIN {
        true => Ok(ids),
        false => Err(format!(
            "{} of {amount} instances of launch group {group} show so far",
            ids.len()
        )),
    }
}

fn is_waiting(claim: &NodeClaim) -> bool {
    claim.provider_id().is_none() && claim.metadata.deletion_timestamp.is_none()
}

/// In the order of the places, to each claim without an instance the next that is nobody's. Pure.
fn shares(ids: Vec<String>, members: &[(NodeClaim, Place)]) -> Shares {
    let recorded: BTreeMap<String, String> = members
        .iter()
        .filter_map(|(claim, _)| {
            let (_, id) = parse_provider_id(claim.provider_id()?)?;
            Some((claim.name_any(), id.to_owned()))
        })
        .collect();
    let taken: BTreeSet<&String> = recorded.values().collect();
    let free: BTreeSet<String> = ids.into_iter().filter(|id| !taken.contains(id)).collect();
    let mut open: Vec<(usize, String)> = members
        .iter()
        .filter(|(claim, _)| claim.provider_id().is_none())
        .map(|(claim, place)| (place.ordinal, claim.name_any()))
        .collect();
    open.sort_unstable();
    let mut free = free.into_iter();
    let mut given = recorded;
    for ((_, name), id) in open.into_iter().zip(free.by_ref()) {
        given.insert(name, id);
    }
    (given, free.collect())
}

/// Deletes instances of a group that nobody needs.
pub(super) async fn discard(ids: &[String], context: &Context) {
    if ids.is_empty() {
        return;
    }
    for (instance, outcome) in context.cloud.on(CONTROLLER).delete(ids).await {
        tracing::warn!(%instance, ?outcome, "deleted an instance of a launch group that no NodeClaim needs");
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kerf_api::nodeclaim::NodeClaimStatus;
    use kerf_cloud::provider::launch::Attempt;

    use super::*;

    fn attempt() -> Attempt {
        Attempt {
            number: 1,
            instance_type: "ecs.g7.large".to_owned(),
            zone_id: "h".to_owned(),
            capacity_type: "on-demand".to_owned(),
            vswitch_id: "vsw-1".to_owned(),
            amount: 4,
            params_hash: String::new(),
            at: Timestamp::UNIX_EPOCH,
        }
    }

    fn member(ordinal: usize, id: Option<&str>) -> (NodeClaim, Place) {
        let mut claim = NodeClaim::new(&format!("general-{ordinal}"), Default::default());
        claim.status = Some(NodeClaimStatus {
            provider_id: id.map(|id| format!("cn-hangzhou.{id}")),
            ..NodeClaimStatus::default()
        });
        let place = Place {
            group: "g".to_owned(),
            ordinal,
            attempt: attempt(),
        };
        (claim, place)
    }

    #[track_caller]
    fn check(
        ids: &[&str],
        members: &[(NodeClaim, Place)],
        given: &[(&str, &str)],
        surplus: &[&str],
    ) {
        let ids = ids.iter().map(|id| (*id).to_owned()).collect();
        let found = shares(ids, members);
        let pairs = found
            .0
            .iter()
            .map(|(name, id)| (name.as_str(), id.as_str()));
        assert_eq!(pairs.collect::<Vec<_>>(), given);
        assert_eq!(found.1, surplus);
    }

    #[test]
    fn each_claim_that_is_left_gets_its_own_and_the_rest_is_surplus() {
        // Place 2 was deleted and is gone.
        check(
            &["i-d", "i-c", "i-b", "i-a"],
            &[member(3, None), member(0, None), member(1, None)],
            &[
                ("general-0", "i-a"),
                ("general-1", "i-b"),
                ("general-3", "i-c"),
            ],
            &["i-d"],
        );
    }

    #[test]
    fn what_a_claim_has_recorded_stays_its_own() {
        check(
            &["i-a", "i-b", "i-c"],
            &[member(0, Some("i-b")), member(1, None)],
            &[("general-0", "i-b"), ("general-1", "i-a")],
            &["i-c"],
        );
    }

    #[test]
    fn the_last_claims_of_a_group_that_got_less_than_it_asked_for_get_none() {
        check(
            &["i-a"],
            &[member(0, None), member(1, None)],
            &[("general-0", "i-a")],
            &[],
        );
    }
}
