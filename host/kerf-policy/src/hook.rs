//! The three places where a policy is asked.

use std::fmt;
use std::str::FromStr;

/// A hook, spelt as in ECSNodeClass `spec.policies[].hook`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum Hook {
    /// Ranks and excludes the instance types of one planned NodeClaim.
    InstanceSelection,
    /// Changes the price that ordering uses.
    PricingPreference,
    /// Edits what a machine runs when it boots.
    BootstrapUserData,
}

/// A hook that does not exist.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is not a hook; use InstanceSelection, PricingPreference or BootstrapUserData")]
pub struct ParseHookError(String);

impl Hook {
    /// The name in an ECSNodeClass.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InstanceSelection => "InstanceSelection",
            Self::PricingPreference => "PricingPreference",
            Self::BootstrapUserData => "BootstrapUserData",
        }
    }

    /// The interface that a component has to export for it, without the version.
    pub(crate) fn interface(self) -> &'static str {
        match self {
            Self::InstanceSelection => "kerf:policy/instance-selection",
            Self::PricingPreference => "kerf:policy/pricing-preference",
            Self::BootstrapUserData => "kerf:policy/bootstrap-userdata",
        }
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Hook {
    type Err = ParseHookError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [
            Self::InstanceSelection,
            Self::PricingPreference,
            Self::BootstrapUserData,
        ]
        .into_iter()
        .find(|hook| hook.as_str() == text)
        .ok_or_else(|| ParseHookError(text.chars().take(80).collect()))
    }
}
