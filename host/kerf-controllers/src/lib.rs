//! The Kubernetes side: watches, reconcilers, status, events and metrics.
//!
//! The flow, in the order that a reader follows it: [`watch`] brings an event, [`intake`] puts it into the index and
//! tells the reconcilers; [`provision`] plans pods onto NodeClaims; [`lifecycle`] launches a claim and follows its
//! Node; [`disruption`] chooses claims to remove; [`termination`] drains and deletes; [`repair`] replaces sick nodes, and
//! [`interruption`] those that the platform takes back; [`memory`] is what outlives
//! a restart, and [`hot`] what changes without one. [`node_class`], [`node_pool`] and
//! [`node_overlay`] keep the status of what users write.
//!
//! It never decides what to launch or remove (that is `kerf-core`) and never holds a lock across an `.await`.

pub mod adoption;
pub mod api_call;
pub mod capacity_buffer;
pub mod clock;
pub mod cloud;
pub mod cluster;
mod compute;
pub mod context;
pub mod disruption;
pub mod draft;
pub mod error;
pub mod events;
pub mod failpoint;
pub mod feature_gates;
pub mod garbage;
mod hash_of;
pub mod hot;
pub mod http;
pub mod intake;
pub mod interruption;
pub mod kept;
pub mod lease;
mod lenient;
pub mod lifecycle;
pub mod memory;
pub mod metrics;
pub mod node_class;
pub mod node_overlay;
pub mod node_pool;
pub mod oci;
pub mod pace;
pub mod patch;
pub mod pod_events;
pub mod policies;
mod prices;
pub mod provision;
pub mod reconciler;
mod repack;
pub mod repair;
pub mod settings;
mod stages;
pub mod static_capacity;
pub mod stores;
mod strength;
pub mod supervise;
pub mod termination;
pub mod watch;

mod run;

pub use http::Listen;
pub use run::{Clients, Ended, Leadership, StartError, run};
