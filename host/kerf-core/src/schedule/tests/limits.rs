//! Limits of pools inside a round, and minValues.

use super::kit::*;
use crate::node::Node;
use crate::requirement::Requirement;
use crate::snapshot::MinValuesPolicy;

#[test]
fn limits_hold_inside_a_round() {
    let mut pool = pool_of([instance_type("ecs.g7.2c", 2)]);
    pool.limits.set("cpu", 5000);
    let plan = World::new(pool).pods(pods("a", 4, &spec(1500))).plan();
    assert_eq!(plan.new_claims.len(), 2);
    assert_eq!(
        only_reason(&plan),
        "pool general: limit cpu=5: 4 used and 2 more needed"
    );
}

#[test]
fn the_number_of_nodes_is_a_limit_inside_a_round() {
    let mut pool = pool();
    pool.limits.set("nodes", 3);
    let plan = World::new(pool)
        .node(node("n1", 0, "h"))
        .pods(pods("a", 9, &spec(15_000)))
        .plan();
    assert_eq!(plan.new_claims.len(), 2);
    assert_eq!(
        only_reason(&plan),
        "pool general: limit nodes=3: 3 used and 1 more needed"
    );
}

#[test]
fn fallbacks_of_a_claim_stay_within_the_limit_too() {
    let mut pool = pool();
    pool.limits.set("cpu", 10_000);
    let plan = World::new(pool).pods(pods("a", 2, &spec(1900))).plan();
    let most: i64 = plan
        .new_claims
        .iter()
        .map(|claim| {
            claim
                .offerings
                .iter()
                .map(|it| it.capacity.cpu_milli())
                .max()
                .unwrap()
        })
        .sum();
    assert!(most <= 10_000, "{most}");
}

#[test]
fn one_full_pool_does_not_block_another() {
    let mut full = named("full", 10, pool());
    full.limits.set("cpu", 0);
    let plan = World::new(pool()).pool(full).pod("a", spec(100)).plan();
    assert_eq!(&*plan.new_claims[0].pool, "general");
}

#[test]
fn min_values_keep_that_many_types_possible() {
    let mut pool = pool();
    let types = ["ecs.g7.2c", "ecs.g7.4c", "ecs.g7.8c", "ecs.g7.16c"];
    let requirement =
        Requirement::in_values("node.kubernetes.io/instance-type", types).with_min_values(Some(3));
    pool.template.requirements.add(requirement);
    let world = World::new(pool).pods(pods("a", 3, &spec(1900)));

    let plan = world.plan();

    assert_eq!(plan.unschedulable_pods(), 0);
    for claim in &plan.new_claims {
        assert!(
            claim
                .requirements
                .on("node.kubernetes.io/instance-type")
                .unwrap()
                .values()
                .len()
                >= 3
        );
        assert_eq!(
            claim.annotations["karpenter.sh/nodeclaim-min-values-relaxed"],
            "false"
        );
    }
}

#[test]
fn min_values_that_cannot_be_met_fail_or_are_lowered_by_policy() {
    let mut pool = pool();
    let requirement =
        Requirement::exists("node.kubernetes.io/instance-type").with_min_values(Some(3));
    pool.template.requirements.add(requirement);
    let mut world = World::new(pool).pod("a", spec(7000));
    assert_eq!(
        only_reason(&world.plan()),
        "pool general: minValues of node.kubernetes.io/instance-type is 3, and 2 values remain"
    );

    world.0.settings.min_values_policy = MinValuesPolicy::BestEffort;
    let plan = world.plan();
    assert_eq!(
        plan.new_claims[0].annotations["karpenter.sh/nodeclaim-min-values-relaxed"],
        "true"
    );
}

#[test]
fn the_room_of_a_node_that_a_command_may_still_leave_alone_is_not_given_away() {
    let mut pool = pool();
    pool.limits.set("cpu", 8_000);
    let leaving = |is_deleting| Node {
        is_marked_for_deletion: true,
        is_deleting,
        pool: Some("general".into()),
        ..node("n1", 8, "h")
    };
    let new = |is_deleting| {
        let world = World::new(pool.clone()).node(leaving(is_deleting));
        world.pod("a", spec(500)).plan().new_claims.len()
    };

    assert_eq!(new(false), 0);
    assert_eq!(new(true), 1);
}
