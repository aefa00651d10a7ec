//! Our types as the objects that an API server takes.

use std::collections::BTreeSet;

use kerf_core::Snapshot;
use kerf_core::labels;
use kerf_core::node::Node;
use kerf_core::node_pool::NodePool;
use kerf_core::pod::{
    HostPort, NodeInclusionPolicy, PodAffinityTerm, PodSpec, Protocol, TopologySpread, Weighted,
    WhenUnsatisfiable,
};
use kerf_core::requirement::{Operator, Requirement, WrittenRequirement};
use kerf_core::requirements::Requirements;
use kerf_core::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources, quantity_of};
use kerf_core::selector::{LabelSelector, Labels, SelectorOperator};
use kerf_core::taint::{Taint, Toleration, TolerationOperator};
use serde_json::{Map, Value, json};

use super::draw::DRIVER;

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
    let taints = self::taints(taints);
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

fn taints(taints: &[Taint]) -> Vec<Value> {
    each(
        taints,
        |it| json!({"key": it.key, "value": it.value, "effect": it.effect.as_str()}),
    )
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

/// Everything that the snapshot has, but its instance types.
pub(super) fn objects(snapshot: &Snapshot) -> Vec<Value> {
    let mut objects = Vec::new();
    for (name, labels) in &snapshot.namespaces {
        objects.push(json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels},
        }));
    }
    objects.extend(snapshot.pools.iter().map(|pool| node_pool(pool)));
    for it in &snapshot.nodes {
        objects.extend(it.node_claim.as_ref().map(|name| node_claim(name, it)));
        let Some(name) = &it.name else { continue };
        let mut object = node(
            name,
            &Labels::from(&it.labels),
            &it.taints,
            [&it.capacity, &it.allocatable],
        );
        object["spec"]["providerID"] = json!(provider_id(name));
        objects.push(object);
        if !it.attachment_limits.is_empty() {
            let limits = it.attachment_limits.iter();
            objects.push(csi_node(
                name,
                limits.map(|(driver, limit)| (&**driver, *limit)),
            ));
        }
        for bound in &it.pods {
            let mut object = pod(&bound.namespace, &bound.name, &bound.spec);
            object["spec"]["nodeName"] = json!(name.as_str());
            objects.push(object);
        }
    }
    for daemon in &snapshot.daemon_pods {
        objects.push(daemon_set(&daemon.namespace, &daemon.name, &daemon.spec));
    }
    let mut claims = BTreeSet::new();
    for pending in &snapshot.pending_pods {
        objects.push(pod(&pending.namespace, &pending.name, &pending.spec));
        for volume in &pending.spec.volumes {
            let own = volume.claim.split_once('/');
            let (namespace, name) = own.unwrap_or_default();
            if claims.insert(&volume.claim) {
                objects.extend(bound_volume(namespace, name, &volume.alternatives));
            }
        }
    }
    objects
}

/// A volume and a claim that name each other; the volume controller binds them.
fn bound_volume(namespace: &str, name: &str, alternatives: &[Requirements]) -> [Value; 2] {
    let volume = format!("{namespace}-{name}");
    let terms: Vec<Value> = alternatives.iter().map(node_term).collect();
    let mut persistent_volume = volume_for(&volume, namespace, name, "");
    persistent_volume["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": terms}});
    let mut claim = volume_claim(namespace, name, "");
    claim["spec"]["volumeName"] = json!(volume);
    [persistent_volume, claim]
}

/// As [`objects`] has them, in these zones.
pub(super) fn volume_in_zones(namespace: &str, name: &str, zones: &[&str]) -> [Value; 2] {
    let zones = Requirement::in_values(labels::ZONE, zones.iter().copied());
    bound_volume(namespace, name, &[Requirements::from_iter([zones])])
}

/// The node affinity of a volume that can be used in one zone.
pub(super) fn in_zone(zone: &str) -> Value {
    let term = node_term(
        &[Requirement::in_values(labels::ZONE, [zone])]
            .into_iter()
            .collect(),
    );
    json!({"required": {"nodeSelectorTerms": [term]}})
}

/// A volume that is kept for that claim.
pub(super) fn volume_for(volume: &str, namespace: &str, claim: &str, class: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": volume, "labels": {RUN_LABEL: "yes"}},
        "spec": {
            "capacity": {"storage": "20Gi"}, "accessModes": ["ReadWriteOnce"],
            "storageClassName": class,
            "csi": {"driver": DRIVER, "volumeHandle": volume},
            "claimRef": {"namespace": namespace, "name": claim},
        },
    })
}

/// A claim; of the empty class when it brings its volume.
pub(super) fn volume_claim(namespace: &str, name: &str, class: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "labels": {RUN_LABEL: "yes"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}},
            "storageClassName": class,
        },
    })
}

/// A class whose volumes are made where their first pod is, in one of these zones.
pub(super) fn storage_class(name: &str, zones: &[&str]) -> Value {
    let expression = json!({"key": labels::ZONE, "values": zones});
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": name, "labels": {RUN_LABEL: "yes"}},
        "provisioner": DRIVER,
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [expression]}],
    })
}

/// The classes that pods can be of. Priority decides who is first in kube-scheduler's queue; that it would also evict
/// others is switched off, since kerf plans no evictions.
pub(super) const PRIORITIES: [(&str, i32); 2] = [("oracle-high", 1000), ("oracle-low", -10)];

/// The classes of [`PRIORITIES`], and the one of all other pods: without it these would evict those of low priority.
pub(super) fn priority_classes() -> impl Iterator<Item = Value> {
    let classes = PRIORITIES.into_iter().chain([("oracle-default", 0)]);
    classes.map(|(name, priority)| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": priority, "preemptionPolicy": "Never",
            "globalDefault": priority == 0,
        })
    })
}

/// The runtime whose pods cost more than their containers ask for.
pub(super) const RUNTIME: &str = "oracle-sandbox";

/// What a pod of [`RUNTIME`] costs besides.
pub(super) fn overhead() -> Value {
    json!({"cpu": "250m", "memory": "120Mi"})
}

pub(super) fn runtime_class() -> Value {
    json!({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass",
        "metadata": {"name": RUNTIME}, "handler": "sandbox", "overhead": {"podFixed": overhead()},
    })
}

/// The name of the node class that all pools have, except those that are not ready.
pub(super) const NODE_CLASS: &str = "default";

fn provider_id(node: &str) -> String {
    format!("oracle.{node}")
}

fn node_pool(pool: &NodePool) -> Value {
    let class = if pool.not_ready.is_some() {
        "absent"
    } else {
        NODE_CLASS
    };
    let template = &pool.template;
    let limits = pool.limits.iter();
    let limits: Map<String, Value> = limits
        .map(|(name, amount)| {
            (
                name.to_owned(),
                json!(quantity_of(name, amount).to_string()),
            )
        })
        .collect();
    let requirements: Vec<Value> = template
        .requirements
        .iter()
        .flat_map(|it| it.written())
        .map(|it| {
            let (operator, values) = (it.operator.as_str(), &it.values);
            json!({"key": it.key, "operator": operator, "values": values, "minValues": it.min_values})
        })
        .collect();
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": {"name": pool.name.as_str()},
        "spec": {
            "weight": (pool.weight > 0).then_some(pool.weight),
            "limits": limits,
            "replicas": pool.replicas,
            "template": {
                "metadata": {"labels": template.labels},
                "spec": {
                    "nodeClassRef": class_ref(class),
                    "requirements": requirements,
                    "taints": taints(&template.taints),
                    "startupTaints": taints(&template.startup_taints),
                },
            },
        },
    })
}

fn node_claim(name: &str, node: &Node) -> Value {
    let condition = |name: &str, is_true: bool| {
        let status = if is_true { "True" } else { "False" };
        json!({"type": name, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": name, "labels": Labels::from(&node.labels)},
        "spec": {
            "nodeClassRef": class_ref(NODE_CLASS),
            "requirements": [],
            "taints": taints(&node.taints),
            "startupTaints": taints(&node.startup_taints),
        },
        "status": {
            "providerID": node.name.as_ref().map(|name| provider_id(name)),
            "capacity": quantities(&node.capacity),
            "allocatable": quantities(&node.allocatable),
            "conditions": [
                condition("Registered", node.is_registered),
                condition("Initialized", node.is_initialized),
                condition("DisruptionReason", node.is_marked_for_deletion),
            ],
        },
    })
}

fn class_ref(name: &str) -> Value {
    json!({"group": "karpenter.alibabacloud.com", "kind": "ECSNodeClass", "name": name})
}

/// How many volumes of each driver a node can attach.
pub(super) fn csi_node<'a>(name: &str, limits: impl Iterator<Item = (&'a str, u32)>) -> Value {
    let drivers = limits.map(|(driver, limit)| {
        json!({"name": driver, "nodeID": name, "allocatable": {"count": limit}, "topologyKeys": []})
    });
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
        "metadata": {"name": name, "labels": {RUN_LABEL: "yes"}},
        "spec": {"drivers": drivers.collect::<Vec<_>>()},
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
    let gates: Vec<Value> = spec
        .scheduling_gates
        .iter()
        .map(|name| json!({"name": name}))
        .collect();
    let volumes: Vec<Value> = spec.volumes.iter().enumerate().map(volume).collect();
    let class = PRIORITIES
        .into_iter()
        .find(|(_, priority)| *priority == spec.priority);
    json!({
        "containers": [{
            "name": "main", "image": "example.com/none",
            "resources": {"requests": requests, "limits": limits},
            "ports": each(&spec.host_ports, port),
        }],
        "terminationGracePeriodSeconds": 0,
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
        "priorityClassName": class.map(|(name, _)| name),
        "priority": class.map(|(_, priority)| priority),
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
    let ip = port.ip.map(|ip| ip.to_string());
    json!({"containerPort": port.port, "hostPort": port.port, "protocol": protocol, "hostIP": ip})
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

pub(super) fn quantities(resources: &Resources) -> Map<String, Value> {
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
