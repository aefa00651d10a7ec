//! From Kubernetes' objects to kerf-core's types. Every function is total: what cannot be used becomes a problem.

pub(crate) mod affinity;
pub(crate) mod buffer;
pub(crate) mod evacuation;
pub(crate) mod hysteresis;
pub(crate) mod node_overlay;
pub(crate) mod node_pool;
pub(crate) mod pod;
pub(crate) mod pod_limits;
pub(crate) mod pod_resources;
pub(crate) mod quantities;
pub(crate) mod requirements;
pub(crate) mod taints;
