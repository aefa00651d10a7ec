//! Expiration: a claim that has lived for its `expireAfter` is deleted; its pods are evicted as in any drain.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kerf_api::names::{event, label};
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::disruption::budget::DisruptionReason;
use kerf_core::disruption::emptiness::allowed_now;
use kerf_core::ids::NodeClaimName;
use kerf_core::snapshot::Snapshot;
use kube::{Api, ResourceExt};

use crate::context::Context;
use crate::draft::Draft;
use crate::error::Error;
use crate::events::created_at;
use crate::hash_of::hash_of;
use crate::termination::claim::{Disruption, disrupt};

/// How often an expired claim that the budgets hold back is looked at again.
const BUDGET_RETRY: Duration = Duration::from_secs(10);

/// Deletes the claim when its life is over. Returns when to look again.
///
/// Karpenter: differs, because there every claim of one day expires in the same minute and budgets are never asked;
/// here a jitter and budgets can be set.
///
/// # Errors
/// When the claim cannot be deleted.
pub async fn advance(
    draft: &Draft,
    api: &Api<NodeClaim>,
    context: &Context,
) -> Result<Option<Duration>, Error> {
    let Some(end) = end_of_life(&draft.claim, context.settings.expiration_jitter) else {
        return Ok(None);
    };
    if draft.now < end {
        let left = Duration::try_from(end.duration_since(draft.now)).unwrap_or_default();
        return Ok(Some(left.max(Duration::from_secs(1))));
    }
    let name = NodeClaimName::from(draft.name());
    if context.settings.expires_within_budgets && !reserve(&name, draft, context) {
        return Ok(Some(BUDGET_RETRY));
    }
    let note = format!("expired at {end}: spec.expireAfter is over");
    context
        .events
        .normal(&draft.claim, event::DISRUPTION_TERMINATING, &note)
        .await;
    let disruption = Disruption {
        reason: "expired",
        note: &note,
    };
    disrupt(&draft.claim, api, context, &disruption).await?;
    context.cluster.mark_for_deletion(&name);
    Ok(None)
}

/// When the claim expires; none when it never does. The jitter takes up to that much away, the same amount at every
/// look, but never more than a tenth of the life. Pure.
fn end_of_life(claim: &NodeClaim, jitter: Duration) -> Option<Timestamp> {
    let life = claim.spec.expire_after.as_ref()?.parse().ok()??;
    let jitter = SignedDuration::try_from(jitter).unwrap_or(SignedDuration::MAX);
    let spread = jitter.min(life / 10).as_secs();
    let hash = hash_of(&claim.uid());
    let share = match u64::try_from(spread) {
        Ok(spread) if spread > 0 => i64::try_from(hash % spread).unwrap_or_default(),
        _ => 0,
    };
    let life = life - SignedDuration::from_secs(share);
    created_at(claim).checked_add(life).ok()
}

/// Whether the claim may go within its pool's budgets; if so it counts as gone from here on, so that two claims that
/// look at the same time do not take the same place.
fn reserve(name: &NodeClaimName, draft: &Draft, context: &Context) -> bool {
    let turn = context
        .expirations
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let snapshot = context.snapshot();
    let is_allowed = fits_budget(&draft.claim, name, &snapshot, draft.now);
    if is_allowed {
        context.cluster.mark_for_deletion(name);
    }
    drop(turn);
    is_allowed
}

/// Expired nodes are replaced for what they are, so the budgets for drift hold. Pure.
fn fits_budget(
    claim: &NodeClaim,
    name: &NodeClaimName,
    snapshot: &Arc<Snapshot>,
    now: Timestamp,
) -> bool {
    let is_marked = snapshot
        .nodes
        .iter()
        .any(|node| node.node_claim.as_ref() == Some(name) && !node.is_active());
    let pool = claim.labels().get(label::NODEPOOL);
    let pool = snapshot
        .pools
        .iter()
        .find(|it| pool.is_some_and(|pool| *pool == *it.name));
    // A claim without a pool has no budgets.
    is_marked
        || pool.is_none_or(|pool| allowed_now(pool, snapshot, DisruptionReason::Drifted, now) > 0)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use kerf_api::duration::NillableDuration;

    use super::*;

    fn claim(uid: &str, expire_after: &str) -> NodeClaim {
        let mut claim = NodeClaim::new("general-1", Default::default());
        claim.metadata.uid = Some(uid.to_owned());
        claim.metadata.creation_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        claim.spec.expire_after = Some(NillableDuration::new(expire_after));
        claim
    }

    #[test]
    fn a_claim_expires_after_its_time_and_never_never() {
        let hour = claim("a", "1h");

        assert_eq!(
            end_of_life(&hour, Duration::ZERO).map(Timestamp::as_second),
            Some(3600)
        );
        assert_eq!(end_of_life(&claim("a", "Never"), Duration::ZERO), None);
    }

    #[test]
    fn jitter_spreads_claims_of_one_minute_and_stays_the_same_for_each() {
        let jitter = Duration::from_secs(3600);
        let ends: Vec<i64> = ["a", "b", "c", "d"]
            .iter()
            .filter_map(|uid| end_of_life(&claim(uid, "10h"), jitter))
            .map(Timestamp::as_second)
            .collect();

        assert!(
            ends.iter().all(|end| (32_400..=36_000).contains(end)),
            "{ends:?}"
        );
        assert!(ends.iter().any(|end| *end != ends[0]), "{ends:?}");
        assert_eq!(
            end_of_life(&claim("a", "10h"), jitter).map(Timestamp::as_second),
            Some(ends[0])
        );
    }
}
