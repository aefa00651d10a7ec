//! Decisions: requirements, scheduling, disruption and their explanations. Pure, synchronous, deterministic.
//!
//! What goes in is a [`Snapshot`] and [`Preferences`], what comes out is a [`Plan`]; `now` and the budget of work are
//! arguments. Nothing here reads a clock, a file or the environment, logs, or depends on the order of its input.
//! Start at [`schedule()`] and [`disruption`].

#![warn(missing_docs, clippy::wildcard_enum_match_arm)]

pub mod bound_pods;
pub mod buffer;
pub mod disruption;
pub mod ids;
pub mod instance_type;
pub mod labels;
pub mod node;
pub mod node_labels;
pub mod node_pool;
pub mod overlay;
pub mod plan;
pub mod planted;
pub mod pod;
mod pod_uid;
pub mod preferences;
pub mod price;
pub mod quantity;
pub mod reason;
pub mod rehearsal;
pub mod requirement;
pub mod requirements;
pub mod resources;
pub mod sabotage;
pub mod schedule;
pub mod selector;
pub mod snapshot;
pub mod static_capacity;
pub mod strength;
pub mod taint;
pub mod unavailable;
pub mod volume;

pub use plan::{Plan, WorkBudget};
pub use preferences::Preferences;
pub use schedule::{schedule, schedule_from};
pub use snapshot::Snapshot;
