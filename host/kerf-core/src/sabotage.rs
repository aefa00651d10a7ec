//! Guards that a test build can do without, to prove that whoever watches the controller from outside would notice.
//!
//! As [`planted`](crate::planted), but for a whole process: the guards are spread over its tasks. They exist in builds with
//! debug assertions only; elsewhere the question is answered at compile time.

use std::fmt;
use std::str::FromStr;
#[cfg(debug_assertions)]
use std::sync::OnceLock;

/// A guard that is out of order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// A launch is not written down before it is asked for.
    NoWriteAhead,
    /// Machines that no claim names are deleted at first sight, those of launches under way too.
    NoGarbageGrace,
    /// Pods are deleted, not evicted.
    PodBudgetsIgnored,
    /// What a round launches is not taken from its pools' limits.
    LimitsNotReserved,
    /// One node more than a budget allows may go.
    BudgetOffByOne,
    /// Who lost the lease goes on.
    StaleLeaderLaunches,
}

impl Sabotage {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::NoWriteAhead,
        Self::NoGarbageGrace,
        Self::PodBudgetsIgnored,
        Self::LimitsNotReserved,
        Self::BudgetOffByOne,
        Self::StaleLeaderLaunches,
    ];

    /// The name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoWriteAhead => "no-write-ahead",
            Self::NoGarbageGrace => "no-garbage-grace",
            Self::PodBudgetsIgnored => "pod-budgets-ignored",
            Self::LimitsNotReserved => "limits-not-reserved",
            Self::BudgetOffByOne => "budget-off-by-one",
            Self::StaleLeaderLaunches => "stale-leader-launches",
        }
    }
}

impl fmt::Display for Sabotage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Sabotage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|it| it.as_str() == text);
        found.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.into_iter().map(Self::as_str).collect();
            format!("{text} is no sabotage; there are {}", names.join(", "))
        })
    }
}

#[cfg(debug_assertions)]
static CHOSEN: OnceLock<Sabotage> = OnceLock::new();

/// Takes the guard out for as long as the process lives. Only the first choice counts; a release build knows none.
pub fn choose(sabotage: Sabotage) {
    #[cfg(debug_assertions)]
    let _ = CHOSEN.set(sabotage);
    #[cfg(not(debug_assertions))]
    let _ = sabotage;
}

/// Whether the guard is out.
#[inline]
pub fn is_on(sabotage: Sabotage) -> bool {
    #[cfg(debug_assertions)]
    let is_on = CHOSEN.get() == Some(&sabotage);
    #[cfg(not(debug_assertions))]
    let is_on = {
        let _ = sabotage;
        false
    };
    is_on
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_and_a_strange_one_is_told_the_names() {
        for sabotage in Sabotage::ALL {
            assert_eq!(sabotage.as_str().parse(), Ok(sabotage));
        }
        let error = "everything".parse::<Sabotage>().unwrap_err();
        assert!(error.contains("no-write-ahead"), "{error}");
    }
}
