//! Which failures are worth another attempt, and after how long.

use std::time::Duration;

use crate::error::{AuthProblem, CloudError, ErrorClass, Idempotency};
use crate::rpc::config::ClientConfig;
use crate::rpc::unique;

/// What to do after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Try again after this pause, with the same client token and a new nonce and time.
    Again(Duration),
    /// The caller gets the error.
    GiveUp,
}

/// Attempts that a stale signature or an expired token gets: the second one is signed anew, a third changes nothing.
const RESIGN_ATTEMPTS_MAX: u32 = 2;
/// A call that throttles this often waits for the next minute anyway.
const THROTTLE_PAUSE_FIRST: Duration = Duration::from_secs(1);

/// Decides; `attempt` counts from 1.
#[must_use]
pub fn decide(error: &CloudError, attempt: u32, config: &ClientConfig) -> Decision {
    if attempt >= config.attempts_max {
        return Decision::GiveUp;
    }
    let exponent = attempt.saturating_sub(1).min(16);
    let grow = |first: Duration| {
        let pause = first.saturating_mul(1 << exponent).min(config.backoff_max);
        Decision::Again(pause.mul_f64(unique::jitter()))
    };
    match error.class() {
        ErrorClass::Throttled => match retry_after(error) {
            Some(asked) => Decision::Again(asked),
            None => grow(THROTTLE_PAUSE_FIRST.min(config.backoff_max)),
        },
        ErrorClass::Transient | ErrorClass::Idempotent(Idempotency::Processing) => {
            grow(config.backoff_first)
        }
        ErrorClass::StaleSignature | ErrorClass::Auth(AuthProblem::TokenExpired)
            if attempt < RESIGN_ATTEMPTS_MAX =>
        {
            grow(config.backoff_first)
        }
        ErrorClass::NoCapacity(_)
        | ErrorClass::DiskCategory
        | ErrorClass::IpExhausted
        | ErrorClass::Quota(_)
        | ErrorClass::Auth(_)
        | ErrorClass::Billing
        | ErrorClass::SpotPrice
        | ErrorClass::NotFound(_)
        | ErrorClass::State(_)
        | ErrorClass::Idempotent(Idempotency::Mismatch)
        | ErrorClass::StaleSignature
        | ErrorClass::ImageMismatch
        | ErrorClass::UserData
        | ErrorClass::DryRun
        | ErrorClass::Invalid => Decision::GiveUp,
    }
}

fn retry_after(error: &CloudError) -> Option<Duration> {
    match error {
        CloudError::Api { retry_after, .. } => *retry_after,
        CloudError::Gateway { .. }
        | CloudError::Decode { .. }
        | CloudError::Transport { .. }
        | CloudError::Timeout { .. }
        | CloudError::Deadline { .. }
        | CloudError::Config { .. } => None,
    }
}
