//! Write kerf policies in Rust: implement [`SelectionPolicy`] for a type and pass it to [`export_selection!`].
//!
//! The SDK parses the configuration with serde, turns errors into what users see, and sends the message of a panic to
//! kerf's log before the instance dies. Nothing that a policy keeps in a static outlives a call: each call gets an
//! instance of its own.

pub mod selection {
    //! Bindings of the world `selection-plugin`.
    #![allow(missing_docs, reason = "generated from wit/")]
    wit_bindgen::generate!({
        path: "../../../wit",
        world: "selection-plugin",
        pub_export_macro: true,
        export_macro_name: "export",
        default_bindings_module: "kerf_policy_sdk::selection",
    });
}

pub use selection::exports::kerf::policy::instance_selection::{Excluded, Ranked, Selection};
pub use selection::exports::kerf::policy::lifecycle::{ConfigError, Metadata};
pub use selection::kerf::policy::log::{Level, emit, enabled};
pub use selection::kerf::policy::types::*;

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
    /// How often the answer may change with `ctx.as_of_unix_s`; 0 when it does not look at it.
    pub time_step_secs: u32,
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
    fn select(config: &Self::Config, ctx: &Context, candidates: &[Candidate]) -> Result<Selection, PolicyError>;
}

/// The name behind an index into one of the tables of `ctx.vocabulary`; empty when the index is none.
pub fn word(table: &[String], index: u16) -> &str {
    table.get(usize::from(index)).map_or("", String::as_str)
}

/// Exports a [`SelectionPolicy`] as the component's functions.
#[macro_export]
macro_rules! export_selection {
    ($policy:ty) => {
        struct KerfPolicyExport;

        impl $crate::selection::exports::kerf::policy::lifecycle::Guest for KerfPolicyExport {
            fn describe() -> $crate::Metadata {
                $crate::describe::<$policy>()
            }

            fn validate_config(config: String) -> Result<(), Vec<$crate::ConfigError>> {
                $crate::validate::<$policy>(&config)
            }
        }

        impl $crate::selection::exports::kerf::policy::instance_selection::Guest for KerfPolicyExport {
            fn select(
                config: String,
                ctx: $crate::Context,
                candidates: Vec<$crate::Candidate>,
            ) -> Result<$crate::Selection, $crate::PolicyError> {
                $crate::select::<$policy>(&config, &ctx, &candidates)
            }
        }

        $crate::selection::export!(KerfPolicyExport with_types_in $crate::selection);
    };
}

#[doc(hidden)]
pub fn describe<P: SelectionPolicy>() -> Metadata {
    report_panics();
    let About { name, version, summary, config_schema, default_config, time_step_secs } = P::about();
    Metadata {
        name: name.into(),
        version: version.into(),
        summary: summary.into(),
        config_schema: config_schema.into(),
        default_config: default_config.into(),
        time_step_s: time_step_secs,
    }
}

#[doc(hidden)]
pub fn validate<P: SelectionPolicy>(config: &str) -> Result<(), Vec<ConfigError>> {
    report_panics();
    let errors = match serde_json::from_str(config) {
        Ok(config) => P::check(&config),
        Err(error) => vec![ConfigError { path: String::new(), message: error.to_string() }],
    };
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

#[doc(hidden)]
pub fn select<P: SelectionPolicy>(
    config: &str,
    ctx: &Context,
    candidates: &[Candidate],
) -> Result<Selection, PolicyError> {
    report_panics();
    let config = serde_json::from_str(config).map_err(|error| PolicyError::InvalidConfig(error.to_string()))?;
    P::select(&config, ctx, candidates)
}

/// A panic ends the instance without a word; this sends its message and place to kerf first.
fn report_panics() {
    std::panic::set_hook(Box::new(|panic| emit(Level::Error, &panic.to_string(), &[])));
}
