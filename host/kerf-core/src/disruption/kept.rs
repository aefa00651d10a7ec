//! Why a managed node stays. Every node that no command names has exactly one such reason.

use jiff::Timestamp;

use crate::ids::NodeClaimName;
use crate::price::Price;

/// A managed node that stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptNode {
    /// The claim.
    pub node_claim: NodeClaimName,
    /// Why.
    pub reason: KeptReason,
}

/// What kind of thing keeps a node: which event tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeptKind {
    /// It is in the middle of something, or waits for its time. Nothing to tell.
    Passing,
    /// Somebody forbids every graceful disruption of it: event `DisruptionBlocked`.
    Blocked,
    /// Nothing forbids it, but consolidation gains nothing or may not: event `Unconsolidatable`.
    Unconsolidatable,
}

/// Why a node stays.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeptReason {
    /// It is going already.
    #[error("is being removed already")]
    Leaving,
    /// It has not initialised.
    #[error("has not initialised")]
    NotInitialized,
    /// Its pool does not exist, has no instance types, or does not remove nodes.
    #[error("NodePool does not exist, is static, or has consolidateAfter: Never")]
    PoolKeepsNodes,
    /// Its pool has no instance types to compare with.
    #[error("NodePool {pool} has no instance types now")]
    NoInstanceTypes {
        /// The pool.
        pool: String,
    },
    /// Pods are on it that would have to run elsewhere.
    #[error("has {count} pods to reschedule")]
    HasPods {
        /// How many.
        count: usize,
    },
    /// Pods are expected on it.
    #[error("is nominated for pending pods")]
    Nominated,
    /// The node forbids it.
    #[error("the node has karpenter.sh/do-not-disrupt")]
    NodeForbids,
    /// A pod on it (such as a daemon) forbids it.
    #[error("pod {pod} forbids disruption")]
    PodForbids {
        /// The pod, as `namespace/name`.
        pod: String,
    },
    /// A PodDisruptionBudget allows no eviction of a pod on it now.
    #[error("PodDisruptionBudget {budget} allows no eviction of pod {pod} now")]
    PodBudget {
        /// The pod, as `namespace/name`.
        pod: String,
        /// The budget, or the budgets of one pod, which no eviction can satisfy together.
        budget: String,
    },
    /// It stands in for a CapacityBuffer.
    #[error("holds capacity for a CapacityBuffer")]
    Buffer,
    /// It has not been quiet for long enough.
    #[error("consolidateAfter has not passed since the last pod came or went")]
    Waiting {
        /// When it will have been.
        until: Timestamp,
    },
    /// The pool's budgets allow no more now.
    #[error("disruption budgets of the NodePool allow no more nodes now")]
    Budget,
    /// The pool removes only empty nodes.
    #[error("consolidationPolicy: WhenEmpty removes only empty nodes")]
    PolicyWhenEmpty,
    /// Its instance type is not among the pool's.
    #[error("instance type {instance_type:?} is not known to the NodePool")]
    UnknownInstanceType {
        /// The node's label; empty when it has none.
        instance_type: String,
    },
    /// A label that prices depend on is missing.
    #[error("the node has no label {label}")]
    MissingLabel {
        /// The label.
        label: &'static str,
    },
    /// Nobody knows what it costs, so nothing is known to be cheaper.
    #[error("its price is not known, and its pods do not all fit on other nodes")]
    UnknownPrice,
    /// A pod on it has no place elsewhere.
    #[error("pod {pod} has no place elsewhere: {why}")]
    NoPlace {
        /// The pod, as `namespace/name`.
        pod: String,
        /// Why.
        why: String,
    },
    /// What its pods need instead costs as much or more.
    #[error(
        "cannot be replaced by a cheaper node: it costs {price}, what its pods need costs {needed}"
    )]
    NotCheaper {
        /// What it costs.
        price: Price,
        /// What its pods would need.
        needed: Price,
    },
    /// Both it and its replacement are spot, and that is switched off.
    #[error("is spot, and so is its replacement: SpotToSpotConsolidation is off")]
    SpotToSpotOff,
    /// One spot node is replaced by one spot node only where many types are cheaper.
    #[error("spot to spot needs {needed} cheaper instance types to choose from, and has {found}")]
    SpotToSpotTooFew {
        /// How many there are.
        found: usize,
        /// How many it takes.
        needed: usize,
    },
    /// It or its pods would go back to what they came from not long ago.
    #[error("would be replaced by {offering}, which it took the place of less than a day ago")]
    WouldFlip {
        /// Type, zone and capacity type.
        offering: String,
    },
    /// The saving is below what the settings ask for.
    #[error("would save {saving} per hour, less than the minimum of {least}")]
    SavingTooSmall {
        /// What it would save.
        saving: Price,
        /// What is asked for.
        least: Price,
    },
    /// It is younger than the settings ask for.
    #[error("is younger than the minimum node age")]
    TooYoung {
        /// When it will be old enough.
        until: Timestamp,
    },
    /// Its pool grew not long ago.
    #[error("NodePool has grown not long ago and cools down")]
    CoolDown {
        /// When it will have cooled down.
        until: Timestamp,
    },
    /// It is used too much to be underutilised.
    #[error("is used to {percent} %, above the threshold of {threshold} %")]
    WellUsed {
        /// How much of its scarcest resource is requested.
        percent: u32,
        /// The threshold.
        threshold: u32,
    },
    /// The saving is not worth the disruption.
    #[error(
        "consolidationPolicy: Balanced: the saving is not worth the disruption (score {score_percent} %, needs 50 %)"
    )]
    NotWorthIt {
        /// Share of the pool's cost saved by share of the pool's disruption, in percent.
        score_percent: u32,
    },
    /// Pods of another command of this decision will come to it.
    #[error("takes in pods of nodes that go now")]
    TakesInPods,
    /// Replacements of drifted nodes of its pool do not join.
    #[error(
        "NodePool {pool} has nodes that do not register; its drifted nodes stay until that is mended"
    )]
    Unhealthy {
        /// The pool.
        pool: String,
    },
    /// A static pool has more nodes than it wants.
    #[error("static NodePool has more nodes than replicas; drift waits until the surplus is gone")]
    StaticSurplus,
    /// A static pool's limit on nodes leaves no room for a replacement.
    #[error("limits of the NodePool leave no room for a replacement")]
    NodeLimit,
    /// The work budget ended before it was looked at.
    #[error("not looked at: the work budget of this pass ended")]
    NotLookedAt,
}

impl KeptReason {
    /// When waiting alone ends it, if it does.
    pub fn ends_at(&self) -> Option<Timestamp> {
        match self {
            Self::Waiting { until } | Self::TooYoung { until } | Self::CoolDown { until } => {
                Some(*until)
            }
            Self::Leaving
            | Self::NotInitialized
            | Self::PoolKeepsNodes
            | Self::NoInstanceTypes { .. }
            | Self::HasPods { .. }
            | Self::Nominated
            | Self::NodeForbids
            | Self::PodForbids { .. }
            | Self::PodBudget { .. }
            | Self::Buffer
            | Self::Budget
            | Self::PolicyWhenEmpty
            | Self::UnknownInstanceType { .. }
            | Self::MissingLabel { .. }
            | Self::UnknownPrice
            | Self::NoPlace { .. }
            | Self::NotCheaper { .. }
            | Self::SpotToSpotOff
            | Self::SpotToSpotTooFew { .. }
            | Self::WouldFlip { .. }
            | Self::SavingTooSmall { .. }
            | Self::WellUsed { .. }
            | Self::NotWorthIt { .. }
            | Self::TakesInPods
            | Self::Unhealthy { .. }
            | Self::StaticSurplus
            | Self::NodeLimit
            | Self::NotLookedAt => None,
        }
    }

    /// Which event tells it.
    pub fn kind(&self) -> KeptKind {
        match self {
            Self::Leaving
            | Self::NotInitialized
            | Self::Nominated
            | Self::Waiting { .. }
            | Self::TooYoung { .. }
            | Self::CoolDown { .. }
            | Self::Budget
            | Self::TakesInPods
            | Self::StaticSurplus
            | Self::NotLookedAt => KeptKind::Passing,
            Self::NoInstanceTypes { .. }
            | Self::NodeForbids
            | Self::PodForbids { .. }
            | Self::PodBudget { .. }
            | Self::Unhealthy { .. }
            | Self::NodeLimit => KeptKind::Blocked,
            Self::PoolKeepsNodes
            | Self::HasPods { .. }
            | Self::Buffer
            | Self::PolicyWhenEmpty
            | Self::UnknownInstanceType { .. }
            | Self::MissingLabel { .. }
            | Self::UnknownPrice
            | Self::NoPlace { .. }
            | Self::NotCheaper { .. }
            | Self::SpotToSpotOff
            | Self::SpotToSpotTooFew { .. }
            | Self::WouldFlip { .. }
            | Self::SavingTooSmall { .. }
            | Self::WellUsed { .. }
            | Self::NotWorthIt { .. } => KeptKind::Unconsolidatable,
        }
    }
}
