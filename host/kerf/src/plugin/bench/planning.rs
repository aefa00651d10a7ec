//! What policies add to planning: the same manifests planned without and with them, by the controller's own rounds.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use clap::Parser;
use kerf_controllers::provision::rounds::plan_with;
use kerf_core::schedule::Homes;
use kerf_policy::PolicyRun;
use serde_json::json;

use super::millis;
use crate::plugin::Outcome;
use crate::plugin::args::Bench;
use crate::simulate::args::Simulate;
use crate::simulate::complaint::Complaint;
use crate::work::Work;

/// The fastest of these counts: a machine that others use only ever adds.
const REPEATS: usize = 5;
/// What policies may add: this part of planning without them, in percent, or this much for each question that is new.
const ADDED_PERCENT_MAX: f64 = 10.0;
const ADDED_MILLIS_MAX: f64 = 0.4;

/// The arguments of a simulation, which says what is read and with which policies.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Order {
    #[command(flatten)]
    simulate: Simulate,
}

/// How a plan went.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    elapsed: Duration,
    pods: usize,
    claims: usize,
    calls: usize,
    memo_hits: usize,
    in_policies: Duration,
}

pub(super) fn run(args: &Bench) -> Result<Outcome> {
    let without = fastest(&order(args, false)?)?;
    let with = fastest(&order(args, true)?)?;
    let added = millis(with.elapsed) - millis(without.elapsed);
    let distinct = f64::from(u32::try_from(with.calls).unwrap_or(u32::MAX));
    let limit =
        (millis(without.elapsed) * ADDED_PERCENT_MAX / 100.0).max(ADDED_MILLIS_MAX * distinct);
    let is_good = added <= limit;
    Ok(Outcome {
        text: format!(
            "{} pods: {:.1} ms without policies ({} claims), {:.1} ms with them ({} claims)\nadded {added:.1} ms, the most \
             is {limit:.1} ms; {} calls took {:.1} ms, {} questions were answered from memory\n",
            with.pods,
            millis(without.elapsed),
            without.claims,
            millis(with.elapsed),
            with.claims,
            with.calls,
            millis(with.in_policies),
            with.memo_hits,
        ),
        json: json!({
            "pods": with.pods, "claims": with.claims, "claimsWithout": without.claims,
            "withoutMillis": millis(without.elapsed), "withMillis": millis(with.elapsed),
            "addedMillis": added, "addedMillisMax": limit, "calls": with.calls, "memoHits": with.memo_hits,
            "policyMillis": millis(with.in_policies), "isGood": is_good,
        }),
        is_good,
    })
}

fn order(args: &Bench, has_policies: bool) -> Result<Order> {
    let text = |path: &Path| path.display().to_string();
    let mut words = vec!["-f".to_owned()];
    words.extend(args.files.iter().map(|path| text(path)));
    if has_policies {
        let components = std::iter::once(&args.what.one.component).chain(&args.and);
        for component in components {
            words.extend(["--policy".to_owned(), text(component)]);
        }
        let first = args.what.config.clone().unwrap_or_else(|| "{}".to_owned());
        for config in std::iter::once(&first).chain(&args.and_config) {
            words.extend(["--policy-config".to_owned(), config.clone()]);
        }
    }
    Ok(Order::try_parse_from(words)?)
}

fn fastest(order: &Order) -> Result<Run> {
    let mut fastest: Option<Run> = None;
    for _ in 0..REPEATS {
        // A new world each time, so that nothing is remembered.
        let run = plan(order)?;
        if fastest.is_none_or(|it| run.elapsed < it.elapsed) {
            fastest = Some(run);
        }
    }
    fastest.ok_or_else(|| anyhow!("nothing was planned"))
}

fn plan(order: &Order) -> Result<Run> {
    let work = Work::begin();
    let world = crate::simulate::prepared(&order.simulate.order(), &work);
    work.end();
    let world = world.map_err(|complaints| anyhow!(told(&complaints)))?;
    let mut run = Run {
        pods: world.snapshot.pending_pods.len(),
        ..Run::default()
    };
    let mut hear = |_: &str, it: &PolicyRun| {
        if it.is_from_memo {
            run.memo_hits += 1;
        } else {
            run.calls += 1;
            run.in_policies += it.elapsed;
        }
    };
    let homes = Homes::new();
    let now = kerf_controllers::clock::now();
    let started = Instant::now();
    let plan = plan_with(&world.question(&world.snapshot, &homes, now), &mut hear);
    run.elapsed = started.elapsed();
    run.claims = plan.new_claims.len();
    Ok(run)
}

fn told(complaints: &[Complaint]) -> String {
    let lines: Vec<String> = complaints.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
