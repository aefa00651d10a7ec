//! The simulator from outside, over HTTP.

mod client;
mod faults;
mod instances;
mod launches;
mod signatures;
