//! `cargo xtask wire`: what official SDKs send, against ecs-sim and against our own client; and those SDKs themselves,
//! unmodified, against ecs-sim.
//!
//! Each recorded request goes to ecs-sim byte by byte, with its clock at the time of the recording, and must get past
//! the gateway: signature, nonce, clock, parameters. What kerf would send for the same calls is held against the
//! recordings by the tests of kerf-cloud, which this runs.

mod recordings;
mod replay;
mod sdks;

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::process;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Start what is built already.
    #[arg(long)]
    no_build: bool,
}

/// What was compared, and what differed.
#[derive(Debug, Default)]
struct Tally {
    compared: usize,
    /// Of recordings: the action is none that ecs-sim has, so that only its signature was looked at.
    not_simulated: Vec<String>,
    differences: Vec<String>,
}

impl Tally {
    fn difference(&mut self, what: impl Into<String>) {
        self.differences.push(what.into());
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if !args.no_build {
        process::build_all()?;
    }
    let mut tally = Tally::default();
    let replayed = replay::all(&mut tally)?;
    let client = client_tests(&mut tally)?;
    let python = sdks::python(&mut tally)?;
    let go = sdks::go(&mut tally)?;
    for difference in &tally.differences {
        eprintln!("{difference}");
    }
    let count = tally.differences.len();
    if args.json {
        println!(
            "{}",
            json!({
                "recordings": replayed, "notSimulated": tally.not_simulated, "clientTests": client,
                "pythonSdkChecks": python, "goSdkChecks": go,
                "compared": tally.compared, "differences": count,
            })
        );
    } else {
        println!("compared={}\ndifferences={count}", tally.compared);
    }
    if count > 0 {
        bail!("{count} differences");
    }
    Ok(())
}

/// Our client against the recordings and the vectors: each failed test is a difference. Returns how many there are.
fn client_tests(tally: &mut Tally) -> Result<usize> {
    let mut tests = process::cargo();
    // The whole workspace is named so that nothing is built with other features than before.
    tests.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
    tests.args(["--test", "wire", "--test", "signatures"]);
    let output = tests.output().context("cannot start cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let tests: Vec<&str> = text.lines().filter(|it| it.starts_with("test ")).collect();
    let run = tests.iter().filter(|it| it.contains(" ... ")).count();
    for failed in tests.iter().filter(|it| it.ends_with("FAILED")) {
        tally.difference(format!("kerf-cloud: {failed}"));
    }
    if run == 0 || (!output.status.success() && tally.differences.is_empty()) {
        bail!(
            "the tests of kerf-cloud did not run: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    tally.compared += run;
    Ok(run)
}
