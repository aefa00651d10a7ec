//! Existing nodes, claims on their way, nodes that go, and volumes.

use super::kit::*;
use crate::node::Node;
use crate::pod::{DaemonPod, OwnerKind, Pod};
use crate::requirements::Requirements;
use crate::taint::Taint;
use crate::volume::{Attachment, Volume};

#[test]
fn existing_nodes_come_first() {
    let plan = World::new(pool())
        .node(node("n1", 2, "h"))
        .pods(pods("a", 3, &spec(900)))
        .plan();
    assert_eq!(
        placed(&plan),
        ["a-000 -> Node(\"n1\")", "a-001 -> Node(\"n1\")"]
    );
    assert_eq!(plan.new_claims.len(), 1);
}

#[test]
fn initialised_nodes_come_before_claims_on_their_way() {
    let in_flight = Node {
        name: None,
        is_initialized: false,
        ..node("claim-1", 2, "h")
    };
    let plan = World::new(pool())
        .node(in_flight)
        .node(node("n1", 2, "h"))
        .pods(pods("a", 2, &spec(1500)))
        .plan();
    assert_eq!(
        placed(&plan),
        ["a-000 -> Node(\"n1\")", "a-001 -> InFlight(\"claim-1\")"]
    );
}

#[test]
fn start_up_taints_do_not_keep_pods_from_a_node_that_starts() {
    let starting = Node {
        taints: vec![Taint::unregistered()],
        is_initialized: false,
        ..node("n1", 2, "h")
    };
    let plan = World::new(pool()).node(starting).pod("a", spec(100)).plan();
    assert_eq!(placed(&plan).len(), 1);
}

#[test]
fn nodes_that_are_being_removed_take_no_pods_and_their_pods_move() {
    let web = Pod::new("web", PodSpecOf::owned(OwnerKind::Other));
    let daemon = Pod::new("daemon", PodSpecOf::owned(OwnerKind::DaemonSet));
    let leaving = Node {
        is_marked_for_deletion: true,
        pods: vec![web.into(), daemon.into()].into(),
        ..node("n1", 8, "h")
    };
    let plan = World::new(pool()).node(leaving).plan();
    assert_eq!(shown(&plan), ["web -> ecs.g7.2c h"]);
}

struct PodSpecOf;

impl PodSpecOf {
    fn owned(owner: OwnerKind) -> crate::pod::PodSpec {
        crate::pod::PodSpec { owner, ..spec(500) }
    }
}

#[test]
fn room_is_kept_for_daemons_that_are_not_there_yet() {
    let mut world = World::new(pool())
        .node(node("n1", 2, "h"))
        .pod("a", spec(1800));
    let daemon = spec(300).into();
    world.0.daemon_pods.push(DaemonPod {
        namespace: "kube-system".into(),
        name: "agent".into(),
        spec: daemon,
    });
    assert!(placed(&world.plan()).is_empty());
}

#[test]
fn a_label_that_an_existing_node_lacks_has_no_value() {
    let mut wanted = spec(100);
    wanted.node_selector.insert(
        "karpenter.sh/capacity-type".to_owned(),
        "on-demand".to_owned(),
    );
    let mut unlabelled = node("n1", 2, "h");
    unlabelled.labels.remove("karpenter.sh/capacity-type");
    let plan = World::new(pool()).node(unlabelled).pod("a", wanted).plan();
    assert!(placed(&plan).is_empty());
    assert_eq!(plan.new_claims.len(), 1);
}

fn volume(handle: &str, zone: Option<&str>) -> Volume {
    Volume {
        claim: format!("default/{handle}"),
        alternatives: zone
            .iter()
            .map(|zone| Requirements::from_labels([("topology.kubernetes.io/zone", zone)]))
            .collect(),
        attachment: Some(Attachment {
            driver: "disk".to_owned(),
            handle: handle.to_owned(),
        }),
        problem: None,
    }
}

#[test]
fn volumes_pull_their_pod_to_their_zone() {
    let with_volume = crate::pod::PodSpec {
        volumes: vec![volume("d-1", Some("j"))],
        ..spec(100)
    };
    let plan = World::new(pool())
        .node(node("n1", 2, "h"))
        .pod("a", with_volume)
        .plan();
    assert_eq!(shown(&plan), ["a -> ecs.g7.2c j"]);
}

#[test]
fn a_node_attaches_as_many_volumes_as_its_driver_can_and_shared_ones_once() {
    let with = |handle: &str| crate::pod::PodSpec {
        volumes: vec![volume(handle, None)],
        ..spec(100)
    };
    let mut limited = node("n1", 8, "h");
    limited.attachment_limits.insert("disk".to_owned(), 2);
    let world = World::new(pool()).node(limited);
    let plan = world
        .pod("a", with("d-1"))
        .pod("b", with("d-1"))
        .pod("c", with("d-2"))
        .pod("d", with("d-3"))
        .plan();
    assert_eq!(placed(&plan).len(), 3);
    assert_eq!(shown(&plan), ["d -> ecs.g7.2c i"]);
}

#[test]
fn new_nodes_attach_as_many_volumes_as_their_type_can() {
    let mut small = instance_type("ecs.g7.8c", 8);
    small.capacity.set("attachable-volumes-csi-disk", 2);
    let with = |n: usize| crate::pod::PodSpec {
        volumes: vec![volume(&format!("d-{n}"), None)],
        ..spec(100)
    };
    let pods = (0..4).map(|n| Pod::new(&format!("p-{n}"), with(n)));
    let plan = World::new(pool_of([small])).pods(pods).plan();
    assert_eq!(plan.new_claims.len(), 2);
    assert!(
        plan.new_claims[0]
            .requests
            .iter()
            .all(|(name, _)| !name.starts_with("attachable"))
    );
}

#[test]
fn a_missing_volume_is_a_reason() {
    let mut broken = volume("d-1", None);
    broken.problem = Some(crate::volume::VolumeProblem::ClaimMissing);
    let plan = World::new(pool())
        .pod(
            "a",
            crate::pod::PodSpec {
                volumes: vec![broken],
                ..spec(100)
            },
        )
        .plan();
    assert_eq!(
        only_reason(&plan),
        "volume default/d-1: claim does not exist or is being deleted"
    );
}
