//! Virtual pods of CapacityBuffers in snapshots: unit tests over small clusters.

use kerf_core::buffer::Buffer;
use kerf_core::pod::PodSpec;

use super::*;

const NODE: &str = r#"
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: general-1, labels: {karpenter.sh/nodepool: general}}
spec: {requirements: [], nodeClassRef: {group: karpenter.alibabacloud.com, kind: ECSNodeClass, name: default}}
status: {providerID: cn-hangzhou.i-1, conditions: []}
---
apiVersion: v1
kind: Node
metadata: {name: node-1}
spec: {providerID: cn-hangzhou.i-1}
"#;

fn buffer(pods: u32) -> Option<Buffer> {
    let spec = PodSpec::requesting(1000, 1);
    Some(Buffer::new("default", "spare", "u", spec, pods))
}

fn buffer_pods(cluster: &Cluster) -> u32 {
    snapshot(cluster).nodes[0].buffer_pods
}

#[test]
fn virtual_pods_wait_beside_real_ones_until_their_buffer_is_gone() {
    let mut cluster = Cluster::new();
    let key = || "default/spare".to_owned();

    assert!(cluster.set_buffer(key(), buffer(2)));
    assert!(!cluster.set_buffer(key(), buffer(2)));
    let pending = snapshot(&cluster).pending_pods.clone();
    assert_eq!(pending.len(), 2);
    assert!(pending.iter().all(|pod| pod.is_virtual()));

    assert!(cluster.set_buffer(key(), None));
    assert!(snapshot(&cluster).pending_pods.is_empty());
}

#[test]
fn a_node_counts_the_virtual_pods_that_went_to_it_or_to_its_claim() {
    let mut cluster = cluster(NODE);
    let places = [
        (PlacementTarget::Node("node-1".into()), 1),
        (PlacementTarget::InFlight("general-1".into()), 2),
    ];

    assert_eq!(buffer_pods(&cluster), 0);
    assert!(cluster.set_buffer_places(places.clone().into()));
    assert_eq!(buffer_pods(&cluster), 3);
    assert!(!cluster.set_buffer_places(places.into()));
}

#[test]
fn after_a_restart_every_node_holds_room_for_buffers_until_a_plan_says_where_it_is() {
    let mut cluster = cluster(NODE);

    cluster.expect_buffers();
    assert_eq!(buffer_pods(&cluster), 1);

    cluster.set_buffer_places([].into());
    assert_eq!(buffer_pods(&cluster), 0);
}
