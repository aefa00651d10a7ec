//! `bench consolidation`: a fleet that is about a third full, as upstream's measuring program exports or as we draw it,
//! consolidated once or until nothing more is decided.
//!
//! Only [`decide`] is timed. Between passes the commands are carried out on the snapshot at once, and every promise is
//! checked: a pod without its room ends the bench with an error.

mod carry_out;
mod fixtures;
mod fleet;
mod reference;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use jiff::Timestamp;
use kerf_core::disruption::{DisruptionSettings, KeptReason, decide};
use kerf_core::price::Price;
use kerf_core::{Preferences, Snapshot};
use serde_json::{Value, json};

use crate::memory::{cpu_seconds, peak_rss_mib};

/// More passes than any fleet here needs: a search that does not end is an error.
const PASSES_MAX: u32 = 200;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Take the fleet that `upstream consolidate --export` wrote.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// How many nodes to draw where no file is given.
    #[arg(long, default_value_t = 500)]
    nodes: usize,
    /// How many pods are on each drawn node.
    #[arg(long, default_value_t = 20)]
    pods_per_node: usize,
    /// Seed of the draws.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many of upstream's made-up instance types there are.
    #[arg(long, default_value_t = 400)]
    types: u32,
    /// Carry out what is decided and decide again, until nothing is.
    #[arg(long)]
    to_fixed_point: bool,
    /// Also run upstream's search, written down plainly, from the same start.
    #[arg(long)]
    reference: bool,
    /// Consolidate four small fleets of public reports and compare with what was checked by hand.
    #[arg(long, conflicts_with_all = ["input", "reference"])]
    fixtures: bool,
    /// Say why nodes stay, by kind of reason.
    #[arg(long)]
    why: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let report = if args.fixtures {
        fixtures::run()?
    } else {
        let snapshot = match &args.input {
            Some(path) => fleet::read(path, args.types)?,
            None => fleet::draw(args.nodes, args.pods_per_node, args.seed, args.types)?,
        };
        consolidate(args, snapshot)?
    };
    if args.json {
        println!("{report}");
    } else {
        for (name, value) in report.as_object().into_iter().flatten() {
            println!("{name:20} {value}");
        }
    }
    Ok(())
}

/// What several passes came to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) passes: u32,
    pub(crate) commands: usize,
    pub(crate) removed: usize,
    pub(crate) made: usize,
    pub(crate) pods_moved: usize,
    pub(crate) took: Duration,
    pub(crate) cpu_seconds: f64,
    pub(crate) longest_cpu_seconds: f64,
    pub(crate) longest: Duration,
    pub(crate) is_partial: bool,
}

/// The time of all passes: nothing that is waited for has to pass between them.
pub(crate) fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(24 * 365)
}

/// Decides and carries out until nothing is decided, or once.
pub(crate) fn settle(snapshot: &mut Snapshot, is_repeated: bool, why: bool) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    loop {
        let started = Instant::now();
        let cpu = cpu_seconds()?;
        let settings = DisruptionSettings::default();
        let decision = decide(snapshot, &Preferences::none(), &settings, now());
        let took = started.elapsed();
        let cpu = cpu_seconds()? - cpu;
        outcome.cpu_seconds += cpu;
        outcome.longest_cpu_seconds = outcome.longest_cpu_seconds.max(cpu);
        outcome.passes += 1;
        outcome.took += took;
        outcome.longest = outcome.longest.max(took);
        outcome.is_partial |= decision.is_partial;
        outcome.commands += decision.commands.len();
        if why {
            say_why(
                &decision
                    .kept
                    .iter()
                    .map(|it| &it.reason)
                    .collect::<Vec<_>>(),
            );
        }
        for command in &decision.commands {
            outcome.removed += command.candidates.len();
            outcome.made += command.replacements.len();
            outcome.pods_moved += command.promises.len();
        }
        carry_out::all(snapshot, &decision.commands, outcome.passes)?;
        if why {
            eprintln!(
                "pass {}: {} commands, hourly {} on {} nodes, {:.2} s ({cpu:.2} on a core), {} units of work",
                outcome.passes,
                decision.commands.len(),
                fleet::hourly(snapshot),
                snapshot.nodes.len(),
                took.as_secs_f64(),
                decision.work_used
            );
        }
        if !is_repeated || decision.commands.is_empty() {
            return Ok(outcome);
        }
        ensure!(
            outcome.passes < PASSES_MAX,
            "no fixed point after {PASSES_MAX} passes"
        );
    }
}

fn say_why(reasons: &[&KeptReason]) {
    let mut counts = std::collections::BTreeMap::new();
    for reason in reasons {
        let name = format!("{reason:?}");
        let name = name.split([' ', '(']).next().unwrap_or_default().to_owned();
        *counts.entry(name).or_insert(0) += 1;
    }
    eprintln!("kept: {counts:?}");
}

fn consolidate(args: &Args, mut snapshot: Snapshot) -> Result<Value> {
    let start = args.reference.then(|| snapshot.clone());
    let before = fleet::hourly(&snapshot);
    let candidates = snapshot.nodes.len();
    let outcome = settle(&mut snapshot, args.to_fixed_point, args.why)?;
    let after = fleet::hourly(&snapshot);
    let peak = peak_rss_mib()?;
    let reference = start.map(reference::settle).transpose()?;
    let saving = Price::from_micros(before.micros().saturating_sub(after.micros()));
    Ok(json!({
        "candidates": candidates,
        "seconds": outcome.took.as_secs_f64(),
        "cpuSeconds": outcome.cpu_seconds,
        "longestPassSeconds": outcome.longest.as_secs_f64(),
        "longestPassCpuSeconds": outcome.longest_cpu_seconds,
        "passes": outcome.passes,
        "commands": outcome.commands,
        "nodesRemoved": outcome.removed,
        "nodesMade": outcome.made,
        "podsMoved": outcome.pods_moved,
        "savingHourly": saving.per_hour(),
        "hourlyBefore": before.per_hour(),
        "hourlyAfter": after.per_hour(),
        "nodesAfter": snapshot.nodes.len(),
        "peakRssMiB": peak,
        "isPartial": outcome.is_partial,
        "reference": reference,
    }))
}
