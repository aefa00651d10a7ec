//! `cargo xtask chaos`: everything goes wrong at random on a local cluster, and an onlooker looks for what must not be.
//!
//! [`script`] draws the acts of a seed, [`stage`] carries them out, [`invariants`] judges what is seen from outside. When the
//! acts are over, everything must come to its end within a bound. `--sabotage` starts controllers with a guard taken out,
//! which the onlooker must notice: that is the proof of its own strength.

mod guards;
mod invariants;
mod objects;
mod script;
mod stage;

use std::collections::BTreeSet;
use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use kerf_core::sabotage::Sabotage;
use serde_json::{Value, json};

use crate::process;
use crate::rig::{Build, Rig};
use guards::Heard;
use invariants::{Breach, Invariants};
use script::Event;
use stage::Stage;

/// Of a run's time; what is left is for coming to the end.
const TROUBLE_PERCENT: u64 = 60;
/// Everything has come to its end this long after the last act, or something is wrong.
const SETTLED_MAX: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(400);
/// Kills that wait for a launch must not miss it.
const TICK: Duration = Duration::from_millis(15);
/// As impatient as a run of minutes needs; all else is as users run it.
const ARGS: [&str; 18] = [
    "--garbage-collection-poll-duration",
    "2s",
    "--orphan-grace-duration",
    "20s",
    "--interruption-poll-duration",
    "2s",
    "--registration-timeout",
    "40s",
    "--disruption-poll-duration",
    "2s",
    "--consolidation-quiet-duration",
    "1s",
    "--node-repair-policies",
    "Ready=False:8s,Ready=Unknown:8s",
    "--node-repair-threshold-percent",
    "50",
    "--batch-idle-duration",
    "300ms",
];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// One seed, or several as 1-10.
    #[arg(long, visible_alias = "seeds", default_value = "1")]
    seed: String,
    /// How long each seed takes at most, with the time to come to its end.
    #[arg(long, default_value_t = 4)]
    minutes: u64,
    /// Take a guard out of the controllers (of a development build): its name, or `all`. The run passes when that is noticed.
    #[arg(long)]
    sabotage: Option<String>,
    /// Append each result to this file, and skip seeds whose result is in it.
    #[arg(long)]
    results: Option<PathBuf>,
    /// Print one JSON object for each seed and one for all.
    #[arg(long)]
    json: bool,
    /// Start what is built already.
    #[arg(long)]
    no_build: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let seeds = seeds(&args.seed)?;
    let sabotages = sabotages(args.sabotage.as_deref())?;
    if !args.no_build {
        process::build_all()?;
        crate::plugins::build()?;
    }
    let mut outcomes = Vec::new();
    for sabotage in sabotages {
        outcomes.extend(run_seeds(args, &seeds, sabotage)?);
    }
    let breaches: u64 = outcomes
        .iter()
        .filter_map(|it| it["breaches"].as_u64())
        .sum();
    let missed = outcomes.iter().filter(|it| it["caught"] == false).count();
    let total = json!({"seeds": seeds.len(), "runs": outcomes.len(), "breaches": breaches, "sabotagesMissed": missed});
    println!("{total}");
    match args.sabotage {
        None if breaches > 0 => bail!("{breaches} breaches"),
        Some(_) if missed > 0 => bail!("{missed} sabotages were not noticed"),
        _ => Ok(()),
    }
}

/// Of a sabotage one seed that catches it is enough.
fn run_seeds(args: &Args, seeds: &[u64], sabotage: Option<Sabotage>) -> Result<Vec<Value>> {
    let mut outcomes = Vec::new();
    for seed in seeds {
        let known = args
            .results
            .as_deref()
            .and_then(|file| find(file, *seed, args.minutes, sabotage));
        let outcome = match known {
            Some(outcome) => outcome,
            None => {
                let outcome =
                    one(*seed, args.minutes, sabotage).with_context(|| format!("seed {seed}"))?;
                if let Some(file) = &args.results {
                    append(file, &outcome)?;
                }
                outcome
            }
        };
        tell(args.json, &outcome);
        let is_caught = outcome["caught"] == true;
        if sabotage.is_some() {
            outcomes.clear();
        }
        outcomes.push(outcome);
        if is_caught {
            break;
        }
    }
    Ok(outcomes)
}

fn tell(is_json: bool, outcome: &Value) {
    if is_json {
        println!("{outcome}");
    } else {
        println!(
            "seed {} {}: {} acts, {} breaches, settled after {} s",
            outcome["seed"],
            outcome["sabotage"],
            outcome["acts"],
            outcome["breaches"],
            outcome["settledSeconds"]
        );
    }
}

/// `3` or `1-10`.
fn seeds(text: &str) -> Result<Vec<u64>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let parse = |text: &str| {
        text.trim()
            .parse::<u64>()
            .with_context(|| format!("{text:?} is no seed"))
    };
    let seeds: Vec<u64> = (parse(first)?..=parse(last)?).collect();
    if seeds.is_empty() {
        bail!("{text}: no seeds");
    }
    Ok(seeds)
}

fn sabotages(name: Option<&str>) -> Result<Vec<Option<Sabotage>>> {
    match name {
        None => Ok(vec![None]),
        Some("all") => Ok(Sabotage::ALL.into_iter().map(Some).collect()),
        Some(name) => Ok(vec![Some(name.parse().map_err(anyhow::Error::msg)?)]),
    }
}

/// What the onlooker must say of it.
fn expected(sabotage: Sabotage) -> &'static [&'static str] {
    match sabotage {
        Sabotage::NoWriteAhead => &["double", "unrecorded"],
        Sabotage::NoGarbageGrace => &["deleted", "double"],
        Sabotage::PodBudgetsIgnored => &["podBudget"],
        Sabotage::LimitsNotReserved => &["limit"],
        Sabotage::BudgetOffByOne => &["budget"],
        Sabotage::StaleLeaderLaunches => &["staleLaunch"],
    }
}

fn one(seed: u64, minutes: u64, sabotage: Option<Sabotage>) -> Result<Value> {
    let trouble_ms = minutes * 60_000 * TROUBLE_PERCENT / 100;
    let world = format!("timing: {}\n", objects::timing(objects::BOOT_MS));
    let rig = Rig::start(
        "chaos",
        Build::Dev,
        control_plane::Options::default(),
        &world,
    )?;
    let mut args: Vec<String> = ARGS.iter().map(|it| (*it).to_owned()).collect();
    args.extend(
        sabotage
            .into_iter()
            .flat_map(|it| ["--sabotage".to_owned(), it.as_str().to_owned()]),
    );
    let mut run = Run {
        stage: Stage::set(rig, seed, args)?,
        seen: Invariants::default(),
        started: Instant::now(),
        looks: 0,
        heard: 0,
        looked: Instant::now(),
        failed_acts: 0,
    };
    let events = script::draw(seed, trouble_ms);
    let wanted = sabotage.map_or(&[][..], expected);
    let is_caught = |run: &Run| {
        run.seen
            .breaches()
            .iter()
            .any(|it| wanted.contains(&it.kind))
    };
    run.trouble(&events, trouble_ms, is_caught)?;
    let mut settled = None;
    if !is_caught(&run) {
        settled = Some(run.calm(is_caught)?);
        if run.heard == 0 {
            bail!("nothing was heard of the guards: their budgets were not watched");
        }
    }
    let mut breaches: BTreeSet<Breach> = run.seen.breaches().clone();
    breaches.extend(settled.iter().flat_map(|it| &it.wrong).map(|what| Breach {
        kind: "unsettled",
        what: what.clone(),
    }));
    Ok(json!({
        "seed": seed, "minutes": minutes, "sabotage": sabotage.map(Sabotage::as_str),
        "acts": events.len(), "actsFailed": run.failed_acts, "looks": run.looks, "heard": run.heard,
        "launches": run.stage.launch_count(),
        "settledSeconds": settled.map(|it| it.seconds),
        "breaches": breaches.len(), "what": breaches.iter().map(Breach::to_json).collect::<Vec<_>>(),
        "caught": sabotage.map(|_| is_caught(&run)),
    }))
}

/// A seed that is being run.
struct Run {
    stage: Stage,
    seen: Invariants,
    started: Instant,
    looks: usize,
    /// Events of the guards' pods.
    heard: usize,
    looked: Instant,
    failed_acts: usize,
}

/// How a run came to its end.
struct Settled {
    seconds: f64,
    /// What was not as it should be when the time was over.
    wrong: Vec<String>,
}

impl Run {
    fn trouble(
        &mut self,
        events: &[Event],
        until_ms: u64,
        is_over: impl Fn(&Self) -> bool,
    ) -> Result<()> {
        let mut rest = events.iter().peekable();
        let end = self.started + Duration::from_millis(until_ms);
        while Instant::now() < end && !is_over(self) {
            self.stage.tend()?;
            let now_ms = self.started.elapsed().as_millis();
            while let Some(event) = rest.next_if(|event| u128::from(event.at_ms) <= now_ms) {
                // The API server may be away: that is part of the trouble.
                let done = self.stage.carry_out(&event.act);
                let outcome = done.as_ref().err().map(|error| format!(": {error:#}"));
                self.say(format_args!("{}{}", event.act, outcome.unwrap_or_default()));
                self.failed_acts += usize::from(done.is_err());
            }
            self.look();
            std::thread::sleep(TICK);
        }
        Ok(())
    }

    fn calm(&mut self, is_over: impl Fn(&Self) -> bool) -> Result<Settled> {
        self.stage.calm().context("cannot end the trouble")?;
        let calmed = Instant::now();
        let mut good_looks = 0;
        let mut wrong = vec!["never looked at".to_owned()];
        while calmed.elapsed() < SETTLED_MAX && good_looks < 2 && !is_over(self) {
            self.stage.tend()?;
            if self.look() {
                let now = invariants::unsettled(&self.stage.world()?, &self.stage.explained()?);
                if now != wrong {
                    self.say(format_args!("unsettled: {now:?}"));
                }
                wrong = now;
                good_looks = if wrong.is_empty() { good_looks + 1 } else { 0 };
            }
            std::thread::sleep(TICK);
        }
        Ok(Settled {
            seconds: calmed.elapsed().as_secs_f64(),
            wrong,
        })
    }

    /// With the time of the run.
    fn say(&self, what: fmt::Arguments<'_>) {
        eprintln!("{:7.1} s  {what}", self.started.elapsed().as_secs_f64());
    }

    /// Whether it was time for a look, and there was anything to see.
    fn look(&mut self) -> bool {
        if self.looked.elapsed() < LOOK_EVERY {
            return false;
        }
        let before = self.seen.breaches().len();
        let heard = self.stage.heard();
        let is_event = |news: &&Heard| !matches!(news, Heard::All(_));
        self.heard += heard.iter().filter(is_event).count();
        heard.into_iter().for_each(|news| self.seen.hear(news));
        let sight = self.stage.sight();
        self.looked = Instant::now();
        if let Ok(sight) = &sight {
            self.seen.see(sight, Timestamp::now());
            self.looks += 1;
        }
        if self.seen.breaches().len() > before {
            self.say(format_args!("breaches: {:?}", self.seen.breaches()));
        }
        sight.is_ok()
    }
}

/// The result of an earlier call, which is not run again.
fn find(file: &Path, seed: u64, minutes: u64, sabotage: Option<Sabotage>) -> Option<Value> {
    let text = std::fs::read_to_string(file).ok()?;
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let name = json!(sabotage.map(Sabotage::as_str));
    let mut same =
        lines.filter(|it| it["seed"] == seed && it["minutes"] == minutes && it["sabotage"] == name);
    same.next_back()
}

fn append(file: &Path, outcome: &Value) -> Result<()> {
    let opened = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(file);
    let mut opened = opened.with_context(|| format!("cannot open {}", file.display()))?;
    writeln!(opened, "{outcome}").with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `cargo xtask chaos` does with ten seeds of four minutes.
    #[test]
    fn a_short_seed_ends_without_a_breach() {
        let outcome = one(2, 1, None).unwrap();

        assert_eq!(outcome["breaches"], 0, "{outcome:#}");
    }

    #[test]
    fn seeds_are_one_or_a_range() {
        assert_eq!(seeds("3").unwrap(), [3]);
        assert_eq!(seeds("1-3").unwrap(), [1, 2, 3]);
        assert!(seeds("3-1").is_err());
        assert!(seeds("x").unwrap_err().to_string().contains("x"));
    }

    #[test]
    fn a_seed_is_run_once_for_a_file_of_results() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("results");
        let outcome = json!({"seed": 1, "minutes": 4, "sabotage": null, "breaches": 0});

        append(&file, &outcome).unwrap();

        assert_eq!(find(&file, 1, 4, None), Some(outcome));
        assert_eq!(find(&file, 2, 4, None), None);
        assert_eq!(find(&file, 1, 4, Some(Sabotage::NoWriteAhead)), None);
    }
}
