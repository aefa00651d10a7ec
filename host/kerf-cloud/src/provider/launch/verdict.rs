//! What a failed RunInstances call means for the launch. Pure.

use std::time::Duration;

use crate::error::{AuthProblem, CloudError, ErrorClass, Idempotency, Missing, QuotaScope};
use crate::provider::launch::NotReadyReason;

/// Before a call with an unknown outcome is looked into again.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// After throttling: the limiter has slowed down by then.
const THROTTLED_PAUSE: Duration = Duration::from_secs(15);

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The same offering in another vSwitch.
    NextVSwitch,
    /// The same offering with the next disk category.
    NextDiskCategory,
    /// This offering cannot be had.
    NextOffering,
    /// The token was used with other parameters: something may exist under it.
    LookAgain,
    /// Nothing is decided; the same attempt again, later.
    Retry(Duration),
    /// No offering can be had before somebody acts.
    Stop(NotReadyReason),
}

pub(super) fn verdict(error: &CloudError) -> Verdict {
    if error.is_outcome_unknown() {
        return Verdict::Retry(RETRY_PAUSE);
    }
    match error.class() {
        ErrorClass::NoCapacity(_)
        | ErrorClass::SpotPrice
        | ErrorClass::ImageMismatch
        | ErrorClass::Quota(QuotaScope::Family | QuotaScope::Account)
        // The code is not known: another type may do, and if none does, the message says why.
        | ErrorClass::Invalid => Verdict::NextOffering,
        ErrorClass::DiskCategory => Verdict::NextDiskCategory,
        ErrorClass::IpExhausted | ErrorClass::NotFound(Missing::VSwitch) => Verdict::NextVSwitch,
        ErrorClass::Idempotent(Idempotency::Mismatch) => Verdict::LookAgain,
        ErrorClass::Throttled => Verdict::Retry(THROTTLED_PAUSE),
        ErrorClass::Idempotent(Idempotency::Processing)
        | ErrorClass::Transient
        | ErrorClass::StaleSignature
        | ErrorClass::State(_)
        | ErrorClass::Auth(AuthProblem::TokenExpired) => Verdict::Retry(RETRY_PAUSE),
        ErrorClass::Quota(
            QuotaScope::SecurityGroup
            | QuotaScope::Disk
            | QuotaScope::Tag
            | QuotaScope::DeploymentSet,
        ) => Verdict::Stop(NotReadyReason::Quota),
        ErrorClass::Auth(_) => Verdict::Stop(NotReadyReason::Unauthorized),
        ErrorClass::Billing => Verdict::Stop(NotReadyReason::Billing),
        ErrorClass::NotFound(_) => Verdict::Stop(NotReadyReason::ClassResourceMissing),
        ErrorClass::UserData => Verdict::Stop(NotReadyReason::UserData),
        ErrorClass::DryRun => Verdict::Stop(NotReadyReason::InvalidRequest),
    }
}
