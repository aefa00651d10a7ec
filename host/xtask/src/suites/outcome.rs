//! What came of a suite, and the table at the end.

use std::time::Duration;

use super::seconds;

#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) name: String,
    pub(super) counts: Counts,
    /// The tests that the binary listed before.
    pub(super) expected: usize,
    pub(super) is_success: bool,
    /// It was still running long after its budget.
    pub(super) is_stopped: bool,
    pub(super) wall: Duration,
    pub(super) budget: Option<Duration>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: usize,
    pub(super) failed: usize,
}

impl Counts {
    /// Reads `test result: ok. 12 passed; 0 failed; …`.
    pub(super) fn read(output: &str) -> Self {
        let count = |line: &str, what: &str| {
            let words: Vec<&str> = line
                .split([' ', ';'])
                .filter(|word| !word.is_empty())
                .collect();
            let at = words.iter().position(|word| *word == what)?;
            words.get(at.checked_sub(1)?)?.parse().ok()
        };
        let result = output
            .lines()
            .rev()
            .find(|line| line.starts_with("test result:"))
            .unwrap_or_default();
        Self {
            passed: count(result, "passed").unwrap_or(0),
            failed: count(result, "failed").unwrap_or(0),
        }
    }
}

impl Outcome {
    /// Why this suite fails, in one line, or `None`.
    pub(super) fn failure(&self) -> Option<String> {
        let Self {
            name,
            counts,
            expected,
            is_success,
            is_stopped,
            wall,
            budget,
        } = self;
        let wall = seconds(*wall);
        let Some(budget) = budget else {
            return Some(format!(
                "{name}: no budget; it took {wall}: add it to tests/budget.toml"
            ));
        };
        if *is_stopped {
            return Some(format!(
                "{name}: stopped after {wall}, budget {}",
                seconds(*budget)
            ));
        }
        if !is_success || counts.failed > 0 {
            let log = format!("target/test-logs/{}.log", name.replace("::", "-"));
            return Some(format!(
                "{name}: {} of {expected} tests failed; see {log}",
                counts.failed
            ));
        }
        if counts.passed != *expected {
            return Some(format!("{name}: {} of {expected} tests ran", counts.passed));
        }
        (self.wall > *budget).then(|| format!("{name}: took {wall}, budget {}", seconds(*budget)))
    }
}

pub(super) fn print(outcomes: &[Outcome], total: Duration) {
    let width = outcomes
        .iter()
        .map(|outcome| outcome.name.len())
        .max()
        .unwrap_or(0)
        .max("suite".len());
    println!(
        "\n{:width$}  {:>6}  {:>9}  {:>9}",
        "suite", "tests", "wall", "budget"
    );
    for outcome in outcomes {
        let budget = outcome.budget.map_or_else(|| "none".to_owned(), seconds);
        let mark = if outcome.failure().is_some() {
            "  FAILED"
        } else {
            ""
        };
        let Outcome {
            name, counts, wall, ..
        } = outcome;
        println!(
            "{name:width$}  {:>6}  {:>9}  {budget:>9}{mark}",
            counts.passed,
            seconds(*wall)
        );
    }
    let passed: usize = outcomes.iter().map(|outcome| outcome.counts.passed).sum();
    let failed: usize = outcomes.iter().map(|outcome| outcome.counts.failed).sum();
    println!(
        "{:width$}  {passed:>6}  {:>9}  with checks and builds\n",
        "total",
        seconds(total)
    );
    println!("{passed} passed, {failed} failed");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        Outcome {
            name: "it::wire".to_owned(),
            counts: Counts {
                passed: 3,
                failed: 0,
            },
            expected: 3,
            is_success: true,
            is_stopped: false,
            wall: Duration::from_secs(4),
            budget: Some(Duration::from_secs(5)),
        }
    }

    #[test]
    fn counts_are_read_from_the_closing_line() {
        let output =
            "running 2 tests\ntest result: FAILED. 12 passed; 1 failed; 0 ignored; 0 measured\n";

        assert_eq!(
            Counts::read(output),
            Counts {
                passed: 12,
                failed: 1
            }
        );
        assert_eq!(Counts::read("killed"), Counts::default());
    }

    #[test]
    fn an_overrun_fails_with_the_name_and_both_figures() {
        let slow = Outcome {
            wall: Duration::from_secs(6),
            ..outcome()
        };

        assert_eq!(outcome().failure(), None);
        assert_eq!(
            slow.failure().unwrap(),
            "it::wire: took 6.0 s, budget 5.0 s"
        );
    }

    #[test]
    fn a_suite_that_ends_early_fails() {
        let early = Outcome {
            counts: Counts {
                passed: 2,
                failed: 0,
            },
            ..outcome()
        };

        assert_eq!(early.failure().unwrap(), "it::wire: 2 of 3 tests ran");
    }

    #[test]
    fn a_suite_without_a_budget_fails() {
        let unlimited = Outcome {
            budget: None,
            ..outcome()
        };

        assert_eq!(
            unlimited.failure().unwrap(),
            "it::wire: no budget; it took 4.0 s: add it to tests/budget.toml"
        );
    }
}
