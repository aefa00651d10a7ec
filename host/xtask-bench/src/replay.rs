//! `replay-trace`: the last days of a production trace, many copies of it at once, played with our decisions and with
//! upstream's algorithm written down plainly. Pods come and go, and what is compared is what the fleet cost on average.
//!
//! The reference is upstream whole: where pending pods go, which nodes are made for them, and which nodes are removed. Its
//! search for nodes to remove alone, on a fleet that our planner makes, is played too: it tells how much of the
//! difference comes from disruption. What every player claims is checked: no node is ever overfull, budgets hold when
//! commands start, and it is counted when something goes back to the offering that it came from within a day.

mod bound;
mod cluster;
mod lives;
mod ours;
mod upstream;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail, ensure};
use jiff::SignedDuration;
use kerf_core::instance_type::InstanceType;
use kerf_core::labels;
use kerf_core::node_pool::{NodePool, NodeTemplate};
use kerf_core::requirement::Requirement;
use serde_json::{Value, json};

use crate::memory::{cpu_seconds, peak_rss_mib};
use crate::scheduling::catalog;
use cluster::{Cluster, Start};
use lives::Life;

const DAY_SECS: i64 = 24 * 3600;
const POOL: &str = "general";
/// What the issue asks for.
const RATIO_MAX: f64 = 0.95;
const PODS_LEAST: usize = 1000;
/// Upstream validates each command for 15 s before the next can be looked for.
const UPSTREAM_PASS_SECS: i64 = 15;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The trace: pods with cpu_milli, memory_mib, num_gpu, creation_time and deletion_time.
    #[arg(long, value_name = "CSV")]
    trace: PathBuf,
    /// How many of its last days.
    #[arg(long, default_value_t = 14)]
    days: i64,
    /// How often they are played at once, each with an offset of its own.
    #[arg(long, default_value_t = 40)]
    copies: u32,
    /// Seed of the offsets.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seconds between two looks at the cluster, and how long a node takes to boot.
    #[arg(long, default_value_t = 60)]
    step_seconds: i64,
    /// consolidateAfter of the NodePool; the API's default is 0.
    #[arg(long, default_value_t = 0)]
    consolidate_after_seconds: i64,
    /// The catalog of instance types.
    #[arg(long, value_name = "CSV", default_value = catalog::DEFAULT_PATH)]
    catalog: PathBuf,
    /// Let only this one play, and judge nothing.
    #[arg(long, value_enum)]
    only: Option<Player>,
    /// Do not say how it goes, once a day of the trace.
    #[arg(long)]
    quiet: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Who decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Player {
    /// kerf-core makes and removes nodes.
    Ours,
    /// Upstream's algorithm makes and removes nodes.
    Reference,
    /// kerf-core makes nodes, upstream's algorithm removes them.
    ReferenceSearch,
}

impl Player {
    const ALL: [Self; 3] = [Self::Ours, Self::Reference, Self::ReferenceSearch];

    fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Reference => "reference",
            Self::ReferenceSearch => "referenceSearchOnOurFleet",
        }
    }
}

/// What a replay came to.
#[derive(Debug, Default)]
struct Outcome {
    /// Price per hour, added up over the steps.
    price_steps: f64,
    bound_steps: f64,
    pod_steps: f64,
    steps: u32,
    pods_least: Option<usize>,
    commands: usize,
    removed: usize,
    made: usize,
    moved: usize,
    breaches: usize,
    flips: usize,
    unplaced: usize,
    launches: usize,
    search_cpu_secs: f64,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    ensure!(
        args.step_seconds > 0 && args.days > 0,
        "days and seconds must be positive"
    );
    let window = args.days * DAY_SECS;
    let lives = lives::read(&args.trace, window, args.copies, args.seed)?;
    let types = catalog::read(&args.catalog)?;
    let pool = pool(types, args.consolidate_after_seconds);
    let mut report = json!({
        "days": args.days, "copies": args.copies, "seed": args.seed, "stepSeconds": args.step_seconds,
        "consolidateAfterSeconds": args.consolidate_after_seconds, "pods": lives.len(),
    });
    let mut outcomes = Vec::new();
    for (player, outcome) in play_all(args, &lives, &pool)? {
        report[player.name()] = outcome.report(args);
        outcomes.push(outcome);
    }
    report["peakRssMiB"] = json!(peak_rss_mib()?);
    report["ratioMax"] = json!(RATIO_MAX);
    if let [ours, reference, search] = outcomes.as_slice() {
        report["ratio"] = json!(ours.price_steps / reference.price_steps);
        report["ratioToSearchOnOurFleet"] = json!(ours.price_steps / search.price_steps);
    }
    if args.json {
        println!("{report}");
    } else {
        for (name, value) in report.as_object().into_iter().flatten() {
            println!("{name:24} {value}");
        }
    }
    judge(&outcomes)
}

fn judge(outcomes: &[Outcome]) -> Result<()> {
    let [ours, reference, _] = outcomes else {
        return Ok(());
    };
    let ratio = ours.price_steps / reference.price_steps;
    let pods = ours.pods_least.unwrap_or(0);
    if ratio > RATIO_MAX || ours.breaches > 0 || ours.flips > 0 || pods < PODS_LEAST {
        bail!(
            "{ratio:.4} of the reference's price (limit {RATIO_MAX}), {} budget breaches, {} flips, {pods} pods at once (at least {PODS_LEAST})",
            ours.breaches,
            ours.flips
        );
    }
    Ok(())
}

/// Every amd64 type on demand, default budgets.
fn pool(types: Vec<Arc<InstanceType>>, consolidate_after_secs: i64) -> NodePool {
    let requirements = [
        Requirement::in_values(labels::ARCH, ["amd64"]),
        Requirement::in_values(labels::CAPACITY_TYPE, ["on-demand"]),
    ];
    let mut pool = NodePool {
        name: POOL.into(),
        template: NodeTemplate {
            requirements: requirements.into_iter().collect(),
            ..NodeTemplate::default()
        },
        instance_types: Arc::new(types),
        ..NodePool::default()
    };
    pool.disruption.consolidate_after = Some(SignedDuration::from_secs(consolidate_after_secs));
    pool
}

/// The players do not see each other, so that they play at the same time; each measures its own thread.
fn play_all(args: &Args, lives: &[Life], pool: &NodePool) -> Result<Vec<(Player, Outcome)>> {
    let plays = |player: &Player| args.only.is_none_or(|only| only == *player);
    std::thread::scope(|scope| {
        let playing: Vec<_> = Player::ALL
            .into_iter()
            .filter(plays)
            .map(|player| (player, scope.spawn(move || play(args, lives, pool, player))))
            .collect();
        let ended = playing.into_iter().map(|(player, thread)| {
            let outcome = thread
                .join()
                .map_err(|_| anyhow!("{} broke off", player.name()))??;
            Ok((player, outcome))
        });
        ended.collect()
    })
}

fn play(args: &Args, lives: &[Life], pool: &NodePool, player: Player) -> Result<Outcome> {
    let mut cluster = Cluster::new(pool.clone(), args.step_seconds);
    let mut outcome = Outcome::default();
    let bound = bound::Bound::new(pool);
    let mut coming = lives.iter().peekable();
    let step = usize::try_from(args.step_seconds)?;
    for at in (0..args.days * DAY_SECS).step_by(step) {
        cluster.turn(at);
        while let Some(life) = coming.next_if(|life| life.from <= at) {
            if life.to > at {
                cluster.arrive(life);
            }
        }
        let provided = match player {
            Player::Ours | Player::ReferenceSearch => cluster.provide()?,
            Player::Reference => {
                let placed = upstream::place(&cluster);
                cluster.give(&placed)?
            }
        };
        outcome.launches += provided.launched;
        outcome.unplaced += provided.unplaced;
        let cpu = cpu_seconds()?;
        match player {
            Player::Ours => {
                let started = ours::pass(&cluster);
                outcome.start(&mut cluster, started)?;
            }
            Player::Reference | Player::ReferenceSearch => {
                for _ in 0..(args.step_seconds / UPSTREAM_PASS_SECS).max(1) {
                    let Some(command) = upstream::pass(&cluster) else {
                        break;
                    };
                    outcome.start(&mut cluster, vec![command])?;
                }
            }
        }
        outcome.search_cpu_secs += cpu_seconds()? - cpu;
        outcome.count(&cluster, &bound)?;
        if !args.quiet && at % DAY_SECS == 0 {
            eprintln!(
                "{} day {}: {} pods on {} nodes at {:.2}, {} commands so far",
                player.name(),
                at / DAY_SECS,
                cluster.pods(),
                cluster.nodes(),
                cluster.hourly(),
                outcome.commands
            );
        }
    }
    Ok(outcome)
}

impl Outcome {
    fn start(&mut self, cluster: &mut Cluster, commands: Vec<Start>) -> Result<()> {
        let mut going = 0;
        let allowed = cluster.allowed();
        for command in commands {
            going += command.candidates.len();
            self.commands += 1;
            self.removed += command.candidates.len();
            self.made += command.made.len();
            self.moved += command.moves.len();
            self.flips += cluster.start(command)?;
        }
        self.breaches += usize::from(going > allowed);
        Ok(())
    }

    fn count(&mut self, cluster: &Cluster, bound: &bound::Bound) -> Result<()> {
        let pods = cluster.pods();
        self.price_steps += cluster.hourly();
        self.bound_steps += bound.hourly(cluster.asked())?;
        self.pod_steps += f64::from(u32::try_from(pods)?);
        self.steps += 1;
        self.pods_least = Some(self.pods_least.map_or(pods, |least| least.min(pods)));
        Ok(())
    }

    fn report(&self, args: &Args) -> Value {
        let steps = f64::from(self.steps);
        let step_secs = f64::from(u32::try_from(args.step_seconds).unwrap_or(u32::MAX));
        let pod_days = self.pod_steps * step_secs / 86_400.0;
        let moved = f64::from(u32::try_from(self.moved).unwrap_or(u32::MAX));
        json!({
            "averageHourly": self.price_steps / steps,
            "overLpBound": self.price_steps / self.bound_steps,
            "lpBoundHourly": self.bound_steps / steps,
            "averagePods": self.pod_steps / steps, "podsAtOnceLeast": self.pods_least,
            "commands": self.commands, "nodesRemoved": self.removed, "nodesMade": self.made,
            "nodesLaunchedForPods": self.launches, "podsUnplaced": self.unplaced,
            "podsMoved": self.moved, "disruptionsPerPodDay": moved / pod_days,
            "budgetBreaches": self.breaches, "flips": self.flips, "searchCpuSeconds": self.search_cpu_secs,
        })
    }
}
