//! The Node object of a machine: what its flags said, on the hardware that it has.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::catalog::InstanceType;
use crate::instance::{Instance, memory_mib};
use crate::join::{Join, JoinError};
use crate::quantity::{kibi, millis, parse, parse_part};
use crate::world::{Cluster, World};

const MIB: f64 = 1_048_576.0;
/// Terway's shared interfaces take no machine with fewer addresses for pods.
const TERWAY_PODS_MIN: u32 = 11;
/// Pods on the host's network need no address of their own; three are allowed for.
const HOST_NETWORK_PODS: u32 = 3;
/// Without Terway, what the cluster's node mask of 26 bits holds.
const FLANNEL_PODS: u32 = 64;
/// The kubelet's own defaults.
const EVICTION_MEMORY_DEFAULT: &str = "100Mi";
const EVICTION_DISK_RATIO: f64 = 0.1;
/// kwok keeps nodes with this annotation alive.
const FAKE_NODE_ANNOTATION: &str = "kwok.x-k8s.io/node";

pub(crate) fn node_name(world: &World, join: &Join, instance: &Instance) -> String {
    if join.node_name_mode == "nodeip" {
        format!("{}.{}", world.region, instance.ip)
    } else {
        // Node names are DNS names.
        instance.host_name().to_lowercase()
    }
}

pub(crate) fn node(
    world: &World,
    cluster: &Cluster,
    join: &Join,
    instance: &Instance,
) -> Result<Value, JoinError> {
    let instance_type = &instance.spec.instance_type;
    let name = node_name(world, join, instance);
    let size = Size::new(world, cluster, join, instance)?;
    let taints: Vec<_> = join
        .taints
        .iter()
        .map(|taint| json!({"key": taint.key, "value": taint.value, "effect": taint.effect}))
        .collect();
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": labels(world, join, instance, &name),
            "annotations": {FAKE_NODE_ANNOTATION: "fake"},
        },
        "spec": {"providerID": format!("{}.{}", world.region, instance.id), "taints": taints},
        "status": {
            "capacity": size.capacity,
            "allocatable": size.allocatable,
            "addresses": [
                {"type": "InternalIP", "address": instance.ip.to_string()},
                {"type": "Hostname", "address": name},
            ],
            "conditions": [{
                "type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "the kubelet has just started",
            }],
            "nodeInfo": {
                "architecture": arch(instance_type),
                "operatingSystem": "linux",
                "osImage": "Alibaba Cloud Linux 3.2104 LTS",
                "kernelVersion": "5.10.134-18.al8",
                "kubeletVersion": format!("v{}", cluster.version),
                "kubeProxyVersion": format!("v{}", cluster.version),
                "containerRuntimeVersion": format!("containerd://{}", join.runtime_version),
                "machineID": instance.id,
                "systemUUID": instance.id.trim_start_matches("i-"),
                "bootID": format!("{}-{}", instance.id, instance.sequence),
            },
        },
    }))
}

pub(crate) fn arch(instance_type: &InstanceType) -> &'static str {
    if instance_type.arm64 {
        "arm64"
    } else {
        "amd64"
    }
}

/// The flags' labels, and over them what kubelet and cloud controller manager know better.
fn labels(world: &World, join: &Join, instance: &Instance, name: &str) -> BTreeMap<String, String> {
    let instance_type = &instance.spec.instance_type;
    let mut labels = join.labels.clone();
    let known = [
        ("kubernetes.io/arch", arch(instance_type)),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/hostname", name),
        ("beta.kubernetes.io/arch", arch(instance_type)),
        ("beta.kubernetes.io/os", "linux"),
        ("node.kubernetes.io/instance-type", &instance_type.id),
        ("beta.kubernetes.io/instance-type", &instance_type.id),
        ("topology.kubernetes.io/region", &world.region),
        ("topology.kubernetes.io/zone", &instance.spec.zone),
        ("failure-domain.beta.kubernetes.io/region", &world.region),
        (
            "failure-domain.beta.kubernetes.io/zone",
            &instance.spec.zone,
        ),
        (
            "topology.diskplugin.csi.alibabacloud.com/zone",
            &instance.spec.zone,
        ),
    ];
    labels.extend(known.map(|(key, value)| (key.to_owned(), value.to_owned())));
    labels
}

/// What a node has, and what it offers to pods.
struct Size {
    capacity: Value,
    allocatable: Value,
}

impl Size {
    fn new(
        world: &World,
        cluster: &Cluster,
        join: &Join,
        instance: &Instance,
    ) -> Result<Self, JoinError> {
        let instance_type = &instance.spec.instance_type;
        let pods = match join.kubelet.max_pods {
            Some(pods) => pods,
            None => default_pods(cluster, instance_type),
        };
        check_addresses(cluster, instance_type)?;
        let nominal = f64::from(u32::try_from(memory_mib(instance_type)).unwrap_or(u32::MAX)) * MIB;
        let memory = nominal * world.memory_visible_ratio;
        let cores = f64::from(instance_type.cpu);
        let disk = f64::from(instance.spec.system_disk_gib) * 1024.0 * MIB;
        let reserved = Reserved::new(join, cores, nominal, pods);
        let eviction = join
            .kubelet
            .eviction_hard
            .as_ref()
            .and_then(|hard| hard.get("memory.available"));
        let eviction = parse_part(
            eviction.map_or(EVICTION_MEMORY_DEFAULT, String::as_str),
            memory,
        )
        .unwrap_or(0.0);
        let fields = |cores: f64, memory: f64, disk: f64| {
            let mut fields = json!({
                "cpu": millis(cores), "memory": kibi(memory), "ephemeral-storage": kibi(disk),
                "pods": pods.to_string(), "hugepages-1Gi": "0", "hugepages-2Mi": "0",
            });
            if instance_type.whole_gpus() > 0 {
                fields["nvidia.com/gpu"] = instance_type.whole_gpus().to_string().into();
            }
            fields
        };
        Ok(Self {
            capacity: fields(cores, memory, disk),
            allocatable: fields(
                cores - reserved.cores,
                memory - reserved.memory - eviction,
                disk * (1.0 - EVICTION_DISK_RATIO),
            ),
        })
    }
}

fn is_terway(cluster: &Cluster) -> bool {
    cluster.network.starts_with("terway")
}

fn shared_addresses(instance_type: &InstanceType) -> Option<u32> {
    instance_type
        .network
        .map(|network| network.interfaces.saturating_sub(1) * network.ipv4_per_interface)
}

fn default_pods(cluster: &Cluster, instance_type: &InstanceType) -> u32 {
    let shared = shared_addresses(instance_type).filter(|_| is_terway(cluster));
    shared.map_or(FLANNEL_PODS, |pods| pods + HOST_NETWORK_PODS)
}

/// A machine that Terway cannot serve never becomes a node. Where the catalog knows no numbers, it is let in.
fn check_addresses(cluster: &Cluster, instance_type: &InstanceType) -> Result<(), JoinError> {
    match shared_addresses(instance_type) {
        Some(pods) if is_terway(cluster) && pods <= TERWAY_PODS_MIN => {
            Err(JoinError::TooFewAddresses {
                instance_type: instance_type.id.clone(),
                pods,
                needed: TERWAY_PODS_MIN,
            })
        }
        _ => Ok(()),
    }
}

/// What the kubelet keeps back: what it was told, or what ACK computes, half of it for each of the two reservations.
struct Reserved {
    cores: f64,
    memory: f64,
}

impl Reserved {
    fn new(join: &Join, cores: f64, memory: f64, pods: u32) -> Self {
        let default = Self::ack(cores, memory, pods);
        let one = |told: &Option<BTreeMap<String, String>>| match told {
            None => (default.cores / 2.0, default.memory / 2.0),
            Some(told) => {
                let amount =
                    |name: &str| told.get(name).and_then(|text| parse(text)).unwrap_or(0.0);
                (amount("cpu"), amount("memory"))
            }
        };
        let (kube, system) = (
            one(&join.kubelet.kube_reserved),
            one(&join.kubelet.system_reserved),
        );
        Self {
            cores: kube.0 + system.0,
            memory: kube.1 + system.1,
        }
    }

    /// ACK from Kubernetes 1.28 on: falling shares of the cores, and 11 MiB per pod up to a quarter of the memory.
    fn ack(cores: f64, memory: f64, pods: u32) -> Self {
        let steps = [(1.0, 60.0), (2.0, 10.0), (3.0, 5.0), (4.0, 5.0)];
        let first: f64 = steps
            .iter()
            .filter(|(n, _)| cores >= *n)
            .map(|(_, millicores)| millicores)
            .sum();
        let millicores = first + 2.5 * (cores - 4.0).max(0.0);
        let per_pod = 11.0 * MIB * f64::from(pods) + 255.0 * MIB;
        Self {
            cores: millicores / 1000.0,
            memory: per_pod.min(memory / 4.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserves_are_those_that_ack_publishes() {
        for (cores, expected) in [
            (2.0, 70.0),
            (4.0, 80.0),
            (8.0, 90.0),
            (16.0, 110.0),
            (32.0, 150.0),
            (64.0, 230.0),
            (256.0, 710.0),
        ] {
            let reserved = Reserved::ack(cores, 1e15, 15);
            assert!(
                (reserved.cores * 1000.0 - expected).abs() < 1e-9,
                "{cores} cores"
            );
        }
        for (pods, expected_mib) in [(15, 420.0), (48, 783.0), (213, 2598.0), (453, 5238.0)] {
            let reserved = Reserved::ack(4.0, 1e15, pods);
            assert!(
                (reserved.memory / MIB - expected_mib).abs() < 1e-9,
                "{pods} pods"
            );
        }
    }
}
