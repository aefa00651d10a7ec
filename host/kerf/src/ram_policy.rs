//! `kerf ram-policy`: what the RAM role or user of the controller must be allowed, as RAM takes it.

use std::io::Write as _;

use anyhow::{Context as _, Result};

use crate::args::RamPolicy;

/// Prints it.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn run(args: &RamPolicy) -> Result<()> {
    let policy = kerf_cloud::ram_policy::ram_policy(args.node_role.as_deref());
    let text = serde_json::to_string_pretty(&policy)?;
    writeln!(std::io::stdout(), "{text}").context("cannot print the policy")
}
