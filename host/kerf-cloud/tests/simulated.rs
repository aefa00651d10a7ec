//! The provider against ecs-sim over real HTTP: resolving, catalog, launching, deleting, and every kind of trouble.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, which the lint takes for product code"
)]

#[path = "simulated/class_fields.rs"]
mod class_fields;
#[path = "simulated/cloud.rs"]
mod cloud;
#[path = "simulated/credentials.rs"]
mod credentials;
#[path = "simulated/launches.rs"]
mod launches;
#[path = "simulated/prices.rs"]
mod prices;
#[path = "simulated/reads.rs"]
mod reads;
#[path = "simulated/troubles.rs"]
mod troubles;
