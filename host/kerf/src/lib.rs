//! The `kerf` binary as a library, so that tests can reach its parts: arguments in, one subcommand run, one exit code out.
//! Start at `args`.

mod adopt;
mod api_server;
mod args;
mod catalog;
mod cloud;
mod compile_policy;
mod controller;
mod convert;
mod doctor;
mod document;
mod exit;
mod explain;
mod input;
mod logging;
mod output;
mod plugin;
mod policy_keys;
mod ram_policy;
mod shell;
mod simulate;
mod snapshot;
mod validate;
mod work;

use clap::Parser;
use kerf_controllers::hot::SetLevel;

use crate::args::{Args, Command};

pub use convert::converted;

/// Does what the process's arguments say.
#[must_use]
pub fn main() -> std::process::ExitCode {
    let args = Args::parse();
    let errors = match &args.command {
        Command::Controller(controller) => controller.process.log_error_output_paths.clone(),
        _ => Vec::new(),
    };
    let set_level = match start_logging(&args) {
        Ok(set_level) => set_level,
        Err(error) => return exit::unlogged(&error),
    };
    let result = match args.command {
        Command::Adopt(arguments) => adopt::run(&arguments),
        Command::Catalog(arguments) => catalog::run(&arguments),
        Command::Controller(controller) => controller::run(*controller, set_level),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::CompilePolicy(arguments) => return compile_policy::run(&arguments),
        Command::Completions(arguments) => shell::completions(&arguments),
        Command::Man(arguments) => shell::man(&arguments),
        Command::RamPolicy(arguments) => ram_policy::run(&arguments),
        Command::Validate(arguments) => validate::run(&arguments),
        Command::Snapshot(arguments) => snapshot::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Explain(arguments) => return explain::run(&arguments),
        Command::Plugin(arguments) => return plugin::run(&arguments),
        Command::Simulate(arguments) => return simulate::run(&arguments),
        Command::Diff(arguments) => return simulate::diff::run(&arguments),
    };
    exit::code(result, &errors)
}

/// What a subcommand prints is its result, so that its log goes elsewhere.
fn start_logging(args: &Args) -> anyhow::Result<SetLevel> {
    let default = ["stderr".to_owned()];
    let paths = match &args.command {
        Command::Controller(controller) => &controller.process.log_output_paths[..],
        _ => &default,
    };
    logging::start(&args.log, paths)
}
