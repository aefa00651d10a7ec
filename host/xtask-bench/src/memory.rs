//! How much memory this process has had at most, as the kernel counts it.

use anyhow::{Context, Result};

/// The peak of the resident set in MiB.
pub(crate) fn peak_rss_mib() -> Result<f64> {
    const STATUS: &str = "/proc/self/status";
    let status =
        std::fs::read_to_string(STATUS).with_context(|| format!("cannot read {STATUS}"))?;
    let kibibytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .with_context(|| format!("{STATUS} has no VmHWM in kB"))?;
    let kibibytes: f64 = kibibytes.trim().parse().context("VmHWM is no number")?;
    Ok(kibibytes / 1024.0)
}
