//! Runs one suite: its output goes to a file, which is shown only when something is wrong.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::discover::{self, Suite};
use super::outcome::{Counts, Outcome};
use super::seconds;
use crate::{process, workspace};

/// A suite that hangs is stopped well after it has failed its budget, so that its output can still be read.
const HANG_FACTOR: u32 = 3;
/// For suites without a budget, and so that a budget of one second is no death sentence on a busy machine.
const HANG_MIN: Duration = Duration::from_secs(120);
/// How long a suite may take to clean up after it was told to stop: a control plane stops in under five seconds.
const STOP_MAX: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(super) fn run(suite: &Suite, budget: Option<Duration>) -> Result<Outcome> {
    let log = log_path(suite)?;
    let file = File::create(&log).with_context(|| format!("cannot create {}", log.display()))?;
    let mut command = discover::command(suite)?;
    command
        .stdout(file.try_clone().context("cannot share the log")?)
        .stderr(file);
    println!("== {}: {} tests", suite.name, suite.tests.len());

    let started = Instant::now();
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {}", suite.name))?;
    let limit = budget.map_or(HANG_MIN, |budget| HANG_MIN.max(budget * HANG_FACTOR));
    let status = wait(&mut child, limit)?;
    let wall = started.elapsed();

    let output = std::fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
    let output = String::from_utf8_lossy(&output);
    let outcome = Outcome {
        name: suite.name.clone(),
        counts: Counts::read(&output),
        expected: suite.tests.len(),
        is_success: status.is_some_and(|status| status.success()),
        is_stopped: status.is_none(),
        wall,
        budget,
    };
    if outcome.failure().is_some() {
        println!("{output}");
    }
    let closing = output
        .lines()
        .rev()
        .find(|line| line.starts_with("test result:"));
    println!(
        "{}",
        closing.unwrap_or("no test result: the suite ended early")
    );
    println!("== {}: {}", suite.name, seconds(wall));
    Ok(outcome)
}

fn log_path(suite: &Suite) -> Result<PathBuf> {
    let folder = workspace::root().join("target/test-logs");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder.join(format!("{}.log", suite.name.replace("::", "-"))))
}

/// `None` where it had to be stopped.
fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    if let Some(status) = wait_until(child, Instant::now() + limit)? {
        return Ok(Some(status));
    }
    // Asked first: a suite that is told to stop takes its servers down with it.
    process::run(Command::new("kill").arg(child.id().to_string()))?;
    if wait_until(child, Instant::now() + STOP_MAX)?.is_none() {
        child.kill().context("cannot stop a hanging suite")?;
        child.wait().context("cannot wait for a stopped suite")?;
    }
    Ok(None)
}

fn wait_until(child: &mut Child, deadline: Instant) -> Result<Option<ExitStatus>> {
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().context("cannot wait for a suite")? {
            return Ok(Some(status));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(None)
}
