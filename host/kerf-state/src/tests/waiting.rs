//! Which pods a plan looks at before kube-scheduler has said anything of them, and what counts as news.

use super::{NOW, apply, catalog, cluster, documents};
use crate::Cluster;
use jiff::{SignedDuration, Timestamp};
use kerf_core::snapshot::Settings;

const CREATED: &str = "2026-01-01T00:00:05Z";
const BUSY: &str = "2026-01-01T00:00:07Z";

/// A pod that kube-scheduler has said nothing of.
fn unseen(name: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default, uid: {name}, creationTimestamp: '{CREATED}'}}
spec:
  schedulerName: default-scheduler
  priority: 0
  containers: []
status: {{phase: Pending}}
"
    )
}

/// A pod that kube-scheduler has bound at that time.
fn bound(at: &str, priority: i32) -> String {
    format!(
        "---
apiVersion: v1
kind: Pod
metadata: {{name: bound, namespace: default, uid: bound, creationTimestamp: '{CREATED}'}}
spec: {{nodeName: node-1, priority: {priority}, containers: []}}
status: {{phase: Running, conditions: [{{type: PodScheduled, status: 'True', lastTransitionTime: '{at}'}}]}}
"
    )
}

fn refused(name: &str) -> String {
    unseen(name).replace(
        "status: {phase: Pending}",
        &format!("status: {{phase: Pending, conditions: [{{type: PodScheduled, status: 'False', reason: Unschedulable, lastTransitionTime: '{BUSY}'}}]}}"),
    )
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn waiting(cluster: &Cluster, now: Timestamp) -> Vec<String> {
    let snapshot = cluster.snapshot(&catalog(), Settings::default(), now);
    let pods = snapshot.pending_pods.iter();
    pods.map(|pod| pod.name.to_string()).collect()
}

#[test]
fn pods_that_a_busy_scheduler_has_not_seen_are_planned() {
    let busy = cluster(&(unseen("new") + &bound(BUSY, 0)));
    assert_eq!(waiting(&busy, time(BUSY)), ["new"]);

    let verdicts_lag = cluster(&(unseen("new") + &bound("2026-01-01T00:00:01Z", 0)));
    assert_eq!(waiting(&verdicts_lag, time(BUSY)), ["new"]);
}

#[test]
fn nothing_is_planned_for_unseen_pods_while_the_scheduler_is_down() {
    let busy = cluster(&(unseen("new") + &bound(BUSY, 0)));
    let later = time(BUSY)
        .checked_add(SignedDuration::from_secs(31))
        .unwrap();
    assert!(waiting(&busy, later).is_empty());

    let before_the_pod = cluster(&(unseen("new") + &bound("2025-12-31T23:59:59Z", 0)));
    assert!(waiting(&before_the_pod, time(BUSY)).is_empty());

    assert!(waiting(&cluster(&unseen("new")), time(BUSY)).is_empty());
    assert_eq!(waiting(&cluster(&refused("old")), NOW), ["old"]);
}

#[test]
fn pods_that_something_else_may_place_wait_for_the_verdict() {
    for (part, instead) in [
        ("default-scheduler", "volcano"),
        (
            "containers: []",
            "containers: []\n  schedulingGates: [{name: quota}]",
        ),
        ("containers: []", "containers: []\n  nodeName: node-1"),
        ("priority: 0", "priority: 1"),
        (
            "phase: Pending",
            "phase: Pending, nominatedNodeName: node-1",
        ),
        (
            "phase: Pending",
            "phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: SchedulerError}]",
        ),
    ] {
        let pod = unseen("new").replace(part, instead);
        let cluster = cluster(&(pod + &bound(BUSY, 0)));

        assert!(waiting(&cluster, time(BUSY)).is_empty(), "{instead}");
    }
}

#[test]
fn a_pod_that_cannot_preempt_anything_is_planned_whatever_its_priority() {
    let never = "priority: 1\n  preemptionPolicy: Never";
    let peaceful = unseen("new").replace("priority: 0", never);
    assert_eq!(
        waiting(&cluster(&(peaceful + &bound(BUSY, 0))), time(BUSY)),
        ["new"]
    );

    let same = unseen("new").replace("priority: 0", "priority: 1");
    assert_eq!(
        waiting(&cluster(&(same + &bound(BUSY, 1))), time(BUSY)),
        ["new"]
    );
}

#[test]
fn verdicts_hold_no_batch_open_and_those_on_planned_pods_are_no_news() {
    let mut cluster = cluster(&(unseen("a") + "---\n" + &unseen("b")));
    assert_eq!(cluster.pod_news().arrived, 2);

    cluster.note_planned(["a".into()], true);
    assert_eq!(cluster.planned_pods(), 1);
    let verdicts = refused("a") + "---\n" + &refused("b");
    for pod in documents(&verdicts) {
        assert!(apply(&mut cluster, &pod));
    }
    assert_eq!(cluster.pod_news().judged, 1, "b was in no plan");

    for pod in documents(&verdicts) {
        apply(&mut cluster, &pod);
    }
    let news = cluster.pod_news();
    assert_eq!((news.arrived, news.judged, news.left), (2, 1, 0));
}

#[test]
fn pods_that_end_or_go_are_news_and_a_binding_is_none() {
    let mut cluster = cluster(&unseen("bound"));
    let before = cluster.pod_news();

    for pod in documents(&bound(BUSY, 0)) {
        apply(&mut cluster, &pod);
    }
    assert_eq!(cluster.pod_news(), before);

    for pod in documents(&bound(BUSY, 0).replace("Running", "Succeeded")) {
        apply(&mut cluster, &pod);
    }
    assert_eq!(cluster.pod_news().left, 1);
}
