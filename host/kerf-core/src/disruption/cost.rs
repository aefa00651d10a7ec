//! What it costs others when a node goes.

use jiff::Timestamp;

use crate::node::Node;
use crate::pod::Pod;

/// 1, and what evicting each pod that must run elsewhere costs. Karpenter: same.
pub(crate) fn rescheduling_cost(node: &Node) -> f64 {
    let movers = node.pods.iter().filter(|pod| pod.is_reschedulable());
    1.0 + movers.map(|pod| eviction_cost(pod).max(0.0)).sum::<f64>()
}

/// A deletion cost of 2^27 or a priority of 2^25 count as much as a pod. Karpenter: same.
pub(crate) fn eviction_cost(pod: &Pod) -> f64 {
    let deletion_cost = f64::from(pod.spec.deletion_cost) / f64::from(1 << 27);
    let priority = f64::from(pod.spec.priority) / f64::from(1 << 25);
    (1.0 + deletion_cost + priority).clamp(-10.0, 10.0)
}

/// The share of its life that a node still has; 1 where it may live for ever.
pub(crate) fn life_left(node: &Node, now: Timestamp) -> f64 {
    let (Some(born), Some(end)) = (node.created_at, node.expires_at) else {
        return 1.0;
    };
    let whole = end.duration_since(born).as_secs_f64();
    if whole <= 0.0 {
        return 0.0;
    }
    (end.duration_since(now).as_secs_f64() / whole).clamp(0.0, 1.0)
}
