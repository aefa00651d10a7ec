//! One pass over all nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::disruption::balanced::PoolTotals;
use crate::disruption::book::BudgetBook;
use crate::disruption::budget::DisruptionReason;
use crate::disruption::candidate::{Candidate, Grace, World, offering_of};
use crate::disruption::command::{Command, CommandCandidate, CommandKind, Decision};
use crate::disruption::consolidate::removal_order;
use crate::disruption::emptiness::{EmptyNode, emptiness};
use crate::disruption::kept::{KeptNode, KeptReason};
use crate::disruption::pass::Pass;
use crate::disruption::report::PassReport;
use crate::disruption::settings::DisruptionSettings;
use crate::ids::NodeClaimName;
use crate::node::Node;
use crate::preferences::Preferences;
use crate::price::Price;
use crate::schedule::simulate::Simulator;
use crate::snapshot::Snapshot;

/// Decides which nodes go now, and says of every other managed node why it stays.
///
/// The decision is the same for the same input in any order. Nodes that an earlier command has chosen must be marked for
/// deletion in the snapshot, and its replacements must be in it as claims. All commands together keep the budgets of all
/// pools; consolidation never raises the hourly price, whichever of the listed offerings is launched.
///
/// Karpenter: differs, because there the first method with a command ends the pass.
pub fn decide(
    snapshot: &Snapshot,
    preferences: &Preferences,
    settings: &DisruptionSettings,
    now: Timestamp,
) -> Decision {
    let world = World::new(snapshot, settings, now);
    let empty = emptiness(snapshot, now);
    let going: BTreeSet<NodeClaimName> = empty
        .removable
        .iter()
        .map(|it| it.node_claim.clone())
        .collect();
    let over_budget = empty
        .kept
        .iter()
        .filter(|it| it.reason == KeptReason::Budget);
    let removable = empty.removable.len() + over_budget.count();
    let sorted = Sorted::new(snapshot, &world, empty.kept, &going);
    let drifted = sorted.static_drifted.len() + sorted.drifted.len();
    let eligible = [
        (DisruptionReason::Empty, removable),
        (DisruptionReason::Drifted, drifted),
        (DisruptionReason::Underutilized, sorted.consolidatable.len()),
    ];
    let eligible = eligible.into();

    let ranks = ranks(&sorted);
    let order = |node: &Node| {
        let claim = node.node_claim.as_ref();
        claim
            .and_then(|claim| ranks.get(claim).copied())
            .unwrap_or(0)
    };
    let moves = |pod: &crate::pod::Pod| world.moves(pod);
    // What is empty goes without a trial, and to prepare one is to look at every pod.
    let nobody = Snapshot::default();
    let tried = if sorted.is_empty() { &nobody } else { snapshot };
    let simulator = Simulator::new(tried, preferences, &order, &moves, settings.work);
    let mut pass = Pass {
        totals: PoolTotals::new(snapshot, &world),
        book: BudgetBook::new(snapshot, now),
        world: &world,
        simulator,
        has_preferences: !preferences.pools.is_empty(),
        commands: Vec::new(),
        kept: sorted.kept,
        busy: BTreeSet::new(),
        gone: BTreeSet::new(),
        report: PassReport {
            eligible,
            ..PassReport::default()
        },
    };
    let nodes: BTreeMap<&NodeClaimName, &Arc<Node>> = snapshot
        .nodes
        .iter()
        .filter_map(|node| Some((node.node_claim.as_ref()?, node)))
        .collect();
    for empty in &empty.removable {
        pass.remove_empty(empty, nodes.get(&empty.node_claim).copied());
    }
    pass.static_drift(sorted.static_drifted, snapshot, preferences);
    pass.drift(sorted.drifted);
    pass.spent_on(CommandKind::Drift);
    pass.consolidate(&sorted.consolidatable);
    pass.into_decision(nominations_end(snapshot, now))
}

/// When the first node is free that is kept for pods on their way. What was said of it does not name the time.
fn nominations_end(snapshot: &Snapshot, now: Timestamp) -> Option<Timestamp> {
    let ends = snapshot.nodes.iter().filter_map(|it| it.nominated_until);
    ends.filter(|until| *until > now).min()
}

/// The nodes by the method that they are for.
#[derive(Debug, Default)]
struct Sorted<'a> {
    static_drifted: Vec<Candidate<'a>>,
    drifted: Vec<Candidate<'a>>,
    /// In removal order.
    consolidatable: Vec<Candidate<'a>>,
    kept: BTreeMap<NodeClaimName, KeptReason>,
}

impl<'a> Sorted<'a> {
    fn new(
        snapshot: &'a Snapshot,
        world: &World<'a>,
        kept: Vec<KeptNode>,
        going: &BTreeSet<NodeClaimName>,
    ) -> Self {
        let mut sorted = Self::default();
        let mut kept: BTreeMap<NodeClaimName, KeptReason> = kept
            .into_iter()
            .map(|it| (it.node_claim, it.reason))
            .collect();
        for node in &snapshot.nodes {
            let Some(claim) = node
                .node_claim
                .as_ref()
                .filter(|claim| !going.contains(*claim))
            else {
                continue;
            };
            let emptiness = kept.remove(claim).unwrap_or(KeptReason::Leaving);
            if let Err(reason) = sorted.add(node, world, emptiness) {
                sorted.kept.insert(claim.clone(), reason);
            }
        }
        sorted.consolidatable.sort_by(removal_order);
        sorted
    }

    /// Whether no node is for any method.
    fn is_empty(&self) -> bool {
        let Self {
            static_drifted,
            drifted,
            consolidatable,
            kept: _,
        } = self;
        static_drifted.is_empty() && drifted.is_empty() && consolidatable.is_empty()
    }

    fn add(
        &mut self,
        node: &'a Arc<Node>,
        world: &World<'a>,
        emptiness: KeptReason,
    ) -> Result<(), KeptReason> {
        if node.drifted.is_some() {
            let candidate = world.candidate(node, Grace::Eventual)?;
            match candidate.pool.replicas {
                Some(_) => self.static_drifted.push(candidate),
                None => self.drifted.push(candidate),
            }
            return Ok(());
        }
        // A node without pods to move is for emptiness alone.
        let has_pods = node.pods.iter().any(|pod| pod.is_reschedulable());
        if !has_pods {
            return Err(emptiness);
        }
        self.consolidatable.push(world.consolidatable(node)?);
        Ok(())
    }
}

/// Which nodes take in pods first: those that stay for sure, then those that would go last.
fn ranks(sorted: &Sorted<'_>) -> BTreeMap<NodeClaimName, usize> {
    let candidates = sorted.consolidatable.iter().rev();
    let drifted = sorted.drifted.iter().chain(&sorted.static_drifted);
    let in_order = candidates.chain(drifted).enumerate();
    in_order
        .map(|(rank, it)| (it.claim.clone(), rank + 1))
        .collect()
}

impl Pass<'_> {
    fn remove_empty(&mut self, empty: &EmptyNode, node: Option<&Arc<Node>>) {
        let pool = node.and_then(|node| self.world.pool_of(node));
        let offering = node.and_then(|node| offering_of(node));
        let price = pool
            .zip(offering)
            .map_or(Price::UNKNOWN, |(pool, offering)| {
                self.world.price(pool, &offering)
            });
        if let Some(node) = self.simulator.node(&empty.node_claim) {
            self.simulator.remove_for_good(node);
            self.busy.insert(node);
        }
        self.book.take(&empty.pool, 1);
        self.commands.push(Command {
            kind: CommandKind::Empty,
            candidates: vec![CommandCandidate {
                node_claim: empty.node_claim.clone(),
                node: node.and_then(|node| node.name.clone()),
                pool: empty.pool.clone(),
                price,
                note: format!("empty since {}", empty.quiet_since),
            }],
            replacements: Vec::new(),
            promises: Vec::new(),
            price_before: [price].into_iter().sum(),
            price_after: Price::ZERO,
        });
    }

    fn into_decision(self, nominations_end: Option<Timestamp>) -> Decision {
        let kept_until = self.kept.values().filter_map(KeptReason::ends_at);
        let next_check = kept_until.chain(nominations_end).min();
        let kept = self.kept.into_iter();
        Decision {
            is_partial: self.simulator.is_out_of_work(),
            work_used: self.simulator.work(),
            report: self.report,
            commands: self.commands,
            kept: kept
                .map(|(node_claim, reason)| KeptNode { node_claim, reason })
                .collect(),
            next_check,
        }
    }
}
