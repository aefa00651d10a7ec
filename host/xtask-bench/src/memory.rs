//! How much memory this process has had at most and how long it has run on a core, as the kernel counts both.

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

/// How long this thread has been on a core: on a machine that others use too, what the time on the clock is not.
pub(crate) fn cpu_seconds() -> Result<f64> {
    const SCHEDSTAT: &str = "/proc/thread-self/schedstat";
    let text =
        std::fs::read_to_string(SCHEDSTAT).with_context(|| format!("cannot read {SCHEDSTAT}"))?;
    let first = text.split_whitespace().next();
    let nanos: f64 = first
        .and_then(|nanos| nanos.parse().ok())
        .with_context(|| format!("{SCHEDSTAT} has no time"))?;
    Ok(nanos / 1e9)
}
