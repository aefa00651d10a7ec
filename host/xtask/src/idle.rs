//! `cargo xtask bench idle`: what a controller costs in which nothing happens, beside a hundred nodes.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Parser;
use control_plane::Options;
use serde_json::json;

use crate::bench::{self, Measured};
use crate::demo::manifests;
use crate::rig::{self, Build, Rig};

const RUN: &str = "idle";
/// Ten pods fill a node of four vCPUs: what is left after the reserves does not hold an eleventh.
const INSTANCE_TYPE: &str = "ecs.g7.xlarge";
const POD_CPU: &str = "370m";
const PODS_PER_NODE: usize = 10;
/// What the issue asks for.
const RSS_MAX_MIB: f64 = 35.0;
const CORE_MAX_PERCENT: f64 = 1.0;
const SET_UP_MAX: Duration = Duration::from_secs(900);
const WORLD: &str = "timing: {visibleAfterMs: 0, startingAfterMs: 0, runningAfterMs: 0}\n";

/// Options of `idle`.
#[derive(Debug, Parser)]
#[command(name = "idle", no_binary_name = true)]
struct Args {
    /// Nodes, each with ten pods.
    #[arg(long, default_value_t = 100)]
    nodes: usize,
    /// Seconds between the last ready node and the window.
    #[arg(long, default_value_t = 60)]
    settle: u64,
    /// Seconds that are measured.
    #[arg(long, default_value_t = 60)]
    window: u64,
    /// Measure a controller that was started beside the nodes, not the one that made them.
    #[arg(long)]
    restart: bool,
    #[command(flatten)]
    measured: Measured,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let args = Args::try_parse_from(args)?;
    let build = args.measured.build()?;
    let mut rig = Rig::start("idle", build, Options::default(), WORLD)?;
    let pods = args.nodes * PODS_PER_NODE;
    manifests::apply(&rig.api, &rig::pool(RUN, INSTANCE_TYPE))?;
    manifests::apply(&rig.api, &rig::deployment(RUN, RUN, pods, POD_CPU))?;
    // kerf starts when all pods are there, so that one plan fills the nodes.
    rig.until("the pods", SET_UP_MAX, |rig| {
        Ok(rig.look()?.pods.len() == pods)
    })?;
    rig.start_leader(&[])?;
    rig.until("every pod on a ready node", SET_UP_MAX, |rig| {
        Ok(crate::crash::tally::is_settled(&rig.look()?, RUN, pods))
    })?;
    if args.restart {
        rig.kill_kerf();
        rig.start_leader(&[])?;
        rig.until("it acts", SET_UP_MAX, |rig| {
            Ok(rig.kerf_log().contains("this process holds the lease"))
        })?;
    }
    bench::pass(Duration::from_secs(args.settle));
    let (cpu_before, _) = rig.kerf_usage();
    let started = Instant::now();
    bench::pass(Duration::from_secs(args.window));
    let seconds = started.elapsed().as_secs_f64();
    let (cpu_after, peak) = rig.kerf_usage();
    let core_percent = (cpu_after - cpu_before) / seconds * 100.0;
    let rss = rig.kerf_rss_mib();
    let nodes = rig.look()?.nodes.len();
    bench::report(
        args.measured.json,
        &json!({
            "nodes": nodes, "pods": pods, "windowSeconds": seconds, "restarted": args.restart,
            "rssMib": rss, "rssMax": RSS_MAX_MIB, "peakRssMib": peak,
            "corePercent": core_percent, "corePercentMax": CORE_MAX_PERCENT, "profile": build.as_str(),
        }),
    );
    if build == Build::Release && (rss > RSS_MAX_MIB || core_percent > CORE_MAX_PERCENT) {
        bail!(
            "an idle controller costs more than {RSS_MAX_MIB} MiB or {CORE_MAX_PERCENT} % of a core"
        );
    }
    Ok(())
}
