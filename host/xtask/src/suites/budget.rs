//! `tests/budget.toml`: how many seconds of wall time each suite may take.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::outcome::Outcome;
use crate::workspace;

const FILE: &str = "tests/budget.toml";
/// The long tier runs the same suites with more cases in them; it is watched for hanging, not for speed.
const LONG_TIER_FACTOR: u32 = 20;

#[derive(Debug)]
pub(super) struct Budgets {
    by_suite: BTreeMap<String, Duration>,
}

impl Budgets {
    pub(super) fn read() -> Result<Self> {
        let text = std::fs::read_to_string(workspace::root().join(FILE))
            .with_context(|| format!("cannot read {FILE}"))?;
        parse(&text)
    }

    /// `None` where the suite has none, which fails it: a suite without a limit grows.
    pub(super) fn of(&self, suite: &str, long: bool) -> Option<Duration> {
        let factor = if long { LONG_TIER_FACTOR } else { 1 };
        self.by_suite.get(suite).map(|budget| *budget * factor)
    }

    /// Budgets for suites that are no more.
    pub(super) fn stale(&self, outcomes: &[Outcome]) -> Vec<String> {
        let is_stale = |name: &&String| outcomes.iter().all(|outcome| outcome.name != **name);
        self.by_suite
            .keys()
            .filter(is_stale)
            .map(|name| format!("{FILE} has `{name}`, which ran no test"))
            .collect()
    }
}

/// The part of TOML that the file needs: `"suite" = seconds`, comments, and the one table header.
fn parse(text: &str) -> Result<Budgets> {
    let mut by_suite = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() || line == "[suites]" {
            continue;
        }
        let parsed = line.split_once('=').and_then(|(name, seconds)| {
            let seconds: u64 = seconds.trim().parse().ok()?;
            Some((
                name.trim().trim_matches('"').to_owned(),
                Duration::from_secs(seconds),
            ))
        });
        let Some((name, budget)) = parsed else {
            bail!(
                "{FILE}:{}: want `\"suite\" = seconds`, found `{line}`",
                index + 1
            );
        };
        by_suite.insert(name, budget);
    }
    Ok(Budgets { by_suite })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_seconds_by_suite() {
        let budgets =
            parse("# why\n[suites]\n\"it::wire\" = 30 # slow server\nkerf-core = 5\n").unwrap();

        assert_eq!(budgets.of("it::wire", false), Some(Duration::from_secs(30)));
        assert_eq!(
            budgets.of("kerf-core", true),
            Some(Duration::from_secs(100))
        );
        assert_eq!(budgets.of("kerf-api", false), None);
    }

    #[test]
    fn a_line_that_is_no_budget_is_refused() {
        let error = parse("kerf-core = fast").unwrap_err();

        assert_eq!(
            error.to_string(),
            "tests/budget.toml:1: want `\"suite\" = seconds`, found `kerf-core = fast`"
        );
    }
}
