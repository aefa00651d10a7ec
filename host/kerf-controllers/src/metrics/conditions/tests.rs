//! Unit level: what a watch told, and the text of a scrape.

use std::fmt::Write as _;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prometheus_client::encoding::prometheus_text::encode;
use serde_json::json;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn node(status: &str, since: i64) -> Node {
    serde_json::from_value(json!({
        "metadata": {"name": "node-1", "uid": "u-1", "labels": {
            "karpenter.sh/nodepool": "general",
            "karpenter.alibabacloud.com/ecsnodeclass": "default",
            "karpenter.sh/initialized": "true",
        }},
        "status": {"conditions": [
            {"type": "Ready", "status": status, "reason": "Kubelet", "lastTransitionTime": at(since).to_string()},
        ]},
    }))
    .unwrap()
}

const MORE: &str = "nodepool=\"general\",nodeclass=\"default\",initialized=\"true\"";

#[test]
fn a_change_of_a_condition_is_counted_with_how_long_the_status_before_it_had_lasted() {
    let mut registry = Registry::default();
    let metrics = ConditionMetrics::new(&mut registry);
    metrics.observe(&OwnedChange::Listed(vec![node("False", 100)]), at(100));
    for (status, since) in [("False", 100), ("True", 130), ("Unknown", 200)] {
        let change = OwnedChange::Applied(Arc::new(node(status, since)));
        metrics.observe(&change, at(since));
    }
    let mut gone = node("Unknown", 200);
    gone.metadata.deletion_timestamp = Some(Time(at(210)));
    metrics.observe(&OwnedChange::Deleted(Arc::new(gone)), at(214));

    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    for line in [
        format!(
            "node_status_condition_transitions_total{{type=\"Ready\",status=\"True\",reason=\"Kubelet\",{MORE}}} 1"
        ),
        format!(
            "node_status_condition_transition_seconds_sum{{type=\"Ready\",status=\"False\",{MORE}}} 30.0"
        ),
        format!(
            "node_status_condition_transition_seconds_sum{{type=\"Ready\",status=\"True\",{MORE}}} 70.0"
        ),
        format!("node_termination_duration_seconds_sum{{{MORE}}} 4.0"),
    ] {
        assert!(text.contains(&line), "{line} in {text}");
    }
    // What it was when it was listed is no news.
    assert!(!text.contains("status=\"False\",reason"), "{text}");
}

#[test]
fn a_scrape_shows_each_condition_with_its_age_and_each_object_that_is_going() {
    let mut node = node("True", 130);
    node.metadata.deletion_timestamp = Some(Time(at(190)));
    let mut text = String::new();
    render_kind([Arc::new(node)], at(200), &mut |piece| {
        text.write_str(&piece)
    })
    .unwrap();

    let ready = format!(
        "namespace=\"\",name=\"node-1\",type=\"Ready\",status=\"True\",reason=\"Kubelet\",{MORE}"
    );
    for line in [
        format!("operator_node_status_condition_current_status_seconds{{{ready}}} 70\n"),
        format!("operator_node_status_condition_count{{{ready}}} 1\n"),
        format!(
            "operator_node_termination_current_time_seconds{{namespace=\"\",name=\"node-1\",{MORE}}} 10\n"
        ),
    ] {
        assert!(text.contains(&line), "{line} in {text}");
    }
}
