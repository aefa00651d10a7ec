//! What can go wrong with a call to the cloud, sorted by what the caller does about it.
//!
//! The class comes from the exact `Code` of the reply through the table in [`codes`], never from a part of its text:
//! "contains NotFound" would read a missing vSwitch as a vanished instance.

pub mod codes;

use std::time::Duration;

/// What a failed call asks of the caller. One row per reaction, not one per code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// Nothing to be had there at the moment: mark what the scope says as unavailable, try the next offering.
    NoCapacity(CapacityScope),
    /// The disk category does not exist for this type in this zone: try the next category, then the next offering.
    DiskCategory,
    /// The vSwitch has no free addresses: block the vSwitch, not the type.
    IpExhausted,
    /// A quota of the account is used up.
    Quota(QuotaScope),
    /// The credentials or their permissions do not allow the call.
    Auth(AuthProblem),
    /// The account cannot pay.
    Billing,
    /// The price cap is below today's spot price.
    SpotPrice,
    /// Something that the request names does not exist.
    NotFound(Missing),
    /// The object is in a state that forbids the call.
    State(StateProblem),
    /// Too many calls; try later, slower.
    Throttled,
    /// The client token was used before.
    Idempotent(Idempotency),
    /// The signature's time or nonce was refused: sign anew.
    StaleSignature,
    /// The image does not fit the instance type: the next type may do.
    ImageMismatch,
    /// The user data is too large or badly encoded.
    UserData,
    /// A dry run that would have succeeded.
    DryRun,
    /// The request itself is wrong, or the code is not known: repeating it gives the same answer.
    Invalid,
    /// The server, a gateway or the network failed: the same request may succeed later.
    Transient,
}

/// How much a "no capacity" answer speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CapacityScope {
    /// The (type, zone, capacity type) that was asked for.
    Offering,
    /// The type in that zone, for both capacity types.
    TypeInZone,
    /// The type anywhere in the region.
    Type,
    /// The whole zone.
    Zone,
}

/// What a quota answer speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuotaScope {
    /// vCPUs of an instance family with one charge type.
    Family,
    /// The account, whatever the type.
    Account,
    /// Members of a security group.
    SecurityGroup,
    /// Disks per instance or per account.
    Disk,
    /// Tags per resource.
    Tag,
    /// Members of a deployment set.
    DeploymentSet,
}

/// Why a call was not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuthProblem {
    /// The access key does not exist, is inactive, or signs wrongly.
    Credentials,
    /// The security token ended or is malformed; fresh credentials help.
    TokenExpired,
    /// The caller lacks a RAM permission.
    Permission,
    /// The RAM role of the node cannot be passed or used.
    NodeRole,
    /// The account is held back by risk control or a missing registration.
    Account,
}

/// What does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missing {
    Instance,
    Image,
    VSwitch,
    Vpc,
    SecurityGroup,
    KeyPair,
    RamRole,
    LaunchTemplate,
    ResourceGroup,
    DeploymentSet,
    Snapshot,
    KmsKey,
    Region,
    Zone,
    Cluster,
    Other,
}

/// Why an instance cannot be changed right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StateProblem {
    /// Still being made: ask again in a moment.
    Initializing,
    /// Another operation is running, or the instance is running and `Force` was not given.
    Busy,
    /// Deletion protection, a security lock or a subscription: somebody has to lift it.
    Locked,
}

/// What the server says about a used client token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Idempotency {
    /// Used before with other parameters.
    Mismatch,
    /// The first call with it is still running.
    Processing,
}

/// A failed call. `Display` names the action and never a secret.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CloudError {
    /// The API answered with an error envelope.
    #[error("{action}: {code}: {message} (HTTP {status}, request {request_id})")]
    Api {
        action: &'static str,
        status: u16,
        code: String,
        message: String,
        request_id: String,
        /// What the reply's `x-acs-retry-after` asked for.
        retry_after: Option<Duration>,
    },
    /// Something between us and the API answered, for example a gateway with an HTML page.
    #[error("{action}: HTTP {status} with a body that is not an API reply: {excerpt}")]
    Gateway {
        action: &'static str,
        status: u16,
        excerpt: String,
    },
    /// A success reply that could not be read whole, or does not have the documented shape.
    #[error("{action}: cannot read the reply: {detail}")]
    Decode {
        action: &'static str,
        detail: String,
    },
    /// No connection, or it broke.
    #[error("{action}: cannot reach {host}: {detail}")]
    Transport {
        action: &'static str,
        host: String,
        detail: String,
    },
    /// One attempt took longer than its read time-out.
    #[error("{action}: no answer from {host} within {} s", limit.as_secs())]
    Timeout {
        action: &'static str,
        host: String,
        limit: Duration,
    },
    /// All attempts together took longer than the call's deadline; `last` is what the last one said.
    #[error("{action}: gave up after {} s; last: {last}", limit.as_secs())]
    Deadline {
        action: &'static str,
        limit: Duration,
        last: Box<Self>,
    },
    /// The last attempt was refused, but an earlier one may have had its effect.
    #[error("{last}; an attempt before may have had its effect: {before}")]
    Unsure { before: Box<Self>, last: Box<Self> },
    /// Not sent: this process may not make anything any more.
    #[error(
        "{action}: not sent, because the lease is no longer held; the replica that holds it goes on"
    )]
    Withheld { action: &'static str },
    /// The client could not be made from its settings.
    #[error("cloud client: {detail}")]
    Config { detail: String },
}

impl CloudError {
    /// What to do about it.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Api { code, status, .. } => codes::classify(code, *status),
            Self::Gateway { status, .. } if *status == 429 => ErrorClass::Throttled,
            Self::Gateway { status, .. } if *status < 500 && *status >= 400 => ErrorClass::Invalid,
            Self::Gateway { .. }
            | Self::Decode { .. }
            | Self::Transport { .. }
            | Self::Timeout { .. } => ErrorClass::Transient,
            Self::Deadline { last, .. } | Self::Unsure { last, .. } => last.class(),
            Self::Withheld { .. } => ErrorClass::State(StateProblem::Busy),
            Self::Config { .. } => ErrorClass::Invalid,
        }
    }

    /// The API's own code, if it was the API that answered.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Api { code, .. } => Some(code),
            Self::Deadline { last, .. } | Self::Unsure { last, .. } => last.code(),
            Self::Gateway { .. }
            | Self::Decode { .. }
            | Self::Transport { .. }
            | Self::Timeout { .. }
            | Self::Withheld { .. }
            | Self::Config { .. } => None,
        }
    }

    /// The same refusal, of a call of which an attempt before was lost.
    pub(crate) fn after(self, lost: Option<&Self>) -> Self {
        match lost {
            Some(before) if !self.is_outcome_unknown() => Self::Unsure {
                before: Box::new(before.clone()),
                last: Box::new(self),
            },
            Some(_) | None => self,
        }
    }

    /// True if the call may have had its effect although we got no good answer.
    #[must_use]
    pub fn is_outcome_unknown(&self) -> bool {
        match self {
            Self::Gateway { .. }
            | Self::Decode { .. }
            | Self::Transport { .. }
            | Self::Timeout { .. }
            | Self::Unsure { .. } => true,
            Self::Api { status, .. } => *status >= 500,
            Self::Deadline { last, .. } => last.is_outcome_unknown(),
            Self::Withheld { .. } | Self::Config { .. } => false,
        }
    }
}

impl ErrorClass {
    /// A stable name for metrics and condition reasons.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoCapacity(_) => "NoCapacity",
            Self::DiskCategory => "DiskCategory",
            Self::IpExhausted => "IpExhausted",
            Self::Quota(_) => "Quota",
            Self::Auth(_) => "Auth",
            Self::Billing => "Billing",
            Self::SpotPrice => "SpotPrice",
            Self::NotFound(_) => "NotFound",
            Self::State(_) => "State",
            Self::Throttled => "Throttled",
            Self::Idempotent(_) => "Idempotent",
            Self::StaleSignature => "StaleSignature",
            Self::ImageMismatch => "ImageMismatch",
            Self::UserData => "UserData",
            Self::DryRun => "DryRun",
            Self::Invalid => "Invalid",
            Self::Transient => "Transient",
        }
    }
}
