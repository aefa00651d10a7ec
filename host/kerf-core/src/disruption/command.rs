//! What disruption decides: commands to carry out, and for every other managed node one reason why it stays.
//!
//! A command leaves its executor no choices: it names the claims that go, the claims to create before they do, and the
//! place that each displaced pod is promised.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::disruption::budget::DisruptionReason;
use crate::disruption::kept::KeptNode;
use crate::disruption::report::PassReport;
use crate::ids::{NodeClaimName, NodeName, NodePoolName};
use crate::plan::{PlacementTarget, PlannedClaim};
use crate::pod::Pod;
use crate::price::Price;

/// What to do about the nodes of a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// What to start now, in this order. All of them together are within the budgets, and no two of them promise the same
    /// room or share a node.
    pub commands: Vec<Command>,
    /// Every managed node that no command names, once each, by name of the claim.
    pub kept: Vec<KeptNode>,
    /// When waiting alone could change the answer.
    pub next_check: Option<Timestamp>,
    /// How much work it took.
    pub work_used: u64,
    /// Whether the work budget ended before everything was looked at.
    pub is_partial: bool,
    /// What the pass was like.
    pub report: PassReport,
}

/// How a command came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommandKind {
    /// Nodes without pods go.
    Empty,
    /// A node of a static pool that differs from its pool is made anew.
    StaticDrift,
    /// A node that differs from its pool goes; its pods get places first.
    Drift,
    /// Several nodes go, for less money.
    Multi,
    /// One node goes, for less money.
    Single,
}

impl CommandKind {
    /// The reason that budgets, conditions and metrics know.
    pub fn reason(self) -> DisruptionReason {
        match self {
            Self::Empty => DisruptionReason::Empty,
            Self::StaticDrift | Self::Drift => DisruptionReason::Drifted,
            Self::Multi | Self::Single => DisruptionReason::Underutilized,
        }
    }

    /// The value of the label `consolidation_type` in metrics; empty where there is none. Karpenter: same.
    pub fn consolidation_type(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::StaticDrift | Self::Drift => "",
            Self::Multi => "multi",
            Self::Single => "single",
        }
    }
}

/// Nodes to remove together, and what to make first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// How it came about.
    pub kind: CommandKind,
    /// What goes, at least one.
    pub candidates: Vec<CommandCandidate>,
    /// What to create first. Only when all of them have initialised may the candidates go.
    pub replacements: Vec<PlannedClaim>,
    /// Where each pod that must run again will have room.
    pub promises: Vec<Promise>,
    /// What the candidates cost per hour, those of unknown price not counted.
    pub price_before: Price,
    /// What the replacements cost per hour at their first offerings, in real money.
    pub price_after: Price,
}

impl Command {
    /// What it saves per hour; negative when it costs (drift may).
    pub fn saving_micros(&self) -> i64 {
        let micros = |price: Price| i64::try_from(price.micros()).unwrap_or(i64::MAX);
        micros(self.price_before).saturating_sub(micros(self.price_after))
    }

    /// `delete` or `replace`.
    pub fn decision(&self) -> &'static str {
        match self.replacements.is_empty() {
            true => "delete",
            false => "replace",
        }
    }

    /// The names of the claims that go.
    pub fn claims(&self) -> impl Iterator<Item = &NodeClaimName> {
        self.candidates.iter().map(|it| &it.node_claim)
    }
}

impl fmt::Display for Command {
    /// As `underutilized: replace general-1, general-2 -> 1 new (saves 0.1200 per hour)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.kind.reason().as_str().to_lowercase();
        write!(f, "{reason}: {}", self.decision())?;
        for (idx, candidate) in self.candidates.iter().enumerate() {
            write!(
                f,
                "{} {}",
                if idx == 0 { "" } else { "," },
                candidate.node_claim
            )?;
        }
        if !self.replacements.is_empty() {
            write!(f, " -> {} new", self.replacements.len())?;
        }
        let saving = self.saving_micros();
        let (verb, amount) = match saving {
            0.. => ("saves", saving.unsigned_abs()),
            _ => ("costs", saving.unsigned_abs()),
        };
        write!(f, " ({verb} {} per hour)", Price::from_micros(amount))
    }
}

/// A node that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandCandidate {
    /// Its claim.
    pub node_claim: NodeClaimName,
    /// Its Node; none for a static claim that has none yet.
    pub node: Option<NodeName>,
    /// Its NodePool.
    pub pool: NodePoolName,
    /// What it costs per hour.
    pub price: Price,
    /// Why it goes, in words.
    pub note: String,
}

/// The place that a displaced pod will have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promise {
    /// The pod.
    pub pod: Arc<Pod>,
    /// The place.
    pub place: PromisedPlace,
}

/// A place for a displaced pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PromisedPlace {
    /// On a node that exists and stays.
    Node(
        /// Which.
        PlacementTarget,
    ),
    /// On a replacement of the command.
    Replacement(
        /// Its place in [`Command::replacements`].
        usize,
    ),
}
