//! Why an artifact could not be moved. The messages end up in conditions and events, so each names the next step.

use std::time::Duration;

/// Of one pull or push.
#[derive(Debug, thiserror::Error)]
pub enum OciError {
    #[error("{text:?} names no artifact: {why}")]
    Reference { text: String, why: &'static str },
    #[error(
        "the artifact is named by a tag, which can be moved: set source.oci.digest to the digest of its manifest, which \
         `kerf plugin publish --oci` prints"
    )]
    NoDigest,
    #[error("source.oci.digest and the digest in source.oci.ref differ: leave one out")]
    TwoDigests,
    #[error("the CA bundle holds no certificate that can be used: {0}")]
    Roots(String),
    #[error("the client for registries cannot be made")]
    Setup(#[source] reqwest::Error),
    #[error(
        "the registry {host} cannot be reached; check its name, the network policy, and --registry-ca-bundle for a private CA"
    )]
    Unreachable {
        host: String,
        #[source]
        source: reqwest::Error,
    },
    #[error("the registry {host} did not send all of {what}; it is tried again")]
    Cut { host: String, what: String },
    #[error("the registry {host} did not send {what} within {} s; it is tried again", .limit.as_secs())]
    Slow {
        host: String,
        what: String,
        limit: Duration,
    },
    #[error("{what} of {host} has {bytes} bytes, and the most is {max}")]
    TooLarge {
        host: String,
        what: String,
        bytes: u64,
        max: u64,
    },
    #[error(
        "the registry {host} sent {what} with the digest {found}: it was damaged or changed on the way; nothing of it is used"
    )]
    Digest {
        host: String,
        what: String,
        found: String,
    },
    #[error("the registry {host} has not got {what}; check the repository and the digest")]
    NotFound { host: String, what: String },
    #[error(
        "the registry {host} wants a login for {what}; name a Secret of type kubernetes.io/dockerconfigjson in source.oci.pullSecret"
    )]
    NoLogin { host: String, what: String },
    #[error(
        "the registry {host} refused the login for {what}; check user and password, and whether they may read the repository"
    )]
    LoginRefused { host: String, what: String },
    #[error("the registry {host} cannot be logged in to: {why}")]
    Challenge { host: String, why: String },
    #[error("the registry {host} answered {status} for {what}")]
    Status {
        host: String,
        what: String,
        status: u16,
    },
    #[error("the artifact of {host} is no policy: {why}")]
    Manifest { host: String, why: String },
    #[error("the login cannot be read: {0}")]
    Login(String),
}

impl OciError {
    /// Whether the same request may succeed a little later.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Cut { .. } | Self::Slow { .. } => true,
            Self::Status { status, .. } => *status >= 500 || *status == 429,
            _ => false,
        }
    }
}
