//! Draining: pods leave in four tiers through the Eviction API, so that disruption budgets hold.
//!
//! Past its deadline a pod is deleted with what is left of its time. A pod that may not be disrupted is waited for.

use std::time::Duration;

use futures::{StreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use kerf_api::duration::parse_duration;
use kerf_api::names::{annotation, event, taint};
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Api, ResourceExt};

use crate::api_call::{bounded, gone_is_fine, is_conflict};
use crate::clock;
use crate::context::Context;
use crate::error::Error;
use crate::termination::eviction;

/// A pod that is still there this long after its own deadline is not coming back (Karpenter: same).
const STUCK_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// How often a draining node is looked at while its pods leave (Karpenter: same).
pub const LOOK_MIN: SignedDuration = SignedDuration::from_secs(1);
/// How often it is looked at while all its pods wait for their budgets: no longer than a refused pod waits.
const LOOK_MAX: SignedDuration = eviction::WAIT_MAX;

/// Pods of a node that are asked at the same time. An eviction takes a busy API server 100 ms, so that a node of 250 pods took
/// 26 s to drain one by one; Karpenter asks 100 at once, which a small control plane takes longer for than for these.
const CONCURRENCY: usize = 10;

/// Whether a node may lose its machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Drained {
    /// No pod is left that must leave first; these stay to the end.
    Yes {
        /// Pods that no drain moves: static ones, those that tolerate it, those that do not come to an end.
        staying: Vec<Pod>,
    },
    /// So many pods are leaving.
    NotYet {
        /// Pods that are waited for.
        waiting: usize,
        /// When something can have changed, or another pod may be asked.
        next_look: Duration,
    },
}

/// Asks the pods of the next tier to leave.
///
/// # Errors
/// When the pods cannot be listed, or one whose time is up cannot be deleted. An eviction that fails is asked for again
/// later and holds up no other pod.
pub async fn drain(
    node: &Node,
    deadline: Option<Timestamp>,
    context: &Context,
) -> Result<Drained, Error> {
    let name = node.name_any();
    let pods: Api<Pod> = Api::all(context.client.clone());
    let listed =
        bounded(pods.list(&ListParams::default().fields(&format!("spec.nodeName={name}"))))
            .await
            .map_err(|source| Error::kube("list the pods of", node, source))?;
    let now = clock::now();
    let (waiting, staying): (Vec<Pod>, Vec<Pod>) = listed
        .items
        .into_iter()
        .partition(|pod| must_leave(pod, now));
    let waiting: Vec<&Pod> = waiting.iter().collect();
    if waiting.is_empty() {
        return Ok(Drained::Yes { staying });
    }
    let mut failed = None;
    for pod in waiting.iter().filter(|pod| is_overdue(pod, deadline, now)) {
        if let Err(error) = delete_now(pod, deadline, now, context).await {
            // The others' time is up as well.
            failed.get_or_insert(error);
        }
    }
    let asked = next_tier(&waiting);
    let asks: Vec<_> = asked
        .iter()
        .map(|pod| ask(pod, node, now, context))
        .collect();
    let mut answers = stream::iter(asks).buffer_unordered(CONCURRENCY);
    let mut next_look = LOOK_MAX;
    while let Some(due) = answers.next().await {
        next_look = next_look.min(due);
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(Drained::NotYet {
            waiting: waiting.len(),
            next_look: look_after(&waiting, next_look, deadline, now),
        }),
    }
}

/// Asks one pod to leave, if it may be. Returns when to come back for it.
async fn ask(pod: &Pod, node: &Node, now: Timestamp, context: &Context) -> SignedDuration {
    if !forbids_disruption(pod, now) {
        return eviction::ask(pod, node, context).await;
    }
    tell_forbidden(pod, node, context).await;
    LOOK_MIN
}

/// When the node is looked at next, if no eviction of the tier is due before `next_due`. Pure.
///
/// Pods that are leaving are gone any moment, and a pod's own deadline must not be missed.
fn look_after(
    waiting: &[&Pod],
    next_due: SignedDuration,
    deadline: Option<Timestamp>,
    now: Timestamp,
) -> Duration {
    let is_leaving = |pod: &&Pod| pod.metadata.deletion_timestamp.is_some();
    let until_overdue = |pod: &&Pod| {
        let latest = deadline?.saturating_sub(grace(pod)).ok()?;
        Some(latest.duration_since(now))
    };
    let first_overdue = waiting.iter().filter_map(until_overdue).min();
    let wait = match first_overdue {
        _ if waiting.iter().any(is_leaving) => LOOK_MIN,
        Some(overdue) => next_due.min(overdue),
        None => next_due,
    };
    wait.clamp(LOOK_MIN, LOOK_MAX).unsigned_abs()
}

/// Whether the node waits for this pod. Pure.
fn must_leave(pod: &Pod, now: Timestamp) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default();
    let is_finished = matches!(phase, "Succeeded" | "Failed");
    let is_mirror = pod
        .owner_references()
        .iter()
        .any(|owner| owner.kind == "Node");
    let is_stuck = pod
        .metadata
        .deletion_timestamp
        .as_ref()
        .is_some_and(|at| now.duration_since(at.0) > STUCK_AFTER);
    !is_finished && !is_mirror && !is_stuck && !tolerates_disruption(pod)
}

fn tolerates_disruption(pod: &Pod) -> bool {
    let tolerations = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.tolerations.as_deref())
        .unwrap_or_default();
    tolerations.iter().any(|toleration| {
        let is_key = toleration
            .key
            .as_deref()
            .is_none_or(|key| key.is_empty() || key == taint::DISRUPTED);
        let is_effect = toleration
            .effect
            .as_deref()
            .is_none_or(|effect| effect.is_empty() || effect == "NoSchedule");
        let has_no_key = toleration.key.as_deref().is_none_or(str::is_empty);
        let matches_value = match toleration.operator.as_deref() {
            Some("Exists") => true,
            _ => !has_no_key && toleration.value.as_deref().is_none_or(str::is_empty),
        };
        is_key && is_effect && matches_value
    })
}

/// The pods that are asked next: the first tier that has any not leaving yet. Pure.
///
/// Critical pods stay until the others are gone, and daemons until those that they serve are.
fn next_tier<'a>(waiting: &[&'a Pod]) -> Vec<&'a Pod> {
    let tier = |pod: &Pod| (is_critical(pod), is_daemon(pod));
    let Some(first) = waiting.iter().map(|pod| tier(pod)).min() else {
        return Vec::new();
    };
    let is_asked = |pod: &&&Pod| tier(pod) == first && pod.metadata.deletion_timestamp.is_none();
    waiting.iter().filter(is_asked).copied().collect()
}

fn is_critical(pod: &Pod) -> bool {
    let class = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.priority_class_name.as_deref());
    matches!(
        class,
        Some("system-cluster-critical" | "system-node-critical")
    )
}

fn is_daemon(pod: &Pod) -> bool {
    pod.owner_references()
        .iter()
        .any(|owner| owner.kind == "DaemonSet")
}

/// Whether the pod's own grace period no longer fits before the deadline. Pure.
fn is_overdue(pod: &Pod, deadline: Option<Timestamp>, now: Timestamp) -> bool {
    let Some(deadline) = deadline else {
        return false;
    };
    if let Some(ends) = pod.metadata.deletion_timestamp.as_ref() {
        return ends.0 > deadline;
    }
    now > deadline.saturating_sub(grace(pod)).unwrap_or(deadline)
}

fn grace(pod: &Pod) -> SignedDuration {
    /// Kubernetes' default.
    const GRACE_DEFAULT_SECS: i64 = 30;
    let secs = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.termination_grace_period_seconds);
    SignedDuration::from_secs(secs.unwrap_or(GRACE_DEFAULT_SECS))
}

/// Deletes a pod whose time is up, with the time that is left for it.
async fn delete_now(
    pod: &Pod,
    deadline: Option<Timestamp>,
    now: Timestamp,
    context: &Context,
) -> Result<(), Error> {
    let left = deadline.map_or(1, |deadline| deadline.duration_since(now).as_secs().max(1));
    let params = DeleteParams {
        grace_period_seconds: Some(u32::try_from(left).unwrap_or(u32::MAX)),
        preconditions: Some(same_pod(pod)),
        ..DeleteParams::default()
    };
    let result = bounded(pods_of(pod, context).delete(&pod.name_any(), &params)).await;
    match result {
        Err(error) if is_conflict(&error) => Ok(()),
        other => gone_is_fine(other).map_err(|source| Error::kube("delete", pod, source)),
    }?;
    context
        .events
        .normal(
            pod,
            event::DISRUPTED,
            "deleted because its node's terminationGracePeriod is over",
        )
        .await;
    Ok(())
}

async fn tell_forbidden(pod: &Pod, node: &Node, context: &Context) {
    let note = format!(
        "pod {}/{} may not be disrupted: its annotation says so",
        pod.namespace().unwrap_or_default(),
        pod.name_any()
    );
    context
        .events
        .warning(node, event::FAILED_DRAINING, &note)
        .await;
}

pub(super) fn pods_of(pod: &Pod, context: &Context) -> Api<Pod> {
    Api::namespaced(context.client.clone(), &pod.namespace().unwrap_or_default())
}

/// A pod of the same name made since is another pod.
pub(super) fn same_pod(pod: &Pod) -> Preconditions {
    Preconditions {
        uid: pod.uid(),
        resource_version: None,
    }
}

/// Whether the pod may not be disrupted now: for ever, or for a while after its start. Pure.
fn forbids_disruption(pod: &Pod, now: Timestamp) -> bool {
    let started = pod
        .status
        .as_ref()
        .and_then(|status| status.start_time.as_ref())
        .map(|time| time.0);
    let annotations = pod.annotations();
    let is_older_form = annotations
        .get(annotation::DO_NOT_EVICT)
        .is_some_and(|value| value == "true")
        || annotations
            .get(annotation::SAFE_TO_EVICT)
            .is_some_and(|value| value == "false");
    let value = annotations
        .get(annotation::DO_NOT_DISRUPT)
        .map(String::as_str);
    is_older_form || value.is_some_and(|value| holds(value, started, now))
}

/// `true` holds for ever, a duration from the pod's start on; what is neither does not hold (Karpenter: same).
fn holds(value: &str, started: Option<Timestamp>, now: Timestamp) -> bool {
    if value == "true" {
        return true;
    }
    let Ok(length) = parse_duration(value) else {
        return false;
    };
    !length.is_zero() && started.is_none_or(|started| now.duration_since(started) < length)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{PodSpec, Toleration};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};

    use super::*;

    fn pod(name: &str, owner: &str, class: Option<&str>) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.name = Some(name.to_owned());
        pod.metadata.owner_references = Some(vec![OwnerReference {
            kind: owner.to_owned(),
            ..OwnerReference::default()
        }]);
        pod.spec = Some(PodSpec {
            priority_class_name: class.map(str::to_owned),
            ..PodSpec::default()
        });
        pod
    }

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn critical_pods_leave_after_the_others_and_daemons_after_their_users() {
        let web = pod("web", "ReplicaSet", None);
        let logs = pod("logs", "DaemonSet", None);
        let dns = pod("dns", "ReplicaSet", Some("system-cluster-critical"));
        let proxy = pod("proxy", "DaemonSet", Some("system-node-critical"));
        let mut waiting = vec![&proxy, &dns, &logs, &web];
        let mut order = Vec::new();
        while !waiting.is_empty() {
            let tier = next_tier(&waiting);
            order.extend(tier.iter().map(|pod| pod.name_any()));
            waiting.retain(|pod| !tier.iter().any(|gone| gone.name_any() == pod.name_any()));
        }

        assert_eq!(order, ["web", "logs", "dns", "proxy"]);
    }

    #[test]
    fn a_tier_that_is_still_leaving_holds_the_next_one_back() {
        let mut web = pod("web", "ReplicaSet", None);
        web.metadata.deletion_timestamp = Some(Time(time("2026-01-01T00:00:00Z")));
        let dns = pod("dns", "ReplicaSet", Some("system-cluster-critical"));

        assert!(next_tier(&[&web, &dns]).is_empty());
    }

    #[test]
    fn mirror_pods_and_pods_that_tolerate_everything_are_not_waited_for() {
        let now = time("2026-01-01T00:00:00Z");
        let mut tolerant = pod("agent", "DaemonSet", None);
        let everything = Toleration {
            operator: Some("Exists".to_owned()),
            ..Toleration::default()
        };
        tolerant.spec.get_or_insert_default().tolerations = Some(vec![everything]);

        assert!(!must_leave(&pod("static", "Node", None), now));
        assert!(!must_leave(&tolerant, now));
        assert!(must_leave(&pod("web", "ReplicaSet", None), now));
    }

    #[test]
    fn a_pod_is_overdue_when_its_grace_no_longer_fits() {
        let deadline = Some(time("2026-01-01T00:10:00Z"));
        let web = pod("web", "ReplicaSet", None);

        assert!(!is_overdue(&web, deadline, time("2026-01-01T00:09:29Z")));
        assert!(is_overdue(&web, deadline, time("2026-01-01T00:09:31Z")));
        assert!(!is_overdue(&web, None, time("2030-01-01T00:00:00Z")));
    }

    fn annotated(key: &str, value: &str) -> Pod {
        let mut pod = pod("web", "ReplicaSet", None);
        pod.annotations_mut()
            .insert(key.to_owned(), value.to_owned());
        pod.status.get_or_insert_default().start_time = Some(Time(time("2026-01-01T00:00:00Z")));
        pod
    }

    #[test]
    fn do_not_disrupt_holds_for_ever_or_for_a_while_and_its_older_forms_hold_too() {
        let minute = |text: &str| time(&format!("2026-01-01T00:{text}:00Z"));
        let holds = |key, value, at| forbids_disruption(&annotated(key, value), minute(at));

        assert!(holds(annotation::DO_NOT_DISRUPT, "true", "59"));
        assert!(holds(annotation::DO_NOT_DISRUPT, "30m", "29"));
        assert!(!holds(annotation::DO_NOT_DISRUPT, "30m", "30"));
        assert!(!holds(annotation::DO_NOT_DISRUPT, "-5m", "00"));
        assert!(!holds(annotation::DO_NOT_DISRUPT, "soon", "00"));
        assert!(holds(annotation::DO_NOT_EVICT, "true", "59"));
        assert!(holds(annotation::SAFE_TO_EVICT, "false", "59"));
        assert!(!holds(annotation::SAFE_TO_EVICT, "true", "00"));
    }

    #[test]
    fn a_pod_that_has_not_started_is_protected_by_a_duration() {
        let mut pod = annotated(annotation::DO_NOT_DISRUPT, "1m");
        pod.status = None;

        assert!(forbids_disruption(&pod, time("2030-01-01T00:00:00Z")));
    }

    #[test]
    fn a_pod_whose_kubelet_is_gone_is_waited_for_one_minute_past_its_end() {
        let mut web = pod("web", "ReplicaSet", None);
        web.metadata.deletion_timestamp = Some(Time(time("2026-01-01T00:00:00Z")));

        assert!(must_leave(&web, time("2026-01-01T00:01:00Z")));
        assert!(!must_leave(&web, time("2026-01-01T00:01:01Z")));
    }

    #[test]
    fn a_drain_is_looked_at_every_second_while_pods_leave_and_before_a_deadline_else_less_often() {
        let now = time("2026-01-01T00:00:00Z");
        let web = pod("web", "ReplicaSet", None);
        let mut leaving = web.clone();
        leaving.metadata.deletion_timestamp = Some(Time(now));
        let look = |pods: &[&Pod], deadline: Option<&str>| {
            let due = SignedDuration::from_secs(8);
            look_after(pods, due, deadline.map(time), now).as_secs()
        };

        assert_eq!(look(&[&web], None), 8);
        assert_eq!(look(&[&web, &leaving], None), 1);
        assert_eq!(look(&[&web], Some("2026-01-01T00:00:33Z")), 3);
        assert_eq!(look(&[&web], Some("2026-01-01T00:00:01Z")), 1);
    }

    #[test]
    fn a_terminating_pod_that_would_outlive_the_deadline_is_overdue() {
        let deadline = Some(time("2026-01-01T00:10:00Z"));
        let mut web = pod("web", "ReplicaSet", None);
        web.metadata.deletion_timestamp = Some(Time(time("2026-01-01T00:10:01Z")));

        assert!(is_overdue(&web, deadline, time("2026-01-01T00:00:00Z")));
    }
}
