//! The states that a new version passes before it serves.

use crate::error::LoadError;
use std::fmt;

/// In the order in which a version reaches them. A version that misses one never serves, and what served before goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Its bytes are here.
    Fetched,
    /// They are a component of this contract, of the right digest and with the signature that is asked for.
    Verified,
    /// There is machine code.
    Compiled,
    /// It said its name, its version and what its configuration looks like.
    Described,
    /// It accepted the configuration of this NodeClass.
    ConfigValid,
    /// It answered a trial call, and serves.
    Active,
}

impl Stage {
    /// All, in order.
    pub const ALL: [Self; 6] = [
        Self::Fetched,
        Self::Verified,
        Self::Compiled,
        Self::Described,
        Self::ConfigValid,
        Self::Active,
    ];

    /// The name in the status of an ECSNodeClass.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fetched => "Fetched",
            Self::Verified => "Verified",
            Self::Compiled => "Compiled",
            Self::Described => "Described",
            Self::ConfigValid => "ConfigValid",
            Self::Active => "Active",
        }
    }

    /// The one before, which a version that misses this one has reached.
    pub fn before(self) -> Option<Self> {
        Self::ALL.into_iter().take_while(|it| *it < self).last()
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why the newest version or configuration does not serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Obstacle {
    /// What it does not reach.
    pub(crate) misses: Stage,
    pub(crate) reason: String,
    /// Nothing is wrong; it takes a while.
    pub(crate) is_wait: bool,
}

impl Obstacle {
    pub(crate) fn of(error: &LoadError) -> Self {
        Self {
            misses: error.misses(),
            reason: error.to_string(),
            is_wait: false,
        }
    }
}

impl LoadError {
    /// The state that a version with this error does not reach.
    pub fn misses(&self) -> Stage {
        match self {
            Self::Empty
            | Self::TooLarge { .. }
            | Self::NotWasm { .. }
            | Self::Packed(_)
            | Self::CoreModule
            | Self::Malformed { .. }
            | Self::DigestMismatch { .. }
            | Self::ForbiddenImports { .. }
            | Self::UnknownVersion { .. }
            | Self::MissingExport { .. }
            | Self::Unpinned { .. }
            | Self::BadSignature(_)
            | Self::UntrustedSignature { .. } => Stage::Verified,
            Self::Compile(_)
            | Self::CompileCpu { .. }
            | Self::CompileSlow { .. }
            | Self::CompileMemory { .. }
            | Self::CodeTooLarge { .. }
            | Self::StartCompiler(_)
            | Self::KeepCode(_)
            | Self::WrongTypes(_) => Stage::Compiled,
            Self::Describe(_) | Self::BadMetadata(_) => Stage::Described,
            Self::Config(_) | Self::Validate(_) => Stage::ConfigValid,
            Self::Smoke(_) => Stage::Active,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_reached_what_comes_before_what_it_misses() {
        assert_eq!(Stage::Fetched.before(), None);
        assert_eq!(Stage::Compiled.before(), Some(Stage::Verified));
        assert_eq!(LoadError::Empty.misses().before(), Some(Stage::Fetched));
    }
}
