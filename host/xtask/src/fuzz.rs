//! `cargo xtask fuzz`: the targets of tests/src/fuzz under libFuzzer, first with their planted bugs, which must be found, and
//! then without, where nothing may be.
//!
//! The flags let libFuzzer see which paths an input takes. They are options of LLVM that a stable compiler passes on, so
//! that no other toolchain is needed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::{process, workspace};

/// What a planted bug says.
const MARK: &str = "the planted bug";
const FLAGS: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];
/// With a target named, build scripts are built without the flags.
const HOST: &str = "x86_64-unknown-linux-gnu";
/// What a reader of 64 KiB may take, with libFuzzer's own tables; more is a finding.
const RSS_MAX_MIB: u32 = 1024;
/// For one input; more is a finding.
const INPUT_TIMEOUT_SECS: u32 = 10;
const INPUT_BYTES_MAX: u32 = 64 << 10;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these targets.
    #[arg(long, value_delimiter = ',')]
    targets: Vec<String>,
    /// For each target without its bug, and at most for finding the bug.
    #[arg(long, default_value_t = 180)]
    seconds: u64,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
    /// Start what is built already.
    #[arg(long)]
    no_build: bool,
}

/// What one run of libFuzzer came to.
struct Run {
    seconds: f64,
    executions: u64,
    /// What it said last, where it ended with a finding.
    finding: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let folder = workspace::root().join("fuzz/target");
    if !args.no_build {
        build(&folder)?;
    }
    let (mut results, mut problems) = (Vec::new(), Vec::new());
    for target in chosen(args, &folder)? {
        eprintln!("{target} …");
        let (result, problem) = look_at(&target, &folder, args.seconds)?;
        if !args.json {
            println!("{result}");
        }
        results.push(result);
        problems.extend(problem);
    }
    if args.json {
        let findings: u64 = results
            .iter()
            .filter_map(|it| it["findings"].as_u64())
            .sum();
        let missed = results
            .iter()
            .filter(|it| it["plantedFound"] == false)
            .count();
        println!(
            "{}",
            json!({"results": results, "findings": findings, "plantedMissed": missed})
        );
    }
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

/// The targets that are meant, each with a corpus of good inputs; what earlier runs learned is gone, so that a result can
/// be had again.
fn chosen(args: &Args, folder: &Path) -> Result<Vec<String>> {
    let corpus = folder.join("corpus");
    if corpus.exists() {
        fs::remove_dir_all(&corpus)?;
    }
    process::run(Command::new(folder.join(HOST).join("release/seeds")).arg(&corpus))?;
    let mut all = Vec::new();
    for entry in fs::read_dir(&corpus)? {
        all.push(entry?.file_name().to_string_lossy().into_owned());
    }
    all.sort();
    if let Some(name) = args.targets.iter().find(|name| !all.contains(name)) {
        bail!("there is no target {name}; there are {}", all.join(", "));
    }
    all.retain(|name| args.targets.is_empty() || args.targets.contains(name));
    Ok(all)
}

/// Everything is built with the flags, and in a folder of its own: their paths are what guides the fuzzer.
fn build(folder: &Path) -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(workspace::root().join("fuzz"))
        .args([
            "build",
            "--locked",
            "--release",
            "--target",
            HOST,
            "--target-dir",
        ])
        .arg(folder)
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}"));
    process::run(&mut cargo)
}

fn look_at(target: &str, folder: &Path, seconds: u64) -> Result<(Value, Vec<String>)> {
    let planted = fuzz(target, folder, seconds, true)?;
    let clean = fuzz(target, folder, seconds, false)?;
    let mut problems = Vec::new();
    let is_found = planted.finding.as_ref().is_some_and(|it| it.contains(MARK));
    if !is_found {
        let instead = planted.finding.unwrap_or_default();
        problems.push(format!(
            "{target}: the planted bug was not found in {seconds} s {instead}"
        ));
    }
    if let Some(finding) = &clean.finding {
        problems.push(format!("{target}: {finding}"));
    }
    let result = json!({
        "target": target, "seconds": clean.seconds, "executions": clean.executions,
        "findings": usize::from(clean.finding.is_some()),
        "plantedFound": is_found, "plantedSeconds": planted.seconds, "plantedExecutions": planted.executions,
    });
    Ok((result, problems))
}

fn fuzz(target: &str, folder: &Path, seconds: u64, is_planted: bool) -> Result<Run> {
    let findings = folder.join("findings").join(target);
    fs::create_dir_all(&findings)?;
    let program = folder.join(HOST).join("release/kerf-fuzz");
    let mut command = Command::new(&program);
    command
        .arg(folder.join("corpus").join(target))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-rss_limit_mb={RSS_MAX_MIB}"))
        .arg(format!("-timeout={INPUT_TIMEOUT_SECS}"))
        .arg(format!("-max_len={INPUT_BYTES_MAX}"))
        .args(["-seed=1", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={}/", findings.display()))
        .env("KERF_FUZZ_TARGET", target)
        .stdin(Stdio::null());
    if is_planted {
        command.env("KERF_FUZZ_PLANTED", "1");
    }
    let started = Instant::now();
    let output = command
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    Ok(Run {
        seconds: started.elapsed().as_secs_f64(),
        executions: executions(&said),
        finding: (!output.status.success()).then(|| finding(&said)),
    })
}

/// From `stat::number_of_executed_units: 123`, or the last `#123` where it ended early.
fn executions(said: &str) -> u64 {
    let stat = said
        .lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    let last = || {
        let marks = said.lines().filter_map(|line| line.strip_prefix('#'));
        marks
            .filter_map(|line| line.split_whitespace().next())
            .next_back()
    };
    stat.map(str::trim)
        .or_else(last)
        .and_then(|it| it.parse().ok())
        .unwrap_or_default()
}

/// The panic or libFuzzer's word for it, and the file with the input.
fn finding(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    let is_told = |line: &&&str| {
        ["panicked at", "SUMMARY", "Test unit written to", MARK]
            .iter()
            .any(|part| line.contains(part))
    };
    let told: Vec<&str> = lines.iter().filter(is_told).copied().collect();
    told.join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_and_findings_are_read_from_what_libfuzzer_says() {
        let ended =
            "#2 INITED\n#512 NEW\nthread panicked at a.rs:1\nTest unit written to /x/crash-1\n";

        assert_eq!(executions(ended), 512);
        assert_eq!(executions("stat::number_of_executed_units: 4096\n"), 4096);
        assert!(finding(ended).contains("a.rs:1 | Test unit"));
    }
}
