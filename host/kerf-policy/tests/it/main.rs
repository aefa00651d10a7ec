//! The policy host from outside: real components, good and bad.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "helpers of tests: clippy's own exception covers test functions only, and `expect!` is passed as it is written"
)]

mod bootstrap;
mod compile;
mod examples;
mod guest;
mod guests;
mod languages;
mod load;
mod misbehave;
mod pricing;
mod seam;
mod select;
mod signed;
mod swap;
mod versions;
mod wasi;
