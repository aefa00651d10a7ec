//! The simulator from outside, over HTTP.

mod boots;
mod client;
mod faults;
mod instances;
mod launches;
mod nodes;
mod signatures;
