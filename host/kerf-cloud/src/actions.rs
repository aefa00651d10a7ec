//! Each API action with a typed request and reply. Field names are the wire's own, in Rust spelling.
//!
//! A function `…_request` builds the call and is pure, so that tests hold it against recordings of the official SDKs;
//! the method of [`crate::rpc::Client`] beside it sends it and reads every page.

pub mod capacity_reservations;
pub mod cluster;
pub mod events;
pub mod images;
pub mod instances;
pub mod key_pairs;
pub mod network;
pub mod price;
pub mod run_instances;
pub mod spot;
pub mod stock;
pub mod tags;
pub mod types;

use serde::Deserialize;

/// Pages of one listing at most: 1,000 pages of 100 are more than any account has, and a server that repeats its
/// token must not hold us forever.
pub const PAGES_MAX: u32 = 1000;

/// A reply of which nothing is needed.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Empty {}

/// A tag in a reply of ECS, which spells it otherwise than in a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EcsTag {
    pub tag_key: String,
    pub tag_value: String,
}

/// The list around ECS tags.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EcsTags {
    pub tag: Vec<EcsTag>,
}
