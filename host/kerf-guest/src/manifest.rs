//! `kerf-plugin.json`: what a folder with a policy says about itself.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::BuildError;

/// The name of the manifest in the folder of a policy.
pub const MANIFEST: &str = "kerf-plugin.json";

/// A language with an SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// For wasm32-unknown-unknown.
    Rust,
    /// QuickJS.
    JavaScript,
    /// CPython.
    Python,
    /// Go's own compiler.
    Go,
    /// zig cc or clang with a WASI sysroot.
    C,
}

/// What a policy is asked, spelt as in an ECSNodeClass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hook {
    /// Which instance types.
    InstanceSelection,
    /// Which prices.
    PricingPreference,
    /// What a machine runs when it boots.
    BootstrapUserData,
}

/// A policy's manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The name of the policy, and of the component's file.
    pub name: String,
    /// What it is written in.
    pub language: Language,
    /// What it is asked.
    pub hook: Hook,
    /// The folder of the SDK, relative to the manifest.
    pub sdk: PathBuf,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Rust,
        Self::JavaScript,
        Self::Python,
        Self::Go,
        Self::C,
    ];

    /// The name in a manifest.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::JavaScript => "javascript",
            Self::Python => "python",
            Self::Go => "go",
            Self::C => "c",
        }
    }

    /// The name of its folder below plugins/sdk and plugins/examples.
    #[must_use]
    pub fn folder(self) -> &'static str {
        match self {
            Self::JavaScript => "js",
            Self::Rust | Self::Python | Self::Go | Self::C => self.as_str(),
        }
    }
}

impl Hook {
    /// All of them.
    pub const ALL: [Self; 3] = [
        Self::InstanceSelection,
        Self::PricingPreference,
        Self::BootstrapUserData,
    ];

    /// The name in an ECSNodeClass.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InstanceSelection => "InstanceSelection",
            Self::PricingPreference => "PricingPreference",
            Self::BootstrapUserData => "BootstrapUserData",
        }
    }

    /// The short name on a command line and in the SDKs.
    #[must_use]
    pub fn short(self) -> &'static str {
        match self {
            Self::InstanceSelection => "selection",
            Self::PricingPreference => "pricing",
            Self::BootstrapUserData => "bootstrap",
        }
    }

    /// The world of wit/ that a policy for it implements.
    #[must_use]
    pub fn world(self) -> &'static str {
        match self {
            Self::InstanceSelection => "selection-plugin",
            Self::PricingPreference => "pricing-plugin",
            Self::BootstrapUserData => "bootstrap-plugin",
        }
    }
}

impl Manifest {
    /// Reads the manifest of a folder.
    ///
    /// # Errors
    /// When there is none, or it says something else than it may.
    pub fn read(folder: &Path) -> Result<Self, BuildError> {
        let path = folder.join(MANIFEST);
        let text = std::fs::read_to_string(&path).map_err(|error| BuildError::Manifest {
            path: path.clone(),
            problem: format!("{error}; `kerf plugin new` writes one"),
        })?;
        let manifest: Self =
            serde_json::from_str(&text).map_err(|error| BuildError::Manifest {
                path: path.clone(),
                problem: format!(
                    "{error}; it says {{\"name\", \"language\", \"hook\", \"sdk\"}}, such as \"javascript\" and \
                     \"InstanceSelection\""
                ),
            })?;
        if is_name(&manifest.name) {
            return Ok(manifest);
        }
        Err(BuildError::Manifest {
            path,
            problem: format!(
                "the name {:?} cannot name a file and a ConfigMap: use small letters, digits and -",
                manifest.name
            ),
        })
    }
}

/// Whether a policy can have this name: it becomes the name of files, packages and ConfigMaps.
pub(crate) fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=50).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(is_part)
}
