//! The cluster index: applies watch events and builds the immutable [`Snapshot`](kerf_core::Snapshot).
//!
//! Objects are converted into kerf-core's types when they arrive, once; what cannot be used as written is kept as a
//! [`Problem`] that names object and field, and everything else goes on. No client, no runtime, no clock.
//! Start at [`Cluster`].

#![warn(missing_docs)]

mod bound;
mod cluster;
mod convert;
mod counted;
mod daemons;
mod default_spread;
mod join;
mod nodes;
mod nominations;
mod pod_budgets;
mod pod_sets;
mod pools;
mod problem;
mod provider_ids;
mod repack;
mod shared;
mod tracked;
mod volumes;
mod waiting;

pub use cluster::{Catalog, Cluster, PoolOffers};
pub use convert::buffer::{buffer_limits, buffer_pod};
pub use convert::node_overlay::node_overlay;
pub use convert::node_pool::{Converted, node_pool};
pub use convert::pod_limits::pod_limits;
pub use convert::taints::taint;
pub use problem::{Kind, ObjectKey, ObjectProblem, Problem};
pub use tracked::Tracked;
pub use waiting::PodNews;

#[cfg(test)]
mod tests;
