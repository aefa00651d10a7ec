//! Why an offering cannot be bought now.

use std::fmt;
use std::ops::Deref;

/// The kind of the reason, in the order in which it is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The zone does not sell the type in this way.
    NotSold,
    /// The zone sells it and has none.
    Stock,
    /// The zone's vSwitches have no free address.
    Addresses,
    /// A launch of it failed a little while ago.
    RecentFailure,
    /// No image of the class is of its architecture.
    Image,
    /// The class's system disk is too small for its image.
    Disk,
    /// It gives pods fewer addresses than the network plugin wants.
    PodAddresses,
    /// No private pool of the class has it.
    PrivatePool,
    /// Another one, as a file or an overlay says it.
    Other,
}

impl Cause {
    /// The name in statuses and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotSold => "NotSold",
            Self::Stock => "NoStock",
            Self::Addresses => "NoAddresses",
            Self::RecentFailure => "RecentFailure",
            Self::Image => "NoImage",
            Self::Disk => "DiskTooSmall",
            Self::PodAddresses => "TooFewPodAddresses",
            Self::PrivatePool => "NoPrivatePool",
            Self::Other => "Other",
        }
    }
}

/// A reason in words, of a kind. It reads as its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailability {
    /// Its kind.
    pub cause: Cause,
    /// For people: "no stock".
    pub text: String,
}

impl Unavailability {
    /// A reason.
    pub fn new(cause: Cause, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { cause, text }
    }
}

/// As a file says it, which knows no kinds.
impl From<String> for Unavailability {
    fn from(text: String) -> Self {
        Self::new(Cause::Other, text)
    }
}

impl Deref for Unavailability {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Unavailability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
