//! How NodeClaims and Nodes become one node.

use super::*;

const CLAIM: &str = "
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: general-1, labels: {karpenter.sh/nodepool: general}}
spec:
  nodeClassRef: {group: karpenter.alibabacloud.com, kind: ECSNodeClass, name: default}
  startupTaints: [{key: example.com/agent, effect: NoSchedule}]
  taints: [{key: example.com/team, value: search, effect: NoSchedule}]
  requirements:
    - {key: topology.kubernetes.io/zone, operator: In, values: [cn-hangzhou-h]}
    - {key: node.kubernetes.io/instance-type, operator: In, values: [ecs.g7.large, ecs.g8i.large]}
  resources: {requests: {cpu: 500m, memory: 1Gi, pods: 3}}
";

#[test]
fn a_claim_without_an_instance_counts_with_what_was_planned() {
    check(
        CLAIM,
        &expect![[r#"
        node - claim general-1: cpu=500 memory=1073741824 pods=3 taint=example.com/team=search:NoSchedule
    "#]],
    );
}

#[test]
fn a_claim_has_the_labels_that_its_requirements_leave_no_choice_about() {
    let snapshot = snapshot(&cluster(CLAIM));

    let labels: Vec<&str> = snapshot.nodes[0].labels.iter().map(|it| it.0).collect();

    assert_eq!(
        labels,
        ["karpenter.sh/nodepool", "topology.kubernetes.io/zone"]
    );
}

#[test]
fn a_launched_claim_counts_with_what_its_instance_has() {
    let launched = format!(
        "{CLAIM}
status:
  providerID: cn-hangzhou.i-1
  capacity: {{cpu: 2, memory: 8Gi, pods: 20}}
  allocatable: {{cpu: 1900m, memory: 7Gi, pods: 20}}
"
    );

    check(
        &launched,
        &expect![[r#"
        node - claim general-1: cpu=1900 memory=7516192768 pods=20 taint=example.com/team=search:NoSchedule
    "#]],
    );
}

const JOINED: &str = "
status:
  providerID: cn-hangzhou.i-1
  capacity: {cpu: 2, memory: 8Gi, pods: 20, nvidia.com/gpu: 1}
  allocatable: {cpu: 1900m, memory: 7Gi, pods: 20, nvidia.com/gpu: 1}
";

const NODE: &str = "
---
apiVersion: v1
kind: Node
metadata: {name: node-1}
spec:
  providerID: cn-hangzhou.i-1
  taints:
    - {key: karpenter.sh/unregistered, effect: NoExecute}
    - {key: node.kubernetes.io/not-ready, effect: NoSchedule}
status:
  capacity: {cpu: 2, memory: 7900Mi, pods: 20}
  allocatable: {cpu: 1930m, memory: 7000Mi, pods: 20}
";

#[test]
fn a_young_node_has_the_resources_of_its_claim_that_it_does_not_report_yet() {
    check(
        &format!("{CLAIM}{JOINED}{NODE}"),
        &expect![[r#"
        node node-1 claim general-1: cpu=1930 memory=7340032000 pods=20 nvidia.com/gpu=1 taint=example.com/team=search:NoSchedule
    "#]],
    );
}

#[test]
fn start_up_taints_do_not_count_before_the_node_is_initialized() {
    let yaml = "
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: general-1}
spec:
  nodeClassRef: {group: karpenter.alibabacloud.com, kind: ECSNodeClass, name: default}
  startupTaints: [{key: example.com/agent, effect: NoSchedule}]
  requirements: []
status: {providerID: a}
---
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {karpenter.sh/registered: 'true'}}
spec:
  providerID: a
  taints:
    - {key: example.com/agent, effect: NoSchedule}
    - {key: example.com/other, effect: NoSchedule}
    - {key: node.kubernetes.io/not-ready, effect: NoSchedule}
";
    check(
        yaml,
        &expect![[r#"
        node node-1 claim general-1:  registered taint=example.com/other:NoSchedule
    "#]],
    );

    check(
        &yaml.replace(
            "registered: 'true'",
            "registered: 'true', karpenter.sh/initialized: 'true'",
        ),
        &expect![[r#"
            node node-1 claim general-1:  registered initialized taint=example.com/agent:NoSchedule taint=example.com/other:NoSchedule taint=node.kubernetes.io/not-ready:NoSchedule
        "#]],
    );
}

#[test]
fn nodes_of_others_are_there_with_their_pods() {
    let yaml = "
apiVersion: v1
kind: Node
metadata: {name: own-1, annotations: {karpenter.sh/do-not-disrupt: 'true'}}
status:
  allocatable: {cpu: 4}
  conditions: [{type: Ready, status: 'True'}]
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec: {nodeName: own-1, containers: []}
";
    check(
        yaml,
        &expect![[r#"
        node own-1 claim -: cpu=4000 ready kept pod=web
    "#]],
    );
}

#[test]
fn a_second_node_of_one_instance_is_nobodys() {
    let twin = NODE.replace("node-1", "node-2");

    check(
        &format!("{CLAIM}{JOINED}{NODE}{twin}"),
        &expect![[r#"
        node node-1 claim general-1: cpu=1930 memory=7340032000 pods=20 nvidia.com/gpu=1 taint=example.com/team=search:NoSchedule
        node node-2 claim -: cpu=1930 memory=7340032000 pods=20 taint=karpenter.sh/unregistered:NoExecute taint=node.kubernetes.io/not-ready:NoSchedule
    "#]],
    );
}

#[test]
fn a_node_without_a_provider_id_is_found_by_the_name_in_the_claim() {
    let yaml = "
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: general-1, deletionTimestamp: '2026-01-01T00:00:00Z'}
spec:
  nodeClassRef: {group: karpenter.alibabacloud.com, kind: ECSNodeClass, name: default}
  requirements: []
status: {providerID: a, nodeName: node-1}
---
apiVersion: v1
kind: Node
metadata: {name: node-1}
";
    check(
        yaml,
        &expect![[r#"
        node node-1 claim general-1:  deleting
    "#]],
    );
}

#[test]
fn unreadable_fields_cost_only_themselves() {
    let yaml = "
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: general-1}
spec:
  nodeClassRef: {group: karpenter.alibabacloud.com, kind: ECSNodeClass, name: default}
  requirements: [{key: example.com/size, operator: Near, values: [a]}]
status: {providerID: a, allocatable: {cpu: 2, memory: lots}}
---
apiVersion: v1
kind: Node
metadata: {name: own-1}
spec: {taints: [{key: a, effect: Sometimes}]}
status: {allocatable: {cpu: 4}}
";
    check(
        yaml,
        &expect![[r#"
        node - claim general-1: cpu=2000
        node own-1 claim -: cpu=4000
        problem: Node own-1: spec.taints[0].effect: "Sometimes" is not one of NoSchedule, PreferNoSchedule and NoExecute
        problem: NodeClaim general-1: spec.requirements[0].operator: "Near" is not one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte and Lte
        problem: NodeClaim general-1: status.allocatable.memory: parse quantity "lots": want a number with an optional suffix such as m, k, Mi or e3
    "#]],
    );
}

#[test]
fn both_ways_to_write_a_provider_id_mean_the_same_instance() {
    let mut cluster = cluster(
        "
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: general-1}
spec:
  nodeClassRef: {group: karpenter.alibabacloud.com, kind: ECSNodeClass, name: default}
  requirements: []
status: {providerID: cn-hangzhou.i-1}
---
apiVersion: v1
kind: Node
metadata: {name: cn-hangzhou.10.0.0.1}
spec: {providerID: 'alicloud://cn-hangzhou.i-1'}
",
    );

    let joined = snapshot(&cluster);

    assert_eq!(joined.nodes.len(), 1);
    assert_eq!(
        cluster.nodes_of("cn-hangzhou.i-1").collect::<Vec<_>>(),
        ["cn-hangzhou.10.0.0.1"]
    );
    assert_eq!(cluster.claims_of("alicloud://cn-hangzhou.i-1").count(), 1);

    cluster.reset::<Node>([]);
    assert_eq!(cluster.nodes_of("cn-hangzhou.i-1").count(), 0);
}

#[test]
fn a_claim_that_never_launches_stops_nobody_else() {
    let world = format!(
        "{CLAIM}
---
apiVersion: v1
kind: Node
metadata: {{name: node-2}}
status:
  conditions: [{{type: Ready, status: 'True'}}]
  allocatable: {{cpu: 4, memory: 8Gi, pods: 10}}
---
apiVersion: v1
kind: Pod
metadata: {{name: web, namespace: default, uid: web}}
spec: {{containers: [{{name: main, resources: {{requests: {{cpu: 1, memory: 1Gi}}}}}}]}}
status:
  conditions: [{{type: PodScheduled, status: 'False', reason: Unschedulable}}]
"
    );

    let plan = kerf_core::schedule(
        &snapshot(&cluster(&world)),
        &kerf_core::Preferences::none(),
        kerf_core::WorkBudget::ROUND,
        at(0),
    );

    assert_eq!(plan.unschedulable_pods(), 0, "{:?}", plan.unschedulable);
    assert_eq!(
        plan.placements[0].node,
        PlacementTarget::Node("node-2".into())
    );
}

#[test]
fn a_launch_waits_for_the_nodes_of_its_own_moment_only() {
    let claim = |name: &str, created: &str, more: &str| {
        format!(
            "
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {{name: {name}, creationTimestamp: '{created}'{more}}}
spec:
  nodeClassRef: {{group: karpenter.alibabacloud.com, kind: ECSNodeClass, name: default}}
  requirements: []
status: {{providerID: cn-hangzhou.{name}}}
"
        )
    };
    let made: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let awaits = |claims: &[String]| {
        let of_launch = |claim: &str| {
            cluster(&claims.join("")).awaits_node_of_launch(
                claim,
                made,
                SignedDuration::from_secs(5),
            )
        };
        of_launch("a")
    };
    let own = claim("a", "2026-01-01T00:00:00Z", "");
    let going = ", deletionTimestamp: '2026-01-01T00:00:09Z', finalizers: [f]";
    let joined = format!(
        "{}{}",
        claim("b", "2026-01-01T00:00:01Z", ""),
        "
---
apiVersion: v1
kind: Node
metadata: {name: b}
spec: {providerID: cn-hangzhou.b}
"
    );

    assert!(!awaits(std::slice::from_ref(&own)), "of itself");
    for (other, expected) in [
        (claim("b", "2026-01-01T00:00:05Z", ""), true),
        (claim("b", "2026-01-01T00:00:06Z", ""), false),
        (claim("b", "2026-01-01T00:00:01Z", going), false),
        (joined, false),
    ] {
        assert_eq!(awaits(&[own.clone(), other.clone()]), expected, "{other}");
    }
}
