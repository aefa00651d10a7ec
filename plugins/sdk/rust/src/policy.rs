//! What a policy implements.

use crate::{Adjustment, Candidate, Context, Node, Part, PolicyError, PricingContext, Selection};
use serde::de::DeserializeOwned;

/// What a policy says about itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct About {
    pub name: &'static str,
    pub version: &'static str,
    pub summary: &'static str,
    /// A JSON Schema (2020-12); empty when there is nothing to configure.
    pub config_schema: &'static str,
    /// JSON that is used when the NodeClass gives no configuration; empty means `{}`.
    pub default_config: &'static str,
    /// How often the answer may change with `as_of_unix_s`; 0 when it does not look at it.
    pub time_step_secs: u32,
}

/// What is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// JSON Pointer to the place; empty for the whole.
    pub path: String,
    pub message: String,
}

/// Ranks and excludes the instance types of one planned NodeClaim.
pub trait SelectionPolicy {
    /// The configuration. Mark it `#[serde(deny_unknown_fields)]`, so that a misspelt key is an error and not silence.
    type Config: DeserializeOwned;

    /// Name, version and configuration of the policy.
    fn about() -> About;

    /// What is wrong with a configuration although it parses. Called at load.
    fn check(config: &Self::Config) -> Vec<ConfigError> {
        let _ = config;
        Vec::new()
    }

    /// The decision. `candidates` all fit the pods; the first is what would be launched without a policy.
    fn select(
        config: &Self::Config,
        ctx: &Context,
        candidates: &[Candidate],
    ) -> Result<Selection, PolicyError>;
}

/// Changes the prices that ordering uses.
pub trait PricingPolicy {
    /// The configuration. Mark it `#[serde(deny_unknown_fields)]`.
    type Config: DeserializeOwned;

    /// Name, version and configuration of the policy.
    fn about() -> About;

    /// What is wrong with a configuration although it parses. Called at load.
    fn check(config: &Self::Config) -> Vec<ConfigError> {
        let _ = config;
        Vec::new()
    }

    /// New prices for some offerings of a whole catalog; the others keep theirs.
    fn adjust(
        config: &Self::Config,
        ctx: &PricingContext,
        candidates: &[Candidate],
    ) -> Result<Vec<Adjustment>, PolicyError>;
}

/// Edits what a machine runs when it boots.
pub trait BootstrapPolicy {
    /// The configuration. Mark it `#[serde(deny_unknown_fields)]`.
    type Config: DeserializeOwned;

    /// Name, version and configuration of the policy.
    fn about() -> About;

    /// What is wrong with a configuration although it parses. Called at load.
    fn check(config: &Self::Config) -> Vec<ConfigError> {
        let _ = config;
        Vec::new()
    }

    /// The parts of the user data, from those so far. Parts that join the node must stay as they are, in their order.
    fn render(
        config: &Self::Config,
        node: &Node,
        parts: Vec<Part>,
    ) -> Result<Vec<Part>, PolicyError>;
}
