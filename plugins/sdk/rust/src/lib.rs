//! Write kerf policies in Rust: implement [`SelectionPolicy`], [`PricingPolicy`] or [`BootstrapPolicy`] for a type and
//! pass it to [`export_selection!`], [`export_pricing!`] or [`export_bootstrap!`].
//!
//! The SDK parses the configuration with serde, turns errors into what users see, and sends the message of a panic to
//! kerf's log before the instance dies. Nothing that a policy keeps in a static outlives a call: each call gets an
//! instance of its own.

mod export;
mod policy;

pub use kerf_policy_bindings_bootstrap as bootstrap;
pub use kerf_policy_bindings_pricing as pricing;
pub use kerf_policy_bindings_selection as selection;
pub use policy::{About, BootstrapPolicy, ConfigError, PricingPolicy, SelectionPolicy};

pub use bootstrap::exports::kerf::policy::bootstrap_userdata::{Node, Part, Taint};
pub use pricing::exports::kerf::policy::pricing_preference::Adjustment;
pub use selection::exports::kerf::policy::instance_selection::{Excluded, Ranked, Selection};
pub use selection::kerf::policy::log::{Level, emit, enabled};
pub use selection::kerf::policy::types::*;

#[doc(hidden)]
pub use export::{adjust, describe, render, select, validate};

/// The name behind an index into one of the tables of a vocabulary; empty when the index is none.
pub fn word(table: &[String], index: u16) -> &str {
    table.get(usize::from(index)).map_or("", String::as_str)
}
