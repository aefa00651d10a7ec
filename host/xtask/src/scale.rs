//! `cargo xtask bench scale`: a large fleet that works, with three policies; what does the controller cost, and how fast is it?
//!
//! The fleet is made by kerf itself, a wave of pods at a time. Then pods come and go, a batch after the other, and in the end
//! a thousand come at once. The floor is measured in the same run: the same thousand once more, onto the nodes that are there
//! then, without kerf. `--simulated` measures index and planner without an API server, in a fleet that no machine here could
//! hold.

mod loops;
mod writes;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use control_plane::Options;
use serde_json::{Value, json};

use crate::bench::{self, Measured};
use crate::burst;
use crate::demo::manifests;
use crate::rig::{self, NAMESPACE, Rig};
use crate::workload::Row;
use crate::{plugins, process, workspace};
use loops::Loops;
use writes::Told;

const RUN: &str = "scale";
const WORLD: &str = "timing: {visibleAfterMs: 0, startingAfterMs: 0, runningAfterMs: 0}\n";
/// Machines of four cores, which ten pods fill; of any family, so that policies have something to choose from.
const CORES: &str = "4";
const CORES_FOR_PODS_MILLI: usize = 3_700;
/// What the control plane of this machine takes in at once without falling behind.
const WAVE_PODS: usize = 2_000;
/// Pods of one batch while pods come and go; they need two or three nodes.
const BATCH_PODS: usize = 25;
/// A batch goes when so many younger ones have come.
const BATCHES_ALIVE: usize = 4;
/// Its log says when a batch was closed and when each claim was written.
const LOG: &str = "info,kerf_controllers::provision=debug";
/// The label by which a batch tells its nodes from others.
const BATCH: &str = "example.com/batch";
const PATIENCE: Duration = Duration::from_secs(300);
/// What the start and the last wave left behind is gone after that.
const REST: Duration = Duration::from_secs(60);
const CLASS: &str = "/apis/karpenter.alibabacloud.com/v1alpha1/ecsnodeclasses/default";
const NODES: &str = "/api/v1/nodes";
const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";

/// All of them are asked about every launch or every catalog.
const POLICIES: [(&str, &str); 3] = [
    ("prefer-family", "InstanceSelection"),
    ("family-discount", "PricingPreference"),
    ("price-per-pod", "InstanceSelection"),
];

/// What the issue asks for.
const RSS_MAX_MIB: f64 = 60.0;
const LOOP_P99_MAX_SECS: f64 = 0.2;
const BOUND_MAX_SECS: f64 = 15.0;
const FLOOR_FACTOR_MAX: f64 = 1.2;

/// Options of `scale`.
#[derive(Debug, Parser)]
#[command(name = "scale", no_binary_name = true)]
struct Args {
    /// Nodes of the fleet.
    #[arg(long, default_value_t = 2_000)]
    nodes: usize,
    /// Pods that fill them.
    #[arg(long, default_value_t = 20_000)]
    pods: usize,
    /// Pods that come at once in the end.
    #[arg(long, default_value_t = 1_000)]
    more: usize,
    /// Batches that come and go.
    #[arg(long, default_value_t = 100)]
    batches: usize,
    /// Index and planner only, without an API server; a program of its own does that.
    #[arg(long)]
    simulated: bool,
    #[command(flatten)]
    measured: Measured,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let given = args;
    let args = Args::try_parse_from(args)?;
    if args.simulated {
        let rest: Vec<String> = given
            .iter()
            .filter(|it| *it != "--simulated")
            .cloned()
            .collect();
        return simulate(&rest);
    }
    let build = args.measured.build()?;
    plugins::build()?;
    let options = Options {
        audit_log: true,
        ..Options::default()
    };
    let mut rig = Rig::start(RUN, build, options, WORLD)?;
    start(&mut rig)?;

    let figures = Figures::measure(&mut rig, &args)?;
    let result = figures.to_json(&args, build.as_str());
    bench::report(args.measured.json, &result);
    if !figures.are_met() {
        bail!("a figure is beyond its limit");
    }
    Ok(())
}

/// A bench of the index, because the program that measures decisions does without the types of Kubernetes.
fn simulate(args: &[String]) -> Result<()> {
    let mut bench = process::cargo();
    bench.args([
        "bench",
        "--quiet",
        "--package",
        "kerf-state",
        "--bench",
        RUN,
        "--",
    ]);
    process::run(bench.args(args))
}

/// What is measured on the way.
#[derive(Debug, Default)]
struct Figures {
    nodes: usize,
    claims: usize,
    /// MiB after the fleet was made, and after the last wave.
    rss: [f64; 2],
    /// MiB at most until the fleet was made, and until the end.
    peaks: [u64; 2],
    /// Seconds of processor until the fleet was made, and until the end.
    cpu: [f64; 2],
    filling: Loops,
    churn: Loops,
    /// Of those, the turns of the last wave.
    large: Loops,
    /// Seconds until the last wave was bound, with kerf and on nodes that are there.
    more: f64,
    floor: f64,
    told: Told,
}

impl Figures {
    fn measure(rig: &mut Rig, args: &Args) -> Result<Self> {
        fill(rig, args)?;
        await_fleet(rig)?;
        bench::pass(REST);
        let filled = rig.kerf_usage();
        let rss_rest = rig.kerf_rss_mib();
        let filling = Loops::read(&rig.kerf_log());
        let fleet = rig.api.list(CLAIMS)?.len();
        come_and_go(rig, args)?;
        await_gone(rig, args, fleet)?;
        let before = Loops::read(&rig.kerf_log());
        let more = burst::wave(rig, &[row("more", args.more, args)])?.bound_secs();
        let all = Loops::read(&rig.kerf_log());
        let large = all.clone().after(&before);
        let churn = all.after(&filling);
        if churn.len() < args.batches {
            bail!(
                "{} turns made claims, of {} batches",
                churn.len(),
                args.batches
            );
        }
        let ended = rig.kerf_usage();
        let rss = [rss_rest, rig.kerf_rss_mib()];
        let (nodes, claims) = (rig.api.list(NODES)?.len(), rig.api.list(CLAIMS)?.len());
        rig.kill_kerf();
        Ok(Self {
            nodes,
            claims,
            rss,
            peaks: [filled.1, ended.1],
            cpu: [filled.0, ended.0],
            filling,
            churn,
            large,
            more,
            floor: floor(rig, args)?,
            told: writes::count(&rig.audit_log())?,
        })
    }

    fn rss_most(&self) -> f64 {
        self.rss[0].max(self.rss[1])
    }

    fn bound_max(&self) -> f64 {
        BOUND_MAX_SECS.max(FLOOR_FACTOR_MAX * self.floor)
    }

    fn are_met(&self) -> bool {
        self.rss_most() <= RSS_MAX_MIB
            && self.churn.percentile(99) <= LOOP_P99_MAX_SECS
            && self.more <= self.bound_max()
    }

    fn to_json(&self, args: &Args, profile: &str) -> Value {
        json!({
            "nodes": self.nodes, "nodeClaims": self.claims, "pods": args.pods, "policies": POLICIES.len(),
            "rssMib": self.rss_most(), "rssMax": RSS_MAX_MIB, "rssAtRestMib": self.rss[0], "rssAfterScaleOutMib": self.rss[1],
            "peakRssFillingMib": self.peaks[0], "peakRssMib": self.peaks[1],
            "loops": self.churn.len(), "loopP50Seconds": self.churn.percentile(50),
            "loopP99Seconds": self.churn.percentile(99), "loopP99Max": LOOP_P99_MAX_SECS,
            "loopsOfMore": self.large.len(), "loopMaxOfMoreSeconds": self.large.percentile(100),
            "loopsFilling": self.filling.len(), "loopP50FillingSeconds": self.filling.percentile(50),
            "loopP99FillingSeconds": self.filling.percentile(99),
            "podsMore": args.more, "moreBoundSeconds": self.more, "moreBoundMax": self.bound_max(), "floorSeconds": self.floor,
            "cpuFillingSeconds": self.cpu[0], "cpuSeconds": self.cpu[1],
            "podsCreated": self.told.pods, "apiWrites": self.told.writes, "apiWritesPerPod": self.told.per_pod(),
            "apiWritesOf": self.told.of, "profile": profile,
        })
    }
}

/// Policies, the pool and kerf.
fn start(rig: &mut Rig) -> Result<()> {
    rig.api.delete("/apis/karpenter.sh/v1/nodepools/default")?;
    let policies = POLICIES.map(|(name, hook)| declare(rig, name, hook));
    let policies = policies.into_iter().collect::<Result<Vec<Value>>>()?;
    let mut spec = rig.api.get(CLASS)?["spec"].clone();
    spec["policies"] = json!(policies);
    let class = json!({
        "apiVersion": "karpenter.alibabacloud.com/v1alpha1", "kind": "ECSNodeClass",
        "metadata": {"name": "default"}, "spec": spec,
    });
    manifests::apply(&rig.api, &class)?;
    manifests::apply(&rig.api, &pool())?;
    rig.start_kerf(&["--log-level", LOG])?;
    rig.until("every policy serves", PATIENCE, |rig| {
        let class = rig.api.get(CLASS)?;
        let of_class = class["status"]["policies"].as_array();
        let served = of_class.into_iter().flatten();
        let serving = served.filter(|it| it["digest"].is_string()).count();
        Ok(serving == POLICIES.len() && burst::pool_is_ready(rig)?)
    })
}

/// Publishes a policy and says how a class refers to it.
fn declare(rig: &Rig, name: &str, hook: &str) -> Result<Value> {
    let component = workspace::root().join("plugins/target/components/rust");
    let component = component.join(format!("{name}.wasm")).display().to_string();
    let map = format!("scale-{name}");
    rig.run_kerf(&[
        "plugin",
        "publish",
        &component,
        "--configmap",
        &map,
        "--namespace",
        NAMESPACE,
    ])?;
    Ok(json!({"name": name, "hook": hook, "source": {"configMap": {"name": map}}}))
}

/// Empty nodes go soon; nothing else moves, so that the fleet keeps its size.
fn pool() -> Value {
    let mut pool = rig::pool(RUN, "");
    pool["spec"]["template"]["spec"]["requirements"] = json!([
        {"key": "karpenter.alibabacloud.com/instance-cpu", "operator": "In", "values": [CORES]},
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": BATCH, "operator": "Exists"},
    ]);
    pool["spec"]["disruption"] =
        json!({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "5s"});
    pool
}

/// Pods of which so many fill a node as there are for each in the fleet.
fn row(name: &str, replicas: usize, args: &Args) -> Row {
    let per_node = args.pods.div_ceil(args.nodes.max(1)).max(1);
    Row {
        name: name.to_owned(),
        cpu_milli: u64::try_from(CORES_FOR_PODS_MILLI / per_node).unwrap_or(1),
        memory_mib: 100,
        app_label: name.to_owned(),
        zone_spread: false,
        replicas,
        replicas_after: replicas,
    }
}

fn fill(rig: &mut Rig, args: &Args) -> Result<()> {
    let mut left = args.pods;
    let mut nth = 0;
    while left > 0 {
        let pods = left.min(WAVE_PODS);
        let wave = burst::wave(rig, &[row(&format!("fleet-{nth:02}"), pods, args)])?;
        left -= pods;
        nth += 1;
        eprintln!(
            "{left} pods are left; the last wave was bound after {:.1} s",
            wave.bound_secs()
        );
    }
    Ok(())
}

/// Every claim has its node, and every node takes pods.
fn await_fleet(rig: &mut Rig) -> Result<()> {
    rig.until("every claim initialized", PATIENCE, |rig| {
        let claims = rig.api.list(CLAIMS)?;
        let is_up = |claim: &Value| {
            let conditions = claim["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|it| it["type"] == "Initialized" && it["status"] == "True")
        };
        Ok(claims.iter().all(is_up))
    })
}

/// Each batch wants nodes of its own: those that another left behind would take it, and nothing would have to be launched.
fn come_and_go(rig: &mut Rig, args: &Args) -> Result<()> {
    for nth in 0..args.batches {
        let name = format!("batch-{nth:03}");
        let mut batch = row(&name, BATCH_PODS, args).manifest();
        batch["spec"]["template"]["spec"]["nodeSelector"] = json!({(BATCH): name});
        burst::wave_of(rig, &[batch], BATCH_PODS)?;
        if let Some(old) = nth.checked_sub(BATCHES_ALIVE) {
            delete(rig, &format!("batch-{old:03}"))?;
        }
    }
    Ok(())
}

/// The last batches have gone, and the nodes of all of them: the thousand pods that come then need nodes of their own.
fn await_gone(rig: &mut Rig, args: &Args, fleet: usize) -> Result<()> {
    for nth in args.batches.saturating_sub(BATCHES_ALIVE)..args.batches {
        delete(rig, &format!("batch-{nth:03}"))?;
    }
    rig.until("the nodes of the batches gone", PATIENCE, |rig| {
        Ok(rig.api.list(CLAIMS)?.len() <= fleet)
    })
}

fn delete(rig: &Rig, name: &str) -> Result<()> {
    let path = format!("/apis/apps/v1/namespaces/default/replicasets/{name}");
    rig.api.delete(&path).map(drop)
}

/// How soon the last wave is bound when its nodes are there already.
fn floor(rig: &mut Rig, args: &Args) -> Result<f64> {
    delete(rig, "more")?;
    let pods = "/api/v1/namespaces/default/pods?labelSelector=app%3Dmore&limit=1";
    rig.until("the last wave gone", PATIENCE, |rig| {
        Ok(rig.api.list(pods)?.is_empty())
    })?;
    let wave = burst::wave(rig, &[row("floor", args.more, args)]);
    Ok(wave.context("the floor")?.bound_secs())
}
