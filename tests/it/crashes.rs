//! Crash safety: whatever dies in between, no instance is made twice and none is forgotten.

use kerf_api::nodeclaim::NodeClaim;
use kube::ResourceExt;

use crate::stage::Stage;

const MANIFESTS: &str = concat!(
    include_str!("../../examples/quickstart/ecsnodeclass.yaml"),
    "\n---\n",
    include_str!("../../examples/quickstart/nodepool.yaml"),
    "\n---\n",
    include_str!("../../examples/quickstart/deployment.yaml"),
);

/// The pods of the quick start.
const PODS: usize = 12;

fn check_one_instance_per_claim(stage: &Stage) {
    let claims: Vec<NodeClaim> = stage.list();
    let mut claimed: Vec<String> = claims
        .iter()
        .filter_map(|claim| claim.provider_id().map(str::to_owned))
        .collect();
    let mut existing: Vec<String> = stage
        .instances()
        .iter()
        .map(|instance| format!("cn-hangzhou.{}", instance.id))
        .collect();
    claimed.sort();
    existing.sort();
    assert_eq!(claimed, existing);
    assert_eq!(claimed.len(), claims.len());
}

/// Kills the controller at the failpoint and starts it anew.
fn survives_a_kill_at(failpoint: &str) {
    let mut stage = Stage::set();
    stage.apply(MANIFESTS);
    stage.start_kerf(&["--failpoint", failpoint]);
    stage.until("the failpoint", || async {
        stage.log().contains("failpoint reached").then_some(())
    });
    stage.kill_kerf();
    let unrecorded = stage
        .list::<NodeClaim>()
        .iter()
        .filter(|claim| claim.provider_id().is_none())
        .count();
    assert!(
        unrecorded > 0,
        "the kill came before the status was written"
    );

    stage.start_kerf(&[]);

    stage.until_bound(PODS);
    check_one_instance_per_claim(&stage);
    let names: Vec<String> = stage
        .list::<NodeClaim>()
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    assert!(!names.is_empty());
}

#[test]
fn kill_9_between_the_runinstances_reply_and_the_status_write_leaves_one_instance_per_claim() {
    survives_a_kill_at("launched-unrecorded");
}

#[test]
fn kill_9_between_the_launch_token_and_the_call_leaves_one_instance_per_claim() {
    survives_a_kill_at("token-chosen");
}
