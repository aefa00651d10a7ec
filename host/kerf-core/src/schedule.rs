//! Scheduling: which pending pod goes where, and which nodes to make for the rest.

use jiff::Timestamp;

use crate::plan::{Plan, WorkBudget};
use crate::preferences::Preferences;
use crate::snapshot::Snapshot;

/// Plans the pending pods of a snapshot and the pods of nodes that are being removed.
pub fn schedule(
    _snapshot: &Snapshot,
    _preferences: &Preferences,
    _budget: WorkBudget,
    _now: Timestamp,
) -> Plan {
    Plan::default()
}
