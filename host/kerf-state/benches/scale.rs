//! `cargo xtask bench scale --simulated`: index and planner in a fleet that no machine here could hold, without an API server.
//!
//! Objects come as watches deliver them, typed and one by one; Nodes and NodeClaims are also kept whole, as the controller's
//! stores do. Then batches of pods wait for nodes: a turn is a snapshot, a plan, and its NodeClaims taken in again. What the
//! API server takes to write them is not in it.
#![allow(
    clippy::print_stdout,
    reason = "this command talks to a person at a terminal"
)]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Parser;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodepool::NodePool;
use kerf_core::instance_type::{CapacityType, InstanceType, Offering};
use kerf_core::labels;
use kerf_core::plan::{Plan, PlannedClaim};
use kerf_core::price::Price;
use kerf_core::requirement::Requirement;
use kerf_core::resources::{PODS, Resources};
use kerf_core::snapshot::Settings;
use kerf_core::{Preferences, WorkBudget, schedule};
use kerf_state::{Catalog, Cluster, PoolOffers, Tracked};
use serde_json::{Value, json};

/// What the issue asks for.
const RSS_MAX_MIB: f64 = 1024.0;
const LOOP_MAX_SECS: f64 = 2.0;

const POOL: &str = "general";
const ZONES: [&str; 3] = ["cn-hangzhou-h", "cn-hangzhou-i", "cn-hangzhou-j"];
/// As many machines as a region sells.
const TYPES: i64 = 600;
const CPUS: i64 = 16;
const GIBIBYTE: i64 = 1 << 30;
/// Workloads, each with its own shape.
const SHAPES: usize = 400;
/// Long after everything that is written here.
const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);
const CREATED: &str = "2026-01-01T00:00:00Z";

/// Times index and planner.
#[derive(Debug, Parser)]
#[command(name = "scale")]
struct Args {
    #[arg(long, default_value_t = 15_000)]
    nodes: usize,
    #[arg(long, default_value_t = 400_000)]
    pods: usize,
    /// Pods of a batch.
    #[arg(long, default_value_t = 1_000)]
    more: usize,
    #[arg(long, default_value_t = 30)]
    batches: usize,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// What cargo tells every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut fleet = Fleet::new()?;
    fleet.fill(&args)?;
    let filled = fleet.events.len();
    let fill = percentiles(&mut fleet.events.clone());
    let mut turns = Vec::new();
    let (mut claims, mut placed, mut left_out) = (0, 0, 0);
    for nth in 0..args.batches {
        let plan = fleet.turn(nth, args.more, &mut turns)?;
        claims += plan.new_claims.len();
        placed += plan.placements.len();
        left_out += plan.unschedulable_pods();
    }
    let mut later = fleet.events.split_off(filled);
    let churn = percentiles(&mut later);
    let turn = percentiles(&mut turns);
    let rss = peak_rss_mib()?;
    let result = json!({
        "nodes": args.nodes, "pods": args.pods, "instanceTypes": TYPES,
        "peakRssMib": rss, "rssMax": RSS_MAX_MIB,
        "events": filled + later.len(), "eventMeanMicros": fill.mean * 1e6, "eventP99Micros": fill.p99 * 1e6,
        "churnEventMeanMicros": churn.mean * 1e6, "churnEventP99Micros": churn.p99 * 1e6,
        "loops": turns.len(), "podsPerLoop": args.more, "loopP50Seconds": turn.p50, "loopP99Seconds": turn.p99,
        "loopMax": LOOP_MAX_SECS, "newClaims": claims, "podsOnNodes": placed, "podsLeftOut": left_out,
    });
    if args.json {
        println!("{result}");
    } else {
        for (name, value) in result.as_object().into_iter().flatten() {
            println!("{name}={value}");
        }
    }
    if rss > RSS_MAX_MIB || turn.p99 > LOOP_MAX_SECS || left_out > 0 {
        bail!("a figure is beyond its limit");
    }
    Ok(())
}

/// The index, and what the controller keeps beside it.
struct Fleet {
    cluster: Cluster,
    nodes: HashMap<String, Arc<Node>>,
    claims: HashMap<String, Arc<NodeClaim>>,
    catalog: Catalog,
    /// Seconds of each event.
    events: Vec<f64>,
}

impl Fleet {
    fn new() -> Result<Self> {
        let mut cluster = Cluster::new();
        cluster.apply(&typed::<EcsNodeClass>(class())?);
        cluster.apply(&typed::<NodePool>(pool())?);
        let types = (1..=TYPES).map(|nth| Arc::new(instance_type(nth)));
        let offers = PoolOffers {
            instance_types: Arc::new(types.collect()),
            ..PoolOffers::default()
        };
        Ok(Self {
            cluster,
            nodes: HashMap::new(),
            claims: HashMap::new(),
            catalog: Catalog::from([(POOL.into(), offers)]),
            events: Vec::new(),
        })
    }

    fn apply<K: Tracked>(&mut self, object: &K) {
        let started = Instant::now();
        self.cluster.apply(object);
        self.events.push(started.elapsed().as_secs_f64());
    }

    /// Nodes with their claims, and the pods that fill them, nothing pending.
    fn fill(&mut self, args: &Args) -> Result<()> {
        for nth in 0..args.nodes {
            let name = format!("general-{nth:05}");
            let claim: Arc<NodeClaim> = Arc::new(typed(claim(&name, nth))?);
            self.apply(&*claim);
            self.claims.insert(name.clone(), claim);
            let node: Arc<Node> = Arc::new(typed(node(&name, nth))?);
            self.apply(&*node);
            self.nodes.insert(name, node);
        }
        let shapes: Vec<Pod> = (0..SHAPES)
            .map(|nth| typed(pod_of_shape(nth)))
            .collect::<Result<_>>()?;
        for nth in 0..args.pods {
            let mut pod = shapes[nth % SHAPES].clone();
            name_pod(&mut pod, &format!("app-{}-{nth:06}", nth % SHAPES));
            if let Some(spec) = &mut pod.spec {
                spec.node_name = Some(format!("general-{:05}", nth % args.nodes.max(1)));
            }
            self.apply(&pod);
        }
        Ok(())
    }

    /// A batch comes, is planned and goes again.
    fn turn(&mut self, nth: usize, pods: usize, turns: &mut Vec<f64>) -> Result<Plan> {
        let mut waiting = Vec::new();
        for idx in 0..pods {
            let mut pod: Pod = typed(pod_of_shape(idx % SHAPES))?;
            name_pod(&mut pod, &format!("batch-{nth}-{idx:05}"));
            pod.status = typed(json!({
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": CREATED}],
            }))?;
            self.apply(&pod);
            waiting.push(pod);
        }
        let started = Instant::now();
        let snapshot = self
            .cluster
            .snapshot(&self.catalog, Settings::default(), NOW);
        let plan = schedule(&snapshot, &Preferences::none(), WorkBudget::ROUND, NOW);
        let mut made = Vec::new();
        for (idx, planned) in plan.new_claims.iter().enumerate() {
            let claim: NodeClaim = typed(new_claim(&format!("new-{nth}-{idx}"), planned))?;
            self.cluster.seed(&claim);
            made.push(claim);
        }
        turns.push(started.elapsed().as_secs_f64());
        for pod in &waiting {
            self.cluster.delete(pod);
        }
        for claim in &made {
            self.cluster.delete(claim);
        }
        Ok(plan)
    }
}

fn typed<T: serde::de::DeserializeOwned>(object: Value) -> Result<T> {
    serde_json::from_value(object).context("an object of this very file")
}

fn instance_type(nth: i64) -> InstanceType {
    let cpus = 2 * (nth % 32 + 1);
    let memory = cpus * GIBIBYTE * [2, 4, 8][usize::try_from(nth % 3).unwrap_or_default()];
    let micros = (cpus * 100_000 + memory / 40_000 + nth).unsigned_abs();
    let offerings = ZONES
        .iter()
        .map(|zone| Offering::new(*zone, CapacityType::OnDemand, Price::from_micros(micros)));
    InstanceType::new(
        format!("ecs.t{nth}.xlarge"),
        [
            Requirement::in_values(labels::ARCH, ["amd64"]),
            Requirement::in_values(labels::OS, ["linux"]),
        ],
        Resources::of(cpus * 1000, memory).with(PODS, 110),
        Resources::of(200, GIBIBYTE),
        offerings.collect(),
    )
}

fn class() -> Value {
    json!({
        "apiVersion": "karpenter.alibabacloud.com/v1alpha1", "kind": "ECSNodeClass", "metadata": {"name": "default"}, "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": CREATED}]},
    })
}

fn class_reference() -> Value {
    json!({"group": "karpenter.alibabacloud.com", "kind": "ECSNodeClass", "name": "default"})
}

fn pool() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": POOL},
        "spec": {"template": {"spec": {"nodeClassRef": class_reference(), "requirements": []}}},
    })
}

fn node_labels(name: &str, nth: usize) -> Value {
    json!({
        "karpenter.sh/nodepool": POOL, "karpenter.sh/capacity-type": "on-demand", "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "ecs.t7.xlarge",
        "topology.kubernetes.io/zone": ZONES[nth % ZONES.len()], "topology.kubernetes.io/region": "cn-hangzhou",
        "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
        "karpenter.alibabacloud.com/instance-family": "ecs.t7", "karpenter.alibabacloud.com/instance-cpu": CPUS.to_string(),
    })
}

fn room() -> Value {
    json!({"cpu": CPUS.to_string(), "memory": "64Gi", "pods": "110", "ephemeral-storage": "40Gi"})
}

fn claim(name: &str, nth: usize) -> Value {
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": CREATED, "reason": kind, "message": ""});
    let conditions = ["Launched", "Registered", "Initialized", "Ready"].map(condition);
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": name, "uid": name, "labels": node_labels(name, nth), "creationTimestamp": CREATED, "annotations": {
            "karpenter.sh/nodepool-hash": "1234567890123456789", "karpenter.sh/nodepool-hash-version": "v3",
        }},
        "spec": {
            "nodeClassRef": class_reference(), "resources": {"requests": {"cpu": "13", "memory": "26Gi", "pods": "26"}},
            "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["ecs.t7.xlarge", "ecs.t10.xlarge"]}],
        },
        "status": {
            "providerID": format!("cn-hangzhou.i-{name}"), "nodeName": name, "imageID": "aliyun_3_x64_20G_alibase.vhd",
            "capacity": room(), "allocatable": room(), "conditions": conditions,
        },
    })
}

fn new_claim(name: &str, planned: &PlannedClaim) -> Value {
    let types: Vec<&str> = planned
        .offerings
        .iter()
        .take(60)
        .map(|it| &*it.instance_type)
        .collect();
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": name, "uid": name, "creationTimestamp": CREATED, "labels": {"karpenter.sh/nodepool": &*planned.pool}},
        "spec": {
            "nodeClassRef": class_reference(),
            "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types}],
        },
    })
}

fn node(name: &str, nth: usize) -> Value {
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status, "lastHeartbeatTime": CREATED, "lastTransitionTime": CREATED,
            "reason": "KubeletSays", "message": "the kubelet says so",
        })
    };
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": format!("node-{name}"), "labels": node_labels(name, nth), "creationTimestamp": CREATED},
        "spec": {"providerID": format!("cn-hangzhou.i-{name}"), "podCIDR": "10.0.0.0/25"},
        "status": {
            "capacity": room(), "allocatable": room(),
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name}],
            "conditions": [
                condition("Ready", "True"), condition("MemoryPressure", "False"), condition("DiskPressure", "False"),
                condition("PIDPressure", "False"),
            ],
            "nodeInfo": {
                "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "containerd://1.6.28", "kernelVersion": "5.10",
                "kubeProxyVersion": "", "kubeletVersion": "v1.36.3", "machineID": "", "operatingSystem": "linux",
                "osImage": "Alibaba Cloud Linux 3", "systemUUID": "",
            },
        },
    })
}

/// So much that 26 of them fill a node; and what else the pod of a Deployment says.
fn pod_of_shape(nth: usize) -> Value {
    let app = format!("app-{nth}");
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": "default", "labels": {"app": app, "pod-template-hash": "7d4b9c5f6"}, "creationTimestamp": CREATED,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": true}],
        },
        "spec": {
            "schedulerName": "default-scheduler", "priority": 0,
            "containers": [{
                "name": "main", "image": "registry.invalid/app:1",
                "resources": {"requests": {"cpu": format!("{}m", 600 + nth % 10), "memory": format!("{}Mi", 900 + nth)}},
            }],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": CREATED}]},
    })
}

fn name_pod(pod: &mut Pod, name: &str) {
    pod.metadata.uid = Some(format!("00000000-0000-4000-8000-{name}"));
    pod.metadata.name = Some(name.to_owned());
}

struct Percentiles {
    mean: f64,
    p50: f64,
    p99: f64,
}

fn percentiles(seconds: &mut [f64]) -> Percentiles {
    seconds.sort_by(f64::total_cmp);
    let at = |percent: usize| {
        let rank = (seconds.len() * percent).div_ceil(100).max(1);
        seconds.get(rank - 1).copied().unwrap_or(f64::INFINITY)
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "the number of events has far fewer than 53 bits"
    )]
    let count = seconds.len().max(1) as f64;
    Percentiles {
        mean: seconds.iter().sum::<f64>() / count,
        p50: at(50),
        p99: at(99),
    }
}

/// The most that this process ever had resident.
fn peak_rss_mib() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|it| it.split_whitespace().next());
    let kibibytes: f64 = kibibytes.context("no VmHWM")?.parse().context("VmHWM")?;
    Ok(kibibytes / 1024.0)
}
