//! The name of a version: the SHA-256 of the component's bytes.

use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// SHA-256 of a component as it was built, before any compression. Prints as `sha256:<64 hex digits>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyDigest([u8; 32]);

/// A digest that cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is not a digest; write it as sha256: and 64 hex digits")]
pub struct ParseDigestError(String);

impl PolicyDigest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The 32 bytes themselves.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for PolicyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PolicyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PolicyDigest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ParseDigestError(text.chars().take(80).collect());
        let hex = text.strip_prefix("sha256:").ok_or_else(refuse)?;
        if hex.len() != 64 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(refuse());
        }
        let mut digest = [0; 32];
        for (i, byte) in digest.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).map_err(|_| refuse())?;
        }
        Ok(Self(digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_survives_printing_and_parsing() {
        let digest = PolicyDigest::of(b"kerf");

        assert_eq!(digest.to_string().parse(), Ok(digest));
    }

    #[test]
    fn anything_else_is_refused_with_the_form_to_write() {
        for bad in ["", "sha256:", "md5:00", "sha256:é", &"a".repeat(71)] {
            let error = bad.parse::<PolicyDigest>().unwrap_err().to_string();

            assert!(error.contains("sha256: and 64 hex digits"), "{error}");
        }
    }
}
