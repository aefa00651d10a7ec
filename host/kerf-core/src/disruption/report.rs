//! What a pass was like, for whoever measures. Nothing is decided by it.

use std::collections::BTreeMap;

use crate::disruption::budget::DisruptionReason;
use crate::disruption::command::CommandKind;
use crate::ids::NodePoolName;

/// What a pass was like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PassReport {
    /// How many nodes each reason could take, budgets not asked.
    pub eligible: BTreeMap<DisruptionReason, usize>,
    /// How much work each search was; drift of static pools counts as drift.
    pub work: BTreeMap<CommandKind, u64>,
    /// The searches of consolidation that the work budget ended before everything was tried.
    pub cut_off: Vec<CommandKind>,
    /// What balanced pools thought of the commands that they were asked about, in that order.
    pub scores: Vec<Score>,
}

/// What a balanced pool thinks of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Score {
    /// The pool.
    pub pool: NodePoolName,
    /// Share of the pool's cost that is saved by share of its disruption that is caused, in percent, rounded down.
    pub percent: u32,
    /// Whether that is enough.
    pub is_approved: bool,
}
