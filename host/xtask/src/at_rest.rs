//! `cargo xtask bench at-rest`: how often a controller in which nothing happens calls the cloud, beside a thousand instances.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Parser;
use control_plane::Options;
use serde_json::json;

use crate::bench::{self, Measured};
use crate::crash::tally;
use crate::demo::manifests;
use crate::rig::{self, Rig};

const RUN: &str = "at-rest";
const INSTANCE_TYPE: &str = "ecs.g7.large";
/// More than half of what the type has: one pod per node.
const POD_CPU: &str = "1100m";
const LISTING: &str = "DescribeInstances";
/// What the issue asks for.
const CALLS_MAX: f64 = 12.0;
const SET_UP_MAX: Duration = Duration::from_secs(1500);
const WORLD: &str = "timing: {visibleAfterMs: 0, startingAfterMs: 0, runningAfterMs: 0}\n";

/// Options of `at-rest`.
#[derive(Debug, Parser)]
#[command(name = "at-rest", no_binary_name = true)]
struct Args {
    /// Instances, each with a node and a pod.
    #[arg(long, default_value_t = 1000)]
    instances: usize,
    /// Seconds between the last bound pod and the window.
    #[arg(long, default_value_t = 60)]
    settle: u64,
    /// Seconds that are counted: some rounds of everything that happens every two minutes.
    #[arg(long, default_value_t = 360)]
    window: u64,
    #[command(flatten)]
    measured: Measured,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let args = Args::try_parse_from(args)?;
    let build = args.measured.build()?;
    let mut rig = Rig::start(RUN, build, Options::default(), WORLD)?;
    manifests::apply(&rig.api, &rig::pool(RUN, INSTANCE_TYPE))?;
    manifests::apply(
        &rig.api,
        &rig::deployment(RUN, RUN, args.instances, POD_CPU),
    )?;
    rig.until("the pods", SET_UP_MAX, |rig| {
        Ok(rig.look()?.pods.len() == args.instances)
    })?;
    rig.start_leader(&[])?;
    rig.until("every pod on a ready node", SET_UP_MAX, |rig| {
        Ok(tally::is_settled(&rig.look()?, RUN, args.instances))
    })?;
    let launching = calls(&rig)?;
    bench::pass(Duration::from_secs(args.settle));
    let before = calls(&rig)?;
    let started = Instant::now();
    bench::pass(Duration::from_secs(args.window));
    let minutes = started.elapsed().as_secs_f64() / 60.0;
    let after = calls(&rig)?;
    let per_minute: BTreeMap<&String, f64> = after
        .iter()
        .map(|(action, count)| (action, count - before.get(action).unwrap_or(&0.0)))
        .filter(|(_, count)| *count > 0.0)
        .map(|(action, count)| (action, count / minutes))
        .collect();
    let all: f64 = per_minute.values().sum();
    let listings = per_minute
        .get(&LISTING.to_owned())
        .copied()
        .unwrap_or_default();
    let world = rig.look()?;
    bench::report(
        args.measured.json,
        &json!({
            "instances": tally::alive(&world.instances).count(), "windowMinutes": minutes,
            "perMinute": per_minute, "describeInstancesPerMinute": listings,
            "othersPerMinute": all - listings, "callsMax": CALLS_MAX,
            "launchCalls": launching.get("RunInstances"), "profile": build.as_str(),
        }),
    );
    if listings > CALLS_MAX || all - listings > CALLS_MAX {
        bail!("a controller at rest makes more than {CALLS_MAX} calls a minute");
    }
    Ok(())
}

/// Calls of each action so far.
fn calls(rig: &Rig) -> Result<BTreeMap<String, f64>> {
    let state = rig.ask_sim("/_sim/state")?;
    let counts = state["calls"].as_object().into_iter().flatten();
    let total = |count: &serde_json::Value| count["total"].as_f64().unwrap_or_default();
    Ok(counts
        .map(|(action, count)| (action.clone(), total(count)))
        .collect())
}
