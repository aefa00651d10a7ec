//! Which nodes may go. Pure decisions: carrying them out (taint, drain, delete) is for the controllers.
//!
//! Start at [`emptiness::emptiness`].

pub mod budget;
pub mod cron;
pub mod emptiness;
