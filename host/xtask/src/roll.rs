//! `cargo xtask bench roll`: every node of a pool drifts at once. Replacements come first, the budget holds at every look,
//! and no pod is lost.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Parser;
use control_plane::Options;
use serde_json::{Value, json};

use crate::bench::{self, Measured};
use crate::demo::manifests;
use crate::drain_all;
use crate::rig::{self, Rig, World};

const RUN: &str = "roll";
const INSTANCE_TYPE: &str = "ecs.g7.large";
/// More than half of what the type has left for pods: one pod fills a node.
const POD_CPU: &str = "1100m";
/// The API's default budget, named here because the measurement counts with it.
const BUDGET_PERCENT: usize = 10;
const SET_UP_MAX: Duration = Duration::from_secs(600);
const ROLL_MAX: Duration = Duration::from_secs(900);
const WORLD: &str = "timing: {visibleAfterMs: 0, startingAfterMs: 0, runningAfterMs: 0}\n";
const ROLLED: &str = "rolled";

/// Options of `roll`.
#[derive(Debug, Parser)]
#[command(name = "roll", no_binary_name = true)]
struct Args {
    /// Nodes of the pool, with a pod each.
    #[arg(long, default_value_t = 50)]
    nodes: usize,
    #[command(flatten)]
    measured: Measured,
}

/// What was seen while the pool rolled.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    looks: usize,
    /// Nodes that were going at the same time, at most.
    going_most: usize,
    /// Looks at which more were going than the budget allows.
    breaches: usize,
    /// Nodes that could run pods, at least.
    ready_least: usize,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let args = Args::try_parse_from(args)?;
    let build = args.measured.build()?;
    let options = Options {
        audit_log: true,
        ..Options::default()
    };
    let mut rig = Rig::start(RUN, build, options, WORLD)?;
    set_up(&mut rig, args.nodes)?;

    let started = Instant::now();
    manifests::apply(&rig.api, &pool(true))?;
    let mut seen = Seen {
        ready_least: args.nodes,
        ..Seen::default()
    };
    let ended = rig.until("every node rolled", ROLL_MAX, |rig| {
        let world = rig.look()?;
        seen.look(&world);
        let is_rolled = world.claims.iter().all(|it| annotated(it, ROLLED));
        let is_quiet =
            world.claims.iter().all(|it| !is_going(it)) && world.claims.len() == args.nodes;
        Ok(is_rolled && is_quiet && running(&world) == args.nodes)
    });
    let seconds = started.elapsed().as_secs_f64();
    let (cpu, rss) = rig.kerf_usage();
    let lost = args.nodes.saturating_sub(running(&rig.look()?));
    rig.kill_kerf();
    let unasked = drain_all::breaches(&rig.read_audit_log()?);
    bench::report(
        args.measured.json,
        &json!({
            "nodes": args.nodes, "seconds": seconds, "looks": seen.looks, "goingMost": seen.going_most,
            "budgetPercent": BUDGET_PERCENT, "budgetBreaches": seen.breaches, "readyLeast": seen.ready_least,
            "podsLost": lost, "podsGoneUnasked": unasked, "cpuSeconds": cpu, "peakRssMib": rss,
            "profile": build.as_str(),
        }),
    );
    ended?;
    if seen.breaches > 0 || lost > 0 || unasked > 0 || seen.ready_least < args.nodes {
        bail!("a budget was broken, a pod was lost, or a node went before its replacement came");
    }
    Ok(())
}

fn set_up(rig: &mut Rig, nodes: usize) -> Result<()> {
    manifests::apply(&rig.api, &pool(false))?;
    manifests::apply(&rig.api, &rig::deployment("web", RUN, nodes, POD_CPU))?;
    rig.until("the pods", SET_UP_MAX, |rig| {
        Ok(rig.look()?.pods.len() == nodes)
    })?;
    rig.start_kerf(&[])?;
    rig.until("every pod running", SET_UP_MAX, |rig| {
        let world = rig.look()?;
        let ready = world
            .claims
            .iter()
            .filter(|it| is_true(it, "Ready"))
            .count();
        Ok(running(&world) == nodes && ready == nodes)
    })
}

/// The pool with default budgets; of another template when it is to roll.
fn pool(is_rolled: bool) -> Value {
    let mut pool = rig::pool(RUN, INSTANCE_TYPE);
    if is_rolled {
        pool["spec"]["template"]["metadata"]["annotations"] = json!({ROLLED: "yes"});
    }
    pool
}

fn annotated(object: &Value, name: &str) -> bool {
    !object["metadata"]["annotations"][name].is_null()
}

fn is_true(claim: &Value, condition: &str) -> bool {
    let conditions = claim["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == condition && it["status"] == "True")
}

fn is_going(claim: &Value) -> bool {
    !claim["metadata"]["deletionTimestamp"].is_null() || is_true(claim, "DisruptionReason")
}

fn running(world: &World) -> usize {
    let is_running = |pod: &&Value| {
        pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null()
    };
    world.pods.iter().filter(is_running).count()
}

impl Seen {
    fn look(&mut self, world: &World) {
        let mut by_state: BTreeMap<bool, usize> = BTreeMap::new();
        for claim in world.claims.iter().filter(|it| is_true(it, "Initialized")) {
            *by_state.entry(is_going(claim)).or_default() += 1;
        }
        let of = |state: bool| by_state.get(&state).copied().unwrap_or_default();
        let (going, staying) = (of(true), of(false));
        let allowed = ((going + staying) * BUDGET_PERCENT).div_ceil(100);
        self.looks += 1;
        self.going_most = self.going_most.max(going);
        self.breaches += usize::from(going > allowed);
        // A candidate whose replacement starts still runs its pods; one that is being deleted does not take new ones.
        let is_there = |claim: &&Value| {
            is_true(claim, "Initialized") && claim["metadata"]["deletionTimestamp"].is_null()
        };
        let ready = world.claims.iter().filter(is_there).count();
        self.ready_least = self.ready_least.min(ready);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(staying: usize, going: usize) -> World {
        let claim = |is_going: bool| {
            let status = if is_going { "True" } else { "False" };
            json!({"metadata": {}, "status": {"conditions": [
                {"type": "Initialized", "status": "True"}, {"type": "DisruptionReason", "status": status},
            ]}})
        };
        let stay = std::iter::repeat_n(claim(false), staying);
        World {
            claims: stay
                .chain(std::iter::repeat_n(claim(true), going))
                .collect(),
            ..World::default()
        }
    }

    #[test]
    fn more_nodes_going_than_a_tenth_is_a_breach() {
        let mut seen = Seen {
            ready_least: 50,
            ..Seen::default()
        };

        seen.look(&claims(45, 5));
        assert_eq!((seen.going_most, seen.breaches), (5, 0));

        seen.look(&claims(44, 6));
        assert_eq!((seen.going_most, seen.breaches, seen.looks), (6, 1, 2));
    }
}
