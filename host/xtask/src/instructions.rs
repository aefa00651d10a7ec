//! `cargo xtask bench instructions`: how many instructions planning and consolidation take, beside what was recorded.
//!
//! Times on a machine that others use too differ by a tenth and more; instructions do not. valgrind counts them, and
//! `make test` fails where one of the cores takes a fifth more than the record says. A change that is worth it records anew:
//! `--record`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde_json::{Value, json};

use crate::{bench, process, workspace};

const RECORD: &str = "host/xtask/data/instructions.json";
/// What the issue asks for: another compiler and another C library stay below it.
const MORE_MAX_PERCENT: u64 = 20;
/// Beyond that the record is of another program, and regressions up to it would go unseen.
const LESS_MAX_PERCENT: u64 = 30;

/// What is counted: of planning the difference between two plans and one, so that making the pods is not in it.
const CASES: [Case; 3] = [
    Case {
        name: "scheduling 2,000 pods",
        once: &["scheduling", "--pods", "2000", "--json"],
        twice: &["scheduling", "--pods", "2000", "--repeat", "2", "--json"],
    },
    Case {
        name: "scheduling 500 pods of which no two are alike",
        once: &["scheduling", "--pods", "500", "--distinct", "--json"],
        twice: &[
            "scheduling",
            "--pods",
            "500",
            "--distinct",
            "--repeat",
            "2",
            "--json",
        ],
    },
    Case {
        name: "consolidation of 100 nodes to the fixed point",
        once: &[],
        twice: &[
            "consolidation",
            "--nodes",
            "100",
            "--to-fixed-point",
            "--json",
        ],
    },
];

/// Options of `instructions`.
#[derive(Debug, Parser)]
#[command(name = "instructions", no_binary_name = true)]
struct Args {
    /// Write what is counted into the record.
    #[arg(long)]
    record: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

struct Case {
    name: &'static str,
    /// Taken off; nothing where it is empty.
    once: &'static [&'static str],
    twice: &'static [&'static str],
}

type Counts = BTreeMap<String, u64>;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let args = Args::try_parse_from(args)?;
    let program = build()?;
    let counted = CASES
        .iter()
        .map(|case| Ok((case.name.to_owned(), case.count(&program)?)));
    let counted = counted.collect::<Result<Counts>>()?;
    if args.record {
        let text = serde_json::to_string_pretty(&counted)? + "\n";
        return std::fs::write(record(), text).with_context(|| format!("cannot write {RECORD}"));
    }
    let recorded =
        std::fs::read_to_string(record()).with_context(|| format!("cannot read {RECORD}"))?;
    let recorded: Counts =
        serde_json::from_str(&recorded).with_context(|| format!("{RECORD} is no record"))?;
    let cases = counted.iter().map(|(name, count)| {
        (
            name.clone(),
            json!({"instructions": count, "recorded": recorded.get(name)}),
        )
    });
    let cases: serde_json::Map<String, Value> = cases.collect();
    bench::report(args.json, &Value::Object(cases));
    let problems = problems(&counted, &recorded);
    if !problems.is_empty() {
        bail!(
            "{}; hint: where that is meant, cargo xtask bench instructions --record",
            problems.join("; ")
        );
    }
    Ok(())
}

/// What differs from the record by more than may be.
fn problems(counted: &Counts, recorded: &Counts) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, count) in counted {
        let Some(before) = recorded.get(name) else {
            problems.push(format!("{name}: not in {RECORD}"));
            continue;
        };
        let percent = count.saturating_mul(100) / before.max(&1);
        if percent > 100 + MORE_MAX_PERCENT {
            problems.push(format!(
                "{name}: {count} instructions, {} % more than the {before} recorded",
                percent - 100
            ));
        } else if percent < 100 - LESS_MAX_PERCENT {
            problems.push(format!(
                "{name}: {count} instructions, {} % less than the {before} recorded",
                100 - percent
            ));
        }
    }
    let gone = recorded.keys().filter(|name| !counted.contains_key(*name));
    problems.extend(gone.map(|name| format!("{name}: recorded, and not counted any more")));
    problems
}

impl Case {
    fn count(&self, program: &Path) -> Result<u64> {
        let both = counted(program, self.twice).with_context(|| self.name.to_owned())?;
        let one = if self.once.is_empty() {
            0
        } else {
            counted(program, self.once).with_context(|| self.name.to_owned())?
        };
        Ok(both.saturating_sub(one))
    }
}

/// The instructions of one run.
fn counted(program: &Path, args: &[&str]) -> Result<u64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    let output = valgrind.arg(program).args(args).output();
    let output = output.context("cannot start valgrind; hint: apt-get install valgrind")?;
    let told = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{}: {told}", output.status);
    }
    total(&told).with_context(|| format!("valgrind told no count: {told}"))
}

/// `==123== Collected : 4567`
fn total(told: &str) -> Option<u64> {
    let line = told.lines().find(|line| line.contains("Collected"))?;
    line.rsplit_once(':')?.1.trim().parse().ok()
}

fn build() -> Result<PathBuf> {
    let mut cargo = process::cargo();
    cargo.args([
        "build",
        "--locked",
        "--release",
        "--quiet",
        "--package",
        "xtask-bench",
    ]);
    process::run(&mut cargo)?;
    let own = std::env::current_exe().context("no path of this program")?;
    let folder = own
        .parent()
        .and_then(Path::parent)
        .context("no folder of programs")?;
    Ok(folder.join("release/xtask-bench"))
}

fn record() -> PathBuf {
    workspace::root().join(RECORD)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(rows: &[(&str, u64)]) -> Counts {
        rows.iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect()
    }

    #[test]
    fn a_fifth_more_is_told_and_less_is_not_taken_silently() {
        let recorded = counts(&[("a", 1000), ("b", 1000), ("c", 1000), ("gone", 1)]);
        let counted = counts(&[("a", 1200), ("b", 1211), ("c", 600), ("new", 1)]);

        let problems = problems(&counted, &recorded);

        assert_eq!(problems.len(), 4, "{problems:?}");
        assert!(problems[0].starts_with("b: 1211 instructions, 21 % more"));
        assert!(problems[1].starts_with("c: 600 instructions, 40 % less"));
        assert!(problems[2].starts_with("new: not in"));
        assert!(problems[3].starts_with("gone: recorded"));
    }

    #[test]
    fn valgrinds_words_are_read() {
        assert_eq!(
            total("==7== Events    : Ir\n==7== Collected : 4567\n"),
            Some(4567)
        );
        assert_eq!(total("==7== nothing"), None);
    }
}
