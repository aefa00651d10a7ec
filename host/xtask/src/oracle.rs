//! `cargo xtask oracle`: random clusters, planned by kerf-core and held against the real kube-scheduler.
//!
//! A mismatch is a pod that kube-scheduler refuses on the node that we planned for it, or one that we called
//! unschedulable and that it binds to a fresh node which a pool could have made. Start at [`draw`] (what is drawn) and
//! [`trial`] (what is done with it); `--cases 1 --seed N` repeats case N. A failing case is made small and kept as a
//! file, which `--file` tries again. `--planted` proves that errors are found.

mod api;
mod case;
mod catalog;
mod cluster;
pub(crate) mod dice;
mod draw;
mod dress;
mod machines;
mod manifest;
mod planted;
mod pods;
mod shrink;
mod trial;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use control_plane::{Component, ControlPlane, Options};
use serde_json::{Value, json};

use crate::workspace;
use api::Api;
use case::Case;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many cases to try.
    #[arg(long, default_value_t = 50)]
    cases: u64,
    /// Seed of the first case; each next one has the next seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object at the end.
    #[arg(long)]
    json: bool,
    /// Go on where a run with the same seed was broken off.
    #[arg(long)]
    resume: bool,
    /// Where a run keeps what it has found so far; without it, in the target folder.
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    /// Plant rule errors one by one, and show at which case each is found. Fails when one is not.
    #[arg(long)]
    planted: bool,
    /// With `--planted`: make the case that found an error small, and keep it in this folder.
    #[arg(long, value_name = "FOLDER", requires = "planted")]
    shrunk: Option<PathBuf>,
    /// Try the case of a file instead of drawn ones.
    #[arg(long, value_name = "FILE", conflicts_with = "planted")]
    file: Option<PathBuf>,
    /// Print the plan of the case of --file, or else of --seed, and try nothing.
    #[arg(long, conflicts_with = "planted")]
    plan: bool,
}

/// Prints where each pod goes, in the order of the plan.
fn show_plan(case: &Case) -> Result<()> {
    let trial::Planned { plan, .. } = trial::plan(case)?;
    for uid in &plan.order {
        let placement = plan.placements.iter().find(|it| it.pod.uid == *uid);
        let claim = plan
            .new_claims
            .iter()
            .position(|it| it.pods.iter().any(|pod| pod.uid == *uid));
        match (placement, claim) {
            (Some(it), _) => println!("{uid} -> {:?}", it.node),
            (None, Some(idx)) => {
                let claim = &plan.new_claims[idx];
                println!(
                    "{uid} -> new-{idx} of {}: {}",
                    claim.pool, claim.requirements
                );
            }
            (None, None) => println!("{uid} -> nowhere"),
        }
    }
    for group in &plan.unschedulable {
        let names: Vec<&str> = group.pods.iter().map(|pod| &*pod.name).collect();
        println!("{}: {}", names.join(" "), group.reason);
    }
    Ok(())
}

/// Where failing cases are kept, below the root of the workspace; all of them are tried in each test run.
const KEPT: &str = "tests/fixtures/oracle";

/// What all cases showed together.
#[derive(Debug, Default)]
struct Tally {
    cases: u64,
    mismatches: u64,
    failing_seeds: Vec<u64>,
    placed: u64,
    unschedulable: u64,
    unbound_free: u64,
    seconds: f64,
    kinds: BTreeMap<String, u64>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.planted {
        return planted::run(args.cases, args.seed, args.shrunk.as_deref());
    }
    if args.plan {
        return show_plan(&match &args.file {
            Some(path) => Case::load(path)?,
            None => Case::draw(args.seed),
        });
    }
    if let Some(path) = &args.file {
        return try_file(&Api::new(&start()?)?, path);
    }
    let in_target = || workspace::root().join(format!("target/oracle-{}.json", args.seed));
    let path = args.results.clone().unwrap_or_else(in_target);
    let mut tally = if args.resume {
        Tally::load(&path)?
    } else {
        Tally::default()
    };
    let control_plane = start()?;
    let api = Api::new(&control_plane)?;
    while tally.cases < args.cases {
        tally.try_case(&api, args.seed + tally.cases)?;
        tally.save(&path)?;
    }
    report(args, &tally);
    if tally.mismatches > 0 {
        bail!(
            "{} mismatches; repeat one with --cases 1 --seed N",
            tally.mismatches
        );
    }
    Ok(())
}

/// Fails where the case of the file does.
fn try_file(api: &Api, path: &Path) -> Result<()> {
    let case = Case::load(path)?;
    let verdict = trial::run(api, &case, &trial::plan(&case)?)
        .with_context(|| format!("the case of {}", path.display()))?;
    if verdict.mismatches.is_empty() {
        return Ok(());
    }
    bail!("{}: {}", path.display(), verdict.mismatches.join("\n"));
}

fn start() -> Result<ControlPlane> {
    let mut options = Options::default();
    // Cases are over long before a node without a kubelet would count as lost.
    options.components.remove(&Component::Kwok);
    let plugins = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition".to_owned();
    options
        .extra_args
        .insert(Component::ApiServer, vec![plugins]);
    ControlPlane::start(options)
        .context("cannot start the control plane; `make control-plane` builds its servers")
}

impl Tally {
    fn try_case(&mut self, api: &Api, seed: u64) -> Result<()> {
        let started = Instant::now();
        let case = Case::draw(seed);
        let context = || format!("case {seed}");
        let planned = trial::plan(&case).with_context(context)?;
        let verdict = trial::run(api, &case, &planned).with_context(context)?;
        for text in &verdict.mismatches {
            println!("case {seed}: {text}");
        }
        self.cases += 1;
        self.mismatches += verdict.mismatches.len() as u64;
        if !verdict.mismatches.is_empty() {
            self.failing_seeds.push(seed);
        }
        self.placed += verdict.placed as u64;
        self.unschedulable += verdict.unschedulable as u64;
        self.unbound_free += verdict.unbound_free as u64;
        self.seconds += started.elapsed().as_secs_f64();
        for kind in &case.kinds {
            *self.kinds.entry((*kind).to_owned()).or_default() += 1;
        }
        if !verdict.mismatches.is_empty() {
            let (small, verdict) = shrink::shrink(api, &case, verdict, trial::plan)?;
            let path = workspace::root()
                .join(KEPT)
                .join(format!("case-{seed}.yaml"));
            small.save(&path, &verdict.mismatches.join("\n"))?;
            println!("case {seed}: made small in {}", path.display());
        }
        Ok(())
    }

    fn to_json(&self) -> Value {
        json!({
            "cases": self.cases,
            "mismatches": self.mismatches,
            "failingSeeds": self.failing_seeds,
            "placed": self.placed,
            "unschedulable": self.unschedulable,
            "unboundFree": self.unbound_free,
            "seconds": self.seconds,
            "kinds": self.kinds,
            "kindsInPercent": self.shares(),
        })
    }

    /// In how many of a hundred cases each kind is.
    fn shares(&self) -> BTreeMap<&str, u64> {
        let share = |count: &u64| count * 100 / self.cases.max(1);
        self.kinds
            .iter()
            .map(|(kind, count)| (kind.as_str(), share(count)))
            .collect()
    }

    fn save(&self, path: &PathBuf) -> Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, self.to_json().to_string())
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// An absent file is a run that has not begun.
    fn load(path: &PathBuf) -> Result<Self> {
        let Ok(text) = fs::read_to_string(path) else {
            return Ok(Self::default());
        };
        let saved: Value =
            serde_json::from_str(&text).with_context(|| format!("read {}", path.display()))?;
        let number = |name: &str| saved[name].as_u64().unwrap_or_default();
        let kinds = saved["kinds"].as_object().into_iter().flatten();
        Ok(Self {
            cases: number("cases"),
            mismatches: number("mismatches"),
            failing_seeds: saved["failingSeeds"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_u64)
                .collect(),
            placed: number("placed"),
            unschedulable: number("unschedulable"),
            unbound_free: number("unboundFree"),
            seconds: saved["seconds"].as_f64().unwrap_or_default(),
            kinds: kinds
                .map(|(kind, count)| (kind.clone(), count.as_u64().unwrap_or_default()))
                .collect(),
        })
    }
}

fn report(args: &Args, tally: &Tally) {
    if args.json {
        println!("{}", tally.to_json());
        return;
    }
    for (kind, count) in &tally.kinds {
        let rare = if count * 10 < tally.cases {
            "  (in less than a tenth)"
        } else {
            ""
        };
        println!("{count:5} {kind}{rare}");
    }
    let Tally {
        cases,
        mismatches,
        failing_seeds,
        placed,
        unschedulable,
        unbound_free,
        seconds,
        kinds: _,
    } = tally;
    println!("placed={placed} unschedulable={unschedulable} seconds={seconds:.0}");
    println!("failingSeeds={failing_seeds:?}");
    println!("unboundFree={unbound_free}");
    println!("cases={cases}");
    println!("mismatches={mismatches}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kube_scheduler_accepts_fifty_plans() {
        let args = Args {
            cases: 50,
            seed: 1,
            json: false,
            resume: false,
            results: None,
            planted: false,
            shrunk: None,
            file: None,
            plan: false,
        };

        run(&args).unwrap();
    }

    #[test]
    fn cases_that_failed_once_do_not_fail_again() {
        let folder = workspace::root().join(KEPT);
        let files = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = files.map(|file| file.path()).collect();
        files.sort();
        assert!(!files.is_empty(), "{} has no cases", folder.display());
        let control_plane = start().unwrap();
        let api = Api::new(&control_plane).unwrap();

        for file in files {
            try_file(&api, &file).unwrap();
        }
    }
}
