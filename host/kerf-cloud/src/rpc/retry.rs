//! Which failures are worth another attempt, and after how long.

use std::time::Duration;

use crate::error::{AuthProblem, CloudError, ErrorClass, Idempotency};
use crate::rpc::config::ClientConfig;
use crate::rpc::request::Patience;
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

/// One more attempt gets over a broken connection; what fails twice is not worth a class that waits to be ready.
const OPTIONAL_ATTEMPTS_MAX: u32 = 2;
/// A class that is not ready makes no nodes, so it may lose this long to data that only sorts its offerings.
const OPTIONAL_DEADLINE: Duration = Duration::from_secs(10);

/// The time for all attempts of a call together.
#[must_use]
pub fn deadline(patience: Patience, config: &ClientConfig) -> Duration {
    match patience {
        Patience::Full => config.deadline,
        Patience::Short => config.deadline.min(OPTIONAL_DEADLINE),
    }
}

/// Decides; `attempt` counts from 1.
#[must_use]
pub fn decide(
    error: &CloudError,
    attempt: u32,
    patience: Patience,
    config: &ClientConfig,
) -> Decision {
    let attempts_max = match patience {
        Patience::Full => config.attempts_max,
        Patience::Short => config.attempts_max.min(OPTIONAL_ATTEMPTS_MAX),
    };
    if attempt >= attempts_max {
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
        CloudError::Unsure { last, .. } => retry_after(last),
        CloudError::Gateway { .. }
        | CloudError::Decode { .. }
        | CloudError::Transport { .. }
        | CloudError::Timeout { .. }
        | CloudError::Deadline { .. }
        | CloudError::Withheld { .. }
        | CloudError::Config { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::rpc::config::Clock;
    use crate::rpc::credentials::Credentials;

    #[test]
    fn a_reply_that_cannot_be_read_is_asked_for_once_more_when_it_is_optional() {
        let credentials = Credentials::access_key("id", "secret");
        let config = ClientConfig::new("r", credentials.into(), Clock::new(Timestamp::now));
        let error = CloudError::Decode {
            action: "DescribeSpotAdvice",
            detail: "EOF".to_owned(),
        };
        let tries = |patience| {
            (1..=config.attempts_max)
                .find(|attempt| decide(&error, *attempt, patience, &config) == Decision::GiveUp)
        };

        assert_eq!(tries(Patience::Short), Some(2));
        assert_eq!(tries(Patience::Full), Some(config.attempts_max));
        assert!(deadline(Patience::Short, &config) < deadline(Patience::Full, &config));
    }
}
