//! A plan: what to do about the pods of a snapshot, in full detail. Who carries it out makes no choices.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::SignedDuration;

use crate::ids::{
    InstanceTypeName, NodeClaimName, NodeName, NodePoolName, PodUid, ReservationId, ZoneId,
};
use crate::instance_type::CapacityType;
use crate::node_pool::NodeClassRef;
use crate::pod::Pod;
use crate::price::Price;
use crate::reason::Unschedulable;
use crate::requirements::Requirements;
use crate::resources::Resources;
use crate::selector::Labels;
use crate::taint::Taint;

/// How many offerings a planned claim lists at most: upstream's limit of instance types per claim.
pub const MAX_INSTANCE_TYPES: usize = 600;

/// What to do about the pods of a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// NodeClaims to create, in the order in which they were planned.
    pub new_claims: Vec<PlannedClaim>,
    /// Pods that fit on nodes that exist or are on their way.
    pub placements: Vec<Placement>,
    /// Pods without a place.
    pub unschedulable: Vec<Unschedulable>,
    /// The pods that have a place, in the order in which they got it. Offered to kube-scheduler in this order, each is
    /// accepted on the node that it was planned for.
    pub order: Vec<PodUid>,
    /// Pools that could serve no pod at all, with the reason.
    pub pool_problems: Vec<PoolProblem>,
    /// How much work it took.
    pub work_used: u64,
    /// Whether the work budget ended before every pod was tried.
    pub is_partial: bool,
}

impl Plan {
    /// The hourly price of all new claims at their first offering.
    pub fn price_per_hour(&self) -> Price {
        self.new_claims.iter().map(PlannedClaim::price).sum()
    }

    /// Number of pods without a place. Those of CapacityBuffers are not counted: nobody waits for them.
    pub fn unschedulable_pods(&self) -> usize {
        let pods = self.unschedulable.iter().flat_map(|group| &group.pods);
        pods.filter(|pod| !pod.is_virtual()).count()
    }
}

/// A NodeClaim to create.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlannedClaim {
    /// The NodePool.
    pub pool: NodePoolName,
    /// The NodeClass.
    pub node_class: NodeClassRef,
    /// `spec.requirements`, with the instance types and capacity types of the offerings. Claims of one shape share it.
    pub requirements: Arc<Requirements>,
    /// What to launch, best first. All of them hold the pods. Claims of one shape share it.
    pub offerings: Arc<[PlannedOffering]>,
    /// What pods and daemons ask for together.
    pub requests: Resources,
    /// The pods that it is for, in the order in which they were planned.
    pub pods: Vec<Arc<Pod>>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `metadata.annotations`.
    pub annotations: BTreeMap<String, String>,
    /// Taints that stay.
    pub taints: Vec<Taint>,
    /// Taints that something removes while the node starts.
    pub startup_taints: Vec<Taint>,
    /// `spec.expireAfter`.
    pub expire_after: Option<SignedDuration>,
    /// `spec.terminationGracePeriod`.
    pub termination_grace_period: Option<SignedDuration>,
    /// Why the claim is made and why its first offering is first, in words.
    pub reason: String,
}

impl PlannedClaim {
    /// The real price of the first offering.
    pub fn price(&self) -> Price {
        self.offerings
            .first()
            .map_or(Price::UNKNOWN, |offering| offering.price)
    }
}

/// One way to launch a planned claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedOffering {
    /// The instance type.
    pub instance_type: InstanceTypeName,
    /// The zone.
    pub zone: ZoneId,
    /// The capacity type.
    pub capacity_type: CapacityType,
    /// The real price.
    pub price: Price,
    /// The capacity reservation to take it from.
    pub reservation: Option<ReservationId>,
    /// What pods will be able to use on it.
    pub allocatable: Resources,
    /// What the machine has.
    pub capacity: Resources,
}

/// A pod that fits on a node that exists or is on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The pod.
    pub pod: Arc<Pod>,
    /// The node.
    pub node: PlacementTarget,
    /// Why this one.
    pub reason: PlacementReason,
}

/// Why a pod was given to a node that exists or is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlacementReason {
    /// An earlier plan gave it that place.
    Kept,
    /// Of the nodes with room that meet its constraints it is the first: initialised ones come before others, and then
    /// the name decides.
    FirstThatFits,
}

impl fmt::Display for PlacementReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kept => "an earlier plan put it there",
            Self::FirstThatFits => "the first with room that meets its constraints",
        })
    }
}

/// Where a pod was placed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlacementTarget {
    /// A Node object.
    Node(
        /// Its name.
        NodeName,
    ),
    /// A NodeClaim that has no Node yet.
    InFlight(
        /// Its name.
        NodeClaimName,
    ),
}

/// A pool that could serve no pod at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolProblem {
    /// The pool.
    pub pool: NodePoolName,
    /// What is wrong.
    pub message: String,
}

/// How much a decision may search, in units of work: one unit is one pod tried on one node or claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkBudget(pub u64);

impl WorkBudget {
    /// Enough for hundreds of thousands of pods; a few seconds on one core.
    pub const ROUND: Self = Self(200_000_000);
}
