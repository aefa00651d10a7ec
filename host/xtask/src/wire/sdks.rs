//! The official SDKs, unmodified, against ecs-sim: `tests/sdk/drive.py` and `tests/sdk/go`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Tally;
use crate::demo::child::Child;
use crate::rig::{Build, start_sim};
use crate::{process, workspace};

const KEY: [&str; 2] = ["LTAIsim", "simulated"];
/// What each check of the drivers prints after its name.
const OK: &str = ": ok";

/// An ecs-sim of its own.
pub(super) struct Sim {
    _process: Child,
    url: String,
}

impl Sim {
    pub(super) fn start(key: [&str; 2], more: &[String]) -> Result<Self> {
        let log = folder()?.join("ecs-sim.log");
        let (process, url) = start_sim(Build::Dev, &log, key, |command| {
            command.args(more);
        })?;
        Ok(Self {
            _process: process,
            url,
        })
    }

    /// Where it listens, as `host:port`.
    pub(super) fn address(&self) -> Result<String> {
        let address = self.url.strip_prefix("http://");
        Ok(address.context("a url without http")?.to_owned())
    }
}

/// What this command keeps between runs: the SDKs are large.
fn folder() -> Result<PathBuf> {
    let folder = workspace::root().join("target/wire");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

fn sources() -> PathBuf {
    workspace::root().join("tests/sdk")
}

/// Runs the Python driver; returns how many checks it has.
pub(super) fn python(tally: &mut Tally) -> Result<usize> {
    let environment = folder()?.join("venv");
    let requirements = sources().join("requirements.txt");
    let wanted = fs::read_to_string(&requirements).context("cannot read the list of SDKs")?;
    // Written last, so an installation that broke off is made anew.
    let installed = environment.join("installed.txt");
    if !fs::read_to_string(&installed).is_ok_and(|found| found == wanted) {
        let mut venv = Command::new("python3");
        process::run(venv.args(["-m", "venv", "--clear"]).arg(&environment))?;
        let mut pip = Command::new(environment.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check"]);
        process::run(pip.arg("--requirement").arg(&requirements))?;
        fs::write(&installed, wanted).context("cannot note what is installed")?;
    }
    let mut driver = Command::new(environment.join("bin/python"));
    driver.arg(sources().join("drive.py"));
    drive("Python SDK", &mut driver, tally)
}

/// Builds and runs the Go driver; returns how many checks it has.
pub(super) fn go(tally: &mut Tally) -> Result<usize> {
    let program = folder()?.join("drive-go");
    let mut build = Command::new("go");
    build.current_dir(sources().join("go"));
    build
        .args(["build", "-trimpath", "-o"])
        .arg(&program)
        .arg(".");
    process::run(&mut build)?;
    drive("Go SDK", &mut Command::new(program), tally)
}

fn drive(name: &str, driver: &mut Command, tally: &mut Tally) -> Result<usize> {
    let sim = Sim::start(KEY, &[])?;
    let output = driver.arg(&sim.url).args(KEY).output();
    let output = output.with_context(|| format!("cannot start the driver of the {name}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let (good, bad): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.ends_with(OK));
    for line in &bad {
        tally.difference(format!("{name}: {line}"));
    }
    if !output.status.success() && bad.is_empty() {
        let error = String::from_utf8_lossy(&output.stderr);
        tally.difference(format!("{name}: {}", error.trim()));
    }
    if good.is_empty() && bad.is_empty() {
        bail!("the driver of the {name} checked nothing");
    }
    let checks = good.len() + bad.len();
    tally.compared += checks;
    Ok(checks)
}
