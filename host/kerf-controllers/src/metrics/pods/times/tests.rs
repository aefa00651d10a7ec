//! Unit level: pods in, series out.

use prometheus_client::encoding::prometheus_text::encode;
use serde_json::{Value, json};

use super::*;

fn pod(uid: &str, node: &Value, conditions: &[(&str, i64)]) -> Pod {
    let time = |second| Timestamp::from_second(second).unwrap().to_string();
    let conditions: Vec<Value> = conditions
        .iter()
        .map(
            |(type_, at)| json!({"type": type_, "status": "True", "lastTransitionTime": time(*at)}),
        )
        .collect();
    let object = json!({
        "metadata": {"name": uid, "namespace": "shop", "uid": uid, "creationTimestamp": time(100)},
        "spec": {"containers": [], "nodeName": node},
        "status": {"phase": "Running", "conditions": conditions},
    });
    serde_json::from_value(object).unwrap()
}

fn see(times: &PodTimes, pod: &Pod, second: i64) {
    times.observe(pod, Timestamp::from_second(second).unwrap());
}

fn text(times: &PodTimes, mut registry: Registry) -> String {
    times.register_waiting(&mut registry, Timestamp::from_second(130).unwrap());
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    times.render(Timestamp::from_second(130).unwrap(), &mut text);
    text
}

fn unschedulable(pod: &Pod) -> Pod {
    let mut pod = pod.clone();
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
    pod.status.get_or_insert_default().conditions =
        Some(vec![serde_json::from_value(condition).unwrap()]);
    pod
}

#[test]
fn a_planned_pod_ages_until_it_is_bound_and_one_that_lost_its_place_does_not() {
    let mut registry = Registry::default();
    let times = PodTimes::new(&mut registry, true);
    let planned = |name: &str| PlannedPod::new(name, kerf_core::pod::PodSpec::default());
    let (a, b) = (planned("a"), planned("b"));
    for name in ["a", "b"] {
        see(&times, &unschedulable(&pod(name, &Value::Null, &[])), 110);
    }
    let at = |second| Timestamp::from_second(second).unwrap();
    times.planned([&a, &b].into_iter(), std::iter::empty(), at(115));
    times.planned([&a].into_iter(), [&b].into_iter(), at(120));

    let text = text(&times, registry);

    for stage in ["unbound", "unstarted"] {
        let name = format!("pods_provisioning_{stage}_time_seconds{{name=");
        assert!(
            text.contains(&format!("{name}\"a\",namespace=\"shop\"}} 15.0")),
            "{text}"
        );
        assert!(!text.contains(&format!("{name}\"b\"")), "{text}");
    }
    assert!(
        text.contains("pods_scheduling_decision_duration_seconds_sum 10.0"),
        "{text}"
    );
}

#[test]
fn a_pod_is_counted_when_it_is_bound_and_when_it_is_ready_and_ages_until_then() {
    let mut registry = Registry::default();
    let times = PodTimes::new(&mut registry, true);
    let node = json!("node-1");
    let waits = pod("quick", &Value::Null, &[]);
    see(&times, &unschedulable(&waits), 101);
    let planned = PlannedPod::new("quick", kerf_core::pod::PodSpec::default());
    let at = Timestamp::from_millisecond(102_500).unwrap();
    times.planned([&planned].into_iter(), std::iter::empty(), at);
    see(&times, &pod("quick", &node, &[("PodScheduled", 103)]), 103);
    let ready = [("PodScheduled", 103), ("Ready", 110)];
    see(&times, &pod("quick", &node, &ready), 110);
    see(&times, &pod("slow", &node, &[("PodScheduled", 104)]), 104);
    let waits = unschedulable(&pod("waits", &Value::Null, &[]));
    see(&times, &waits, 120);
    see(&times, &pod("gone", &Value::Null, &[]), 104);
    times.forget(&pod("gone", &Value::Null, &[]));

    let text = text(&times, registry);

    for line in [
        "pods_bound_duration_seconds_sum 3.0",
        "pods_startup_duration_seconds_sum 10\n",
        "pods_scheduling_decision_duration_seconds_sum 1.5",
        "pods_provisioning_bound_duration_seconds_sum 0.5",
        "pods_provisioning_startup_duration_seconds_sum 7.5",
        "pods_provisioning_scheduling_undecided_time_seconds{name=\"waits\",namespace=\"shop\"} 10.0",
        "pods_unbound_time_seconds{name=\"waits\",namespace=\"shop\"} 30.0",
        "pods_unstarted_time_seconds{name=\"slow\",namespace=\"shop\"} 30.0",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(
        !text.contains("gone") && !text.contains("\"quick\""),
        "{text}"
    );
}

#[test]
fn pods_that_ran_before_the_start_are_no_news() {
    let mut registry = Registry::default();
    let times = PodTimes::new(&mut registry, true);
    let old = pod(
        "old",
        &json!("node-1"),
        &[("PodScheduled", 103), ("Ready", 110)],
    );

    see(&times, &old, 120);
    see(&times, &old, 121);
    times.retain(&HashSet::new());

    let text = text(&times, registry);
    assert!(
        text.contains("pods_bound_duration_seconds_count 0"),
        "{text}"
    );
}
