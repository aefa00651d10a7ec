//! `cargo xtask crash`: the controller is killed at every failpoint and started again; the end must be the same.
//!
//! Each trial has a NodePool and a Deployment of its own on one control plane. A failpoint up to `deletion-seen` is
//! met while pods get their nodes, the others while a claim or a Node of a finished trial is deleted. Counted are
//! launches done twice, instances that no claim names, and pods or claims that do not come back.

pub(crate) mod tally;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::demo::manifests;
use crate::process;
use crate::rig::{self, Build, Rig};
use tally::{Harm, Sight};

/// Where the controller names its failpoints: each one must be tried, so they are read from there.
const FAILPOINTS: &str = include_str!("../../kerf-controllers/src/failpoint.rs");
/// The first failpoint that a deletion passes.
const FIRST_OF_DELETION: &str = "deletion-seen";
/// The first failpoint that a replacement of drifted nodes passes.
const FIRST_OF_DISRUPTION: &str = "command-recorded";
/// A trial takes ten seconds on two idle cores.
const PATIENCE: Duration = Duration::from_secs(120);
/// Not all of a trial's instances run at once, so that some claims are ahead of others at the kill.
const WORLD: &str = "timing: {visibleAfterMs: 100, startingAfterMs: 200, runningAfterMs: 600}\n";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Trials of each failpoint; each has other numbers of pods and another moment of the kill.
    #[arg(long, default_value_t = 3)]
    seeds: u64,
    /// Only these failpoints.
    #[arg(long, value_delimiter = ',')]
    points: Vec<String>,
    /// Print one JSON object for each trial and one for all.
    #[arg(long)]
    json: bool,
    /// Start what is built already.
    #[arg(long)]
    no_build: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if !args.no_build {
        process::build_all()?;
    }
    let points = chosen(args)?;
    let mut rig = Rig::start(
        "crash",
        Build::Dev,
        control_plane::Options::default(),
        WORLD,
    )?;
    let mut harm = Harm::default();
    for point in &points {
        for seed in 1..=args.seeds {
            let trial =
                trial(&mut rig, point, seed).with_context(|| format!("{point}, seed {seed}"))?;
            println!(
                "{}",
                if args.json {
                    trial.to_json().to_string()
                } else {
                    trial.to_line()
                }
            );
            harm.add(&trial.harm);
        }
    }
    harm.leaked += clean_up(&mut rig)?;
    let trials = points.len() as u64 * args.seeds;
    println!(
        "{}",
        json!({
            "points": points.len(), "seeds": args.seeds, "trials": trials,
            "double": harm.double, "leaked": harm.leaked, "lost": harm.lost,
        })
    );
    if harm != Harm::default() {
        bail!("a crash did harm");
    }
    Ok(())
}

/// The failpoints to try, in the order of a claim's life.
fn chosen(args: &Args) -> Result<Vec<&'static str>> {
    let all = failpoints();
    if let Some(strange) = args
        .points
        .iter()
        .find(|point| !all.contains(&point.as_str()))
    {
        bail!("no failpoint is called {strange}; there are {all:?}");
    }
    let is_chosen =
        |point: &&str| args.points.is_empty() || args.points.iter().any(|it| it == point);
    Ok(all.into_iter().filter(is_chosen).collect())
}

fn failpoints() -> Vec<&'static str> {
    let named = FAILPOINTS
        .lines()
        .filter_map(|line| line.split_once(" = \"")?.1.strip_suffix("\";"));
    named.collect()
}

/// One kill and what came of it.
#[derive(Debug)]
struct Trial {
    point: &'static str,
    seed: u64,
    before: Sight,
    after: Sight,
    harm: Harm,
    seconds: f64,
}

impl Trial {
    fn to_json(&self) -> Value {
        json!({
            "point": self.point, "seed": self.seed, "seconds": self.seconds,
            "before": self.before.to_json(), "after": self.after.to_json(),
            "double": self.harm.double, "leaked": self.harm.leaked, "lost": self.harm.lost,
        })
    }

    fn to_line(&self) -> String {
        let Self {
            point,
            seed,
            before,
            after,
            harm,
            seconds,
        } = self;
        format!("{point} seed {seed}: {before} -> {after}; {harm} ({seconds:.1} s)")
    }
}

fn trial(rig: &mut Rig, point: &'static str, seed: u64) -> Result<Trial> {
    let started = Instant::now();
    let run = format!("{point}-{seed}");
    let pods = 1 + usize::try_from(seed)?;
    manifests::apply(&rig.api, &rig::pool(&run, "ecs.g7.large"))?;
    rig.start_kerf(&["--failpoint", point])?;
    // More than half of the type's CPU: one pod per node.
    manifests::apply(&rig.api, &rig::deployment(&run, &run, pods, "1100m"))?;
    if is_from(FIRST_OF_DELETION, point) {
        rig.until("all pods on ready nodes", PATIENCE, settled(&run, pods))?;
        if is_from(FIRST_OF_DISRUPTION, point) {
            manifests::apply(&rig.api, &drifted(&run))?;
        } else {
            delete_something(rig, &run, seed)?;
        }
    }
    let reached = |rig: &Rig| Ok(rig.kerf_log().contains("failpoint reached"));
    rig.until("the failpoint", PATIENCE, reached)?;
    // The other claims go on for a moment that differs from seed to seed.
    std::thread::sleep(Duration::from_millis(seed * 170 % 500));
    rig.kill_kerf();
    let before = Sight::of(&rig.look()?, &run);

    rig.start_kerf(&[])?;
    let is_rolling = is_from(FIRST_OF_DISRUPTION, point);
    let mut is_settled = settled(&run, pods);
    let ended = rig.until("the end state", PATIENCE, |rig| {
        Ok(is_settled(rig)? && (!is_rolling || has_rolled(&rig.look()?, &run)))
    });
    rig.kill_kerf();
    let world = rig.look()?;
    let harm = Harm::of(&world, &run, pods);
    if harm == Harm::default() {
        // No harm that we count, and yet no end: that must not pass for one.
        ended?;
    }
    Ok(Trial {
        point,
        seed,
        before,
        after: Sight::of(&world, &run),
        harm,
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// Whether the failpoint is `first` or comes after it.
fn is_from(first: &str, point: &str) -> bool {
    let all = failpoints();
    let place = |name: &str| all.iter().position(|it| *it == name);
    place(point) >= place(first)
}

/// What tells the nodes of the pool's second template.
const ROLLED: &str = "kerf.test/rolled";

/// The trial's pool with another template: all its nodes have drifted.
fn drifted(run: &str) -> Value {
    let mut pool = rig::pool(run, "ecs.g7.large");
    pool["spec"]["template"]["metadata"]["annotations"] = json!({ ROLLED: "true" });
    pool
}

/// Whether every claim is of the second template and none is in a command.
fn has_rolled(world: &rig::World, run: &str) -> bool {
    let command = "karpenter.alibabacloud.com/disruption-command";
    let mut claims = world.claims.iter().filter(|it| tally::is_of_run(it, run));
    claims.all(|claim| {
        let annotations = &claim["metadata"]["annotations"];
        annotations[ROLLED] == "true" && annotations[command].is_null()
    })
}

/// A claim, a Node, or all claims of the trial.
fn delete_something(rig: &Rig, run: &str, seed: u64) -> Result<()> {
    let world = rig.look()?;
    let names = |list: &[Value]| -> Vec<String> {
        let ours = list.iter().filter(|it| tally::is_of_run(it, run));
        ours.filter_map(|it| it["metadata"]["name"].as_str().map(str::to_owned))
            .collect()
    };
    let (claims, nodes) = (names(&world.claims), names(&world.nodes));
    let claim = |name: &String| format!("/apis/karpenter.sh/v1/nodeclaims/{name}");
    let paths: Vec<String> = match seed % 3 {
        1 => claims.iter().take(1).map(claim).collect(),
        2 => nodes
            .iter()
            .take(1)
            .map(|name| format!("/api/v1/nodes/{name}"))
            .collect(),
        _ => claims.iter().map(claim).collect(),
    };
    paths.iter().try_for_each(|path| rig.api.delete(path))
}

/// Whether all pods are on nodes, all claims are ready, nothing is being deleted, and all that for two looks.
fn settled(run: &str, pods: usize) -> impl FnMut(&Rig) -> Result<bool> {
    let mut looks = 0;
    move |rig| {
        let world = rig.look()?;
        looks = if tally::is_settled(&world, run, pods) {
            looks + 1
        } else {
            0
        };
        Ok(looks >= 2)
    }
}

/// Deletes everything; returns how many instances are left then.
fn clean_up(rig: &mut Rig) -> Result<u64> {
    rig.api
        .delete("/apis/apps/v1/namespaces/default/deployments")?;
    rig.start_kerf(&[])?;
    rig.api.delete("/apis/karpenter.sh/v1/nodeclaims")?;
    left_over(rig, PATIENCE * 3)
}

/// Waits until no instance is left, and stops kerf; returns how many are left all the same.
pub(crate) fn left_over(rig: &mut Rig, patience: Duration) -> Result<u64> {
    let alive = |rig: &Rig| -> Result<usize> {
        let world = rig.look()?;
        Ok(tally::alive(&world.instances).count())
    };
    let ended = rig.until("no instance", patience, |rig| Ok(alive(rig)? == 0));
    rig.kill_kerf();
    let left = alive(rig)?;
    if left == 0 {
        ended?;
    }
    Ok(left as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failpoint_of_the_controller_is_tried_and_the_last_ones_by_a_deletion() {
        let all = failpoints();

        assert!(all.len() >= 15, "{all:?}");
        assert!(!is_from(FIRST_OF_DELETION, "launched-unrecorded"));
        assert!(is_from(FIRST_OF_DELETION, "evicted"));
        assert!(!is_from(FIRST_OF_DISRUPTION, "evicted"));
        assert!(is_from(FIRST_OF_DISRUPTION, "candidate-deleted"));
    }

    #[test]
    fn a_failpoint_that_nobody_knows_is_refused() {
        let args = Args {
            seeds: 1,
            points: vec!["nowhere".to_owned()],
            json: true,
            no_build: true,
        };

        assert!(chosen(&args).unwrap_err().to_string().contains("nowhere"));
    }
}
