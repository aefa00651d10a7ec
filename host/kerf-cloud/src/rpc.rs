//! One signed call: parameters, signature, sending, retrying, throttling. Knows no action's meaning.
//!
//! Start reading at [`client`]. Signatures are pure functions in [`sign`], checked against public vectors; how
//! parameters are flattened is in [`params`], checked against recordings of the official SDKs.

pub mod action;
pub mod client;
pub mod config;
pub mod credentials;
pub mod encode;
pub mod endpoint;
pub mod limiter;
pub mod params;
pub mod reply;
pub mod request;
pub mod retry;
pub mod sign;
mod stats;
mod unique;

pub use action::Action;
pub use client::Client;
pub use config::{ClientConfig, Clock, SignatureVersion};
pub use credentials::{CredentialSource, Credentials};
pub use endpoint::{Network, Product};
pub use params::Params;
pub use request::Request;
pub use stats::ActionStats;
