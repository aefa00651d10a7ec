//! Disruption budgets: how many nodes of a pool may go at once, for a reason, now.

use jiff::{SignedDuration, Timestamp};

use crate::disruption::cron::Cron;
use crate::sabotage::{self, Sabotage};

/// Why a node goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DisruptionReason {
    /// Its pods fit elsewhere or on something cheaper.
    Underutilized,
    /// It has no pods.
    Empty,
    /// It differs from what its NodePool or NodeClass asks for.
    Drifted,
}

impl DisruptionReason {
    /// The name in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Underutilized => "Underutilized",
            Self::Empty => "Empty",
            Self::Drifted => "Drifted",
        }
    }

    /// The reason of that name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Underutilized, Self::Empty, Self::Drifted]
            .into_iter()
            .find(|reason| reason.as_str() == text)
    }
}

/// How many nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetNodes {
    /// That many.
    Count(u32),
    /// That share of the pool's nodes, rounded up.
    Percent(u32),
}

impl BudgetNodes {
    /// Parses `5` or `10%`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => percent
                .parse()
                .ok()
                .filter(|percent| *percent <= 100)
                .map(Self::Percent),
            None => text.parse().ok().map(Self::Count),
        }
    }

    fn of(self, total: u32) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => {
                let share = (u64::from(total) * u64::from(percent)).div_ceil(100);
                u32::try_from(share).unwrap_or(u32::MAX)
            }
        }
    }
}

/// When a budget holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BudgetWindow {
    /// Always.
    Always,
    /// From each time of the schedule, for a while.
    Scheduled {
        /// When it opens.
        schedule: Cron,
        /// How long it stays open.
        duration: SignedDuration,
    },
    /// The schedule could not be read; nothing may go until it is corrected.
    Invalid {
        /// What is wrong.
        message: String,
    },
}

/// One disruption budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// How many nodes may go at once while it holds.
    pub nodes: BudgetNodes,
    /// The reasons that it is for; empty means all.
    pub reasons: Vec<DisruptionReason>,
    /// When it holds.
    pub window: BudgetWindow,
}

impl Default for Budget {
    /// The API's default: a tenth of the nodes, always.
    fn default() -> Self {
        Self {
            nodes: BudgetNodes::Percent(10),
            reasons: Vec::new(),
            window: BudgetWindow::Always,
        }
    }
}

impl Budget {
    /// How many of `total` nodes may go; none when it does not hold now or is for other reasons.
    ///
    /// Karpenter: differs, because there an explicitly empty list of reasons matches nothing, which helps nobody.
    fn allowed(&self, total: u32, reason: DisruptionReason, now: Timestamp) -> Option<u32> {
        if !self.reasons.is_empty() && !self.reasons.contains(&reason) {
            return None;
        }
        match &self.window {
            BudgetWindow::Always => Some(self.nodes.of(total)),
            BudgetWindow::Invalid { .. } => Some(0),
            BudgetWindow::Scheduled { schedule, duration } => schedule
                .is_within(*duration, now)
                .then(|| self.nodes.of(total)),
        }
    }
}

/// How many of `total` nodes all budgets together allow to be away at once. Without any that holds: all.
pub fn allowed_disruptions(
    budgets: &[Budget],
    total: u32,
    reason: DisruptionReason,
    now: Timestamp,
) -> u32 {
    let allowed = budgets
        .iter()
        .filter_map(|budget| budget.allowed(total, reason, now))
        .min()
        .unwrap_or(total);
    allowed.saturating_add(u32::from(sabotage::is_on(Sabotage::BudgetOffByOne)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(nodes: &str, reasons: &[DisruptionReason], window: BudgetWindow) -> Budget {
        Budget {
            nodes: BudgetNodes::parse(nodes).unwrap(),
            reasons: reasons.to_vec(),
            window,
        }
    }

    fn check(budgets: &[Budget], expected: u32) {
        let now = "2026-08-20T10:00:00Z".parse().unwrap();
        assert_eq!(
            allowed_disruptions(budgets, 15, DisruptionReason::Empty, now),
            expected
        );
    }

    #[test]
    fn the_tightest_budget_that_holds_counts() {
        let window = |schedule| BudgetWindow::Scheduled {
            schedule: Cron::parse(schedule).unwrap(),
            duration: SignedDuration::from_hours(8),
        };
        check(&[], 15);
        check(&[Budget::default()], 2);
        check(
            &[
                budget("100%", &[], BudgetWindow::Always),
                budget("3", &[], BudgetWindow::Always),
            ],
            3,
        );
        check(
            &[budget(
                "0",
                &[DisruptionReason::Drifted],
                BudgetWindow::Always,
            )],
            15,
        );
        check(
            &[
                budget("0", &[], window("0 9 * * *")),
                budget("5", &[], BudgetWindow::Always),
            ],
            0,
        );
        check(
            &[
                budget("0", &[], window("0 1 * * *")),
                budget("5", &[], BudgetWindow::Always),
            ],
            5,
        );
        check(
            &[budget(
                "5",
                &[],
                BudgetWindow::Invalid {
                    message: "x".to_owned(),
                },
            )],
            0,
        );
    }

    #[test]
    fn nodes_are_a_count_or_a_percentage() {
        assert_eq!(BudgetNodes::parse("7"), Some(BudgetNodes::Count(7)));
        assert_eq!(BudgetNodes::parse("101%"), None);
        assert_eq!(BudgetNodes::parse("-1"), None);
    }
}
