//! `bench scheduling`: the pods of upstream Karpenter's own benchmark on its 400 made-up instance types, the same pods
//! read from a file that upstream wrote, or a production trace on the types of the catalog.
//!
//! Only [`schedule`] is timed. `hourly` sums, over the new claims, the cheapest available offering that the claim still
//! permits, as the measuring program of upstream does.

pub(crate) mod catalog;
mod manifest;
mod mix;
mod trace;
pub(crate) mod world;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use jiff::Timestamp;
use kerf_core::plan::PlannedClaim;
use kerf_core::price::Price;
use kerf_core::{Plan, Preferences, Snapshot, WorkBudget, schedule};
use serde_json::{Value, json};

use crate::memory::peak_rss_mib;
use mix::Mix;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many pods to draw.
    #[arg(long, default_value_t = 5000)]
    pods: usize,
    /// How many of upstream's made-up instance types there are.
    #[arg(long, default_value_t = 400)]
    types: u32,
    /// Which of upstream's mixes to draw.
    #[arg(long, value_enum, default_value_t = Mix::Diverse)]
    mix: Mix,
    /// Give each pod its own cpu, memory and one label of its own.
    #[arg(long)]
    distinct: bool,
    /// Seed of the draws.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Take the pods of this v1 List instead (`upstream bench --export` writes one).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["distinct", "trace"])]
    input: Option<PathBuf>,
    /// Take the pods of this trace instead, and the instance types of the catalog.
    #[arg(long, value_name = "CSV", conflicts_with = "distinct")]
    trace: Option<PathBuf>,
    /// The catalog of instance types for `--trace`.
    #[arg(long, value_name = "CSV", default_value = catalog::DEFAULT_PATH)]
    catalog: PathBuf,
    /// Let pods of the trace run on arm64 too.
    #[arg(long)]
    any_arch: bool,
    /// Plan this often and report the fastest: for a machine that others use too.
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let started = Instant::now();
    let snapshot = snapshot(args)?;
    let snapshot_took = started.elapsed();

    let (plan, took) = fastest_plan(&snapshot, args.repeat)?;
    let report = report(&snapshot, &plan, took, snapshot_took)?;
    for group in &plan.unschedulable {
        eprintln!("{} pods: {}", group.pods.len(), group.reason);
    }
    if args.json {
        println!("{report}");
    } else {
        for (name, value) in report.as_object().into_iter().flatten() {
            println!("{name:16} {value}");
        }
    }
    Ok(())
}

fn snapshot(args: &Args) -> Result<Snapshot> {
    if let Some(path) = &args.trace {
        let types = catalog::read(&args.catalog)?;
        let pods = trace::read(path)?;
        return Ok(world::of_catalog(types, pods, args.any_arch));
    }
    let pods = match &args.input {
        Some(path) => manifest::read(path)?,
        None => mix::draw(args.mix, args.pods, args.distinct, args.seed),
    };
    Ok(world::of_upstream(args.types, pods))
}

/// Plans are equal whenever the input is, so that only their time can differ.
fn fastest_plan(snapshot: &Snapshot, repeat: u32) -> Result<(Plan, Duration)> {
    let mut best: Option<(Plan, Duration)> = None;
    for _ in 0..repeat.max(1) {
        let started = Instant::now();
        let plan = schedule(
            snapshot,
            &Preferences::none(),
            WorkBudget::ROUND,
            Timestamp::UNIX_EPOCH,
        );
        let took = started.elapsed();
        let took = match best {
            Some((earlier, fastest)) => {
                ensure!(earlier == plan, "two runs on one input gave two plans");
                took.min(fastest)
            }
            None => took,
        };
        best = Some((plan, took));
    }
    best.ok_or_else(|| anyhow::anyhow!("no run"))
}

fn report(
    snapshot: &Snapshot,
    plan: &Plan,
    took: Duration,
    snapshot_took: Duration,
) -> Result<Value> {
    let on_claims: usize = plan.new_claims.iter().map(|claim| claim.pods.len()).sum();
    let placed = on_claims + plan.placements.len();
    let pods = snapshot.pending_pods.len();
    let hourly: Price = plan.new_claims.iter().map(cheapest).sum();
    let seconds = took.as_secs_f64();
    #[expect(
        clippy::cast_precision_loss,
        reason = "the number of pods has far fewer than 53 bits"
    )]
    let pods_per_second = placed as f64 / seconds;
    Ok(json!({
        "pods": pods,
        "nodes": plan.new_claims.len(),
        "unscheduled": pods.saturating_sub(placed),
        "seconds": seconds,
        "podsPerSecond": pods_per_second.round(),
        "hourly": hourly.per_hour(),
        "peakRssMiB": peak_rss_mib()?,
        "snapshotSeconds": snapshot_took.as_secs_f64(),
        "workUsed": plan.work_used,
        "isPartial": plan.is_partial,
    }))
}

fn cheapest(claim: &PlannedClaim) -> Price {
    claim
        .offerings
        .iter()
        .map(|offering| offering.price)
        .min()
        .unwrap_or(Price::UNKNOWN)
}
