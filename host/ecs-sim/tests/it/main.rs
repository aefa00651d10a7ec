//! The simulator from outside, over HTTP.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets the unexpected ends"
)]

mod admin;
mod boots;
mod client;
mod faults;
mod instances;
mod launches;
mod nodes;
mod sdk;
mod signatures;
