//! Why a reconcile failed, sorted by what to do about it.

use std::fmt::Debug;
use std::time::Duration;

use kube::Resource;

use crate::api_call;

/// What a reconciler could not do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request to the API server failed.
    #[error("cannot {operation} {object}")]
    Kube {
        /// A verb phrase.
        operation: &'static str,
        /// Kind and name.
        object: String,
        /// The answer.
        source: kube::Error,
    },
    /// An object cannot be written as JSON: our bug.
    #[error("cannot encode {object}")]
    Encode {
        /// Kind and name.
        object: String,
        /// The encoder's error.
        source: serde_json::Error,
    },
    /// The cloud could not be asked or refused.
    #[error("cannot {operation} {object}: {message}")]
    Cloud {
        /// A verb phrase.
        operation: &'static str,
        /// Kind and name.
        object: String,
        /// What the cloud said.
        message: String,
    },
}

impl Error {
    /// A failed request about an object.
    pub fn kube<K: Resource<DynamicType = ()> + Debug>(
        operation: &'static str,
        object: &K,
        source: kube::Error,
    ) -> Self {
        Self::Kube {
            operation,
            object: describe(object),
            source,
        }
    }

    /// The label value of metrics.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Kube { source, .. } if api_call::is_conflict(source) => "conflict",
            Self::Kube { .. } => "kube",
            Self::Encode { .. } => "encode",
            Self::Cloud { .. } => "cloud",
        }
    }

    /// A conflict is normal: the watch will bring the newer object, which is then decided on afresh.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.kind() == "conflict"
    }

    /// True if the object is gone.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Kube { source, .. } if api_call::is_not_found(source))
    }
}

/// `NodeClaim default-x7k2p`, or with its namespace.
#[must_use]
pub fn describe<K: Resource<DynamicType = ()>>(object: &K) -> String {
    let meta = object.meta();
    let name = meta.name.as_deref().unwrap_or_default();
    match meta.namespace.as_deref() {
        Some(namespace) => format!("{} {namespace}/{name}", K::kind(&())),
        None => format!("{} {name}", K::kind(&())),
    }
}

/// The error with all its causes, for one log line or message.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// First retry after an error; doubles with each (Karpenter: same).
const BACKOFF_FIRST: Duration = Duration::from_secs(1);
/// Longest wait between retries (Karpenter: same).
const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// A conflict only waits for the watch to catch up.
pub const CONFLICT_RETRY: Duration = Duration::from_millis(200);

/// How long to wait before retry number `failures` (from 1).
#[must_use]
pub fn backoff(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    BACKOFF_FIRST
        .saturating_mul(2_u32.saturating_pow(doublings))
        .min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_slow_down_to_a_minute() {
        let waits: Vec<u64> = (1..=8)
            .map(|failures| backoff(failures).as_secs())
            .collect();

        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    }
}
