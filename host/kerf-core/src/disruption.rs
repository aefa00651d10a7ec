//! Which nodes may go. Pure decisions: carrying them out (taint, create, drain, delete) is for the controllers.
//!
//! Start at [`decide()`]; what comes out is a [`command::Decision`].

mod balanced;
mod book;
pub mod budget;
mod candidate;
pub mod command;
mod consolidate;
pub(crate) mod cost;
pub mod cron;
pub mod decide;
mod drift;
pub mod emptiness;
pub mod kept;
mod offers;
mod pass;
pub mod pod_budget;
pub mod report;
pub mod settings;
mod static_drift;
mod validate;

pub use command::{Command, CommandKind, Decision};
pub use decide::decide;
pub use kept::{KeptKind, KeptNode, KeptReason};
pub use settings::DisruptionSettings;
pub use validate::{Invalid, validate};
