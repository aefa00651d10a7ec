//! `cargo xtask bench …`: builds xtask-bench for release and hands it the arguments.
//!
//! Measuring is a program of its own, so that a figure never comes from a development build and its build stays short.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use crate::rig::Build;
use crate::{
    all, at_rest, burst, drain_all, idle, impossible, instructions, launch_faults, policy_bench,
    process, roll, scale, scale_in, simulate_bench, swap_bench,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to measure and its options; `scheduling --help` lists them.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS",
        required = true
    )]
    rest: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    // These run kerf as a process of its own, all but the last against a control plane.
    if let [first, rest @ ..] = args.rest.as_slice() {
        match first.as_str() {
            "all" => return all::run(rest),
            "drain-all" => return drain_all::run(rest),
            "idle" => return idle::run(rest),
            "instructions" => return instructions::run(rest),
            "launch-faults" => return launch_faults::run(rest),
            "policy" => return policy_bench::run(rest),
            "policy-swap" => return swap_bench::run(rest),
            "at-rest" => return at_rest::run(rest),
            "burst" => return burst::run(rest),
            "impossible" => return impossible::run(rest),
            "roll" => return roll::run(rest),
            "scale" => return scale::run(rest),
            "scale-in" => return scale_in::run(rest),
            "simulate" => return simulate_bench::run(rest),
            _ => {}
        }
    }
    measure(&args.rest)
}

#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    /// Its options; `--help` lists them.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    rest: Vec<String>,
}

pub(crate) fn replay(args: &Replay) -> Result<()> {
    let command = ["replay-trace".to_owned()];
    measure(&[&command, args.rest.as_slice()].concat())
}

fn measure(args: &[String]) -> Result<()> {
    let mut bench = process::cargo();
    bench.args([
        "run",
        "--release",
        "--quiet",
        "--package",
        "xtask-bench",
        "--",
    ]);
    process::run(bench.args(args))
}

/// What the measurements have in common that run kerf beside a control plane.
#[derive(Debug, clap::Args)]
pub(crate) struct Measured {
    /// Run a development build: no figure, only a try.
    #[arg(long)]
    dev: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Start what is built already.
    #[arg(long)]
    no_build: bool,
}

impl Measured {
    /// The build to run, which is made first unless it is there already.
    pub(crate) fn build(&self) -> Result<Build> {
        let build = if self.dev { Build::Dev } else { Build::Release };
        if !self.no_build {
            build.make()?;
        }
        Ok(build)
    }
}

/// What is measured is what happens in this time; there is nothing to wait for.
pub(crate) fn pass(time: Duration) {
    std::thread::sleep(time);
}

/// Prints the figures of a measurement: as one JSON object, or a line each.
pub(crate) fn report(is_json: bool, result: &Value) {
    if is_json {
        println!("{result}");
        return;
    }
    for (name, value) in result.as_object().into_iter().flatten() {
        println!("{name}={value}");
    }
}
