//! Large plans have room for the order in which kube-scheduler binds.

use std::sync::Arc;

use super::kit::*;
use crate::labels;
use crate::node_pool::NodePool;
use crate::plan::{PlacementTarget, Plan, WorkBudget};
use crate::pod::{Pod, TopologySpread};
use crate::preferences::Preferences;
use crate::rehearsal::{self, PODS_MIN, left_over};
use crate::schedule::Homes;
use crate::selector::LabelSelector;

const MANY: usize = 4_000;

/// Pods of many sizes, none of which divides a node; every twenty-fifth is spread over the zones.
fn mixed(count: usize) -> Vec<Pod> {
    let sizes = [130, 270, 410, 590, 730, 1100, 1700, 2300, 3900];
    let selector = LabelSelector::label("app", "web");
    let spread = TopologySpread::new(labels::ZONE, 1, selector);
    let make = |nth: usize| {
        let mut spec = spec(sizes[nth % sizes.len()]);
        if nth.is_multiple_of(25) {
            spec.labels.insert("app".to_owned(), "web".to_owned());
            spec.topology_spread.push(spread.clone());
        }
        Pod::new(&format!("a-{nth:05}"), spec)
    };
    (0..count).map(make).collect()
}

/// Nodes that hold dozens of pods each.
fn large() -> NodePool {
    pool_of([64, 128, 256].map(|cores| instance_type(&format!("ecs.g7.{cores}c"), cores)))
}

fn rehearsed(world: &World) -> Plan {
    with_homes(world, &Homes::new())
}

fn left(world: &World, plan: &Plan) -> Vec<String> {
    let left = left_over(&world.0, plan).unwrap_or_default();
    left.iter().map(|it| it.pod.name.to_string()).collect()
}

fn with_homes(world: &World, homes: &Homes) -> Plan {
    rehearsal::schedule(
        &world.0,
        &Preferences::none(),
        homes,
        WorkBudget::ROUND,
        jiff::Timestamp::UNIX_EPOCH,
    )
}

#[test]
fn the_last_of_a_thousand_pods_do_not_wait_for_a_second_launch() {
    let world = World::new(large()).pods(mixed(MANY));
    let plan = world.plan();
    assert!(
        !left(&world, &plan).is_empty(),
        "the nodes are filled to the brim"
    );

    let roomier = rehearsed(&world);

    let (before, after) = (left(&world, &plan).len(), left(&world, &roomier).len());
    assert!(after * 2 <= before, "{after} of {before}");
    let pods: usize = roomier
        .new_claims
        .iter()
        .map(|claim| claim.pods.len())
        .sum();
    assert_eq!(pods, MANY, "nothing else is in the plan");
    assert_eq!(roomier.order.len(), pods);
    let dearer = roomier.price_per_hour().micros() - plan.price_per_hour().micros();
    assert!(dearer * 20 <= plan.price_per_hour().micros(), "{dearer}");
}

#[test]
fn small_plans_are_not_rehearsed() {
    let world = World::new(pool()).pods(mixed(PODS_MIN - 1));

    assert_eq!(rehearsed(&world), world.plan());
}

#[test]
fn room_to_spare_takes_no_pod_its_place() {
    let unlimited = World::new(large()).pods(mixed(PODS_MIN)).plan();
    let claims = unlimited.new_claims.iter();
    let cpu = claims.map(|claim| claim.offerings[0].capacity.cpu_milli());
    let mut limited = large();
    limited.limits.set("cpu", cpu.sum());
    let world = World::new(limited).pods(mixed(PODS_MIN));

    let unplaced = rehearsed(&world).unschedulable_pods();

    assert!(unplaced <= world.plan().unschedulable_pods(), "{unplaced}");
}

#[test]
fn many_small_nodes_do_not_get_dear() {
    let world = World::new(pool()).pods(mixed(MANY));
    let (plan, roomier) = (world.plan(), rehearsed(&world));

    let dearer = roomier.price_per_hour().micros() - plan.price_per_hour().micros();
    assert!(dearer * 20 <= plan.price_per_hour().micros(), "{dearer}");
}

#[test]
fn a_pod_whose_place_was_taken_moves_others_rather_than_launch() {
    // a was planned on n1 and b on n2; kube-scheduler has put another pod on n2.
    let mut n2 = node("n2", 8, "h");
    n2.pods.push(Arc::new(Pod::new("other", spec(4000))));
    let world = World::new(pool()).node(node("n1", 8, "h")).node(n2);
    let world = world.pod("a", spec(3000)).pod("b", spec(7000));
    let home = |name: &str| PlacementTarget::Node(name.into());
    let homes = Homes::from([("a".into(), home("n1")), ("b".into(), home("n2"))]);

    let plan = with_homes(&world, &homes);

    assert_eq!(plan.new_claims, []);
    assert_eq!(plan.placements.len(), 2);
}
