//! Developer commands, called as `cargo xtask <command>` and by the Makefile.
//!
//! Start at [`Command`]: each variant is one command and one module. Nothing here is part of the product, and
//! the product never calls it.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these commands talk to a person at a terminal"
)]

mod adopt;
mod all;
mod api_reference;
mod archive;
mod at_rest;
mod audit;
mod bench;
mod burst;
mod chaos;
mod chart_e2e;
mod chart_readme;
mod crash;
mod crds;
mod demo;
mod deps;
mod dist;
mod drain_all;
mod failover;
mod fuzz;
mod idle;
mod image;
mod impossible;
mod instructions;
mod launch_faults;
mod oci;
mod oracle;
mod plugins;
mod policy_bench;
mod process;
mod reference;
mod relay;
mod rig;
mod roll;
mod scale;
mod scale_in;
mod simulate_bench;
mod source;
mod suites;
mod swap_bench;
mod tidy;
mod upstream_world;
mod vectors;
mod wire;
mod workload;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(
    name = "xtask",
    about = "Developer commands of kerf.",
    disable_help_subcommand = true
)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Let kerf take over clusters that ran the other providers, and count what it changes.
    AdoptFixture(adopt::Args),
    /// Time decisions on upstream's benchmark and on a production trace, built for release.
    Bench(bench::Args),
    /// Check sizes, orphan files, forbidden words, released contracts and the numbering of decisions.
    Tidy,
    /// Install the chart with real helm, run what it installs with its own rights, and look for denials and leftovers.
    ChartE2e(chart_e2e::Args),
    /// Let everything go wrong at random on a local cluster, and look for what must not be.
    Chaos(chaos::Args),
    /// Write crds/ from the Rust types.
    Crds {
        /// Only check that they are up to date.
        #[arg(long)]
        check: bool,
    },
    /// Check who depends on whom, and how many packages that makes.
    Deps,
    /// Make what a release ships: programs, image, charts, manifests, policies, SDKs, checksums.
    Dist(dist::Args),
    /// Build a static kerf, and an image with it as an OCI layout.
    Image(image::Args),
    /// Kill the controller at every failpoint, start it again, and count what was launched twice, leaked or lost.
    Crash(crash::Args),
    /// Stop, kill and freeze the acting replica of two, and measure how soon the other one acts.
    Failover(failover::Args),
    /// Let libFuzzer look for what makes a reader of strangers' bytes panic.
    Fuzz(fuzz::Args),
    /// Hold random plans against the real kube-scheduler.
    Oracle(oracle::Args),
    /// Write docs/reference/ from the tables of names, and the chart's README from its values.
    Reference {
        /// Only check that they are up to date.
        #[arg(long)]
        check: bool,
    },
    /// Build the example policies.
    #[command(subcommand)]
    Plugins(plugins::Command),
    /// Start a local cluster with kerf in it and watch pods become nodes.
    Run(demo::Args),
    /// Run every check, then every test suite against its time budget.
    Test(suites::Args),
    /// Replay a trace of pods against consolidation, ours and upstream's, built for release.
    #[command(disable_help_flag = true)]
    ReplayTrace(bench::Replay),
    /// Check our answers against upstream Karpenter's.
    Vectors(vectors::Args),
    /// Hold what official SDKs send against ecs-sim and our client, and run those SDKs against ecs-sim.
    Wire(wire::Args),
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The chain on one line; a backtrace helps nobody who ran `make test`.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    match Args::parse().command {
        Command::AdoptFixture(args) => adopt::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Tidy => tidy::run(),
        Command::ChartE2e(args) => chart_e2e::run(&args),
        Command::Chaos(args) => chaos::run(&args),
        Command::Crds { check } => crds::run(check),
        Command::Deps => deps::run(),
        Command::Dist(args) => dist::run(&args),
        Command::Image(args) => image::run(&args),
        Command::Crash(args) => crash::run(&args),
        Command::Failover(args) => failover::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Oracle(args) => oracle::run(&args),
        Command::Reference { check } => {
            reference::run(check).and_then(|()| chart_readme::run(check))
        }
        Command::Plugins(command) => plugins::run(&command),
        Command::ReplayTrace(args) => bench::replay(&args),
        Command::Run(args) => demo::run(&args),
        Command::Test(args) => suites::run(&args),
        Command::Vectors(args) => vectors::run(&args),
        Command::Wire(args) => wire::run(&args),
    }
}
