//! The state of the sources that something is made from: its time and its version.

use std::process::Command;

use anyhow::{Context, Result};

use crate::{process, workspace};

/// The version of the workspace, which is the one of everything that is shipped.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Seconds since 1970 that everything is said to be of: `SOURCE_DATE_EPOCH`, or when the commit was made.
pub(crate) fn time() -> Result<i64> {
    if let Some(given) = std::env::var_os("SOURCE_DATE_EPOCH") {
        let text = given.to_string_lossy().into_owned();
        return text
            .parse()
            .with_context(|| format!("SOURCE_DATE_EPOCH={text} is no number of seconds"));
    }
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"])
        .current_dir(workspace::root());
    let printed = process::output(&mut git).context("hint: without git, set SOURCE_DATE_EPOCH")?;
    printed.trim().parse().context("git's time of the commit")
}

/// That time as RFC 3339 has it.
pub(crate) fn timestamp(time: i64) -> Result<String> {
    Ok(jiff::Timestamp::from_second(time)?.to_string())
}
