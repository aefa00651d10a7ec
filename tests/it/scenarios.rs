//! What a user sees, on the real control plane: pods become nodes, and nodes go when they are not needed.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Node;
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::nodeclaim::NodeClaim;
use kube::ResourceExt;

use crate::stage::Stage;

pub(crate) const ECSNODECLASS: &str = include_str!("../../examples/quickstart/ecsnodeclass.yaml");

pub(crate) fn pool(consolidate_after: &str, requirements: &str) -> String {
    format!(
        r#"
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: default}}
spec:
  template:
    spec:
      requirements:
        - {{key: karpenter.sh/capacity-type, operator: In, values: ["on-demand"]}}
        - {{key: kubernetes.io/arch, operator: In, values: ["amd64"]}}
{requirements}
      nodeClassRef: {{group: karpenter.alibabacloud.com, kind: ECSNodeClass, name: default}}
  disruption:
    consolidationPolicy: WhenEmpty
    consolidateAfter: {consolidate_after}
    budgets: [{{nodes: "100%"}}]
"#
    )
}

pub(crate) fn deployment(
    name: &str,
    replicas: u32,
    cpu: &str,
    memory: &str,
    extra: &str,
) -> String {
    format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: default}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      terminationGracePeriodSeconds: 1
{extra}
      containers:
        - name: main
          image: registry.invalid/pause
          resources: {{requests: {{cpu: "{cpu}", memory: "{memory}"}}}}
"#
    )
}

pub(crate) fn ready_stage(consolidate_after: &str, requirements: &str) -> Stage {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&pool(consolidate_after, requirements));
    stage.start_kerf(&[]);
    stage
}

#[test]
fn fifty_mixed_pods_are_bound_and_scaling_to_zero_leaves_nothing() {
    let stage = ready_stage("2s", "");
    let sizes = [
        ("tiny", 20, "100m", "128Mi"),
        ("small", 15, "500m", "1Gi"),
        ("wide", 10, "2", "2Gi"),
        ("tall", 5, "1", "12Gi"),
    ];
    for (name, replicas, cpu, memory) in sizes {
        stage.apply(&deployment(name, replicas, cpu, memory, ""));
    }

    stage.until_bound(50);

    let claims: Vec<NodeClaim> = stage.list();
    let nodes: Vec<Node> = stage.list();
    assert_eq!(nodes.len(), claims.len());
    assert_eq!(stage.instances().len(), claims.len());

    for (name, _, cpu, memory) in sizes {
        stage.apply(&deployment(name, 0, cpu, memory, ""));
    }
    stage.until_empty();
}

#[test]
fn thirty_one_pod_nodes_are_balanced_over_three_zones() {
    let zones = r#"        - {key: topology.kubernetes.io/zone, operator: In, values: ["cn-hangzhou-h", "cn-hangzhou-i", "cn-hangzhou-j"]}
        - {key: node.kubernetes.io/instance-type, operator: In, values: ["ecs.g7.large"]}"#;
    let stage = ready_stage("720h", zones);
    // More than half of the node's CPU each, so that no two share a node.
    stage.apply(&deployment("one", 30, "1100m", "1Gi", ""));

    stage.until_bound(30);

    let mut by_zone: BTreeMap<String, usize> = BTreeMap::new();
    for node in stage.list::<Node>() {
        *by_zone
            .entry(node.labels()["topology.kubernetes.io/zone"].clone())
            .or_default() += 1;
    }
    assert_eq!(
        by_zone.values().copied().collect::<Vec<_>>(),
        [10, 10, 10],
        "{by_zone:?}"
    );
}

#[test]
fn pods_without_constraints_are_spread_as_the_schedulers_defaults_say() {
    let zones = r#"        - {key: topology.kubernetes.io/zone, operator: In, values: ["cn-hangzhou-h", "cn-hangzhou-i", "cn-hangzhou-j"]}"#;
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("720h", zones));
    let config = r#"{"podTopologySpread": {"defaultConstraints": [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}]}}"#;
    stage.start_kerf(&["--scheduler-config", config]);

    // All of them would fit one node; only the defaults, with the selector of their ReplicaSet, spread them.
    stage.apply(&deployment("web", 6, "100m", "128Mi", ""));
    stage.until_bound(6);

    let nodes = stage.list::<Node>();
    let by_zone: BTreeSet<&String> = nodes
        .iter()
        .map(|node| &node.labels()["topology.kubernetes.io/zone"])
        .collect();
    assert_eq!((nodes.len(), by_zone.len()), (3, 3), "{by_zone:?}");
}

#[test]
fn deleting_a_nodeclaim_deletes_its_node_and_its_instance() {
    let stage = ready_stage("720h", "");
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    stage.until_bound(1);
    let first = stage.list::<NodeClaim>().remove(0);

    stage.apply(&deployment("web", 0, "1", "1Gi", ""));
    stage.delete::<NodeClaim>(&first.name_any());

    stage.until_empty();
}

#[test]
fn a_pool_that_is_full_says_so_on_the_pod() {
    let stage = ready_stage("720h", "");
    stage.apply(&deployment("huge", 1, "9000", "1Gi", ""));

    let note = stage.until(
        "a FailedScheduling event with the pool's reason",
        || async {
            let events: Vec<k8s_openapi::api::events::v1::Event> = stage.list_async().await;
            events.into_iter().find_map(|event| {
                let is_ours = event.reporting_controller.as_deref() == Some("kerf");
                (is_ours && event.reason.as_deref() == Some("FailedScheduling"))
                    .then_some(event.note)
                    .flatten()
            })
        },
    );

    assert!(note.contains("pool default"), "{note}");
    assert!(stage.list::<NodeClaim>().is_empty());
}

#[test]
fn an_unknown_vswitch_image_and_group_are_named_in_conditions_and_the_rest_goes_on() {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("720h", ""));
    stage.apply(
        r#"
apiVersion: karpenter.alibabacloud.com/v1alpha1
kind: ECSNodeClass
metadata: {name: broken}
spec:
  clusterID: ""
  vSwitchSelectorTerms: [{id: vsw-nowhere}]
  securityGroupSelectorTerms: [{id: sg-nowhere}]
  imageSelectorTerms: [{id: nowhere.vhd}]
"#,
    );
    stage.start_kerf(&[]);
    stage.apply(&deployment("web", 2, "1", "1Gi", ""));

    stage.until_bound(2);
    let conditions = stage.until("conditions that name what is missing", || async {
        let classes: Vec<EcsNodeClass> = stage.list_async().await;
        let broken = classes
            .into_iter()
            .find(|class| class.name_any() == "broken")?;
        let conditions = broken.status?.conditions;
        let message = |type_: &str| {
            let found = conditions.iter().find(|it| it.type_ == type_)?;
            (found.status.as_str() == "False").then(|| found.message.clone())
        };
        Some([
            message("VSwitchResolved")?,
            message("SecurityGroupResolved")?,
            message("ImageResolved")?,
        ])
    });

    assert!(conditions[0].contains("vsw-nowhere"), "{conditions:?}");
    assert!(conditions[1].contains("sg-nowhere"), "{conditions:?}");
    assert!(conditions[2].contains("nowhere.vhd"), "{conditions:?}");
    assert!(stage.kerf_is_alive());
}

/// The message of the first condition that is False on the quick start's class.
async fn class_problem(stage: &Stage) -> Option<String> {
    let classes: Vec<EcsNodeClass> = stage.list_async().await;
    let conditions = classes.into_iter().next()?.status?.conditions;
    let problem = conditions
        .into_iter()
        .find(|it| it.type_ != "Ready" && it.status.as_str() == "False");
    problem.map(|it| it.message)
}

#[test]
fn a_wrong_key_and_a_dead_cloud_are_told_and_the_pods_get_their_nodes_once_that_is_mended() {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("720h", ""));
    stage.apply(&deployment("web", 2, "1", "1Gi", ""));

    stage.start_kerf_with(&[], &[("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "wrong")]);
    let message = stage.until("a condition about the credentials", || {
        class_problem(&stage)
    });
    assert!(message.contains("credentials"), "{message}");
    assert!(stage.kerf_is_alive());
    stage.kill_kerf();

    // Port 9 of loopback is the discard port: nobody listens.
    stage.start_kerf_with(
        &[],
        &[
            ("ECS_ENDPOINT", "http://127.0.0.1:9"),
            ("VPC_ENDPOINT", "http://127.0.0.1:9"),
        ],
    );
    stage.until("a condition that names what cannot be reached", || async {
        class_problem(&stage)
            .await
            .filter(|message| message.contains("cannot reach 127.0.0.1:9"))
    });
    assert!(stage.kerf_is_alive());
    stage.kill_kerf();

    stage.start_kerf(&[]);
    stage.until_bound(2);
}
