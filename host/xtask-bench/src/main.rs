//! What `cargo xtask bench` measures. It is a program of its own because it is always built for release, and the rest
//! of xtask (CRDs, the control plane) would make that build minutes long and the measured memory wrong.
//!
//! Each subcommand makes an input, times one call of kerf-core on it, and prints one JSON object. Start at
//! [`scheduling`], [`consolidation`] and [`replay`].
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this command talks to a person at a terminal"
)]

mod consolidation;
mod dice;
mod memory;
mod replay;
mod scheduling;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

/// Times decisions. Run it as `cargo xtask bench`, which builds it for release.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", disable_help_subcommand = true)]
enum Command {
    /// One scheduling round on an empty cluster.
    Scheduling(scheduling::Args),
    /// Consolidation of a fleet that is a third full.
    Consolidation(consolidation::Args),
    /// Days of a production trace with consolidation, ours and upstream's.
    ReplayTrace(replay::Args),
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    match Command::parse() {
        Command::Scheduling(args) => scheduling::run(&args),
        Command::Consolidation(args) => consolidation::run(&args),
        Command::ReplayTrace(args) => replay::run(&args),
    }
}
