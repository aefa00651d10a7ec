//! A last look at commands before they are carried out: the cluster may have changed while they were decided.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::disruption::book::BudgetBook;
use crate::disruption::candidate::{Grace, World};
use crate::disruption::command::{Command, CommandKind, PromisedPlace};
use crate::disruption::emptiness::emptiness;
use crate::disruption::settings::DisruptionSettings;
use crate::ids::{NodeClaimName, NodePoolName, PodUid};
use crate::node::Node;
use crate::plan::PlacementTarget;
use crate::pod::Pod;
use crate::resources::Resources;
use crate::snapshot::Snapshot;
use crate::taint::TaintEffect;

/// Why a command may not be carried out any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A candidate is gone, may not go now, or has got pods.
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
        pool: NodePoolName,
    },
    /// A pod has lost the place that it was promised.
    #[error("pod {pod} has lost its place on {node}: {why}")]
    Scheduling {
        /// The pod, as `namespace/name`.
        pod: String,
        /// The node that it was promised.
        node: String,
        /// What is wrong with the place now.
        why: String,
    },
}

impl Invalid {
    /// The reason in events and metrics. Karpenter: same.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Churn { .. } => "churn",
            Self::Budget { .. } => "budget",
            Self::Scheduling { .. } => "scheduling",
        }
    }
}

/// Says of each command whether it still holds: its candidates may still go, no pod has come to them that nobody promised
/// a place, the budgets allow it beside those before it that hold, and each place on a node that stays is still there and
/// has the room.
///
/// `snapshot` is the newest; the candidates must not be marked for deletion in it, or they count as gone. What pods ask of
/// each other is not looked at again: places on replacements cannot be judged before they exist, and a command that was
/// refused for that would be decided anew for ever. The commands that one decision gives all hold on its own snapshot.
///
/// Karpenter: differs, because it waits 15 s, plans anew and compares instance types; here the very places are looked at.
pub fn validate(
    commands: &[Command],
    snapshot: &Snapshot,
    settings: &DisruptionSettings,
    now: Timestamp,
) -> Vec<Result<(), Invalid>> {
    let nodes = snapshot.nodes.iter();
    let by_claim = nodes
        .clone()
        .filter_map(|it| Some((it.node_claim.as_ref()?, it)));
    let by_target = nodes.flat_map(|it| targets_of(it).map(move |target| (target, it)));
    let empty = emptiness(snapshot, now);
    let mut check = Check {
        by_claim: by_claim.collect(),
        by_target: by_target.collect(),
        empty: empty
            .removable
            .into_iter()
            .map(|it| it.node_claim)
            .collect(),
        book: BudgetBook::new(snapshot, now),
        world: World::new(snapshot, settings, now),
        arriving: BTreeMap::new(),
    };
    commands
        .iter()
        .map(|command| check.command(command))
        .collect()
}

fn targets_of(node: &Node) -> impl Iterator<Item = PlacementTarget> {
    let name = node.name.clone().map(PlacementTarget::Node);
    let claim = node.node_claim.clone().map(PlacementTarget::InFlight);
    name.into_iter().chain(claim)
}

struct Check<'a> {
    world: World<'a>,
    by_claim: BTreeMap<&'a NodeClaimName, &'a Arc<Node>>,
    by_target: BTreeMap<PlacementTarget, &'a Arc<Node>>,
    /// Claims whose nodes may go because they are empty.
    empty: BTreeSet<NodeClaimName>,
    book: BudgetBook<'a>,
    /// By node: what the pods ask for that commands bring to it.
    arriving: BTreeMap<PlacementTarget, Resources>,
}

impl Check<'_> {
    fn command(&mut self, command: &Command) -> Result<(), Invalid> {
        let promised: BTreeSet<&PodUid> = command.promises.iter().map(|it| &it.pod.uid).collect();
        for candidate in &command.candidates {
            let claim = &candidate.node_claim;
            self.candidate(claim, command.kind, &promised)
                .map_err(|why| Invalid::Churn {
                    claim: claim.clone(),
                    why,
                })?;
        }
        let pools = self.pools(command)?;
        self.arriving = self.places(command)?;
        for (pool, nodes) in &pools {
            self.book.take(pool, *nodes);
        }
        Ok(())
    }

    /// What keeps the candidate from going.
    fn candidate(
        &self,
        claim: &NodeClaimName,
        kind: CommandKind,
        promised: &BTreeSet<&PodUid>,
    ) -> Result<(), String> {
        let node = self.by_claim.get(claim).copied().ok_or("is gone")?;
        let judged = match kind {
            CommandKind::Empty if self.empty.contains(claim) => return Ok(()),
            CommandKind::Empty => return Err("may not go as an empty node any more".to_owned()),
            CommandKind::Drift | CommandKind::StaticDrift => {
                self.world.candidate(node, Grace::Eventual)
            }
            CommandKind::Multi | CommandKind::Single => self.world.consolidatable(node),
        };
        judged.map_err(|reason| reason.to_string())?;
        // A static replacement takes in whatever is there.
        if kind == CommandKind::StaticDrift {
            return Ok(());
        }
        let mut pods = node.pods.iter();
        let came = pods.find(|pod| self.world.moves(pod) && !promised.contains(&pod.uid));
        match came {
            Some(pod) => Err(format!("has got pod {}", shown(pod))),
            None => Ok(()),
        }
    }

    /// How many nodes of each pool go, if the budgets allow it.
    fn pools(&mut self, command: &Command) -> Result<BTreeMap<NodePoolName, usize>, Invalid> {
        let mut going: BTreeMap<NodePoolName, usize> = BTreeMap::new();
        for candidate in &command.candidates {
            *going.entry(candidate.pool.clone()).or_default() += 1;
        }
        // The search for empty nodes has looked at the budgets already, for all of them together.
        if command.kind == CommandKind::Empty {
            return Ok(going);
        }
        for (name, count) in &going {
            let pool = self.world.pools.get(&**name).copied();
            let left = pool.map_or(0, |pool| self.book.left(pool, command.kind.reason()));
            if left < *count {
                return Err(Invalid::Budget { pool: name.clone() });
            }
        }
        Ok(going)
    }

    /// What arrives at the nodes with the command's pods too, if all of them still have their places.
    fn places(&self, command: &Command) -> Result<BTreeMap<PlacementTarget, Resources>, Invalid> {
        let mut arriving = self.arriving.clone();
        for promise in &command.promises {
            let PromisedPlace::Node(target) = &promise.place else {
                continue;
            };
            let arrivals = arriving.entry(target.clone()).or_default();
            arrivals.add(&promise.pod.spec.requests.with_one_pod());
            self.place(target, &promise.pod, arrivals)
                .map_err(|why| Invalid::Scheduling {
                    pod: shown(&promise.pod),
                    node: name_of(target),
                    why,
                })?;
        }
        Ok(arriving)
    }

    /// What is wrong with a pod's place, where all that arrives asks for that much.
    fn place(
        &self,
        target: &PlacementTarget,
        pod: &Pod,
        arrivals: &Resources,
    ) -> Result<(), String> {
        let node = self.by_target.get(target).copied().ok_or("it is gone")?;
        if !node.is_active() {
            return Err("it is being removed".to_owned());
        }
        let tolerations = &pod.spec.tolerations;
        let mut hard = node
            .taints
            .iter()
            .filter(|taint| taint.effect != TaintEffect::PreferNoSchedule);
        if let Some(taint) = hard.find(|taint| !tolerations.iter().any(|it| it.tolerates(taint))) {
            return Err(format!("it has got the taint {}", taint.key));
        }
        let mut room = node.allocatable.clone();
        room.subtract(&node.pods.held().requests);
        match arrivals
            .iter()
            .find(|(name, amount)| room.amount(name) < *amount)
        {
            Some((name, _)) => Err(format!("it has not enough {name} left")),
            None => Ok(()),
        }
    }
}

fn shown(pod: &Pod) -> String {
    format!("{}/{}", pod.namespace, pod.name)
}

fn name_of(target: &PlacementTarget) -> String {
    match target {
        PlacementTarget::Node(name) => name.to_string(),
        PlacementTarget::InFlight(name) => name.to_string(),
    }
}
