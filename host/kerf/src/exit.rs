//! Exit codes, one table for all subcommands, and the one place that prints an error with its causes.
//!
//! Code 1 is kept for findings: something is unschedulable, a check that was asked for failed.

use std::process::ExitCode;

/// The command did what it was asked to.
pub(crate) const OK: u8 = 0;
/// The command ran and found something: each finding is already printed.
pub(crate) const FOUND: u8 = 1;
/// The command could not run: bad arguments (clap's own code), an unreachable server, an unreadable file.
pub(crate) const FAILED: u8 = 2;
/// `controller`: leadership was lost or a task died; Kubernetes restarts the container.
pub(crate) const RESTART: u8 = 3;

/// Ends the process because it must be started anew.
#[derive(Debug, thiserror::Error)]
#[error("{0}; the process ends so that it is started anew")]
pub(crate) struct Restart(pub(crate) String);

/// Ends the process because there were findings.
#[derive(Debug, thiserror::Error)]
#[error("{0} findings")]
pub(crate) struct Findings(pub(crate) usize);

/// Prints what went wrong and says how the process ends.
pub(crate) fn code(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else {
        return ExitCode::from(OK);
    };
    if error.is::<Findings>() {
        return ExitCode::from(FOUND);
    }
    tracing::error!(error = %format!("{error:#}"), "kerf stops");
    ExitCode::from(if error.is::<Restart>() {
        RESTART
    } else {
        FAILED
    })
}
