//! `cargo xtask bench impossible`: a tenant who asks for what no node can be; how soon do others get theirs?
//!
//! Thousands of pods wait for ever: half want a label that nothing has, half more cores than any machine. Each of their
//! ReplicaSets is of its own shape, so that one answer does not serve all. Then somebody else creates a hundred pods.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use control_plane::Options;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::audit::{Act, Audit};
use crate::demo::manifests;
use crate::rig::{Build, Rig};
use crate::workload::Row;
use crate::{bench, burst, upstream_world};

/// What the issue asks for.
const LAUNCH_MAX_SECS: f64 = 3.0;
const REAL: usize = 100;
/// Pods of one shape; a namespace of a careless tenant looks like that.
const PER_SHAPE: usize = 50;
const PATIENCE: Duration = Duration::from_secs(600);

/// Options of `impossible`.
#[derive(Debug, Parser)]
#[command(name = "impossible", no_binary_name = true)]
struct Args {
    /// How many pods wait for ever.
    #[arg(long, default_value_t = 10_000)]
    pods: usize,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Start what is built already.
    #[arg(long)]
    no_build: bool,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let args = Args::try_parse_from(args)?;
    if !args.no_build {
        Build::Release.make()?;
    }
    let options = Options {
        audit_log: true,
        ..Options::default()
    };
    let world = upstream_world::world().to_string();
    let mut rig = Rig::start("impossible", Build::Release, options, &world)?;
    upstream_world::start(&mut rig, &pool(), &[])?;
    crowd(&mut rig, args.pods)?;
    let (cpu_before, _) = rig.kerf_usage();
    let launches_before = burst::launches(&rig)?.len();

    let real = burst::wave(&mut rig, &[real()])?;

    let (cpu, rss) = rig.kerf_usage();
    let launches = burst::launches(&rig)?;
    let last_launch = launches.last().copied().context("no launch")?;
    let launch_secs = real.secs_until(last_launch);
    let result = json!({
        "podsImpossible": args.pods, "podsReal": REAL, "launchesBefore": launches_before, "launches": launches.len(),
        "lastPodToLastLaunchSeconds": launch_secs, "lastPodToLastLaunchMax": LAUNCH_MAX_SECS,
        "lastPodToAllBoundSeconds": real.bound_secs(),
        "cpuSecondsCrowd": cpu_before, "cpuSecondsReal": cpu - cpu_before, "peakRssMib": rss,
        "profile": Build::Release.as_str(),
    });
    bench::report(args.json, &result);
    if launches_before > 0 {
        bail!("{launches_before} instances were launched for pods that no node can take");
    }
    if launch_secs > LAUNCH_MAX_SECS {
        bail!("a figure is beyond its limit");
    }
    Ok(())
}

fn pool() -> Value {
    let never = json!({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"});
    upstream_world::pool("shared", &never)
}

/// Creates the pods that no node can take, and waits until they are all there.
fn crowd(rig: &mut Rig, wanted: usize) -> Result<()> {
    let mut audit = Audit::from_now(rig.audit_log())?;
    for nth in 0..wanted.div_ceil(PER_SHAPE) {
        manifests::apply(&rig.api, &impossible(nth))?;
    }
    let mut created: Vec<Timestamp> = Vec::new();
    rig.until("every pod created", PATIENCE, |_| {
        let news = audit.news()?.into_iter();
        created.extend(
            news.filter(|(act, _)| *act == Act::Created)
                .map(|(_, at)| at),
        );
        Ok(created.len() >= wanted)
    })
}

fn impossible(nth: usize) -> Value {
    let shape = u64::try_from(nth).unwrap_or_default();
    let is_giant = nth.is_multiple_of(2);
    let row = Row {
        name: format!("never-{nth:04}"),
        cpu_milli: if is_giant {
            1_000_000 + shape
        } else {
            100 + shape
        },
        memory_mib: 64 + shape,
        app_label: format!("never-{nth:04}"),
        zone_spread: nth.is_multiple_of(3),
        replicas: PER_SHAPE,
        replicas_after: PER_SHAPE,
    };
    let mut manifest = row.manifest();
    if !is_giant {
        let selector = json!({format!("example.com/tenant-{nth}"): "nowhere"});
        manifest["spec"]["template"]["spec"]["nodeSelector"] = selector;
    }
    manifest
}

fn real() -> Row {
    Row {
        name: "real".to_owned(),
        cpu_milli: 500,
        memory_mib: 1024,
        app_label: "real".to_owned(),
        zone_spread: false,
        replicas: REAL,
        replicas_after: REAL,
    }
}
