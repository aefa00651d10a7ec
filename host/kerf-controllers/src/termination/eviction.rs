//! Evictions: a pod that was refused is asked again later and later, and holds no other pod up.
//!
//! Who was refused is only in memory: after a restart every pod is asked at once, as if for the first time.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use kerf_api::condition::find;
use kerf_api::names::{condition, event};
use kerf_core::sabotage::{self, Sabotage};
use kube::ResourceExt;
use kube::api::{DeleteParams, EvictParams};
use tokio::sync::Semaphore;

use crate::api_call::{bounded, has_code, is_conflict, is_not_found};
use crate::clock;
use crate::context::Context;
use crate::error::chain;
use crate::hash_of::hash_of;
use crate::termination::drain::{LOOK_MIN, pods_of, same_pod};

/// A pod that was refused once is asked again after at most this long; each refusal doubles it.
const WAIT_FIRST: SignedDuration = SignedDuration::from_secs(1);
/// The longest wait (Karpenter: same). 1,000 refused pods are then about 130 requests a second.
pub const WAIT_MAX: SignedDuration = SignedDuration::from_secs(10);
/// A refusal that is this much older than its wait belongs to a pod that is gone.
const FORGET_AFTER: SignedDuration = SignedDuration::from_mins(1);
/// Refused pods that are remembered before those that are gone are looked for.
const REMEMBERED: usize = 10_000;

/// Evictions of all nodes that wait for an answer at the same time: a webhook that hangs must leave room for other requests.
const ASKED_AT_ONCE_MAX: usize = 10;

/// Pods whose eviction was refused.
#[derive(Debug)]
pub struct Refusals {
    by_uid: Mutex<HashMap<String, Refused>>,
    places: Semaphore,
}

impl Default for Refusals {
    fn default() -> Self {
        Self {
            by_uid: Mutex::default(),
            places: Semaphore::new(ASKED_AT_ONCE_MAX),
        }
    }
}

#[derive(Debug)]
struct Refused {
    times: u32,
    until: Timestamp,
}

/// Asks the pod to leave, unless it was refused a short time ago. Returns when to come back for it.
pub async fn ask(pod: &Pod, node: &Node, context: &Context) -> SignedDuration {
    let uid = pod.uid().unwrap_or_default();
    if let Some(wait) = context.refusals.wait(&uid, clock::now()) {
        return wait;
    }
    let params = EvictParams {
        delete_options: Some(DeleteParams {
            preconditions: Some(same_pod(pod)),
            ..DeleteParams::default()
        }),
        ..EvictParams::default()
    };
    // The semaphore is never closed, and without it the pod is asked all the same.
    let place = context.refusals.places.acquire().await;
    let answer = bounded(leave(pod, &params, context)).await;
    drop(place);
    context.metrics.draining.eviction(code(&answer));
    match answer {
        Ok(_) => {
            context.refusals.forget(&uid);
            let claim = context.claim_of(node);
            let reason = claim
                .as_deref()
                .and_then(|claim| find(claim.conditions(), condition::DISRUPTION_REASON));
            context
                .metrics
                .draining
                .evicted(reason.map(|it| it.reason.as_str()));
            let note = format!(
                "evicted from node {}, which is being removed",
                node.name_any()
            );
            context.events.normal(pod, event::EVICTED, &note).await;
            LOOK_MIN
        }
        Err(error) if is_not_found(&error) || is_conflict(&error) => {
            context.refusals.forget(&uid);
            LOOK_MIN
        }
        Err(error) => {
            let wait = context.refusals.note(&uid, clock::now());
            tell(pod, node, context, &error).await;
            wait
        }
    }
}

/// By an eviction, which asks the pod's budgets.
async fn leave(pod: &Pod, params: &EvictParams, context: &Context) -> Result<(), kube::Error> {
    let (api, name) = (pods_of(pod, context), pod.name_any());
    if sabotage::is_on(Sabotage::PodBudgetsIgnored) {
        return api.delete(&name, &DeleteParams::default()).await.map(drop);
    }
    api.evict(&name, params).await.map(drop)
}

/// The HTTP code of the answer; 0 where there is none.
fn code<T>(answer: &Result<T, kube::Error>) -> u16 {
    match answer {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(_) => 0,
    }
}

async fn tell(pod: &Pod, node: &Node, context: &Context, error: &kube::Error) {
    // 429: the budget does not allow it now. 500: more than one budget matches, which Kubernetes cannot evict.
    if !has_code(error, 429) && !has_code(error, 500) {
        let name = pod.name_any();
        let namespace = pod.namespace().unwrap_or_default();
        tracing::warn!(%namespace, pod = %name, node = %node.name_any(), error = %chain(error), "eviction failed");
    }
    let note = format!(
        "pod {}/{} cannot be evicted yet: {}",
        pod.namespace().unwrap_or_default(),
        pod.name_any(),
        chain(error)
    );
    context
        .events
        .warning(node, event::FAILED_DRAINING, &note)
        .await;
}

impl Refusals {
    /// How long the pod must not be asked yet.
    fn wait(&self, uid: &str, now: Timestamp) -> Option<SignedDuration> {
        let refused = self.by_uid.lock().unwrap_or_else(PoisonError::into_inner);
        let left = refused.get(uid)?.until.duration_since(now);
        left.is_positive().then_some(left)
    }

    /// Remembers one more refusal. Returns when the pod may be asked again.
    fn note(&self, uid: &str, now: Timestamp) -> SignedDuration {
        let mut all = self.by_uid.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED {
            all.retain(|_, it| now.duration_since(it.until) < FORGET_AFTER);
        }
        let times = all.get(uid).map_or(1, |it| it.times.saturating_add(1));
        let wait = wait_after(uid, times);
        let until = now.checked_add(wait).unwrap_or(now);
        all.insert(uid.to_owned(), Refused { times, until });
        wait
    }

    fn forget(&self, uid: &str) {
        let mut refused = self.by_uid.lock().unwrap_or_else(PoisonError::into_inner);
        refused.remove(uid);
    }
}

/// The wait after so many refusals, shortened by up to a half: pods of one budget that were refused together must not
/// ask together again, or only one of them gets what the budget gives in all that time. Pure.
fn wait_after(uid: &str, times: u32) -> SignedDuration {
    let doublings = times.saturating_sub(1).min(16);
    let longest = WAIT_FIRST
        .saturating_mul(2_i32.saturating_pow(doublings))
        .min(WAIT_MAX);
    let spread = hash_of(&(uid, times)) % 128;
    let spread = i32::from(u8::try_from(spread).unwrap_or_default());
    longest.saturating_sub(longest.saturating_mul(spread) / 256)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn time(secs: i64) -> Timestamp {
        Timestamp::from_second(secs).unwrap()
    }

    #[test]
    fn a_pod_whose_budget_refuses_for_minutes_is_asked_every_ten_seconds_not_every_second() {
        let refusals = Refusals::default();
        let asked: Vec<i64> = (0..300)
            .filter(|secs| {
                let is_asked = refusals.wait("u-1", time(*secs)).is_none();
                if is_asked {
                    refusals.note("u-1", time(*secs));
                }
                is_asked
            })
            .collect();

        assert!(asked.len() < 60, "{asked:?}");
        let gaps: Vec<i64> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (1..=10).contains(gap)), "{gaps:?}");
    }

    #[test]
    fn a_pod_that_was_evicted_is_forgotten_and_other_pods_are_asked_meanwhile() {
        let refusals = Refusals::default();
        for _ in 0..5 {
            refusals.note("u-1", time(0));
        }

        assert_eq!(refusals.wait("u-2", time(0)), None);
        refusals.forget("u-1");
        assert_eq!(refusals.wait("u-1", time(0)), None);
        assert!(refusals.note("u-1", time(0)) <= WAIT_FIRST);
    }

    #[test]
    fn pods_that_were_refused_together_do_not_ask_together_again() {
        let waits: BTreeSet<SignedDuration> = (0..20)
            .map(|idx| wait_after(&format!("u-{idx}"), 9))
            .collect();

        assert!(waits.len() > 10, "{waits:?}");
        assert!(
            waits
                .iter()
                .all(|wait| *wait * 2 >= WAIT_MAX && *wait <= WAIT_MAX)
        );
    }

    #[test]
    fn refusals_of_pods_that_are_gone_are_forgotten() {
        let refusals = Refusals::default();
        for idx in 0..REMEMBERED {
            refusals.note(&format!("u-{idx}"), time(0));
        }
        refusals.note("new", time(120));

        assert_eq!(refusals.by_uid.lock().unwrap().len(), 1);
    }
}
