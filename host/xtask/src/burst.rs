//! `cargo xtask bench burst`: thousands of pods at once, on nothing; how soon is everything launched and bound?
//!
//! On the instance types of upstream's kwok provider, because that is what upstream was measured on; `--catalog` takes
//! those of the embedded catalog. The floor is measured in the same run: the same pods once more, onto the nodes that are there then, without kerf.
//! No autoscaler can be faster than that on this machine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use control_plane::Options;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::audit::{Act, Audit};
use crate::demo::manifests;
use crate::rig::{Build, Rig};
use crate::workload::{self, Row};
use crate::{bench, upstream_world, workspace};

/// What the issue asks for.
const LAUNCH_MAX_SECS: f64 = 2.5;
const BOUND_MAX_SECS: f64 = 18.0;
const FLOOR_FACTOR_MAX: f64 = 1.2;
const CPU_MAX_SECS: f64 = 6.0;
const RSS_MAX_MIB: u64 = 50;
const PATIENCE: Duration = Duration::from_secs(300);
const WORLD: &str = "timing: {visibleAfterMs: 0, startingAfterMs: 0, runningAfterMs: 0}\n";
const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const NODES: &str = "/api/v1/nodes";
const ZONE: &str = "topology.kubernetes.io/zone";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Options of `burst`.
#[derive(Debug, Parser)]
#[command(name = "burst", no_binary_name = true)]
struct Args {
    /// Another table of ReplicaSets.
    file: Option<PathBuf>,
    /// Sell what Alibaba Cloud sells: smaller machines, so that there are a dozen times as many.
    #[arg(long)]
    catalog: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Start what is built already.
    #[arg(long)]
    no_build: bool,
}

/// One creation of all pods.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wave {
    first_created: Timestamp,
    last_created: Timestamp,
    last_bound: Timestamp,
}

impl Wave {
    /// From the last pod's creation until all were bound, in seconds.
    pub(crate) fn bound_secs(&self) -> f64 {
        self.secs_until(self.last_bound)
    }

    /// From the last pod's creation until then, in seconds.
    pub(crate) fn secs_until(&self, then: Timestamp) -> f64 {
        secs(self.last_created, then)
    }
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let args = Args::try_parse_from(args)?;
    let table = args.file.clone();
    let table = table.unwrap_or_else(|| workspace::root().join(upstream_world::TABLE));
    let rows = workload::read(&table)?;
    if !args.no_build {
        Build::Release.make()?;
    }
    let options = Options {
        audit_log: true,
        ..Options::default()
    };
    let mut rig = start(args.catalog, options)?;
    let (idle_cpu, idle_rss) = rig.kerf_usage();

    let burst = wave(&mut rig, &rows)?;
    let (cpu, rss) = rig.kerf_usage();
    let launches = launches(&rig)?;
    let last_launch = launches.last().copied().context("no launch")?;
    let nodes = rig.api.list(NODES)?.len();
    rig.kill_kerf();
    clear(&mut rig)?;
    add_spares(&mut rig)?;
    let floor = wave(&mut rig, &rows).context("the floor")?.bound_secs();

    let launch_secs = burst.secs_until(last_launch);
    let bound_max = BOUND_MAX_SECS.max(FLOOR_FACTOR_MAX * floor);
    let result = json!({
        "pods": workload::pods(&rows), "nodes": nodes, "types": if args.catalog { "catalog" } else { "upstream" }, "launches": launches.len(),
        "createSeconds": secs(burst.first_created, burst.last_created),
        "lastPodToLastLaunchSeconds": launch_secs, "lastPodToLastLaunchMax": LAUNCH_MAX_SECS,
        "lastPodToAllBoundSeconds": burst.bound_secs(), "lastPodToAllBoundMax": bound_max,
        "floorSeconds": floor,
        "cpuSeconds": cpu, "cpuMax": CPU_MAX_SECS, "peakRssMib": rss, "peakRssMax": RSS_MAX_MIB,
        "idleCpuSeconds": idle_cpu, "idlePeakRssMib": idle_rss, "profile": Build::Release.as_str(),
    });
    bench::report(args.json, &result);
    let is_met = launch_secs <= LAUNCH_MAX_SECS
        && burst.bound_secs() <= bound_max
        && cpu <= CPU_MAX_SECS
        && rss <= RSS_MAX_MIB;
    if !is_met {
        bail!("a figure is beyond its limit");
    }
    Ok(())
}

/// A control plane, and kerf in one of the two worlds.
fn start(is_catalog: bool, options: Options) -> Result<Rig> {
    if !is_catalog {
        let world = upstream_world::world().to_string();
        let mut rig = Rig::start("burst", Build::Release, options, &world)?;
        upstream_world::start(&mut rig, &pool(), &[])?;
        return Ok(rig);
    }
    let mut rig = Rig::start("burst", Build::Release, options, WORLD)?;
    rig.api.delete("/apis/karpenter.sh/v1/nodepools/default")?;
    manifests::apply(&rig.api, &pool())?;
    rig.start_kerf(&["--batch-idle-duration", "1s"])?;
    rig.until("the pool is ready", PATIENCE, pool_is_ready)?;
    Ok(rig)
}

fn secs(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

/// Nothing is removed again.
fn pool() -> Value {
    upstream_world::pool(
        "burst",
        &json!({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}),
    )
}

pub(crate) fn pool_is_ready(rig: &Rig) -> Result<bool> {
    let pools = rig.api.list("/apis/karpenter.sh/v1/nodepools")?;
    let is_ready = |pool: &Value| {
        let conditions = pool["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
    };
    Ok(pools.len() == 1 && pools.iter().all(is_ready))
}

/// Creates all pods and waits until all are bound.
pub(crate) fn wave(rig: &mut Rig, rows: &[Row]) -> Result<Wave> {
    let objects: Vec<Value> = rows.iter().map(Row::manifest).collect();
    wave_of(rig, &objects, workload::pods(rows))
}

/// As [`wave`], of objects that together want so many pods.
pub(crate) fn wave_of(rig: &mut Rig, objects: &[Value], wanted: usize) -> Result<Wave> {
    let mut audit = Audit::from_now(rig.audit_log())?;
    for object in objects {
        manifests::apply(&rig.api, object)?;
    }
    let (mut created, mut bound) = (Vec::new(), Vec::new());
    let outcome = rig.until("every pod bound", PATIENCE, |_| {
        for (act, at) in audit.news()? {
            match act {
                Act::Created => created.push(at),
                Act::Bound => bound.push(at),
            }
        }
        Ok(bound.len() >= wanted)
    });
    outcome.with_context(|| {
        format!(
            "{} of {wanted} created, {} bound",
            created.len(),
            bound.len()
        )
    })?;
    let missing = "no pod was created";
    Ok(Wave {
        first_created: created.iter().min().copied().context(missing)?,
        last_created: created.iter().max().copied().context(missing)?,
        last_bound: bound.iter().max().copied().context(missing)?,
    })
}

/// Takes all pods away; the nodes stay.
fn clear(rig: &mut Rig) -> Result<()> {
    rig.api.delete(REPLICA_SETS)?;
    rig.until("no pod", PATIENCE, |rig| {
        Ok(rig.api.list(&format!("{PODS}?limit=1"))?.is_empty())
    })
}

/// One more node in each zone, as large as the largest there: kube-scheduler does not put pods where a plan did, so that
/// the last ones would find no room on nodes that the plan had filled.
fn add_spares(rig: &mut Rig) -> Result<()> {
    let mut largest: BTreeMap<String, Value> = BTreeMap::new();
    for node in rig.api.list(NODES)? {
        let zone = node["metadata"]["labels"][ZONE].as_str();
        let known = largest.entry(zone.unwrap_or_default().to_owned());
        let known = known.or_insert_with(|| node.clone());
        if millicores(&node) > millicores(known) {
            *known = node;
        }
    }
    for (zone, node) in &largest {
        rig.api.post(NODES, &spare(zone, node))?;
    }
    let wanted = largest.len();
    rig.until("the spare nodes are ready", PATIENCE, |rig| {
        let nodes = rig.api.list(&format!("{NODES}?labelSelector=spare"))?;
        Ok(nodes.iter().filter(|node| is_schedulable(node)).count() == wanted)
    })
}

fn spare(zone: &str, node: &Value) -> Value {
    let name = format!("spare-{zone}");
    let mut labels = node["metadata"]["labels"].clone();
    labels["kubernetes.io/hostname"] = json!(name);
    labels["spare"] = json!("true");
    let fake = control_plane::FAKE_NODE_ANNOTATION;
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {fake: "fake"}},
        "status": {
            "capacity": node["status"]["capacity"], "allocatable": node["status"]["allocatable"],
            "nodeInfo": node["status"]["nodeInfo"],
        },
    })
}

fn is_schedulable(node: &Value) -> bool {
    let taints = node["spec"]["taints"].as_array();
    taints.is_none_or(Vec::is_empty)
}

fn millicores(node: &Value) -> u64 {
    let cpu = node["status"]["allocatable"]["cpu"]
        .as_str()
        .unwrap_or_default();
    let (number, factor) = cpu.strip_suffix('m').map_or((cpu, 1000), |it| (it, 1));
    number.parse::<u64>().unwrap_or_default() * factor
}

/// When instances were asked for, in order.
pub(crate) fn launches(rig: &Rig) -> Result<Vec<Timestamp>> {
    let calls = rig.ask_sim("/_sim/calls")?;
    let calls = calls.as_array().into_iter().flatten();
    let launches = calls.filter(|it| it["action"] == "RunInstances" && it["outcome"] == "OK");
    let mut at: Vec<Timestamp> = launches
        .filter_map(|it| it["at"].as_str()?.parse().ok())
        .collect();
    at.sort_unstable();
    Ok(at)
}
