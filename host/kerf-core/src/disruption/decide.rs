//! One pass over all nodes.

use jiff::Timestamp;

use crate::disruption::command::{Command, CommandCandidate, CommandKind, Decision};
use crate::disruption::emptiness::{EmptyNode, emptiness};
use crate::disruption::settings::DisruptionSettings;
use crate::preferences::Preferences;
use crate::price::Price;
use crate::snapshot::Snapshot;

/// Decides which nodes go now, and says of every other managed node why it stays.
///
/// The decision is the same for the same input in any order. Nodes that an earlier command has chosen must be marked for
/// deletion in the snapshot, and its replacements must be in it as claims.
pub fn decide(
    snapshot: &Snapshot,
    preferences: &Preferences,
    settings: &DisruptionSettings,
    now: Timestamp,
) -> Decision {
    let _ = (preferences, settings);
    let empty = emptiness(snapshot, now);
    Decision {
        commands: empty.removable.iter().map(remove_empty).collect(),
        kept: empty.kept,
        next_check: empty.next_check,
        work_used: 0,
        is_partial: false,
    }
}

fn remove_empty(node: &EmptyNode) -> Command {
    Command {
        kind: CommandKind::Empty,
        candidates: vec![CommandCandidate {
            node_claim: node.node_claim.clone(),
            node: None,
            pool: node.pool.clone(),
            price: Price::UNKNOWN,
            note: format!("empty since {}", node.quiet_since),
        }],
        replacements: Vec::new(),
        promises: Vec::new(),
        price_before: Price::ZERO,
        price_after: Price::ZERO,
    }
}
