//! The nodes of a large launch open to pods together.
//!
//! kube-scheduler goes through its queue faster than nodes join one after another: it would fill the first to the brim with
//! the oldest pods, whatever those ask for, and the last pods would fit none of the last nodes (of 4,000, some 300 needed a
//! second launch). So a node that joins waits a moment for those that were launched with it; where all pods are alike, there
//! is nothing to wait for.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::rehearsal::PODS_MIN;
use kube::ResourceExt;

use crate::clock;
use crate::context::Context;

/// A node waits for no other once it is that old: machines that take longer come minutes apart, and pods should not wait.
/// The API server counts whole seconds.
const NODE_WAITS_MAX: SignedDuration = SignedDuration::from_secs(3);
/// Claims that were made within that time are of one launch.
const ONE_LAUNCH: SignedDuration = SignedDuration::from_secs(5);
/// What a node waits for rings for the other claim, not for its own.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// When to look again at a claim whose node has joined before others of its launch; none when its node may open.
pub(super) fn wait(claim: &NodeClaim, node: &Node, context: &Context) -> Option<Duration> {
    if !context.cluster.has_planned_a_mix(PODS_MIN) || !is_young(node, clock::now()) {
        return None;
    }
    let made = claim.creation_timestamp()?.0;
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let is_waiting = context
        .cluster
        .awaits_node_of_launch(name, made, ONE_LAUNCH);
    is_waiting.then_some(LOOK_AGAIN)
}

fn is_young(node: &Node, now: Timestamp) -> bool {
    let created = node.creation_timestamp();
    created.is_some_and(|created| now.duration_since(created.0) < NODE_WAITS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(name: &str, created: &str) -> NodeClaim {
        let mut claim = NodeClaim::new(name, Default::default());
        claim.metadata.creation_timestamp = Some(
            k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(created.parse().unwrap()),
        );
        claim
    }

    #[test]
    fn no_node_waits_for_machines_that_boot_for_minutes() {
        let mut node = Node::default();
        node.metadata.creation_timestamp = claim("a", "2026-01-01T00:00:00Z")
            .metadata
            .creation_timestamp;
        let at = |text: &str| text.parse().unwrap();

        assert!(is_young(&node, at("2026-01-01T00:00:02.9Z")));
        assert!(!is_young(&node, at("2026-01-01T00:00:03Z")));
    }
}
