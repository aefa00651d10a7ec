//! Disruption on the real control plane: what goes, what comes first, what is left alone, and what a crash leaves.

use std::sync::atomic::{AtomicUsize, Ordering};

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

/// The pool with another template, from which all its nodes have drifted.
fn drifted(pool: &str) -> String {
    pool.replace(
        "  template:\n    spec:",
        "  template:\n    metadata: {annotations: {rolled: \"yes\"}}\n    spec:",
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

fn is_rolled(claim: &NodeClaim) -> bool {
    claim
        .annotations()
        .get("rolled")
        .is_some_and(|it| it == "yes")
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

/// Waits until every claim is of the second template and nothing goes on.
fn until_rolled(stage: &Stage, pods: usize) {
    stage.until("all nodes of the second template", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        let is_done = claims.iter().all(is_rolled) && is_quiet(stage).await;
        (is_done && stage.bound_pods().await.len() == pods).then_some(())
    });
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
fn a_drifted_pool_rolls_within_its_budget_with_replacements_first() {
    const PODS: u32 = 5;
    const NODES: usize = PODS as usize;
    let plain = with_budgets(&pool("720h", LARGE), r#"[{nodes: "2"}]"#);
    let mut stage = stage_with(&plain);
    stage.start_kerf(&[]);
    stage.apply(&deployment("web", PODS, ALONE, "1Gi", ""));
    stage.until_bound(NODES);

    stage.apply(&drifted(&plain));

    let (going_max, ready_min) = (AtomicUsize::new(0), AtomicUsize::new(NODES));
    stage.until("all nodes of the second template", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        let is_going = |claim: &&NodeClaim| {
            claim.metadata.deletion_timestamp.is_some() || claim.is_true("DisruptionReason")
        };
        let going = claims.iter().filter(is_going).count();
        going_max.fetch_max(going, Ordering::Relaxed);
        let ready = claims
            .iter()
            .filter(|it| it.is_true("Ready") && it.metadata.deletion_timestamp.is_none())
            .count();
        ready_min.fetch_min(ready, Ordering::Relaxed);
        (claims.iter().all(is_rolled) && is_quiet(&stage).await).then_some(())
    });
    stage.until_bound(NODES);
    assert!(going_max.load(Ordering::Relaxed) <= 2, "{going_max:?}");
    assert_eq!(ready_min.load(Ordering::Relaxed), NODES);
    assert_eq!(stage.list::<NodeClaim>().len(), NODES);
    let told = stage.runtime.block_on(note(
        &stage,
        "NodeClaim",
        "DisruptionLaunching",
        "takes the place of",
    ));
    assert!(told.is_some());
}

#[test]
fn a_pod_that_forbids_disruption_keeps_its_drifted_node_and_says_so() {
    let plain = pool("720h", LARGE);
    let mut stage = stage_with(&plain);
    stage.start_kerf(&[]);
    stage.apply(&deployment("web", 1, "1", "1Gi", "").replace(
        "metadata: {labels: {app: web}}",
        "metadata: {labels: {app: web}, annotations: {karpenter.sh/do-not-disrupt: \"true\"}}",
    ));
    stage.until_bound(1);
    let claim = stage.list::<NodeClaim>().remove(0).name_any();

    stage.apply(&drifted(&plain));

    stage.until("an event that names the pod", || {
        note(&stage, "NodeClaim", "DisruptionBlocked", "pod default/web-")
    });
    // A pod that keeps its node is named whatever the node would go for, so that may have come first.
    stage.until("a claim that says so", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        claims[0].is_true("Drifted").then_some(())
    });
    let claims = stage.list::<NodeClaim>();
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].name_any(), claim);
}

/// Kills the controller at the failpoint while a drifted pool of two rolls, and starts it anew.
fn rolls_after_a_kill_at(failpoint: &str) {
    let plain = pool("720h", LARGE);
    let mut stage = stage_with(&plain);
    stage.start_kerf(&["--failpoint", failpoint]);
    stage.apply(&deployment("web", 2, ALONE, "1Gi", ""));
    stage.until_bound(2);
    stage.apply(&drifted(&plain));
    stage.until("the failpoint", || async {
        stage.log().contains("failpoint reached").then_some(())
    });
    stage.kill_kerf();

    stage.start_kerf(&[]);

    until_rolled(&stage, 2);
    assert_eq!(stage.list::<NodeClaim>().len(), 2);
    assert_eq!(stage.instances().len(), 2);
}

#[test]
fn a_kill_between_the_record_and_the_replacement_ends_in_a_rolled_pool_without_leftovers() {
    rolls_after_a_kill_at("candidates-tainted");
}

#[test]
fn a_kill_between_the_replacement_and_the_deletion_ends_in_a_rolled_pool_without_leftovers() {
    rolls_after_a_kill_at("replacements-ready");
}

#[test]
fn a_replacement_that_cannot_be_launched_leaves_the_node_as_it_was() {
    let plain = pool("720h", LARGE);
    let mut stage = stage_with(&plain);
    stage.start_kerf(&[]);
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    stage.until_bound(1);
    let first = stage.list::<NodeClaim>().remove(0).name_any();
    stage.sim.add_fault(crate::lifecycle::no_stock(1_000));

    stage.apply(&drifted(&plain));

    stage.until("the command is taken back", || async {
        stage.log().contains("command taken back").then_some(())
    });
    let nodes: Vec<Node> = stage.list();
    assert!(
        nodes
            .iter()
            .all(|node| node.metadata.deletion_timestamp.is_none())
    );
    let claims: Vec<NodeClaim> = stage.list();
    let own = claims.iter().find(|it| it.name_any() == first).unwrap();
    assert!(own.metadata.deletion_timestamp.is_none());
    assert_eq!(stage.runtime.block_on(stage.bound_pods()).len(), 1);
}

/// A pool that may be spot, consolidated as soon as it is quiet.
fn consolidating(requirements: &str) -> String {
    pool("2s", requirements).replace("WhenEmpty", "WhenEmptyOrUnderutilized")
}

#[test]
fn two_underused_nodes_become_one() {
    let mut stage = stage_with(&consolidating(LARGE));
    stage.start_kerf(&["--consolidation-quiet-duration", "1s"]);
    stage.apply(&deployment("web", 2, ALONE, "1Gi", ""));
    stage.until_bound(2);
    assert_eq!(stage.list::<Node>().len(), 2);

    // The pods shrink: both fit on one node now, one after the other.
    stage.apply(&deployment("web", 2, "300m", "512Mi", ""));

    stage.until("one node with both pods", || async {
        let nodes: Vec<Node> = stage.list_async().await;
        let bound = stage.bound_pods().await.len();
        (nodes.len() == 1 && bound == 2 && is_quiet(&stage).await).then_some(())
    });
}

#[test]
fn a_dear_node_becomes_a_cheaper_one_and_the_cheaper_one_comes_first() {
    let types = |types: &str| {
        format!(
            "        - {{key: node.kubernetes.io/instance-type, operator: In, values: [{types}]}}"
        )
    };
    let both = types(r#""ecs.g7.large", "ecs.g7.4xlarge""#);
    let mut stage = stage_with(&consolidating(&both));
    stage.start_kerf(&["--consolidation-quiet-duration", "1s"]);
    stage.apply(&deployment("web", 1, "10", "1Gi", ""));
    stage.until_bound(1);
    let dear = stage.list::<Node>().remove(0);
    assert_eq!(
        dear.labels()["node.kubernetes.io/instance-type"],
        "ecs.g7.4xlarge"
    );

    stage.apply(&deployment("web", 1, "300m", "512Mi", ""));

    stage.until("one cheaper node", || async {
        let nodes: Vec<Node> = stage.list_async().await;
        let is_cheap = nodes.len() == 1
            && nodes[0]
                .labels()
                .get("node.kubernetes.io/instance-type")?
                .as_str()
                == "ecs.g7.large";
        (is_cheap && stage.bound_pods().await.len() == 1 && is_quiet(&stage).await).then_some(())
    });
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

/// Nodes that were empty for a minute went all at once, because two thousand others were told of before.
#[test]
fn an_empty_node_goes_while_nobody_takes_in_why_the_others_stay() {
    let mut stage = stage_with(&pool("2s", LARGE));
    stage.start_kerf(&["--failpoint", "kept-untold"]);
    stage.apply(&deployment("web", 2, ALONE, "1Gi", ""));
    stage.until_bound(2);
    stage.until("the failpoint", || async {
        stage.log().contains("failpoint reached").then_some(())
    });

    stage.apply(&deployment("web", 1, ALONE, "1Gi", ""));

    stage.until("one claim", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        (claims.len() == 1).then_some(())
    });
}

#[test]
fn a_spot_node_becomes_a_cheaper_spot_node_once_the_gate_is_open() {
    let spot = consolidating("").replace(r#"values: ["on-demand"]"#, r#"values: ["spot"]"#);
    let mut stage = stage_with(&spot);
    stage.start_kerf(&["--consolidation-quiet-duration", "1s"]);
    stage.apply(&deployment("web", 1, "10", "1Gi", ""));
    stage.until_bound(1);
    let first = stage.list::<NodeClaim>().remove(0).name_any();
    stage.apply(&deployment("web", 1, "300m", "512Mi", ""));
    let told = stage.until("a word on why it stays", || {
        note(
            &stage,
            "NodeClaim",
            "Unconsolidatable",
            "SpotToSpotConsolidation is off",
        )
    });
    assert!(told.contains("is spot"), "{told}");
    assert_eq!(stage.list::<NodeClaim>().remove(0).name_any(), first);

    stage.kill_kerf();
    let open = "SpotToSpotConsolidation=true";
    stage.start_kerf(&[
        "--consolidation-quiet-duration",
        "1s",
        "--feature-gates",
        open,
    ]);

    stage.until("one other spot node", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        let nodes: Vec<Node> = stage.list_async().await;
        let is_other = claims.len() == 1 && claims[0].name_any() != first;
        let is_spot =
            nodes.len() == 1 && nodes[0].labels().get("karpenter.sh/capacity-type")? == "spot";
        let is_bound = stage.bound_pods().await.len() == 1;
        (is_other && is_spot && is_bound && is_quiet(&stage).await).then_some(())
    });
}

#[test]
fn a_zone_is_left_with_replacements_first_once_the_pool_says_so() {
    const LEFT: [&str; 2] = ["cn-hangzhou-h", "cn-hangzhou-i"];
    let plain = pool("720h", LARGE);
    let mut stage = stage_with(&plain);
    stage.start_kerf(&[]);
    stage.apply(&deployment("web", 4, ALONE, "1Gi", ""));
    stage.until_bound(4);
    let zone = |node: &Node| node.labels()["topology.kubernetes.io/zone"].clone();
    let is_left = |node: &Node| LEFT.contains(&zone(node).as_str());
    assert!(stage.list::<Node>().iter().any(is_left));

    stage.apply(&plain.replace(
        "metadata: {name: default}",
        r#"metadata: {name: default, annotations: {karpenter.alibabacloud.com/evacuate-zones: "cn-hangzhou-h,cn-hangzhou-i"}}"#,
    ));

    let ready_min = AtomicUsize::new(4);
    stage.until("four nodes in the other zones", || async {
        let nodes: Vec<Node> = stage.list_async().await;
        let claims: Vec<NodeClaim> = stage.list_async().await;
        let there = claims
            .iter()
            .filter(|it| it.is_true("Ready") && it.metadata.deletion_timestamp.is_none());
        ready_min.fetch_min(there.count(), Ordering::Relaxed);
        let is_done = nodes.len() == 4 && !nodes.iter().any(is_left);
        (is_done && stage.bound_pods().await.len() == 4 && is_quiet(&stage).await).then_some(())
    });
    assert_eq!(ready_min.load(Ordering::Relaxed), 4);
}
