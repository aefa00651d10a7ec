//! `make test`: the checks in order of their cost, then each test suite against its budget.
//!
//! A suite is the unit tests of one crate, or one module of an integration-test binary (`it::wire`). Each runs
//! alone, so that its wall time means something. Tests in a module `long_tier` run with `--long` only.

mod budget;
mod discover;
mod outcome;
mod runner;

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::{chart_readme, crds, deps, instructions, plugins, process, reference, tidy, workspace};
use budget::Budgets;
use outcome::Outcome;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run the long tier too.
    #[arg(long)]
    long: bool,
    /// Skip the checks and run only the suites whose name contains this.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let started = Instant::now();
    let budgets = Budgets::read()?;
    if args.only.is_none() {
        checks()?;
        step("control plane", || {
            // With helm, which the chart's tests need.
            let script = workspace::root().join("tests/tools/build.sh");
            process::run(Command::new(script).arg("--all"))
        })?;
    }
    step("plugins", plugins::build)?;
    if args.only.is_none() {
        step("instructions", || instructions::run(&[]))?;
    }
    let suites = step("build", || discover::suites(args.long))?;
    let wanted = |name: &str| args.only.as_deref().is_none_or(|part| name.contains(part));
    let mut outcomes = Vec::new();
    for suite in suites.iter().filter(|suite| wanted(&suite.name)) {
        outcomes.push(runner::run(suite, budgets.of(&suite.name, args.long))?);
    }
    outcome::print(&outcomes, started.elapsed());

    let mut failures: Vec<String> = outcomes.iter().filter_map(Outcome::failure).collect();
    if args.only.is_none() {
        failures.extend(budgets.stale(&outcomes));
    }
    if outcomes.is_empty() {
        bail!(
            "no suite has `{}` in its name",
            args.only.as_deref().unwrap_or_default()
        );
    }
    if !failures.is_empty() {
        bail!("make test failed:\n  {}", failures.join("\n  "));
    }
    Ok(())
}

/// What needs no test binary. Cheap ones first, so that a slip costs seconds.
fn checks() -> Result<()> {
    step("format", || {
        process::run(process::cargo().args(["fmt", "--all", "--check"]))?;
        process::run(guests().args(["fmt", "--all", "--check"]))
    })?;
    step("tidy", tidy::run)?;
    step("dependencies", deps::run)?;
    step("generated files", || {
        crds::run(true)?;
        reference::run(true)?;
        chart_readme::run(true)
    })?;
    step("clippy", || {
        let deny = ["--locked", "--quiet", "--", "-D", "warnings"];
        process::run(
            process::cargo()
                .args(["clippy", "--workspace", "--all-targets"])
                .args(deny),
        )?;
        process::run(
            guests()
                .args(["clippy", "--workspace", "--target", plugins::TARGET])
                .args(deny),
        )
    })
}

/// cargo in the workspace of the policies, which is one of its own.
fn guests() -> Command {
    let mut cargo = process::cargo();
    cargo.current_dir(workspace::root().join("plugins"));
    cargo
}

fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("== {name}");
    let started = Instant::now();
    let result = work()?;
    println!("== {name}: {}", seconds(started.elapsed()));
    Ok(result)
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
