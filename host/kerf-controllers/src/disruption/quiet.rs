//! Consolidatable: whether a claim has been quiet for as long as its pool's consolidateAfter asks. Pure.

use jiff::{SignedDuration, Timestamp};
use kerf_api::condition;
use kerf_api::names::condition as types;
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::node_pool::NodePool;

/// When the claim is or will be quiet for long enough; none when it never is. `seen` is a pod event that the status does
/// not show yet.
///
/// It counts from the last pod event, or else from the initialization (Karpenter: same). Both are in the object, so a
/// restart moves nothing.
#[must_use]
pub fn quiet_at(claim: &NodeClaim, pool: &NodePool, seen: Option<Timestamp>) -> Option<Timestamp> {
    let after = pool
        .disruption
        .consolidate_after
        .filter(|_| pool.replicas.is_none())?;
    let initialized = condition::find(claim.conditions(), types::INITIALIZED)?;
    let initialized = initialized.is_true().then_some(initialized)?;
    if after == SignedDuration::ZERO {
        return Some(initialized.last_transition_time);
    }
    let written = claim.status.as_ref().and_then(|it| it.last_pod_event_time);
    let base = written
        .max(seen)
        .unwrap_or(initialized.last_transition_time);
    base.checked_add(after).ok()
}

#[cfg(test)]
mod tests {
    use kerf_api::condition::Conditions;

    use super::*;

    const INITIALIZED_AT: i64 = 100;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn claim(pod_event: Option<i64>) -> NodeClaim {
        let mut conditions =
            Conditions::open(NodeClaim::CONDITIONS, &[], 1, at(0), at(INITIALIZED_AT));
        conditions.set_true(types::INITIALIZED);
        let mut claim = NodeClaim::new("general-1", Default::default());
        let status = claim.status.get_or_insert_default();
        status.conditions = conditions.finish();
        status.last_pod_event_time = pod_event.map(at);
        claim
    }

    fn pool(seconds: Option<i64>) -> NodePool {
        let mut pool = NodePool::default();
        pool.disruption.consolidate_after = seconds.map(SignedDuration::from_secs);
        pool
    }

    #[test]
    fn consolidate_after_counts_from_the_last_pod_event_or_the_initialization() {
        for (after, written, seen, expected) in [
            (Some(60), None, None, Some(160)),
            (Some(60), Some(500), None, Some(560)),
            (Some(60), Some(500), Some(510), Some(570)),
            (Some(60), Some(500), Some(400), Some(560)),
            (Some(0), Some(500), None, Some(INITIALIZED_AT)),
            (None, Some(500), None, None),
        ] {
            let due = quiet_at(&claim(written), &pool(after), seen.map(at));

            assert_eq!(due, expected.map(at), "{after:?} {written:?} {seen:?}");
        }
    }

    #[test]
    fn a_claim_that_is_not_initialized_or_of_a_static_pool_is_never_consolidatable() {
        let young = NodeClaim::new("general-1", Default::default());
        assert_eq!(quiet_at(&young, &pool(Some(0)), None), None);

        let mut fixed = pool(Some(0));
        fixed.replicas = Some(3);
        assert_eq!(quiet_at(&claim(None), &fixed, None), None);
    }
}
