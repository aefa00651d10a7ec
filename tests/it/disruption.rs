//! Disruption on the real control plane: what goes, what comes first, what is left alone, and what a crash leaves.

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::events::v1::Event;
use kerf_api::nodeclaim::NodeClaim;
use kube::ResourceExt;

use crate::scenarios::{ECSNODECLASS, deployment, pool, ready_stage};
use crate::stage::Stage;

const COMMAND: &str = "karpenter.alibabacloud.com/disruption-command";
/// More than half of the CPU of the type that the pools here name: one pod per node.
const ALONE: &str = "1100m";
const LARGE: &str =
    r#"        - {key: node.kubernetes.io/instance-type, operator: In, values: ["ecs.g7.large"]}"#;

/// The pool of the scenarios with other budgets.
fn with_budgets(pool: &str, budgets: &str) -> String {
    pool.replace(
        r#"budgets: [{nodes: "100%"}]"#,
        &format!("budgets: {budgets}"),
    )
}

/// A stage whose controller is not started, with this pool.
fn stage_with(pool: &str) -> Stage {
    let stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(pool);
    stage
}

async fn note(stage: &Stage, kind: &str, reason: &str, part: &str) -> Option<String> {
    let events: Vec<Event> = stage.list_async().await;
    events.into_iter().find_map(|event| {
        let is_it = event.reason.as_deref() == Some(reason)
            && event.regarding.as_ref()?.kind.as_deref() == Some(kind);
        event.note.filter(|note| is_it && note.contains(part))
    })
}

fn has_taint(node: &Node) -> bool {
    node.spec
        .iter()
        .flat_map(|spec| spec.taints.iter().flatten())
        .any(|taint| taint.key == "karpenter.sh/disrupted")
}

/// Whether nothing is going on: all claims are ready, none is going or in a command, no Node is tainted.
async fn is_quiet(stage: &Stage) -> bool {
    let claims: Vec<NodeClaim> = stage.list_async().await;
    let nodes: Vec<Node> = stage.list_async().await;
    claims.iter().all(|claim| {
        claim.is_true("Ready")
            && claim.metadata.deletion_timestamp.is_none()
            && !claim.annotations().contains_key(COMMAND)
            && !claim.is_true("DisruptionReason")
    }) && nodes.iter().all(|node| !has_taint(node))
        && nodes.len() == claims.len()
}

#[test]
fn a_budget_of_zero_blocks_and_says_until_when() {
    let hour = jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .hour();
    let closed =
        format!(r#"[{{nodes: "0", schedule: "0 {hour} * * *", duration: 2h}}, {{nodes: "100%"}}]"#);
    let mut stage = stage_with(&with_budgets(&pool("1s", ""), &closed));
    stage.start_kerf(&[]);
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    stage.until_bound(1);
    stage.apply(&deployment("web", 0, "1", "1Gi", ""));

    let told = stage.until("an event on the pool that names the time", || {
        note(&stage, "NodePool", "DisruptionBlocked", "until 20")
    });
    assert!(told.contains("Underutilized, Empty, Drifted"), "{told}");
    let waiting = stage.until("a condition on the claim", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        let claim = claims.first()?;
        let condition = kerf_api::condition::find(claim.conditions(), "Disruptable")?;
        (condition.reason == "DisruptionWaits" && condition.message.contains("budgets"))
            .then(|| condition.message.clone())
    });
    assert!(waiting.contains("allow no more"), "{waiting}");

    stage.apply(&pool("1s", ""));
    stage.until_empty();
}

#[test]
fn an_empty_node_is_tainted_before_it_goes_and_the_others_stay() {
    let stage = ready_stage("2s", LARGE);
    stage.apply(&deployment("web", 2, ALONE, "1Gi", ""));
    stage.until_bound(2);

    stage.apply(&deployment("web", 1, ALONE, "1Gi", ""));

    stage.until("one node", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        (claims.len() == 1 && is_quiet(&stage).await).then_some(())
    });
    assert_eq!(stage.runtime.block_on(stage.bound_pods()).len(), 1);
    assert!(
        stage.log().contains("empty: delete"),
        "the command is logged"
    );
}
