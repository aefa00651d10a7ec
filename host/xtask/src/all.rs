//! `cargo xtask bench all`: runs the measurements one after the other, keeps what they printed in docs/benchmarks.json, and
//! writes docs/benchmarks.md from that. Nothing in the table is written by hand.
//!
//! A day of measuring may be cut: `--only` runs some, `--missing` what has no result yet, and `--take` reads the output of a run
//! that was made already.

mod page;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Parser;
use jiff::Zoned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::workspace;
use table::{MEASUREMENTS, Measurement};

const RESULTS: &str = "docs/benchmarks.json";
const PAGE: &str = "docs/benchmarks.md";

/// Options of `all`.
#[derive(Debug, Parser)]
#[command(name = "all", no_binary_name = true)]
struct Args {
    /// Run only these, by their names in the table.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Run only what has no result yet.
    #[arg(long)]
    missing: bool,
    /// Read the output of a run that was made already, of the one measurement of `--only`.
    #[arg(long, value_name = "FILE")]
    take: Option<PathBuf>,
    /// Run nothing, and write the page from the results that there are.
    #[arg(long)]
    render: bool,
}

/// What one measurement said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Outcome {
    /// The day, as in 2026-01-31.
    on: String,
    /// What it ran on.
    machine: String,
    /// The last line that it printed.
    result: Value,
}

type Outcomes = BTreeMap<String, Outcome>;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let args = Args::try_parse_from(args)?;
    let mut outcomes = read()?;
    let mut failed = Vec::new();
    for measurement in wanted(&args, &outcomes)? {
        let printed = match &args.take {
            Some(file) => std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?,
            None => {
                eprintln!(
                    "{}: cargo xtask {}",
                    measurement.name,
                    measurement.args.join(" ")
                );
                let (printed, is_met) = measure(measurement)?;
                failed.extend((!is_met).then_some(measurement.name));
                printed
            }
        };
        let result = last_json(&printed)
            .with_context(|| format!("{} printed no JSON object", measurement.name))?;
        let outcome = Outcome {
            on: Zoned::now().date().to_string(),
            machine: machine(),
            result,
        };
        outcomes.insert(measurement.name.to_owned(), outcome);
        // What took an hour is kept before the next one begins.
        write(&outcomes)?;
    }
    write(&outcomes)?;
    if !failed.is_empty() {
        bail!("beyond their limits or failed: {}", failed.join(", "));
    }
    Ok(())
}

fn wanted(args: &Args, outcomes: &Outcomes) -> Result<Vec<&'static Measurement>> {
    if args.render {
        return Ok(Vec::new());
    }
    let known = |name: &String| MEASUREMENTS.iter().any(|it| it.name == name);
    if let Some(name) = args.only.iter().find(|name| !known(name)) {
        let names: Vec<&str> = MEASUREMENTS.iter().map(|it| it.name).collect();
        bail!("{name} is no measurement; there are {}", names.join(", "));
    }
    if args.take.is_some() && args.only.len() != 1 {
        bail!("--take needs --only with one name");
    }
    let chosen = MEASUREMENTS.iter().filter(|it| {
        let is_named = args.only.is_empty() || args.only.iter().any(|name| name == it.name);
        is_named && !(args.missing && outcomes.contains_key(it.name))
    });
    Ok(chosen.collect())
}

/// What it printed, and whether it was content with its figures.
fn measure(measurement: &Measurement) -> Result<(String, bool)> {
    let own = std::env::current_exe().context("no path of this program")?;
    let mut command = Command::new(own);
    command
        .args(measurement.args)
        .current_dir(workspace::root());
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", measurement.name))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok((printed, output.status.success()))
}

/// The last line that is an object; those before it tell of parts.
fn last_json(printed: &str) -> Option<Value> {
    let parse = |line: &str| serde_json::from_str::<Value>(line).ok();
    let mut objects = printed.lines().rev().filter_map(parse);
    objects.find(Value::is_object)
}

fn read() -> Result<Outcomes> {
    let path = workspace::root().join(RESULTS);
    if !path.exists() {
        return Ok(Outcomes::new());
    }
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {RESULTS}"))?;
    serde_json::from_str(&text).with_context(|| format!("{RESULTS} is not what this command wrote"))
}

fn write(outcomes: &Outcomes) -> Result<()> {
    let root = workspace::root();
    let text = serde_json::to_string_pretty(outcomes)? + "\n";
    std::fs::write(root.join(RESULTS), text).with_context(|| format!("cannot write {RESULTS}"))?;
    std::fs::write(root.join(PAGE), page::render(outcomes))
        .with_context(|| format!("cannot write {PAGE}"))
}

/// Cores, memory and kernel; no name of a host.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(Path::new(path)).unwrap_or_default();
    let memory = read("/proc/meminfo");
    let kib = memory.lines().find_map(|it| it.strip_prefix("MemTotal:"));
    let kib = kib.and_then(|it| it.split_whitespace().next()?.parse::<u64>().ok());
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let kernel = read("/proc/sys/kernel/osrelease");
    let version: Vec<&str> = kernel.trim().split(['.', '-']).take(2).collect();
    format!(
        "{cores} cores, {} GiB, Linux {}",
        kib.unwrap_or_default().div_ceil(1024 * 1024),
        version.join(".")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_object_counts_and_names_are_checked() {
        let printed = "{\"seed\":1}\nwords\n{\"all\":2}\n[3]\n";

        assert_eq!(last_json(printed), Some(serde_json::json!({"all": 2})));
        assert_eq!(last_json("words\n"), None);

        let parse = |args: &[&str]| Args::try_parse_from(args).unwrap();
        let wrong = wanted(&parse(&["--only", "nonsense"]), &Outcomes::new());
        assert!(wrong.unwrap_err().to_string().contains("there are"));
        let several = wanted(&parse(&["--take", "f"]), &Outcomes::new());
        assert!(several.unwrap_err().to_string().contains("--only"));
        let known = Outcome {
            on: String::new(),
            machine: String::new(),
            result: Value::Null,
        };
        let known = Outcomes::from([(MEASUREMENTS[0].name.to_owned(), known)]);
        let rest = wanted(&parse(&["--missing"]), &known).unwrap();
        assert_eq!(rest.len(), MEASUREMENTS.len() - 1);
    }

    #[test]
    fn the_page_is_what_the_results_say() {
        let path = workspace::root().join(PAGE);
        let there = std::fs::read_to_string(path).unwrap();

        assert_eq!(
            there,
            page::render(&read().unwrap()),
            "hint: cargo xtask bench all --render"
        );
    }
}
