//! Virtual pods of CapacityBuffers: after all real ones, on what is left.

use super::kit::*;
use crate::buffer::Buffer;
use crate::plan::{PlacementTarget, Plan};
use crate::pod::{Pod, PodSpec};
use crate::resources::NODES;

fn buffer(cpu_milli: i64, pods: u32) -> Vec<Pod> {
    let buffer = Buffer::new("default", "spare", "buffer", spec(cpu_milli), pods);
    buffer.virtual_pods().collect()
}

fn unplaced(plan: &Plan) -> Vec<&str> {
    let pods = plan.unschedulable.iter().flat_map(|it| &it.pods);
    pods.map(|it| &*it.name).collect()
}

#[test]
fn a_buffer_gets_its_room_like_pods_do() {
    let plan = World::new(pool()).pods(buffer(1500, 2)).plan();

    assert_eq!(
        shown(&plan),
        ["capacity-buffer-spare-0 capacity-buffer-spare-1 -> ecs.g7.4c h"]
    );
}

#[test]
fn real_pods_come_first_however_small_they_are() {
    let world = World::new(pool_of([])).node(node("there", 4, "h"));

    let plan = world.pods(buffer(3000, 2)).pod("tiny", spec(100)).plan();

    assert_eq!(plan.placements[0].pod.name.as_ref(), "tiny");
    assert_eq!(plan.placements.len(), 2);
    assert_eq!(unplaced(&plan), ["capacity-buffer-spare-1"]);
    assert_eq!(
        plan.unschedulable_pods(),
        0,
        "virtual pods are nobody's problem"
    );
}

#[test]
fn real_pods_that_wait_for_each_other_come_before_a_buffer_too() {
    // The first pod is tried in vain before the second has its place, and again after that.
    let follower = PodSpec {
        affinity: vec![crate::pod::PodAffinityTerm {
            topology_key: crate::labels::ZONE.to_owned(),
            selector: Some(crate::selector::LabelSelector::label("app", "leader")),
            ..crate::pod::PodAffinityTerm::default()
        }],
        ..spec(2000)
    };
    let leader = PodSpec {
        labels: [("app".to_owned(), "leader".to_owned())].into(),
        ..spec(1000)
    };
    let world = World::new(pool_of([])).node(node("there", 4, "h"));

    let plan = world
        .pods(buffer(1500, 1))
        .pod("follower", follower)
        .pod("leader", leader)
        .plan();

    assert_eq!(unplaced(&plan), ["capacity-buffer-spare-0"]);
}

#[test]
fn a_limit_is_spent_on_real_pods_first() {
    let mut limited = pool();
    limited.limits.set(NODES, 1);

    let plan = World::new(limited)
        .pods(buffer(15_000, 1))
        .pod("web", spec(15_500))
        .plan();

    assert_eq!(shown(&plan), ["web -> ecs.g7.16c h"]);
    assert_eq!(unplaced(&plan), ["capacity-buffer-spare-0"]);
}

#[test]
fn a_buffer_fits_into_what_is_there() {
    let world = World::new(pool()).node(node("there", 4, "h"));

    let plan = world.pods(buffer(1500, 2)).plan();

    assert!(plan.new_claims.is_empty());
    let there = PlacementTarget::Node("there".into());
    assert!(plan.placements.iter().all(|it| it.node == there));
}
