//! Which pods wait, what they ask for, and what makes them impossible to plan.

use super::*;

/// A pod that kube-scheduler found no node for, with further lines of its spec and of the document.
fn pending(spec: &str, more: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: web, namespace: default}}
spec:
{spec}
status:
  conditions: [{{type: PodScheduled, status: 'False', reason: Unschedulable}}]
{more}
"
    )
}

#[test]
fn a_pod_waits_when_the_scheduler_found_no_node_for_it() {
    check(
        &pending("  containers: []", ""),
        &expect![[r#"
        pending web: pods=1
    "#]],
    );
}

#[test]
fn pods_that_a_new_node_would_not_help_do_not_wait() {
    let waits = pending("  containers: []", "");

    for (part, instead) in [
        ("reason: Unschedulable", "reason: SchedulingGated"),
        ("containers: []", "{containers: [], nodeName: node-1}"),
        ("conditions:", "nominatedNodeName: node-1\n  conditions:"),
        ("conditions:", "phase: Failed\n  conditions:"),
        (
            "namespace: default",
            "ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: a, uid: b, controller: true}]",
        ),
        (
            "namespace: default",
            "ownerReferences: [{apiVersion: v1, kind: Node, name: a, uid: b, controller: true}]",
        ),
        (
            "namespace: default",
            "deletionTimestamp: '2026-01-01T00:00:00Z'",
        ),
    ] {
        let yaml = waits
            .replace(part, instead)
            .replace("  {containers", "  containers")
            .replace("node-1}", "node-1");
        let yaml = yaml.replace("containers: [], nodeName", "containers: []\n  nodeName");

        assert_eq!(snapshot(&cluster(&yaml)).pending_pods.len(), 0, "{instead}");
    }
}

#[test]
fn containers_add_up_and_limits_stand_in_for_requests() {
    let spec = "
  overhead: {cpu: 10m}
  containers:
    - {name: a, resources: {requests: {cpu: 100m}, limits: {cpu: 1, memory: 1Gi}}}
    - {name: b, resources: {requests: {cpu: 200m, nvidia.com/gpu: 1}}}
";
    check(
        &pending(spec, ""),
        &expect![[r#"
        pending web: cpu=310 memory=1073741824 pods=1 nvidia.com/gpu=1
    "#]],
    );
}

#[test]
fn init_containers_run_one_at_a_time_and_sidecars_stay() {
    let spec = "
  containers: [{name: a, resources: {requests: {cpu: 300m}}}]
  initContainers:
    - {name: first, resources: {requests: {cpu: 700m}}}
    - {name: sidecar, restartPolicy: Always, resources: {requests: {cpu: 100m}}}
    - {name: second, resources: {requests: {cpu: 650m}}}
";
    check(
        &pending(spec, ""),
        &expect![[r#"
        pending web: cpu=750 pods=1
    "#]],
    );
}

#[test]
fn pod_level_requests_override_those_of_containers() {
    let spec = "
  resources: {requests: {cpu: 2, ephemeral-storage: 1Gi}, limits: {memory: 4Gi}}
  containers: [{name: a, resources: {requests: {cpu: 300m, memory: 1Gi, ephemeral-storage: 2Gi}}}]
";
    check(
        &pending(spec, ""),
        &expect![[r#"
        pending web: cpu=2000 memory=4294967296 ephemeral-storage=2147483648 pods=1
    "#]],
    );
}

#[test]
fn a_container_that_is_being_resized_counts_with_the_most() {
    let spec = "  containers: [{name: a, resources: {requests: {cpu: 300m, memory: 4Gi}}}]";
    let statuses = "  containerStatuses:
    - name: a
      image: i
      imageID: i
      ready: true
      restartCount: 0
      allocatedResources: {cpu: 500m}
      resources: {requests: {cpu: 400m, memory: 1Gi}}
";
    check(
        &pending(spec, statuses),
        &expect![[r#"
        pending web: cpu=500 memory=4294967296 pods=1
    "#]],
    );

    let infeasible = pending(spec, statuses).replace(
        "conditions: [",
        "conditions: [{type: PodResizePending, status: 'True', reason: Infeasible}, ",
    );
    check(
        &infeasible,
        &expect![[r#"
        pending web: cpu=500 memory=1073741824 pods=1
    "#]],
    );
}

#[test]
fn a_pod_that_cannot_be_planned_says_which_field() {
    let spec = "
  containers: [{name: a, resources: {requests: {cpu: much}}}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: example.com/a, operator: Gt, values: [x]}]}]
";
    check(
        &pending(spec, ""),
        &expect![[r#"
        pending web: pods=1 invalid: spec.containers[a].resources.requests.cpu: parse quantity "much": want a number with an optional suffix such as m, k, Mi or e3; spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]: requirement on example.com/a: Gt needs exactly one integer value
        problem: Pod default/web: spec.containers[a].resources.requests.cpu: parse quantity "much": want a number with an optional suffix such as m, k, Mi or e3
        problem: Pod default/web: spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]: requirement on example.com/a: Gt needs exactly one integer value
    "#]],
    );
}

#[test]
fn constraints_are_converted() {
    let spec = "
  containers: [{name: a, ports: [{containerPort: 80, hostPort: 80, protocol: UDP, hostIP: 10.0.0.1}, {containerPort: 81}]}]
  nodeSelector: {example.com/tier: gold}
  tolerations: [{operator: Exists}, {key: a, value: b, effect: NoSchedule}]
  priority: 7
  topologySpreadConstraints:
    - {maxSkew: 2, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: beta.kubernetes.io/arch, operator: In, values: [arm64]}]}]
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - {topologyKey: kubernetes.io/hostname, labelSelector: {matchExpressions: [{key: app, operator: Exists}]}}
";
    let snapshot = snapshot(&cluster(&pending(spec, "")));
    let spec = &snapshot.pending_pods[0].spec;

    assert_eq!(
        spec.required_node_terms[0].to_string(),
        "kubernetes.io/arch In [arm64]"
    );
    assert_eq!(spec.host_ports.len(), 1);
    assert_eq!(spec.tolerations.len(), 2);
    assert_eq!(spec.topology_spread[0].max_skew, 2);
    assert_eq!(spec.anti_affinity[0].topology_key, "kubernetes.io/hostname");
    assert_eq!(spec.priority, 7);
    assert_eq!(spec.node_selector["example.com/tier"], "gold");
}

#[test]
fn equal_pods_share_their_spec() {
    let first = pending(
        "  containers: [{name: a, resources: {requests: {cpu: 1}}}]",
        "",
    );
    let second = first.replace("name: web", "name: web-2");

    let snapshot = snapshot(&cluster(&format!("{first}\n---\n{second}")));

    assert!(Arc::ptr_eq(
        &snapshot.pending_pods[0].spec,
        &snapshot.pending_pods[1].spec
    ));
}

#[test]
fn a_malformed_do_not_disrupt_is_ignored_and_told() {
    let yaml = pending("  containers: []", "").replace(
        "namespace: default",
        "namespace: default, annotations: {karpenter.sh/do-not-disrupt: soon}",
    );

    check(
        &yaml,
        &expect![[r#"
        pending web: pods=1
        problem: Pod default/web: metadata.annotations[karpenter.sh/do-not-disrupt]: "soon" is neither true nor a duration such as 30m; it is ignored
    "#]],
    );
}

#[test]
fn a_daemon_pod_asks_for_what_its_newest_live_pod_does() {
    let template = "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: kube-system, uid: ds-1}
spec:
  selector: {}
  template:
    spec:
      nodeSelector: {kubernetes.io/os: linux}
      containers: [{name: a, resources: {requests: {cpu: 100m}}}]
";
    check(
        template,
        &expect![[r#"
        daemon agent: cpu=100 pods=1
    "#]],
    );

    let live = "
---
apiVersion: v1
kind: Pod
metadata:
  name: agent-x
  namespace: kube-system
  ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: ds-1, controller: true}]
spec:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node-1]}]}]
  containers: [{name: a, resources: {requests: {cpu: 150m}}}]
";
    check(
        &format!("{template}{live}"),
        &expect![[r#"
        daemon agent: cpu=150 pods=1
    "#]],
    );
}

#[test]
fn sidecars_with_one_host_port_are_kept_apart_as_kube_scheduler_does() {
    let pod = pending(
        "  containers: [{name: main}]
  initContainers:
    - {name: proxy, restartPolicy: Always, ports: [{containerPort: 80, hostPort: 80}]}
    - {name: once, ports: [{containerPort: 81, hostPort: 81}]}",
        "",
    );

    let snapshot = snapshot(&cluster(&pod));

    let ports = &snapshot.pending_pods[0].spec.host_ports;
    assert_eq!(ports.iter().map(|it| it.port).collect::<Vec<_>>(), [80]);
}
