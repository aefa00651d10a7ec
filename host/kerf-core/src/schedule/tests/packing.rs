//! Plain pods that are packed anew: cheaper, within limits, and never against a score.

use super::kit::*;
use crate::instance_type::{CapacityType, InstanceType, Offering};
use crate::labels;
use crate::node::Node;
use crate::node_pool::NodePool;
use crate::plan::{PlacementTarget, Plan, PlannedClaim, WorkBudget};
use crate::pod::WhenUnsatisfiable;
use crate::pod::{PodAffinityTerm, PodSpec, TopologySpread};
use crate::preferences::{OfferingKey, Preferences};
use crate::price::Price;
use crate::resources::{NODES, Resources};
use crate::schedule::{Homes, schedule_from};
use crate::selector::{LabelSelector, Labels};

fn shape(name: &str, cores: i64, gib: i64, price: f64) -> InstanceType {
    let offering = Offering::new("h", CapacityType::OnDemand, Price::from_per_hour(price));
    InstanceType::new(
        name,
        [],
        Resources::of(cores * 1000, gib * GI).with("pods", 100),
        Resources::default(),
        vec![offering],
    )
}

/// Small types that suit one kind of pod each, and a large one that is cheaper per unit for both together.
fn mixed_pool() -> NodePool {
    pool_of([
        shape("c.4", 4, 4, 1.0),
        shape("r.1", 1, 16, 1.0),
        shape("m.20", 20, 80, 4.0),
    ])
}

fn mixed_world(pool: NodePool) -> World {
    let cpu_heavy = PodSpec::requesting(3900, GI);
    let mem_heavy = PodSpec::requesting(100, 14 * GI);
    World::new(pool)
        .pods(pods("cpu", 5, &cpu_heavy))
        .pods(pods("mem", 5, &mem_heavy))
}

#[test]
fn pods_that_complement_each_other_share_a_node_when_that_is_cheaper() {
    let plan = mixed_world(mixed_pool()).plan();
    assert_eq!(plan.new_claims.len(), 1, "{:?}", shown(&plan));
    assert_eq!(plan.new_claims[0].pods.len(), 10);
    assert_eq!(plan.price_per_hour().to_string(), "4.0000");
}

#[test]
fn packing_anew_stays_within_the_limits() {
    let mut limited = mixed_pool();
    limited.limits.set("memory", 70 * GI);
    let plan = mixed_world(limited).plan();
    let most = |claim: &crate::plan::PlannedClaim| {
        claim
            .offerings
            .iter()
            .map(|it| it.capacity.memory_bytes())
            .max()
    };
    assert!(plan.new_claims.iter().filter_map(most).sum::<i64>() <= 70 * GI);
}

#[test]
fn packing_anew_does_not_trade_a_score_for_a_price() {
    let mut preferences = Preferences::none();
    let key = |name: &str| OfferingKey {
        instance_type: name.into(),
        zone: "h".into(),
        capacity_type: CapacityType::OnDemand,
    };
    let scores = &mut preferences.pool_mut(&"general".into()).scores;
    scores.insert(key("c.4"), 10);
    scores.insert(key("r.1"), 10);
    let plan = mixed_world(mixed_pool()).plan_with(&preferences);
    assert!(
        shown(&plan).iter().all(|claim| !claim.contains("m.20")),
        "{:?}",
        shown(&plan)
    );
}

/// The plan's claims as nodes on their way, and where its pods belong.
fn on_the_way(plan: &Plan) -> (Vec<Node>, Homes) {
    let mut homes = Homes::new();
    let mut nodes = Vec::new();
    for (n, claim) in plan.new_claims.iter().enumerate() {
        let first = &claim.offerings[0];
        let name = format!("claim-{n}");
        homes.extend(claim.pods.iter().map(|pod| {
            (
                pod.uid.clone(),
                PlacementTarget::InFlight(name.as_str().into()),
            )
        }));
        let (allocatable, capacity) = (first.allocatable.clone(), first.capacity.clone());
        nodes.push(Node {
            name: None,
            is_initialized: false,
            allocatable,
            capacity,
            ..node(&name, 1, &first.zone)
        });
    }
    (nodes, homes)
}

#[test]
fn pods_of_claims_on_their_way_keep_their_places() {
    let tight = pool_of([shape("a", 10, 10, 1.0), shape("b", 10, 10, 1.0)]);
    let three = PodSpec::requesting(5000, 2 * GI);
    let other = PodSpec::requesting(3000, 7 * GI);
    let third = PodSpec::requesting(2000, GI);
    let world = World::new(tight)
        .pods(pods("x", 6, &three))
        .pods(pods("y", 6, &other))
        .pods(pods("z", 6, &third));
    let first = world.plan();
    let (nodes, homes) = on_the_way(&first);
    let again = nodes.into_iter().fold(world, World::node);

    let second = schedule_from(
        &again.0,
        &Preferences::none(),
        &homes,
        WorkBudget::ROUND,
        jiff::Timestamp::UNIX_EPOCH,
    );

    assert!(second.new_claims.is_empty(), "{:?}", shown(&second));
    assert_eq!(second.placements.len(), 18);
    assert!(
        second
            .placements
            .iter()
            .all(|placement| homes[&placement.pod.uid] == placement.node)
    );
}

#[test]
fn homes_that_are_gone_do_no_harm() {
    let world = World::new(mixed_pool()).pods(pods("a", 2, &spec(100)));
    let homes = [("a-000".into(), PlacementTarget::InFlight("gone".into()))]
        .into_iter()
        .collect();
    let budget = WorkBudget::ROUND;
    let plan = schedule_from(
        &world.0,
        &Preferences::none(),
        &homes,
        budget,
        jiff::Timestamp::UNIX_EPOCH,
    );
    assert_eq!(plan.new_claims.len(), 1);
}

/// Pods that must be apart come first and get a node each; the small ones after them open nodes of their own, one by
/// one, since that is cheaper than a larger node at each step.
fn apart_and_small(pool: NodePool) -> World {
    let labels = [("app".to_owned(), "db".to_owned())].into_iter().collect();
    let apart = PodSpec {
        labels,
        anti_affinity: vec![PodAffinityTerm {
            topology_key: labels::HOSTNAME.to_owned(),
            selector: Some(LabelSelector::label("app", "db")),
            ..PodAffinityTerm::default()
        }],
        ..spec(2000)
    };
    World::new(pool)
        .pods(pods("apart", 3, &apart))
        .pods(pods("small", 6, &spec(900)))
}

fn doubling_pool() -> NodePool {
    pool_of([1, 2, 4, 8].map(|cores| instance_type(&format!("ecs.g7.{cores}c"), cores)))
}

#[test]
fn two_nodes_become_one_at_the_same_price() {
    let plan = apart_and_small(doubling_pool()).plan();

    assert_eq!(plan.unschedulable_pods(), 0);
    assert_eq!(plan.new_claims.len(), 3, "{:?}", shown(&plan));
    assert_eq!(plan.price_per_hour().to_string(), "1.2000");
}

#[test]
fn a_pod_that_a_limit_kept_out_gets_the_node_that_a_merge_has_freed() {
    let mut limited = doubling_pool();
    limited.limits.set(NODES, 9);
    let alone = PodSpec {
        anti_affinity: vec![PodAffinityTerm {
            topology_key: labels::HOSTNAME.to_owned(),
            selector: Some(LabelSelector::default()),
            ..PodAffinityTerm::default()
        }],
        ..spec(100)
    };

    // Nine nodes are there when its turn comes; then they become three.
    let plan = apart_and_small(limited).pod("alone", alone).plan();

    assert_eq!(plan.unschedulable_pods(), 0, "{:?}", plan.unschedulable);
    assert_eq!(plan.new_claims.len(), 4, "{:?}", shown(&plan));
}

#[test]
fn two_nodes_stay_two_when_one_has_a_worse_score() {
    let key = |zone: &str| OfferingKey {
        instance_type: "ecs.g7.4c".into(),
        zone: zone.into(),
        capacity_type: CapacityType::OnDemand,
    };
    let mut preferences = Preferences::none();
    let disliked = preferences.pools.entry("general".into()).or_default();
    for zone in ZONES {
        disliked.scores.insert(key(zone), -5);
    }

    let plan = apart_and_small(doubling_pool()).plan_with(&preferences);

    let is_disliked = |it: &String| it.contains("ecs.g7.4c");
    assert!(!shown(&plan).iter().any(is_disliked), "{:?}", shown(&plan));
}

#[test]
fn nodes_that_become_one_stay_within_the_limits() {
    let mut limited = doubling_pool();
    // Enough for every pod on its own, and not for a larger node in place of any two.
    limited.limits.set("cpu", 12_000);
    let plan = apart_and_small(limited).plan();
    let cores: i64 = plan
        .new_claims
        .iter()
        .map(|it| it.offerings[0].capacity.cpu_milli())
        .sum();
    assert_eq!(plan.unschedulable_pods(), 0);
    assert!(cores <= 12_000, "{cores}");
}

#[test]
fn each_of_many_nodes_has_the_offerings_that_one_alone_would_have() {
    let shapes = [
        shape("ecs.g7.small", 2, 8, 0.2),
        shape("ecs.g7.fits", 4, 16, 0.4),
        shape("ecs.g7.large", 8, 32, 1.0),
        shape("ecs.g7.larger", 16, 64, 2.5),
    ];
    let offered = |count| -> Vec<Vec<String>> {
        let world = World::new(pool_of(shapes.clone())).pods(pods("pod", count, &spec(3500)));
        let claims = world.plan().new_claims;
        let names = |claim: &PlannedClaim| {
            let offerings = claim.offerings.iter();
            offerings.map(|it| it.instance_type.to_string()).collect()
        };
        claims.iter().map(names).collect()
    };

    let (one, many) = (offered(1), offered(40));

    assert_eq!(one, [["ecs.g7.fits", "ecs.g7.large", "ecs.g7.larger"]]);
    assert_eq!(many.len(), 40);
    assert!(many.iter().all(|it| *it == one[0]), "{many:?}");
}

/// The first pod is only counted by the spread of the second, so nothing of its own keeps the two apart.
#[test]
fn a_spread_over_hosts_holds_when_nodes_become_one() {
    let labels: Labels = [("app".to_owned(), "a".to_owned())].into_iter().collect();
    let counted = PodSpec {
        labels: labels.clone(),
        ..spec(2000)
    };
    let spread = PodSpec {
        labels,
        topology_spread: vec![TopologySpread::new(
            labels::HOSTNAME,
            1,
            LabelSelector::label("app", "a"),
        )],
        ..spec(1950)
    };

    let plan = World::new(doubling_pool())
        .pod("counted", counted)
        .pod("spread", spread)
        .plan();

    assert_eq!(plan.new_claims.len(), 2, "{:?}", shown(&plan));
}

/// Each full node was looked at again for every pod that came on a node of its own, and only so many are looked at; the
/// pods of a softly spread Deployment of thousands stayed alone on their nodes once there were that many full ones.
#[test]
fn a_large_deployment_gets_nodes_as_full_as_a_small_one() {
    let shapes = [
        shape("ecs.g7.one", 2, 8, 0.38),
        shape("ecs.g7.three", 4, 16, 0.58),
        shape("ecs.g7.dear", 16, 64, 4.0),
    ];
    let mut zone = TopologySpread::new(labels::ZONE, 1, LabelSelector::label("app", "web"));
    zone.when_unsatisfiable = WhenUnsatisfiable::ScheduleAnyway;
    let web = PodSpec {
        labels: [("app".to_owned(), "web".to_owned())].into_iter().collect(),
        topology_spread: vec![zone],
        ..spec(1100)
    };
    let world = World::new(pool_of(shapes)).pods(pods("web", 1800, &web));

    let plan = world.plan();

    assert_eq!(plan.unschedulable_pods(), 0);
    assert_eq!(plan.new_claims.len(), 600);
}

#[test]
fn many_full_small_nodes_become_one_large_node_though_its_price_is_rounded_up() {
    // Each costs twice the one before; in millionths, the second costs one more than two of the first.
    let price = 0.038_006_477;
    let pool = pool_of([
        shape("c.2", 2, 4, price),
        shape("c.4", 4, 8, price * 2.0),
        shape("c.8", 8, 16, price * 4.0),
        shape("c.16", 16, 32, price * 8.0),
    ]);
    let full = PodSpec::requesting(1950, 4 * GI);

    let plan = World::new(pool).pods(pods("web", 8, &full)).plan();

    assert_eq!(shown(&plan).len(), 1, "{:?}", shown(&plan));
    assert_eq!(plan.price_per_hour().to_string(), "0.3041");
}
