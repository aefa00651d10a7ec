//! Our types as the objects that an API server takes.

use std::collections::BTreeMap;

use kerf_core::pod::{
    HostPort, NodeInclusionPolicy, PodAffinityTerm, PodSpec, Protocol, TopologySpread, Weighted,
    WhenUnsatisfiable,
};
use kerf_core::requirement::{Operator, WrittenRequirement};
use kerf_core::requirements::Requirements;
use kerf_core::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources, quantity_of};
use kerf_core::selector::{LabelSelector, Labels, SelectorOperator};
use kerf_core::taint::{Taint, Toleration, TolerationOperator};
use serde_json::{Map, Value, json};

/// The label of every object of a run, by which it is found and removed.
pub(super) const RUN_LABEL: &str = "oracle.kerf/run";

/// A Ready node with exactly these resources.
pub(super) fn node(
    name: &str,
    labels: &Labels,
    taints: &[Taint],
    resources: [&Resources; 2],
) -> Value {
    let [capacity, allocatable] = resources;
    let mut labels = json!(labels);
    labels[RUN_LABEL] = json!("yes");
    let taints: Vec<Value> = taints
        .iter()
        .map(|it| json!({"key": it.key, "value": it.value, "effect": it.effect.as_str()}))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
        "status": {
            "capacity": quantities(capacity),
            "allocatable": quantities(allocatable),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    })
}

/// A pod; who pins it to a node adds to the result.
pub(super) fn pod(namespace: &str, name: &str, spec: &PodSpec) -> Value {
    let mut labels = json!(spec.labels);
    labels[RUN_LABEL] = json!("yes");
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": pod_spec(spec),
    })
}

pub(super) fn daemon_set(namespace: &str, name: &str, spec: &PodSpec) -> Value {
    let mut labels = json!(spec.labels);
    labels[RUN_LABEL] = json!("yes");
    let mut pod_labels = json!(spec.labels);
    pod_labels[RUN_LABEL] = json!("daemon");
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "selector": {"matchLabels": spec.labels},
            "template": {"metadata": {"labels": pod_labels}, "spec": pod_spec(spec)},
        },
    })
}

/// How many volumes of each driver a node can attach.
pub(super) fn csi_node(name: &str, limits: &BTreeMap<String, u32>) -> Value {
    let drivers = limits.iter().map(|(driver, limit)| {
        json!({"name": driver, "nodeID": name, "allocatable": {"count": limit}, "topologyKeys": null})
    });
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
        "metadata": {"name": name, "labels": {RUN_LABEL: "yes"}},
        "spec": {"drivers": drivers.collect::<Vec<_>>()},
    })
}

/// A volume and a claim that name each other; the volume controller binds them.
pub(super) fn bound_volume(
    namespace: &str,
    name: &str,
    alternatives: &[Requirements],
) -> [Value; 2] {
    let volume = format!("{namespace}-{name}");
    let size = json!({"storage": "20Gi"});
    let modes = json!(["ReadWriteOnce"]);
    let terms: Vec<Value> = alternatives.iter().map(node_term).collect();
    let labels = json!({RUN_LABEL: "yes"});
    let persistent_volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": volume, "labels": labels},
        "spec": {
            "capacity": size, "accessModes": modes, "storageClassName": "",
            "csi": {"driver": "disk.example.com", "volumeHandle": volume},
            "claimRef": {"namespace": namespace, "name": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    });
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "accessModes": modes, "resources": {"requests": size}, "storageClassName": "",
            "volumeName": volume,
        },
    });
    [persistent_volume, claim]
}

/// The classes that pods can be of. Priority decides who is first in kube-scheduler's queue; that it would also evict
/// others is switched off, since kerf plans no evictions.
pub(super) const PRIORITIES: [(&str, i32); 2] = [("oracle-high", 1000), ("oracle-low", -10)];

pub(super) fn priority_class(name: &str, priority: i32) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": name}, "value": priority, "preemptionPolicy": "Never",
    })
}

fn pod_spec(spec: &PodSpec) -> Value {
    let requests = quantities(&without_pods(&spec.requests));
    // Kubernetes wants limits for extended resources.
    let limits: Map<String, Value> = requests
        .iter()
        .filter(|(name, _)| ![CPU, MEMORY, EPHEMERAL_STORAGE].contains(&name.as_str()))
        .map(|(name, amount)| (name.clone(), amount.clone()))
        .collect();
    let required: Vec<Value> = spec.required_node_terms.iter().map(node_term).collect();
    let preferred = weighted(&spec.preferred_node_terms, "preference", node_term);
    let mut node_affinity = json!({PREFERRED: preferred});
    if !required.is_empty() {
        node_affinity[REQUIRED] = json!({"nodeSelectorTerms": required});
    }
    let class = PRIORITIES
        .into_iter()
        .find(|(_, priority)| *priority == spec.priority);
    let gates: Vec<Value> = spec
        .scheduling_gates
        .iter()
        .map(|name| json!({"name": name}))
        .collect();
    let volumes: Vec<Value> = spec.volumes.iter().enumerate().map(volume).collect();
    json!({
        "containers": [{
            "name": "main", "image": "example.com/none",
            "resources": {"requests": requests, "limits": limits},
            "ports": each(&spec.host_ports, port),
        }],
        "terminationGracePeriodSeconds": 0,
        "priorityClassName": class.map(|(name, _)| name),
        "automountServiceAccountToken": false,
        "nodeSelector": spec.node_selector,
        "affinity": {
            "nodeAffinity": node_affinity,
            "podAffinity": {
                REQUIRED: each(&spec.affinity, pod_term),
                PREFERRED: weighted(&spec.preferred_affinity, "podAffinityTerm", pod_term),
            },
            "podAntiAffinity": {
                REQUIRED: each(&spec.anti_affinity, pod_term),
                PREFERRED: weighted(&spec.preferred_anti_affinity, "podAffinityTerm", pod_term),
            },
        },
        "tolerations": each(&spec.tolerations, toleration),
        "topologySpreadConstraints": each(&spec.topology_spread, spread),
        "schedulingGates": gates,
        "volumes": volumes,
    })
}

pub(super) const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn volume((idx, volume): (usize, &kerf_core::volume::Volume)) -> Value {
    let name = volume.claim.split_once('/').map(|(_, name)| name);
    json!({"name": format!("volume-{idx}"), "persistentVolumeClaim": {"claimName": name}})
}

fn port(port: &HostPort) -> Value {
    let protocol = match port.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::Sctp => "SCTP",
    };
    json!({"containerPort": port.port, "hostPort": port.port, "protocol": protocol})
}

/// Kubernetes has no Gte and Lte; an integer has neighbours.
fn node_term(requirements: &Requirements) -> Value {
    let written = |it: WrittenRequirement| {
        let moved = |by: i64| {
            let bound: i64 = it
                .values
                .first()
                .and_then(|text| text.parse().ok())
                .unwrap_or(0);
            vec![(bound + by).to_string()]
        };
        let (operator, values) = match it.operator {
            Operator::Gte => (Operator::Gt, moved(-1)),
            Operator::Lte => (Operator::Lt, moved(1)),
            operator => (operator, it.values.clone()),
        };
        json!({"key": it.key, "operator": operator.as_str(), "values": values})
    };
    let all = requirements.iter().flat_map(|it| it.written());
    json!({"matchExpressions": all.map(written).collect::<Vec<_>>()})
}

fn pod_term(term: &PodAffinityTerm) -> Value {
    json!({
        "topologyKey": term.topology_key,
        "labelSelector": term.selector.as_ref().map(selector),
        "namespaces": term.namespaces,
        "namespaceSelector": term.namespace_selector.as_ref().map(selector),
        "matchLabelKeys": term.match_label_keys,
        "mismatchLabelKeys": term.mismatch_label_keys,
    })
}

fn spread(it: &TopologySpread) -> Value {
    let policy = |policy| match policy {
        NodeInclusionPolicy::Honor => "Honor",
        NodeInclusionPolicy::Ignore => "Ignore",
    };
    let when = match it.when_unsatisfiable {
        WhenUnsatisfiable::DoNotSchedule => "DoNotSchedule",
        WhenUnsatisfiable::ScheduleAnyway => "ScheduleAnyway",
    };
    json!({
        "maxSkew": it.max_skew,
        "topologyKey": it.topology_key,
        "whenUnsatisfiable": when,
        "labelSelector": it.selector.as_ref().map(selector),
        "minDomains": it.min_domains,
        "nodeAffinityPolicy": policy(it.node_affinity_policy),
        "nodeTaintsPolicy": policy(it.node_taints_policy),
        "matchLabelKeys": it.match_label_keys,
    })
}

fn selector(selector: &LabelSelector) -> Value {
    let expressions: Vec<Value> = selector
        .match_expressions
        .iter()
        .map(|it| {
            let operator = match it.operator {
                SelectorOperator::In => "In",
                SelectorOperator::NotIn => "NotIn",
                SelectorOperator::Exists => "Exists",
                SelectorOperator::DoesNotExist => "DoesNotExist",
            };
            json!({"key": it.key, "operator": operator, "values": it.values})
        })
        .collect();
    json!({"matchLabels": selector.match_labels, "matchExpressions": expressions})
}

fn toleration(it: &Toleration) -> Value {
    let operator = match it.operator {
        TolerationOperator::Equal => "Equal",
        TolerationOperator::Exists => "Exists",
        TolerationOperator::Lt => "Lt",
        TolerationOperator::Gt => "Gt",
    };
    let effect = it.effect.map(|effect| effect.as_str());
    json!({"key": it.key, "operator": operator, "value": it.value, "effect": effect})
}

fn weighted<T>(items: &[Weighted<T>], field: &str, render: fn(&T) -> Value) -> Vec<Value> {
    each(
        items,
        |it| json!({"weight": it.weight, field: render(&it.term)}),
    )
}

fn each<T>(items: &[T], render: impl Fn(&T) -> Value) -> Vec<Value> {
    items.iter().map(render).collect()
}

fn without_pods(resources: &Resources) -> Resources {
    resources.clone().with(PODS, 0)
}

fn quantities(resources: &Resources) -> Map<String, Value> {
    resources
        .iter()
        .map(|(name, amount)| {
            (
                name.to_owned(),
                json!(quantity_of(name, amount).to_string()),
            )
        })
        .collect()
}
