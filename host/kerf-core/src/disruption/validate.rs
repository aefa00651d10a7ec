//! A last look at commands before they are carried out: the cluster may have changed since they were decided.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::disruption::book::BudgetBook;
use crate::disruption::candidate::{Grace, World};
use crate::disruption::command::{Command, CommandKind, PromisedPlace};
use crate::disruption::settings::DisruptionSettings;
use crate::ids::{NodeClaimName, PodUid};
use crate::node::Node;
use crate::plan::PlacementTarget;
use crate::preferences::Preferences;
use crate::schedule::simulate::Simulator;
use crate::snapshot::Snapshot;
use std::sync::Arc;

/// Why a command may not be carried out any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A candidate is gone, or may not go now.
    #[error("{claim} {why}")]
    Churn {
        /// The candidate.
        claim: NodeClaimName,
        /// Why, as after its name.
        why: String,
    },
    /// The budgets allow fewer nodes now.
    #[error("disruption budgets of NodePool {pool} allow fewer nodes now")]
    Budget {
        /// The pool.
        pool: String,
    },
    /// A pod has lost the place that it was promised, or a new one has none.
    #[error("a pod has no place any more")]
    Scheduling,
}

impl Invalid {
    /// The reason in events and metrics. Karpenter: same.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Churn { .. } => "churn",
            Self::Budget { .. } => "budget",
            Self::Scheduling => "scheduling",
        }
    }
}

/// Says of each command whether it still holds: its candidates may still go, the budgets allow all of the commands that
/// hold so far, and each pod still has the place that it was promised.
///
/// The candidates must not be marked for deletion in the snapshot, or they count as gone. Karpenter: differs, because it
/// plans anew and compares instance types; here the very places are looked at that were promised.
pub fn validate(
    commands: &[Command],
    snapshot: &Snapshot,
    preferences: &Preferences,
    settings: &DisruptionSettings,
    now: Timestamp,
) -> Vec<Result<(), Invalid>> {
    let world = World::new(snapshot, settings, now);
    let moves = |pod: &crate::pod::Pod| world.moves(pod);
    let simulator = Simulator::new(snapshot, preferences, &|_| 0, &moves, settings.work);
    let nodes = snapshot
        .nodes
        .iter()
        .filter_map(|node| Some((node.node_claim.as_ref()?, node)));
    let mut check = Check {
        nodes: nodes.collect(),
        book: BudgetBook::new(snapshot, now),
        world,
        simulator,
    };
    commands
        .iter()
        .map(|command| check.command(command))
        .collect()
}

struct Check<'a> {
    world: World<'a>,
    nodes: BTreeMap<&'a NodeClaimName, &'a Arc<Node>>,
    book: BudgetBook<'a>,
    simulator: Simulator<'a>,
}

impl Check<'_> {
    fn command(&mut self, command: &Command) -> Result<(), Invalid> {
        let mut wanted: BTreeMap<&str, usize> = BTreeMap::new();
        let mut places = Vec::new();
        for candidate in &command.candidates {
            self.may_go(&candidate.node_claim, command.kind)?;
            *wanted.entry(&candidate.pool).or_default() += 1;
            places.extend(self.simulator.node(&candidate.node_claim));
        }
        for (name, count) in &wanted {
            let pool = self.world.pools.get(name).copied();
            let left = pool.map_or(0, |pool| self.book.left(pool, command.kind.reason()));
            if left < *count {
                let pool = (*name).to_owned();
                return Err(Invalid::Budget { pool });
            }
        }
        let promises: BTreeMap<PodUid, Option<PlacementTarget>> = command
            .promises
            .iter()
            .map(|promise| {
                let home = match &promise.place {
                    PromisedPlace::Node(target) => Some(target.clone()),
                    PromisedPlace::Replacement(_) => None,
                };
                (promise.pod.uid.clone(), home)
            })
            .collect();
        // A static replacement takes in whatever was there.
        let is_static = command.kind == CommandKind::StaticDrift;
        if !is_static && !self.simulator.try_promises(&places, &promises) {
            self.simulator.undo();
            return Err(Invalid::Scheduling);
        }
        self.simulator.keep();
        for candidate in &command.candidates {
            self.book.take(&candidate.pool, 1);
        }
        Ok(())
    }

    fn may_go(&self, claim: &NodeClaimName, kind: CommandKind) -> Result<(), Invalid> {
        let churn = |why: String| Invalid::Churn {
            claim: claim.clone(),
            why,
        };
        let node = self.nodes.get(claim).copied();
        let node = node.ok_or_else(|| churn("is gone".to_owned()))?;
        let judged = match kind {
            CommandKind::Empty => {
                let busy = node
                    .pods
                    .iter()
                    .filter(|pod| pod.is_reschedulable())
                    .count();
                if busy > 0 {
                    return Err(churn(format!("has {busy} pods to reschedule")));
                }
                self.world.candidate(node, Grace::Graceful).map(drop)
            }
            CommandKind::Drift | CommandKind::StaticDrift => {
                self.world.candidate(node, Grace::Eventual).map(drop)
            }
            CommandKind::Multi | CommandKind::Single => self.world.consolidatable(node).map(drop),
        };
        judged.map_err(|reason| churn(reason.to_string()))
    }
}
