//! The `kerf` binary: arguments in, one subcommand run, one exit code out. Start at [`args`].

mod args;
mod controller;
mod convert;
mod exit;
mod logging;
mod validate;

use clap::Parser;

use crate::args::{Args, Command};

fn main() -> std::process::ExitCode {
    let args = Args::parse();
    logging::start(&args.log);
    let result = match args.command {
        Command::Controller(controller) => controller::run(*controller),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Validate(arguments) => validate::run(&arguments),
    };
    exit::code(result)
}
