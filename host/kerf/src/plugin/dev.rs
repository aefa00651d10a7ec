//! `kerf plugin dev`: build, test and, where there is something to plan, plan; with --watch again at each save.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::plugin::args::{Build, Dev, One, Test};
use crate::plugin::{Outcome, build, test};

/// How often the sources are looked at: sooner than a person turns from the editor to the terminal.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// What builds write, or what tools installed: changes there are no saves.
const NOT_SOURCES: [&str; 6] = [
    "build",
    "target",
    "node_modules",
    ".venv",
    "__pycache__",
    ".git",
];

pub(super) fn run(args: &Dev) -> Result<Outcome> {
    if !args.watch {
        return round(args);
    }
    let mut seen = sources(&args.folder)?;
    loop {
        tell(&round(args));
        seen = next_save(&args.folder, &seen)?;
    }
}

/// One round. What does not build or does not pass is told, and the next save is waited for.
fn tell(outcome: &Result<Outcome>) {
    let text = match outcome {
        Ok(outcome) => outcome.text.clone(),
        Err(error) => format!("error: {error:#}\n"),
    };
    // A reader that went away is no failure of ours.
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{text}waiting for a save");
    let _ = out.flush();
}

fn round(args: &Dev) -> Result<Outcome> {
    let built = build::build(&Build {
        folder: args.folder.clone(),
        output: None,
    })?;
    let tested = test::run(&Test {
        one: One {
            component: args.folder.clone(),
        },
        cases: None,
        lock_fuel: false,
    })?;
    let mut text = built.text + &tested.text;
    let component = built.json["component"].as_str().unwrap_or_default();
    let planned = match args.files.is_empty() {
        true => None,
        false => Some(plan(args, component)?),
    };
    text += planned.as_deref().unwrap_or_default();
    Ok(Outcome {
        text,
        json: json!({"build": built.json, "test": tested.json, "plan": planned}),
        is_good: tested.is_good,
    })
}

/// What `kerf simulate` says of the manifests with the policy, by a process of its own: it reads the world anew.
fn plan(args: &Dev, component: &str) -> Result<String> {
    let kerf = std::env::current_exe().context("cannot find the program kerf")?;
    let mut command = Command::new(kerf);
    command.arg("simulate").arg("-f").args(&args.files);
    command.args(["--policy", component]);
    if let Some(config) = &args.config {
        command.args(["--policy-config", config]);
    }
    let output = command.output().context("cannot run kerf simulate")?;
    let text = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Waits until a source is another than before.
fn next_save(folder: &Path, seen: &[(PathBuf, SystemTime)]) -> Result<Vec<(PathBuf, SystemTime)>> {
    loop {
        std::thread::sleep(LOOK_EVERY);
        let now = sources(folder)?;
        if now != seen {
            return Ok(now);
        }
    }
}

/// The files of the policy and when each was written, in order.
fn sources(folder: &Path) -> Result<Vec<(PathBuf, SystemTime)>> {
    let about = |path: &Path| format!("cannot read {}", path.display());
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).with_context(|| about(&folder))?;
        for entry in entries {
            let entry = entry.with_context(|| about(&folder))?;
            let is_source = NOT_SOURCES.iter().all(|name| entry.file_name() != *name);
            // A file that an editor has just moved away is none.
            let Some(file) = entry.metadata().ok().filter(|_| is_source) else {
                continue;
            };
            if file.is_dir() {
                folders.push(entry.path());
            } else if let Ok(written) = file.modified() {
                found.push((entry.path(), written));
            }
        }
    }
    found.sort();
    Ok(found)
}
