//! Launching one instance for one NodeClaim, exactly once; or by one call for many claims of one shape ([`group`]).
//!
//! The write-ahead rule: every attempt is handed to the caller's `record` before it is sent, and is stored with the
//! claim's launch group. The client token is a function of group, attempt and parameters, and the
//! instance's tags carry the group, so whatever dies in between, a later call finds what was made instead of making
//! it again.

pub(super) mod group;
pub(super) mod params;
mod user_data;
mod verdict;
mod walk;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kerf_core::instance_type::CapacityType;

use crate::error::ErrorClass;
use crate::provider::Inner;
use crate::provider::bootstrap::{NodeSettings, Renderer};
use crate::provider::class::{Architecture, ResolvedNodeClass};
use crate::provider::instance::Instance;
use crate::provider::launch::walk::{Step, Walk};
use crate::rpc::sign::sha256_hex;

/// One NodeClaim to launch, or a group of them.
#[derive(Debug, Clone)]
pub struct LaunchRequest {
    pub class: Arc<ResolvedNodeClass>,
    pub node_pool: String,
    /// Empty for a group.
    pub node_claim: String,
    /// How many instances; more than one only for a group.
    pub amount: u32,
    /// The launch token; the caller stores it with the first attempt, and chooses the same one again until then.
    pub group: String,
    /// The last attempt that `record` stored; `None` if there was none.
    pub last_attempt: Option<Attempt>,
    /// In the plan's order; zone, type and capacity type are hard.
    pub offerings: Vec<LaunchOffering>,
    pub node: NodeSettings,
    /// What changes the user data before it is sent; `None` leaves it as it is.
    pub renderer: Option<Renderer>,
}

/// One (type, zone, capacity type) that the plan allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchOffering {
    pub instance_type: String,
    pub zone_id: String,
    pub capacity_type: CapacityType,
}

/// One call that is about to be made. Stored in the claim before it is sent.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// Counts from 1 within the group.
    pub number: u32,
    pub instance_type: String,
    pub zone_id: String,
    pub capacity_type: String,
    pub vswitch_id: String,
    /// How many instances it asks for.
    #[serde(default = "one")]
    pub amount: u32,
    /// Of everything that the call sends besides the token.
    pub params_hash: String,
    pub at: Timestamp,
}

impl LaunchRequest {
    /// The same for a group of claims of this one's shape.
    #[must_use]
    pub fn for_group(&self, group: String, amount: u32) -> Self {
        Self {
            node_claim: String::new(),
            group,
            amount,
            last_attempt: None,
            ..self.clone()
        }
    }
}

/// Attempts of a version that launched one by one do not say how many.
fn one() -> u32 {
    1
}

/// What a group of claims is called. Unique for all time: the uids of its members are, and claims that come together
/// once more do so later.
#[must_use]
pub fn group_name(uids: impl IntoIterator<Item = String>, now: Timestamp) -> String {
    let uids: Vec<String> = uids.into_iter().collect();
    let hash = sha256_hex(format!("{now}\n{}", uids.join("\n")).as_bytes());
    format!("g-{}", &hash[..32])
}

/// What became of the launch of a group.
#[derive(Debug, Clone, PartialEq)]
pub enum GroupOutcome {
    /// These instances were made, in the order of their ids; fewer than were asked for where there were no more.
    Made(Vec<Member>),
    /// None, and this is why; it holds for each claim of the group. It is never [`LaunchOutcome::Launched`].
    Not(LaunchOutcome),
}

/// An instance of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// `i-…`
    pub instance_id: String,
    /// None while it does not show.
    pub launched: Option<Launched>,
}

/// What became of an attempt that was sent once more.
#[derive(Debug, Clone, PartialEq)]
pub enum Resent {
    /// These instances carry its token.
    Made(Vec<String>),
    /// It was refused, and so it was before: there are none.
    Refused,
    /// It cannot be sent again as it was. What it made shows by its tags, later.
    Changed,
    /// Nothing is known.
    Not(LaunchOutcome),
}

/// What became of a launch.
#[derive(Debug, Clone, PartialEq)]
pub enum LaunchOutcome {
    /// There is an instance; its zone, type, architecture and capacity type are what an offering asked for.
    Launched(Box<Launched>),
    /// No offering could be had; each says why.
    InsufficientCapacity { offerings: Vec<OfferingFailure> },
    /// The class, the account or the credentials must be put right first.
    NotReady {
        reason: NotReadyReason,
        message: String,
    },
    /// Nothing is decided yet: call again with the same group.
    Retry { after: Duration, message: String },
}

/// An instance and how it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Launched {
    pub instance: Instance,
    pub architecture: Architecture,
    /// Pods per node that the kubelet was told.
    pub max_pods: u32,
    /// True if it was found by its tags instead of made by this call.
    pub is_adopted: bool,
}

/// Why one offering failed.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferingFailure {
    pub offering: LaunchOffering,
    /// `None` if it was passed over without a call.
    pub class: Option<ErrorClass>,
    pub message: String,
}

/// Why a launch cannot be tried at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotReadyReason {
    /// No ACK cluster id and no join template.
    NoJoinMethod,
    /// A vSwitch, image, group, role or key that the class names is gone.
    ClassResourceMissing,
    /// User data too large or refused.
    UserData,
    /// A policy that writes user data gave no answer, or none that joins the node.
    Policy,
    Unauthorized,
    Billing,
    Quota,
    /// The API refuses the request as such.
    InvalidRequest,
}

impl NotReadyReason {
    /// The condition reason.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoJoinMethod => "ClusterNotConfigured",
            Self::ClassResourceMissing => "NodeClassResourceMissing",
            Self::UserData => "UserDataInvalid",
            Self::Policy => "PolicyFailed",
            Self::Unauthorized => "Unauthorized",
            Self::Billing => "BillingProblem",
            Self::Quota => "QuotaExceeded",
            Self::InvalidRequest => "InvalidRequest",
        }
    }
}

/// Launches, or finds what was launched.
pub(crate) async fn launch<F, Fut>(
    inner: &Inner,
    request: &LaunchRequest,
    mut record: F,
) -> LaunchOutcome
where
    F: FnMut(Attempt) -> Fut + Send,
    Fut: Future<Output = Result<(), String>> + Send,
{
    let mut walk = Walk::new(inner, request);
    if let Some(last) = &request.last_attempt
        && let Step::Done(outcome) = walk.resume(last).await
    {
        return outcome;
    }
    for offering in &request.offerings {
        if let Step::Done(outcome) = walk.try_offering(offering, &mut record).await {
            return outcome;
        }
    }
    walk.exhausted()
}
