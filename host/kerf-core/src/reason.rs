//! Why a pod has no place, as data. Rendering it is the `Display` of each type.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::ids::{InstanceTypeName, NodePoolName, ZoneId};
use crate::instance_type::CapacityType;
use crate::pod::{HostPort, Pod};
use crate::requirements::Incompatibility;
use crate::resources::quantity_of;
use crate::taint::Taint;
use crate::volume::VolumeProblem;

/// Pods without a place, and the reason that all of them share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unschedulable {
    /// The pods, in the order in which they were planned.
    pub pods: Vec<Arc<Pod>>,
    /// Why.
    pub reason: UnschedulableReason,
}

/// Why a pod has no place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnschedulableReason {
    /// It has scheduling gates.
    Gated {
        /// Their names.
        gates: Vec<String>,
    },
    /// It cannot be planned at all.
    Invalid {
        /// What is wrong with it.
        message: String,
    },
    /// It asks for a label that users may not ask for.
    RestrictedLabel {
        /// The label key.
        key: String,
    },
    /// It refuses every node that kerf makes.
    RefusesNodePools,
    /// One of its volumes.
    Volume {
        /// The PersistentVolumeClaim.
        claim: String,
        /// What is wrong with it.
        problem: VolumeProblem,
    },
    /// It has resource claims, which kerf does not plan.
    ResourceClaims,
    /// There is no NodePool that could grow for it.
    NoNodePools,
    /// No NodePool can serve it.
    NodePools(
        /// Why not, in the order in which they were tried.
        Vec<PoolFailure>,
    ),
    /// The work budget ended before it was tried.
    BudgetExhausted,
}

impl UnschedulableReason {
    /// Whether the pod is left out because of what it is, before any NodePool was asked.
    pub fn is_ignored(&self) -> bool {
        match self {
            Self::Gated { .. }
            | Self::Invalid { .. }
            | Self::RestrictedLabel { .. }
            | Self::RefusesNodePools
            | Self::Volume { .. }
            | Self::ResourceClaims => true,
            Self::NoNodePools | Self::NodePools(_) | Self::BudgetExhausted => false,
        }
    }
}

/// Why one NodePool cannot serve a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PoolFailure {
    /// The NodePool.
    pub pool: NodePoolName,
    /// The constraint that failed.
    pub failure: Failure,
}

/// A constraint that failed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// The pool is not ready.
    NotReady {
        /// Why.
        message: String,
    },
    /// The pod does not tolerate a taint.
    Taint(
        /// The taint.
        Taint,
    ),
    /// A requirement of the pod does not fit the pool.
    Requirement(
        /// The requirement.
        Incompatibility,
    ),
    /// No instance type meets the requirements of pod and pool together.
    NoInstanceType {
        /// The requirements.
        requirements: String,
    },
    /// No instance type is large enough.
    TooLarge(
        /// How near the closest one came.
        Shortage,
    ),
    /// The instance types that are large enough cannot be bought.
    Unavailable(
        /// Which and where.
        Unavailable,
    ),
    /// The pool's limit is reached.
    Limit {
        /// The resource.
        resource: String,
        /// The limit.
        limit: i64,
        /// What the pool has, with what this plan adds.
        used: i64,
        /// The least that a node for the pod would add.
        needed: i64,
    },
    /// Too few distinct values remain for a `minValues`.
    MinValues {
        /// The label key.
        key: String,
        /// `minValues`.
        wanted: u32,
        /// How many remain.
        remaining: u32,
    },
    /// A topology spread constraint.
    TopologySpread {
        /// The label key.
        key: String,
        /// Domains with their pods, where the constraint counts.
        counts: Vec<(String, u32)>,
        /// The constraint's maxSkew.
        max_skew: u32,
    },
    /// A pod affinity term: no domain has a pod that it wants.
    PodAffinity {
        /// The label key.
        key: String,
    },
    /// A pod anti-affinity term, of the pod or of others against it: every domain has a pod that it refuses.
    PodAntiAffinity {
        /// The label key.
        key: String,
    },
    /// A host port that daemons take on every node.
    HostPort(
        /// The port.
        HostPort,
    ),
    /// Reserved capacity would suit but is all taken; the pod waits for the next round.
    ReservedCapacity,
    /// A volume cannot be used in any zone that is left.
    VolumeTopology {
        /// The PersistentVolumeClaim.
        claim: String,
    },
    /// Policies exclude every offering that would suit.
    Barred {
        /// The policy that excluded the cheapest of them.
        policy: String,
        /// Its reason.
        reason: String,
    },
}

/// How near the closest instance type came.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shortage {
    /// The resource of which it has too little.
    pub resource: String,
    /// What the pod asks for.
    pub needed: i64,
    /// What daemons take first.
    pub daemons: i64,
    /// The closest instance type.
    pub closest: InstanceTypeName,
    /// What it leaves after daemons.
    pub left: i64,
}

/// Instance types that would do but cannot be bought.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unavailable {
    /// How near the closest one came that can be bought; none when none can.
    pub closest: Option<Shortage>,
    /// The cheapest that is large enough.
    pub smallest: InstanceTypeName,
    /// Where it cannot be bought, and why.
    pub offerings: Vec<UnavailableOffering>,
}

/// An offering that cannot be bought.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnavailableOffering {
    /// The zone.
    pub zone: ZoneId,
    /// The capacity type.
    pub capacity_type: CapacityType,
    /// Why.
    pub reason: String,
}

impl fmt::Display for UnschedulableReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gated { gates } => write!(f, "waits for scheduling gates {}", gates.join(", ")),
            Self::Invalid { message } => write!(f, "cannot be planned: {message}"),
            Self::RestrictedLabel { key } => {
                write!(f, "selects the label {key}, which is restricted")
            }
            Self::RefusesNodePools => write!(f, "refuses nodes of NodePools"),
            Self::Volume { claim, problem } => write!(f, "volume {claim}: {problem}"),
            Self::ResourceClaims => {
                write!(f, "has resource claims (DRA), which kerf does not plan")
            }
            Self::NoNodePools => write!(
                f,
                "no NodePool can make nodes; create one or see its Ready condition"
            ),
            Self::NodePools(failures) => {
                for (i, failure) in failures.iter().enumerate() {
                    let separator = if i == 0 { "" } else { "; " };
                    write!(f, "{separator}pool {}: {}", failure.pool, failure.failure)?;
                }
                Ok(())
            }
            Self::BudgetExhausted => write!(
                f,
                "not reached in this round; it is planned again in the next"
            ),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReady { message } => write!(f, "not ready: {message}"),
            Self::Taint(taint) => write!(f, "does not tolerate taint {taint}"),
            Self::Requirement(incompatibility) => write!(f, "{incompatibility}"),
            Self::NoInstanceType { requirements } => {
                write!(f, "no instance type meets {requirements}")
            }
            Self::TooLarge(shortage) => write!(f, "{shortage}"),
            Self::Unavailable(unavailable) => write!(f, "{unavailable}"),
            Self::Limit {
                resource,
                limit,
                used,
                needed,
            } => {
                let show = |amount| quantity_of(resource, amount);
                let (limit, used, needed) = (show(*limit), show(*used), show(*needed));
                write!(
                    f,
                    "limit {resource}={limit}: {used} used and {needed} more needed"
                )
            }
            Self::MinValues {
                key,
                wanted,
                remaining,
            } => {
                write!(
                    f,
                    "minValues of {key} is {wanted}, and {remaining} values remain"
                )
            }
            Self::TopologySpread {
                key,
                counts,
                max_skew,
            } => {
                write!(f, "topology spread over {key} with maxSkew {max_skew} (")?;
                for (i, (domain, count)) in counts.iter().enumerate() {
                    let separator = if i == 0 { "" } else { ", " };
                    write!(f, "{separator}{domain}: {count}")?;
                }
                write!(f, ")")
            }
            Self::PodAffinity { key } => write!(f, "no {key} has a pod that its affinity wants"),
            Self::PodAntiAffinity { key } => {
                write!(f, "every {key} has a pod that anti-affinity keeps apart")
            }
            Self::HostPort(port) => write!(
                f,
                "host port {} is taken on every node by a daemon",
                port.port
            ),
            Self::ReservedCapacity => {
                write!(f, "waits for reserved capacity that this round has used up")
            }
            Self::VolumeTopology { claim } => {
                write!(f, "volume {claim} cannot be used where the pod could run")
            }
            Self::Barred { policy, reason } => {
                write!(f, "policy {policy} excludes what would suit: {reason}")
            }
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            resource,
            needed,
            daemons,
            closest,
            left,
        } = self;
        let show = |amount: i64| quantity_of(resource, amount);
        write!(f, "needs {} {resource}", show(*needed))?;
        if *daemons > 0 {
            write!(f, " after {} for daemons", show(*daemons))?;
        }
        write!(f, "; {closest} leaves {}", show(*left))
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(closest) = &self.closest {
            write!(f, "{closest}; ")?;
        }
        write!(f, "the smallest that fits is {}", self.smallest)?;
        let mut places: BTreeMap<(&str, CapacityType), Vec<&str>> = BTreeMap::new();
        for it in &self.offerings {
            let zones = places.entry((&it.reason, it.capacity_type)).or_default();
            zones.push(&it.zone);
        }
        for ((reason, capacity_type), zones) in places {
            write!(f, ", {reason} in {} ({capacity_type})", listed(&zones))?;
        }
        Ok(())
    }
}

/// "a, b and c".
fn listed(items: &[&str]) -> String {
    match items {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
