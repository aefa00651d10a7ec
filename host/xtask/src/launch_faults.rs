//! `cargo xtask bench launch-faults`: hundreds of one-node pods while the cloud refuses half of all calls, loses the answer
//! of a tenth and runs out of stock at random. In the end every pod is bound, each NodeClaim has one instance and each
//! instance one NodeClaim.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use control_plane::Options;
use serde_json::{Value, json};

use crate::bench::Measured;
use crate::crash;
use crate::crash::tally::{self, Harm, Sight};
use crate::demo::manifests;
use crate::rig::{self, Rig};

/// Two of four CPUs' worth, so that stock-outs of one leave others; a pod takes more than half of each.
const TYPES: [&str; 4] = [
    "ecs.g7.large",
    "ecs.c7.large",
    "ecs.r7.large",
    "ecs.g6.large",
];
const POD_CPU: &str = "1100m";
const WORLD: &str = "timing: {visibleAfterMs: 300, startingAfterMs: 300, runningAfterMs: 1000}\n";
/// Half of the calls throttled, so that each takes a few tries.
const PATIENCE: Duration = Duration::from_secs(1200);
/// What nobody claims goes within a minute, so that a leak shows as one.
const COLLECTION: [&str; 4] = [
    "--garbage-collection-poll-duration",
    "10s",
    "--orphan-grace-duration",
    "60s",
];

/// Three times what that grace and a few looks take.
const COLLECTED_WITHIN: Duration = Duration::from_secs(180);

/// Options of `launch-faults`.
#[derive(Debug, Parser)]
#[command(name = "launch-faults", no_binary_name = true)]
struct Args {
    /// The first and the last seed of the weather, as 1-20.
    #[arg(long, default_value = "1-20", value_parser = seeds)]
    seeds: (u64, u64),
    /// Pods, each for a node of its own.
    #[arg(long, default_value_t = 300)]
    pods: usize,
    #[command(flatten)]
    measured: Measured,
}

fn seeds(text: &str) -> Result<(u64, u64), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |it: &str| it.parse::<u64>().map_err(|error| format!("{it}: {error}"));
    let (first, last) = (number(first)?, number(last)?);
    match first <= last {
        true => Ok((first, last)),
        false => Err(format!("{text}: the first is after the last")),
    }
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let args = Args::try_parse_from(args)?;
    let build = args.measured.build()?;
    let mut rig = Rig::start("launch-faults", build, Options::default(), WORLD)?;
    let mut harm = Harm::default();
    let (first, last) = args.seeds;
    for seed in first..=last {
        let (found, shown) =
            trial(&mut rig, seed, args.pods).with_context(|| format!("seed {seed}"))?;
        println!("{shown}");
        harm.add(&found);
    }
    rig.start_kerf(&COLLECTION)?;
    harm.leaked += crash::left_over(&mut rig, COLLECTED_WITHIN)?;
    println!(
        "{}",
        json!({
            "seeds": last - first + 1, "pods": args.pods, "profile": build.as_str(),
            "double": harm.double, "leaked": harm.leaked, "lost": harm.lost,
        })
    );
    if harm != Harm::default() {
        bail!("faults did harm");
    }
    Ok(())
}

fn trial(rig: &mut Rig, seed: u64, pods: usize) -> Result<(Harm, Value)> {
    let started = Instant::now();
    let run = format!("faults-{seed}");
    let calls = launches(rig)?;
    rig.tell_sim(
        "PUT",
        "/_sim/weather",
        &json!({"seed": seed, "throttlePercent": 50, "cutPercent": 10, "noStockPercent": 20}),
    )?;
    manifests::apply(&rig.api, &pool(&run))?;
    manifests::apply(&rig.api, &rig::deployment(&run, &run, pods, POD_CPU))?;
    rig.start_kerf(&COLLECTION)?;
    let is_done = |rig: &Rig| {
        let world = rig.look()?;
        Ok(tally::is_settled(&world, &run, pods) && Harm::of(&world, &run, pods).leaked == 0)
    };
    let ended = rig.until("every pod bound and nothing left over", PATIENCE, is_done);
    rig.tell_sim("PUT", "/_sim/weather", &json!({}))?;
    rig.kill_kerf();
    let world = rig.look()?;
    let harm = Harm::of(&world, &run, pods);
    if harm == Harm::default() {
        // No harm that we count, and yet no end: that must not pass for one.
        ended?;
    }
    let shown = json!({
        "seed": seed, "seconds": started.elapsed().as_secs_f64(), "launchCalls": launches(rig)? - calls,
        "end": Sight::of(&world, &run).to_json(),
        "double": harm.double, "leaked": harm.leaked, "lost": harm.lost,
    });
    clear(rig, &run)?;
    Ok((harm, shown))
}

/// RunInstances calls so far, refused ones too.
fn launches(rig: &Rig) -> Result<u64> {
    let state = rig.ask_sim("/_sim/state")?;
    Ok(state["calls"]["RunInstances"]["total"]
        .as_u64()
        .unwrap_or_default())
}

fn pool(run: &str) -> Value {
    let mut pool = rig::pool(run, TYPES[0]);
    pool["spec"]["template"]["spec"]["requirements"][0]["values"] = json!(TYPES);
    pool
}

/// Takes the trial away again, in good weather.
fn clear(rig: &mut Rig, run: &str) -> Result<()> {
    rig.api.delete(&format!(
        "/apis/apps/v1/namespaces/default/deployments/{run}"
    ))?;
    rig.start_kerf(&COLLECTION)?;
    rig.api
        .delete(&format!("/apis/karpenter.sh/v1/nodepools/{run}"))?;
    rig.until("no claim of the trial", PATIENCE, |rig| {
        let world = rig.look()?;
        Ok(!world.claims.iter().any(|it| tally::is_of_run(it, run)))
    })?;
    rig.kill_kerf();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_range_or_one() {
        assert_eq!(seeds("1-20"), Ok((1, 20)));
        assert_eq!(seeds("7"), Ok((7, 7)));
        assert!(seeds("9-1").is_err());
        assert!(seeds("a-b").is_err());
    }
}
