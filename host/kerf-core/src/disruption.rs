//! Which nodes may go. Pure decisions: carrying them out (taint, create, drain, delete) is for the controllers.
//!
//! Start at [`decide()`]; what comes out is a [`command::Decision`].

pub mod budget;
pub mod command;
pub(crate) mod cost;
pub mod cron;
pub mod decide;
pub mod emptiness;
pub mod kept;
pub mod pod_budget;
pub mod settings;

pub use command::{Command, CommandKind, Decision};
pub use decide::decide;
pub use kept::{KeptKind, KeptNode, KeptReason};
pub use settings::DisruptionSettings;
