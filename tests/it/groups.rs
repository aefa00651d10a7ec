//! Launch groups on the real control plane: claims of one shape share a call, and each has its own instance in the end.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kerf_api::nodeclaim::NodeClaim;
use kube::ResourceExt;

use crate::scenarios::{ECSNODECLASS, deployment, pool};
use crate::stage::Stage;

const NODE_CLAIM: &str = "karpenter.sh/nodeclaim";
/// One type in one zone: all claims have one shape.
const ONE_SHAPE: &str = r#"        - {key: node.kubernetes.io/instance-type, operator: In, values: ["ecs.g7.large"]}
        - {key: topology.kubernetes.io/zone, operator: In, values: ["cn-hangzhou-h"]}"#;
/// More than half of the CPU of that type: one pod per node.
const ALONE: &str = "1100m";

/// A stage with pods that wait, where machines take an hour to boot; the controller is not started.
fn stage_with(pods: u32) -> Stage {
    let stage = Stage::set_with(|world| {
        world.timing.starting_after_ms = 0;
        world.timing.running_after_ms = 3_600_000;
    });
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("720h", ONE_SHAPE));
    stage.apply(&deployment("one", pods, ALONE, "1Gi", ""));
    stage.until("the pods", || async {
        let all: Vec<Pod> = stage.list_async().await;
        let ours = all
            .iter()
            .filter(|it| it.namespace().as_deref() == Some("default"));
        (ours.count() == usize::try_from(pods).unwrap()).then_some(())
    });
    stage
}

/// The instances that are not ending, by the claim that their tags name.
fn tagged(stage: &Stage) -> Vec<(String, Option<String>)> {
    let living = stage.instances().into_iter();
    let living = living.filter(|it| it.status != "Stopping");
    let pairs = living.map(|it| {
        (
            format!("cn-hangzhou.{}", it.id),
            it.tags.get(NODE_CLAIM).cloned(),
        )
    });
    pairs.collect()
}

/// Whether so many claims, or a few more as spares, have an instance of their own, tagged with their names, and there is no other instance.
async fn is_one_to_one(stage: &Stage, count: usize) -> bool {
    let claims: Vec<NodeClaim> = stage.list_async().await;
    let claimed: BTreeSet<(String, Option<String>)> = claims
        .iter()
        .filter_map(|it| Some((it.provider_id()?.to_owned(), Some(it.name_any()))))
        .collect();
    let existing: Vec<_> = tagged(stage);
    claims.len() >= count
        && claimed.len() == claims.len()
        && existing.len() == claims.len()
        && existing.into_iter().collect::<BTreeSet<_>>() == claimed
}

#[test]
fn two_hundred_claims_of_one_shape_need_five_calls_and_their_instances_have_their_names_in_a_minute()
 {
    let mut stage = stage_with(200);
    stage.start_kerf(&[]);
    stage.until("the first launch", || async {
        (!stage.instances().is_empty()).then_some(())
    });
    let launched = Instant::now();

    stage.until("200 instances, each with its claim", || async {
        is_one_to_one(&stage, 200).await.then_some(())
    });

    let took = launched.elapsed();
    let calls = stage.sim.calls();
    let count = calls["RunInstances"].total;
    eprintln!("{count} calls of RunInstances, all tagged {took:?} after the first: {calls:?}");
    assert!(count <= 5, "{count} calls of RunInstances");
    assert!(took <= Duration::from_secs(60), "{took:?}");
}

#[test]
fn kill_9_after_the_reply_of_a_hundred_claims_of_which_three_are_deleted_leaves_97_with_one_instance_each()
 {
    let mut stage = stage_with(100);
    stage.start_kerf(&["--failpoint", "launched-unrecorded"]);
    stage.until("the failpoint", || async {
        stage.log().contains("failpoint reached").then_some(())
    });
    stage.kill_kerf();
    assert_eq!(stage.sim.calls()["RunInstances"].total, 1);
    assert_eq!(stage.instances().len(), 100);
    let claims: Vec<NodeClaim> = stage.list();
    assert!(claims.iter().all(|it| it.provider_id().is_none()));
    stage.apply(&deployment("one", 97, ALONE, "1Gi", ""));
    stage.until("97 pods", || async {
        let all: Vec<Pod> = stage.list_async().await;
        let ours = all
            .iter()
            .filter(|it| it.namespace().as_deref() == Some("default"));
        (ours.count() == 97).then_some(())
    });
    for claim in claims.iter().step_by(40) {
        stage.delete::<NodeClaim>(&claim.name_any());
    }

    stage.start_kerf(&[]);

    stage.until("97 instances, each with its own claim", || async {
        is_one_to_one(&stage, 97).await.then_some(())
    });
    assert_eq!(tagged(&stage).len(), 97);
    let calls = stage.sim.calls();
    eprintln!(
        "{} calls of RunInstances, {} instances",
        calls["RunInstances"].total,
        tagged(&stage).len()
    );
}

#[test]
fn a_group_that_gets_less_than_it_asks_for_goes_on_with_the_rest_elsewhere() {
    let two_zones = r#"        - {key: node.kubernetes.io/instance-type, operator: In, values: ["ecs.g7.large"]}
        - {key: topology.kubernetes.io/zone, operator: In, values: ["cn-hangzhou-h", "cn-hangzhou-i"]}"#;
    let mut stage = Stage::set_with(|world| {
        world.timing.starting_after_ms = 0;
        world.timing.running_after_ms = 3_600_000;
        world.stock = vec![ecs_sim::StockRule {
            instance_type: Some("ecs.g7.large".to_owned()),
            zone: Some("cn-hangzhou-h".to_owned()),
            capacity_type: None,
            count: 3,
            not_on_sale: false,
        }];
    });
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("720h", two_zones));
    stage.apply(&deployment("one", 20, ALONE, "1Gi", ""));
    stage.start_kerf(&[]);

    stage.until("20 instances, each with its claim", || async {
        is_one_to_one(&stage, 20).await.then_some(())
    });
    let of_zone = |zone: &str| {
        let all = stage.instances().into_iter();
        all.filter(|it| it.zone == zone).count()
    };
    assert_eq!(of_zone("cn-hangzhou-h"), 3);
    assert_eq!(of_zone("cn-hangzhou-i"), 17);
}
