//! Exit codes, one table for all subcommands, and the one place that prints an error with its causes.
//!
//! Code 1 is kept for findings: something is unschedulable, a check that was asked for failed.

use std::io::Write as _;
use std::process::ExitCode;

use crate::logging::Sinks;

/// The command did what it was asked to.
pub(crate) const OK: u8 = 0;
/// The command ran and found something: each finding is already printed.
pub(crate) const FOUND: u8 = 1;
/// The command could not run: bad arguments (clap's own code), an unreachable server, an unreadable file.
pub(crate) const FAILED: u8 = 2;
/// `controller`: leadership was lost or a task died; Kubernetes restarts the container.
pub(crate) const RESTART: u8 = 3;

/// Ctrl-C: what was known by then is printed. 128 and the number of the signal, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Ends the process because it must be started anew.
#[derive(Debug, thiserror::Error)]
#[error("{0}; the process ends so that it is started anew")]
pub(crate) struct Restart(pub(crate) String);

/// Ends the process because there were findings.
#[derive(Debug, thiserror::Error)]
#[error("{0} findings")]
pub(crate) struct Findings(pub(crate) usize);

/// Prints what went wrong and says how the process ends. The last words also go to `errors`, since what collects a log
/// may read one of the two outputs only.
pub(crate) fn code(result: anyhow::Result<()>, errors: &[String]) -> ExitCode {
    let Err(error) = result else {
        return ExitCode::from(OK);
    };
    if error.is::<Findings>() {
        return ExitCode::from(FOUND);
    }
    tracing::error!(error = %format!("{error:#}"), "kerf stops");
    if let Ok(mut sinks) = Sinks::open(errors) {
        // The log has it already.
        let _ = writeln!(sinks, "error: {error:#}");
    }
    ExitCode::from(if error.is::<Restart>() {
        RESTART
    } else {
        FAILED
    })
}

/// As [`code`], when there is no log yet.
pub(crate) fn unlogged(error: &anyhow::Error) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "error: {error:#}");
    ExitCode::from(FAILED)
}
