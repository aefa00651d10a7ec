//! Unit level: what happens to a NodeClaim in, series out.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kerf_api::condition::{Condition, ConditionStatus};
use kerf_api::nodeclaim::NodeClaimStatus;
use prometheus_client::encoding::prometheus_text::encode;

use super::*;

fn claim() -> NodeClaim {
    let at = |second| Timestamp::from_second(second).unwrap();
    let mut claim = NodeClaim::new("general-1", Default::default());
    let own = [
        (label::NODEPOOL, "general"),
        (labels::CAPACITY_TYPE, "spot"),
        (labels::ZONE, "cn-hangzhou-h"),
    ];
    let own = own.map(|(key, value)| (key.to_owned(), value.to_owned()));
    claim.labels_mut().extend(own);
    claim.metadata.deletion_timestamp = Some(Time(at(100)));
    claim.status = Some(NodeClaimStatus {
        image_id: Some("m-1".to_owned()),
        conditions: vec![Condition {
            type_: condition::INSTANCE_TERMINATING.to_owned(),
            status: ConditionStatus::True,
            last_transition_time: at(130),
            ..Condition::default()
        }],
        ..NodeClaimStatus::default()
    });
    claim
}

#[test]
fn a_repaired_claim_is_counted_by_what_was_broken_and_its_end_by_how_long_it_took() {
    let mut registry = Registry::default();
    let metrics = TerminationMetrics::new(&mut registry);

    metrics.disrupted(&claim(), "unhealthy", None, Some(3));
    metrics.unhealthy(&claim(), "KernelDeadlock");
    metrics.claim_gone(&claim(), Timestamp::from_second(140).unwrap());

    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    for line in [
        "nodeclaims_unhealthy_disrupted_total{condition=\"kernel_deadlock\",nodepool=\"general\",capacity_type=\"spot\",image_id=\"m-1\"} 1",
        "pods_disruption_initiated_total{reason=\"unhealthy\",nodepool=\"general\",capacity_type=\"spot\",consolidation_policy=\"\",termination_mode=\"graceful\"} 3",
        "nodeclaims_termination_duration_seconds_sum{nodepool=\"general\"} 40.0",
        "nodeclaims_instance_termination_duration_seconds_sum{nodepool=\"general\"} 10.0",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}
