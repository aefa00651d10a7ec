//! Access keys. They are values that somebody else read from wherever they are kept; `Debug` never shows a secret.

mod temporary;

use std::fmt;
use std::sync::Arc;

use crate::error::CloudError;
use crate::rpc::config::Clock;

pub use temporary::{METADATA_URL, MachineRole, OidcRole, Temporary};

use temporary::Origin;

/// An access key, with a token when it is a temporary one.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub access_key_id: String,
    pub access_key_secret: String,
    pub security_token: Option<String>,
}

impl Credentials {
    /// A long-lived access key.
    #[must_use]
    pub fn access_key(id: impl Into<String>, secret: impl Into<String>) -> Self {
        Self {
            access_key_id: id.into(),
            access_key_secret: secret.into(),
            security_token: None,
        }
    }

    /// A temporary key with its token.
    #[must_use]
    pub fn sts(id: impl Into<String>, secret: impl Into<String>, token: impl Into<String>) -> Self {
        Self {
            security_token: Some(token.into()),
            ..Self::access_key(id, secret)
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.security_token.is_some() {
            "sts"
        } else {
            "access key"
        };
        f.debug_struct("Credentials")
            .field("kind", &kind)
            .finish_non_exhaustive()
    }
}

/// Where a call takes its credentials from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum CredentialSource {
    /// The same for the life of the process.
    Static(Credentials),
    /// Fetched and renewed.
    Temporary(Arc<Temporary>),
}

impl CredentialSource {
    /// Of a role that a service account assumes (RRSA).
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn oidc(role: OidcRole, clock: Clock) -> Result<Self, CloudError> {
        Temporary::new(Origin::Oidc(role), clock).map(|it| Self::Temporary(Arc::new(it)))
    }

    /// Of the machine's own role.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn machine(role: MachineRole, clock: Clock) -> Result<Self, CloudError> {
        Temporary::new(Origin::Machine(role), clock).map(|it| Self::Temporary(Arc::new(it)))
    }

    /// The credentials for a call that is about to be signed.
    ///
    /// # Errors
    /// When a source that must be asked cannot answer; a static one always can.
    pub async fn load(&self) -> Result<Credentials, CloudError> {
        match self {
            Self::Static(credentials) => Ok(credentials.clone()),
            Self::Temporary(source) => source.load().await,
        }
    }
}

impl From<Credentials> for CredentialSource {
    fn from(credentials: Credentials) -> Self {
        Self::Static(credentials)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_holds_no_secret() {
        let source = CredentialSource::from(Credentials::sts("LTAIxyz", "s3cret", "tok3n"));

        let text = format!("{source:?}");

        for hidden in ["LTAIxyz", "s3cret", "tok3n"] {
            assert!(!text.contains(hidden), "{text}");
        }
    }
}
