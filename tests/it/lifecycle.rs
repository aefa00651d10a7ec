//! The life and the end of NodeClaims on the real control plane: what outlives a restart, and what ends by itself.

use ecs_sim::{Effect, Fault};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kerf_api::memory::MEMORY_NAME;
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodepool::NodePool;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::scenarios::{ECSNODECLASS, deployment, pool, ready_stage};
use crate::stage::{NAMESPACE, Stage};

async fn memory(stage: &Stage) -> Option<ConfigMap> {
    let api: Api<ConfigMap> = Api::namespaced(stage.client.clone(), NAMESPACE);
    api.get_opt(MEMORY_NAME).await.ok().flatten()
}

pub(crate) fn no_stock(times: u32) -> Fault {
    Fault {
        action: "RunInstances".to_owned(),
        when: Default::default(),
        skip: 0,
        times,
        after: false,
        effect: Effect::Error {
            status: 403,
            code: "OperationDenied.NoStock".to_owned(),
        },
    }
}

#[test]
fn an_offering_without_stock_is_remembered_over_a_kill_and_strange_memory_is_told_and_left_out() {
    let mut stage = ready_stage("720h", "");
    stage.sim.add_fault(no_stock(1));
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    stage.until_bound(1);
    let written = stage.until("the refusal in the ConfigMap", || async {
        let data = memory(&stage).await?.data?;
        data.get("unavailable")
            .filter(|text| text.contains("NoStock"))
            .cloned()
    });
    stage.kill_kerf();

    stage.start_kerf(&[]);
    stage.until("the memory read again", || async {
        stage
            .log()
            .contains("memory of the last run read")
            .then_some(())
    });
    // What was read is written again as it was: nothing was lost.
    stage.apply(&deployment("web", 2, "1", "1Gi", ""));
    stage.until_bound(2);
    let kept = stage.runtime.block_on(memory(&stage)).unwrap();
    assert_eq!(kept.data.unwrap()["unavailable"], written);
    stage.kill_kerf();

    stage.apply(&format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {MEMORY_NAME}, namespace: {NAMESPACE}}}\ndata: {{unavailable: '{{', other: x}}"
    ));
    stage.start_kerf(&[]);
    stage.until("the broken part is told", || async {
        stage
            .log()
            .contains("read unavailable of the ConfigMap kerf-memory")
            .then_some(())
    });
    stage.apply(&deployment("web", 3, "1", "1Gi", ""));
    stage.until_bound(3);
}

#[test]
fn nodes_that_never_join_are_given_up_and_the_pool_says_so_also_after_a_restart() {
    let mut stage = Stage::set_with(|world| world.timing.running_after_ms = 3_600_000);
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("720h", ""));
    let health = async |stage: &Stage, status: &str| {
        let pools: Vec<NodePool> = stage.list_async().await;
        let condition =
            kerf_api::condition::find(pools.first()?.conditions(), "NodeRegistrationHealthy")?;
        (condition.status.as_str() == status).then(|| condition.reason.clone())
    };
    stage.start_kerf(&["--registration-timeout", "2s"]);
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));

    let reason = stage.until("NodeRegistrationHealthy is False", || {
        health(&stage, "False")
    });
    assert_eq!(reason, "RegistrationFailed");
    stage.kill_kerf();
    stage.apply(&deployment("web", 0, "1", "1Gi", ""));
    stage.start_kerf(&[]);

    stage.until("the pool was looked at again and still says so", || async {
        let pools: Vec<NodePool> = stage.list_async().await;
        let nodes = pools.first()?.status.as_ref()?.nodes;
        health(&stage, "False").await.filter(|_| nodes == 0)
    });
}

#[test]
fn an_expired_claim_is_replaced() {
    let stage = ready_stage("720h", "");
    stage.apply(&pool("720h", "").replace(
        "      nodeClassRef:",
        "      expireAfter: 15s\n      nodeClassRef:",
    ));
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    stage.until_bound(1);
    let first = stage.list::<NodeClaim>().remove(0).name_any();

    stage.until("another claim in its place", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        let is_other = claims.iter().all(|claim| claim.name_any() != first);
        (is_other && !claims.is_empty()).then_some(())
    });
}

#[test]
fn a_node_with_a_startup_taint_that_nobody_takes_away_is_given_up_after_the_time_that_was_set() {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("720h", "").replace(
        "      nodeClassRef:",
        "      startupTaints: [{key: agent.example/not-ready, effect: NoSchedule}]\n      nodeClassRef:",
    ));
    stage.start_kerf(&["--initialization-timeout", "3s"]);
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    stage.until("a claim that was given up", || async {
        stage.log().contains("initialization_timeout").then_some(())
    });
    stage.apply(&deployment("web", 0, "1", "1Gi", ""));

    stage.until_empty();
}

#[test]
fn an_instance_that_vanished_takes_its_claim_and_node_with_it_and_the_pod_gets_another() {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("720h", ""));
    stage.start_kerf(&["--garbage-collection-poll-duration", "2s"]);
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    stage.until_bound(1);
    let first = stage.list::<NodeClaim>().remove(0);
    let id = stage.instances().remove(0).id;

    // The machine is taken away, and with it the kubelet: kwok, which plays it, is told to stop.
    {
        let _inside = stage.runtime.enter();
        stage.sim.interrupt(&id, std::time::Duration::ZERO);
    }
    let nodes: Api<Node> = Api::all(stage.client.clone());
    let broken = json!({"metadata": {"annotations": {
        "node-break.stage.kwok.x-k8s.io/reason": "MachineGone",
    }}});
    let name = stage.list::<Node>().remove(0).name_any();
    stage
        .runtime
        .block_on(nodes.patch(&name, &PatchParams::default(), &Patch::Merge(broken)))
        .unwrap();

    stage.until("the claim of the vanished instance is gone", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        claims
            .iter()
            .all(|claim| claim.name_any() != first.name_any())
            .then_some(())
    });
    stage.until_bound(1);
}

/// F69.
#[test]
fn pods_of_a_machine_that_was_stopped_but_not_deleted_get_another_and_the_machine_is_deleted() {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("720h", ""));
    stage.start_kerf(&["--garbage-collection-poll-duration", "2s"]);
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    // What a budget protects cannot leave by a drain, and there is nobody to let it go.
    stage.apply(
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web, namespace: default}\nspec: {maxUnavailable: 0, selector: {matchLabels: {app: web}}}",
    );
    stage.until_bound(1);
    let id = stage.instances().remove(0).id;

    assert!(stage.sim.halt(&id));
    let broken = json!({"metadata": {"annotations": {
        "node-break.stage.kwok.x-k8s.io/reason": "MachineStopped",
    }}});
    let nodes: Api<Node> = Api::all(stage.client.clone());
    let name = stage.list::<Node>().remove(0).name_any();
    stage
        .runtime
        .block_on(nodes.patch(&name, &PatchParams::default(), &Patch::Merge(broken)))
        .unwrap();

    stage.until("the stopped machine is deleted", || async {
        let mut instances = stage.instances().into_iter();
        instances.all(|it| it.id != id).then_some(())
    });
    stage.until_bound(1);
}

#[test]
fn a_pod_that_forbids_disruption_keeps_its_node_until_the_grace_is_over_and_not_longer() {
    let stage = ready_stage("720h", "");
    stage.apply(&pool("720h", "").replace(
        "      nodeClassRef:",
        "      terminationGracePeriod: 20s\n      nodeClassRef:",
    ));
    stage.apply(&deployment("web", 1, "1", "1Gi", "").replace(
        "metadata: {labels: {app: web}}",
        "metadata: {labels: {app: web}, annotations: {karpenter.sh/do-not-disrupt: \"true\"}}",
    ));
    stage.until_bound(1);
    let claim = stage.list::<NodeClaim>().remove(0).name_any();
    let pod = stage.list::<Pod>().remove(0).uid();

    stage.delete::<NodeClaim>(&claim);

    let deadline = stage.until("the deadline is written down", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        let claim = claims.into_iter().find(|it| it.name_any() == claim)?;
        claim
            .annotations()
            .get("karpenter.sh/nodeclaim-termination-timestamp")?
            .parse::<jiff::Timestamp>()
            .ok()
    });
    stage.until("the node is set apart", || async {
        let nodes: Vec<Node> = stage.list_async().await;
        let node = nodes
            .into_iter()
            .find(|node| node.metadata.deletion_timestamp.is_some())?;
        let has_taint = node
            .spec
            .iter()
            .flat_map(|spec| spec.taints.iter().flatten())
            .any(|taint| taint.key == "karpenter.sh/disrupted" && taint.effect == "NoSchedule");
        let label = "node.kubernetes.io/exclude-from-external-load-balancers";
        (has_taint && node.labels().get(label).is_some_and(|it| it == "karpenter")).then_some(())
    });
    let gone_at = stage.until("the pod is deleted", || async {
        let pods: Vec<Pod> = stage.list_async().await;
        let is_alive = pods
            .iter()
            .any(|it| it.uid() == pod && it.metadata.deletion_timestamp.is_none());
        (!is_alive).then(jiff::Timestamp::now)
    });
    // The pod's own grace is one second: it is asked to go that long before the deadline, and not earlier.
    assert!(
        gone_at.duration_since(deadline).as_secs() >= -2,
        "gone at {gone_at}, deadline {deadline}"
    );
    stage.until("the claim is gone", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        claims.iter().all(|it| it.name_any() != claim).then_some(())
    });
}

#[test]
fn a_claim_whose_launch_was_never_recorded_ends_without_leaving_an_instance() {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("720h", ""));
    stage.start_kerf(&["--failpoint", "launched-unrecorded"]);
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    stage.until("an instance that no claim names", || async {
        (stage.instances().len() == 1).then_some(())
    });
    stage.kill_kerf();
    stage.apply(&deployment("web", 0, "1", "1Gi", ""));
    for claim in stage.list::<NodeClaim>() {
        assert_eq!(claim.provider_id(), None);
        stage.delete::<NodeClaim>(&claim.name_any());
    }

    stage.start_kerf(&[]);

    stage.until_empty();
}

#[test]
fn a_standby_takes_over_when_the_leader_dies_and_acts_only_then() {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("720h", ""));
    stage.start_leader(&[]);
    let holder = async |stage: &Stage| {
        let api: Api<Lease> = Api::namespaced(stage.client.clone(), NAMESPACE);
        let lease = api.get_opt("karpenter-leader-election").await.ok()??;
        lease.spec?.holder_identity.filter(|it| !it.is_empty())
    };
    let first = stage.until("a leader", || holder(&stage));
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    stage.until_bound(1);
    let mut leader = stage.kerf.take().expect("the leader");
    stage.start_leader(&[]);
    stage.until("a standby that has seen the cluster", || async {
        (stage.log().matches("serving metrics").count() == 2).then_some(())
    });
    assert_eq!(stage.runtime.block_on(holder(&stage)), Some(first.clone()));

    leader.kill().unwrap();
    leader.wait().unwrap();
    stage.apply(&deployment("web", 2, "1", "1Gi", ""));

    stage.until_bound(2);
    let second = stage.runtime.block_on(holder(&stage)).unwrap();
    assert_ne!(second, first);
    assert_eq!(stage.instances().len(), stage.list::<NodeClaim>().len());
}

#[test]
fn a_node_that_stays_broken_is_repaired_although_its_pod_forbids_disruption() {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("720h", ""));
    stage.start_kerf(&[
        "--node-repair-policies",
        "DiskIsSick=True:1s",
        "--node-repair-threshold-percent",
        "100",
    ]);
    stage.apply(&deployment("web", 1, "1", "1Gi", "").replace(
        "metadata: {labels: {app: web}}",
        "metadata: {labels: {app: web}, annotations: {karpenter.sh/do-not-disrupt: \"true\"}}",
    ));
    stage.until_bound(1);
    let first = stage.list::<NodeClaim>().remove(0).name_any();
    let node = stage.list::<Node>().remove(0).name_any();

    let sick = json!({"status": {"conditions": [{
        "type": "DiskIsSick", "status": "True", "reason": "Test", "message": "",
        "lastTransitionTime": jiff::Timestamp::now().to_string(),
        "lastHeartbeatTime": jiff::Timestamp::now().to_string(),
    }]}});
    let nodes: Api<Node> = Api::all(stage.client.clone());
    stage
        .runtime
        .block_on(nodes.patch_status(&node, &PatchParams::default(), &Patch::Strategic(sick)))
        .unwrap();

    stage.until("the broken node is gone", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        claims.iter().all(|it| it.name_any() != first).then_some(())
    });
    stage.until_bound(1);
}

/// F40.
#[test]
fn a_node_without_a_provider_id_and_one_with_a_strange_one_do_not_stop_the_loop() {
    let stage = ready_stage("720h", "");
    for (name, spec) in [("self-joined", "{}"), ("strange", "{providerID: garbage}")] {
        stage.apply(&format!(
            "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\nspec: {spec}"
        ));
    }
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));

    stage.until_bound(1);

    assert_eq!(stage.list::<Node>().len(), 3);
}

/// F81.
#[test]
fn a_machine_that_dies_right_after_its_launch_takes_its_claim_with_it_before_the_registration_timeout()
 {
    let mut stage = Stage::set_with(|world| world.timing.running_after_ms = 3_600_000);
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("720h", ""));
    stage.start_kerf(&["--garbage-collection-poll-duration", "2s"]);
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    let first = stage.until("a claim with an instance", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        claims.into_iter().find(|it| it.provider_id().is_some())
    });
    let id = stage.instances().remove(0).id;

    {
        let _inside = stage.runtime.enter();
        stage.sim.interrupt(&id, std::time::Duration::ZERO);
    }

    stage.until("another claim in its place", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        let is_other = |it: &NodeClaim| it.name_any() != first.name_any();
        (claims.iter().all(is_other) && claims.iter().any(|it| it.provider_id().is_some()))
            .then_some(())
    });
}

/// F59.
#[test]
fn claims_that_never_become_ready_count_against_the_limit() {
    let mut stage = Stage::set_with(|world| world.timing.running_after_ms = 3_600_000);
    stage.apply(ECSNODECLASS);
    let limited = pool(
        "720h",
        "        - {key: node.kubernetes.io/instance-type, operator: In, values: [ecs.g7.large]}",
    );
    stage.apply(&limited.replace("  disruption:", "  limits: {cpu: \"4\"}\n  disruption:"));
    stage.start_kerf(&[]);

    for (name, claims) in [("one", 1), ("two", 2), ("three", 2)] {
        stage.apply(&deployment(name, 1, "1100m", "1Gi", ""));
        stage.until("the pod was planned", || async {
            let pods: Vec<Pod> = stage.list_async().await;
            let log = stage.log();
            let found: Vec<NodeClaim> = stage.list_async().await;
            let is_told = name != "three" || log.contains("cannot schedule");
            (!pods.is_empty() && found.len() == claims && is_told).then_some(())
        });
    }
    assert_eq!(stage.list::<NodeClaim>().len(), 2);
}
