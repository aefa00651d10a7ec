//! What shapes capacity besides pending pods, on the real control plane: NodeOverlays, static pools, CapacityBuffers.

use k8s_openapi::api::core::v1::Node;
use kerf_api::capacitybuffer::CapacityBuffer;
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodeoverlay::NodeOverlay;
use kerf_api::nodepool::NodePool;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::scenarios::{ECSNODECLASS, deployment, pool};
use crate::stage::Stage;

const TWO_TYPES: &str = r#"        - {key: node.kubernetes.io/instance-type, operator: In, values: ["ecs.g7.large", "ecs.g7.xlarge"]}"#;

fn stage_with(gates: &str, requirements: &str) -> Stage {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("720h", requirements));
    stage.start_kerf(&["--feature-gates", gates]);
    stage
}

fn overlay(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"
    )
}

async fn reason_of(stage: &Stage, name: &str) -> Option<String> {
    let overlays: Vec<NodeOverlay> = stage.list_async().await;
    let overlay = overlays.into_iter().find(|it| it.name_any() == name)?;
    let conditions = overlay.status?.conditions;
    let validated = conditions
        .iter()
        .find(|it| it.type_ == "ValidationSucceeded")?;
    Some(validated.reason.clone())
}

fn until_reason(stage: &Stage, name: &str, reason: &str) {
    stage.until(&format!("{reason} on NodeOverlay {name}"), || async {
        (reason_of(stage, name).await? == reason).then_some(())
    });
}

#[test]
fn an_overlay_makes_the_dearer_type_the_first_choice_and_two_of_one_weight_are_told() {
    let stage = stage_with("NodeOverlay=true", TWO_TYPES);
    stage.apply(&overlay(
        "discount",
        r#"weight: 5, price: "0.0001", requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [ecs.g7.xlarge]}]"#,
    ));
    // The schema lets it through; as a price it is more than can be counted.
    stage.apply(&overlay(
        "broken",
        r#"requirements: [], price: "99999999999999999999""#,
    ));
    until_reason(&stage, "discount", "ValidationSucceeded");
    until_reason(&stage, "broken", "RuntimeValidation");

    stage.apply(&deployment("web", 1, "500m", "1Gi", ""));
    stage.until_bound(1);

    let claim = stage.list::<NodeClaim>().remove(0);
    assert_eq!(
        claim.labels()["node.kubernetes.io/instance-type"],
        "ecs.g7.xlarge"
    );
    assert_eq!(
        claim.annotations()["karpenter.sh/price-overlay-applied"],
        "true"
    );
    assert!(
        !claim
            .annotations()
            .contains_key("karpenter.sh/capacity-overlay-applied")
    );

    // By name the later one comes first, so that the other has the conflict, and nothing of it applies.
    stage.apply(&overlay(
        "surcharge",
        r#"weight: 5, priceAdjustment: "+50%", requirements: []"#,
    ));
    until_reason(&stage, "discount", "Conflict");
    until_reason(&stage, "surcharge", "ValidationSucceeded");
    stage.apply(&deployment("web", 0, "500m", "1Gi", ""));
    stage.delete::<NodeClaim>(&claim.name_any());
    stage.apply(&deployment("small", 1, "500m", "1Gi", ""));
    stage.until("the cheaper type again", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        let types = claims
            .iter()
            .filter_map(|it| it.labels().get("node.kubernetes.io/instance-type"));
        types.clone().any(|it| it == "ecs.g7.large").then_some(())
    });
    stage.delete::<NodeOverlay>("surcharge");
    until_reason(&stage, "discount", "ValidationSucceeded");
}

#[test]
fn an_overlay_with_a_resource_gives_a_waiting_pod_its_node() {
    let stage = stage_with("NodeOverlay=true", TWO_TYPES);
    let pod = deployment("fuse", 1, "500m", "1Gi", "")
        .replace(r#"cpu: "500m""#, r#"cpu: "500m", "example.com/fuse": "1""#);
    let pod = pod.replace(
        "requests: {",
        "limits: {\"example.com/fuse\": \"1\"}, requests: {",
    );
    stage.apply(&pod);
    stage.until("a refusal that names the resource", || async {
        stage.log().contains("example.com/fuse").then_some(())
    });
    assert!(stage.list::<NodeClaim>().is_empty());

    stage.apply(&overlay(
        "fuse",
        r#"requirements: [{key: karpenter.sh/nodepool, operator: In, values: [default]}], capacity: {"example.com/fuse": "10"}"#,
    ));

    let node = stage.until("a Node for the pod", || async {
        stage.list_async::<Node>().await.pop()
    });
    // What a device plugin does, which no simulated node has.
    let api: Api<Node> = Api::all(stage.client.clone());
    let patch = json!({"status": {"capacity": {"example.com/fuse": "10"}, "allocatable": {"example.com/fuse": "10"}}});
    stage
        .runtime
        .block_on(api.patch_status(
            &node.name_any(),
            &PatchParams::default(),
            &Patch::Merge(&patch),
        ))
        .unwrap();
    stage.until_bound(1);
    let claim = stage.list::<NodeClaim>().remove(0);
    assert_eq!(
        claim.annotations()["karpenter.sh/capacity-overlay-applied"],
        "true"
    );
    assert_eq!(claim.status.unwrap().capacity["example.com/fuse"].0, "10");
}

fn fixed_pool(replicas: u32, limits: &str) -> String {
    format!(
        r#"
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: fixed}}
spec:
  replicas: {replicas}
{limits}
  template:
    spec:
      requirements:
        - {{key: karpenter.sh/capacity-type, operator: In, values: ["on-demand"]}}
        - {{key: node.kubernetes.io/instance-type, operator: In, values: ["ecs.g7.large"]}}
      nodeClassRef: {{group: karpenter.alibabacloud.com, kind: ECSNodeClass, name: default}}
"#
    )
}

/// Waits until the pool has exactly that many claims, all of them Ready and none on its way out.
fn until_ready_claims(stage: &Stage, count: usize) {
    stage.until(&format!("{count} ready NodeClaims"), || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        let is_settled = claims
            .iter()
            .all(|claim| claim.is_true("Ready") && claim.metadata.deletion_timestamp.is_none());
        (claims.len() == count && is_settled && stage.instances().len() == count).then_some(())
    });
}

fn scale(stage: &Stage, replicas: u32) {
    let api: Api<NodePool> = Api::all(stage.client.clone());
    let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    stage
        .runtime
        .block_on(api.patch_scale("fixed", &PatchParams::default(), &patch))
        .unwrap();
}

#[test]
fn a_static_pool_has_its_nodes_without_pods_and_follows_its_scale() {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&fixed_pool(2, "  limits: {nodes: 3}"));
    stage.start_kerf(&["--feature-gates", "StaticCapacity=true"]);
    until_ready_claims(&stage, 2);
    let claims: Vec<NodeClaim> = stage.list();
    let mut zones: Vec<&str> = claims
        .iter()
        .map(|claim| claim.labels()["topology.kubernetes.io/zone"].as_str())
        .collect();
    zones.dedup();
    assert_eq!(zones.len(), 2, "zones take turns");

    // More than the limit allows: the third comes, the fourth is told.
    scale(&stage, 4);
    until_ready_claims(&stage, 3);
    stage.until("the limit on the pool", || async {
        stage
            .log()
            .contains("limits.nodes: 3 allows no more")
            .then_some(())
    });

    // A node in use stays, empty ones go; no disruption budget holds that up.
    let pod = deployment("web", 1, "500m", "1Gi", "");
    stage.apply(&pod);
    let bound = stage.until("the pod on a static node", || async {
        stage.bound_pods().await.pop()
    });
    scale(&stage, 1);
    until_ready_claims(&stage, 1);
    let left = stage.list::<NodeClaim>().remove(0);
    assert_eq!(
        left.status.unwrap().node_name,
        bound.spec.unwrap().node_name
    );

    stage.delete::<NodeClaim>(left.metadata.name.as_deref().unwrap());
    stage.until("another node in its place", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        let fresh = claims
            .iter()
            .find(|it| it.metadata.name != left.metadata.name);
        fresh.filter(|it| it.is_true("Ready")).map(drop)
    });
    scale(&stage, 0);
    stage.apply(&deployment("web", 0, "500m", "1Gi", ""));
    stage.until_empty();
}

#[test]
fn kill_9_while_a_static_pool_grows_makes_nothing_twice() {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&fixed_pool(4, ""));
    stage.start_kerf(&[
        "--feature-gates",
        "StaticCapacity=true",
        "--failpoint",
        "claim-created",
    ]);
    stage.until("the failpoint", || async {
        stage.log().contains("failpoint reached").then_some(())
    });
    stage.kill_kerf();
    let before = stage.list::<NodeClaim>().len();
    assert!((1..=4).contains(&before));

    stage.start_kerf(&["--feature-gates", "StaticCapacity=true"]);
    until_ready_claims(&stage, 4);

    let log = stage.log();
    let created = log.matches("created NodeClaim").count();
    assert!(created <= 4, "{created} claims were made for 4 replicas");
    assert!(!log.contains("deleted NodeClaim"), "nothing was surplus");
}

#[test]
fn a_pool_with_replicas_says_that_its_gate_is_closed() {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&fixed_pool(1, ""));
    stage.start_kerf(&[]);

    stage.until("the gate's name", || async {
        stage.log().contains("StaticCapacity=true").then_some(())
    });
    assert!(stage.list::<NodeClaim>().is_empty());
}

async fn condition_of(stage: &Stage, type_: &str) -> Option<String> {
    let buffer = stage.list_async::<CapacityBuffer>().await.pop()?;
    let conditions = buffer.status?.conditions;
    let found = conditions.into_iter().find(|it| it.type_ == type_)?;
    Some(found.reason)
}

fn until_condition(stage: &Stage, type_: &str, reason: &str) {
    stage.until(&format!("{type_} with {reason}"), || async {
        (condition_of(stage, type_).await? == reason).then_some(())
    });
}

const BUFFER: &str = r#"
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: spare, namespace: default}
spec: {podTemplateRef: {name: spare}, replicas: 2}
"#;

const POD_TEMPLATE: &str = r#"
apiVersion: v1
kind: PodTemplate
metadata: {name: spare, namespace: default}
template:
  metadata: {labels: {app: spare}}
  spec:
    containers:
      - name: main
        image: registry.invalid/pause
        resources: {requests: {cpu: 1500m, memory: 1Gi}}
"#;

#[test]
fn a_buffer_keeps_room_that_real_pods_take_and_no_emptiness_takes_it_away() {
    let two_cores = r#"        - {key: node.kubernetes.io/instance-type, operator: In, values: ["ecs.g7.large"]}"#;
    let gates = ["--feature-gates", "CapacityBuffer=true"];
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("1s", two_cores));
    stage.start_kerf(&gates);
    stage.apply(BUFFER);
    until_condition(&stage, "ReadyForProvisioning", "PodTemplateNotFound");
    assert!(stage.list::<NodeClaim>().is_empty());

    stage.apply(POD_TEMPLATE);
    until_ready_claims(&stage, 2);
    until_condition(&stage, "Provisioning", "FitsExistingCapacity");
    let names = |stage: &Stage| {
        let mut names: Vec<String> = stage
            .list::<NodeClaim>()
            .iter()
            .map(ResourceExt::name_any)
            .collect();
        names.sort();
        names
    };
    let first = names(&stage);

    // The pod binds at once to a node of the buffer, and another node comes in its place.
    stage.apply(&deployment("web", 1, "1500m", "1Gi", ""));
    until_ready_claims(&stage, 3);
    stage.until_bound(1);
    assert!(first.iter().all(|name| names(&stage).contains(name)));

    // A restart knows nothing of where the room is, and takes none of it away.
    stage.kill_kerf();
    stage.start_kerf(&gates);
    stage.until("the new process has looked at empty nodes", || async {
        (stage.log().matches("serving metrics").count() == 2).then_some(())
    });
    stage.apply(&deployment("web", 0, "1500m", "1Gi", ""));
    until_ready_claims(&stage, 2);

    let events: Vec<k8s_openapi::api::events::v1::Event> = stage.list();
    let about_virtual = |event: &k8s_openapi::api::events::v1::Event| {
        let regarding = event.regarding.as_ref().and_then(|it| it.name.as_deref());
        regarding.is_some_and(|name| name.starts_with("capacity-buffer-"))
    };
    assert!(!events.iter().any(about_virtual));

    let api: Api<CapacityBuffer> = Api::namespaced(stage.client.clone(), "default");
    stage
        .runtime
        .block_on(api.delete("spare", &kube::api::DeleteParams::default()))
        .unwrap();
    stage.until_empty();
}

#[test]
fn a_buffer_of_a_workload_follows_its_replicas() {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("720h", ""));
    stage.start_kerf(&["--feature-gates", "CapacityBuffer=true"]);
    stage.apply(
        r#"
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: spare, namespace: default}
spec: {scalableRef: {kind: Deployment, name: web}, percentage: 50}
"#,
    );
    until_condition(&stage, "ReadyForProvisioning", "ScalableRefNotFound");
    stage.apply(&deployment("web", 3, "500m", "1Gi", ""));
    stage.until("room for half of the workload", || async {
        let buffer = stage.list_async::<CapacityBuffer>().await.pop()?;
        (buffer.status?.replicas == Some(2)).then_some(())
    });
    until_condition(&stage, "Provisioning", "FitsExistingCapacity");
    stage.until_bound(3);
}

#[test]
fn a_pool_with_few_ways_to_launch_says_so_before_a_launch_fails() {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("720h", ""));
    stage.start_kerf(&[]);
    let strength = |is_strong: bool| {
        stage.until(
            &format!("the pool's elastic strength is enough: {is_strong}"),
            || async {
                let pools: Vec<NodePool> = stage.list_async().await;
                let pool = pools.into_iter().next()?;
                let said = kerf_api::condition::find(pool.conditions(), "ElasticStrength")?.clone();
                let strength = pool.status?.elastic_strength?;
                (said.is_true() == is_strong).then_some((said, strength))
            },
        )
    };
    let (_, wide) = strength(true);
    assert!(
        wide.launchable >= 4 && wide.total >= wide.launchable,
        "{wide:?}"
    );
    assert_eq!(wide.summary, format!("{}/{}", wide.launchable, wide.total));

    let narrow = r#"        - {key: node.kubernetes.io/instance-type, operator: In, values: ["ecs.g7.large"]}
        - {key: topology.kubernetes.io/zone, operator: In, values: ["cn-hangzhou-h"]}"#;
    stage.apply(&pool("720h", narrow));
    let (said, narrow) = strength(false);
    assert_eq!(
        (said.reason.as_str(), narrow.launchable),
        ("FewWaysToLaunch", 1)
    );
    assert!(
        said.message.contains("allow more instance types"),
        "{}",
        said.message
    );

    // The class itself is as strong as before, and says what stands against the rest.
    let classes: Vec<EcsNodeClass> = stage.list();
    let class = classes[0].status.clone().unwrap().elastic_strength.unwrap();
    assert!(class.launchable > narrow.launchable, "{class:?}");
    let others: i64 = class.others.values().sum();
    assert_eq!(class.launchable + others, class.total, "{class:?}");
}
