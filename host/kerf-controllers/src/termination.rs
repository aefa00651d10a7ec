//! The end of a NodeClaim and its Node: drain, delete the instance, and only then let go of the objects.

pub mod apart;
pub mod claim;
pub mod drain;
pub mod eviction;
pub mod instance;
pub mod node;
pub mod progress;
pub mod volumes;
