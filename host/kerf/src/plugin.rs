//! `kerf plugin`: from nothing to a policy that serves. One file per command; [`component`] reads what they are about.

pub(crate) mod args;
mod bench;
mod build;
mod case;
mod check;
mod cluster;
mod component;
mod dev;
mod publish;
mod push;
mod question;
mod record;
mod replay;
mod run;
mod test;
mod verify;

use std::io::Write as _;
use std::process::ExitCode;

use serde_json::Value;

use crate::exit;
use crate::plugin::args::{Command, Plugin};

/// What a command found.
pub(crate) struct Outcome {
    /// For people.
    pub(crate) text: String,
    /// The same for programs.
    pub(crate) json: Value,
    /// Whether what was checked is as it should be.
    pub(crate) is_good: bool,
}

/// A tool or a cluster that a command needs is not there.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Environment(pub(crate) String);

/// Runs and says how the process ends: 0 good, 1 a check failed, 2 could not run, 3 something is missing on this machine.
pub(crate) fn run(plugin: &Plugin) -> ExitCode {
    let outcome = match &plugin.command {
        Command::New(args) => build::create(args),
        Command::Build(args) => build::build(args),
        Command::Dev(args) => dev::run(args),
        Command::Check(args) => check::check(args),
        Command::Inspect(args) => check::inspect(args),
        Command::Config(args) => check::configuration(args),
        Command::Verify(args) => verify::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Record(args) => record::run(args),
        Command::Run(args) => run::run(args),
        Command::Test(args) => test::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Publish(args) => publish::publish(args),
        Command::Rollback(args) => publish::rollback(args),
        Command::Ls(args) => cluster::list(args),
        Command::Doctor(args) => build::doctor(args),
    };
    match outcome {
        Ok(outcome) => {
            let text = if plugin.json {
                format!("{}\n", outcome.json)
            } else {
                outcome.text
            };
            // A reader that went away, such as `head`, is no failure of ours.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::from(if outcome.is_good {
                exit::OK
            } else {
                exit::FOUND
            })
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::from(if error.is::<Environment>() {
                exit::RESTART
            } else {
                exit::FAILED
            })
        }
    }
}
