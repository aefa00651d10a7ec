//! How many nodes a static pool gets and which go: unit tests over small snapshots.

use super::*;
use crate::instance_type::{CapacityType, InstanceType, Offering};
use crate::labels;
use crate::pod::{DoNotDisrupt, OwnerKind, Pod, PodSpec};
use crate::preferences::Bar;
use crate::price::Price;
use crate::requirement::Requirement;
use jiff::SignedDuration;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn instance_type(name: &str, price: f64) -> InstanceType {
    let offerings = ["h", "i", "j"]
        .map(|zone| Offering::new(zone, CapacityType::OnDemand, Price::from_per_hour(price)));
    let capacity = Resources::of(4000, 8 << 30);
    InstanceType::new(name, [], capacity, Resources::default(), offerings.into())
}

/// A pool `fixed` that may be ecs.a at 1.0 or ecs.b at 2.0.
fn pool(replicas: u32) -> NodePool {
    let types = [instance_type("ecs.b", 2.0), instance_type("ecs.a", 1.0)];
    NodePool {
        name: "fixed".into(),
        instance_types: Arc::new(types.into_iter().map(Arc::new).collect()),
        replicas: Some(replicas),
        ..NodePool::default()
    }
}

fn node(name: &str, zone: &str) -> Node {
    Node {
        node_claim: Some(name.into()),
        pool: Some("fixed".into()),
        labels: [(labels::ZONE, zone)].into_iter().collect(),
        is_launched: true,
        ..Node::default()
    }
}

fn plan(pool: NodePool, nodes: Vec<Node>) -> StaticPlan {
    let snapshot = Snapshot {
        pools: vec![Arc::new(pool)],
        nodes: nodes.into_iter().map(Arc::new).collect(),
        ..Snapshot::default()
    };
    static_capacity(&snapshot, &Preferences::none(), NOW)
}

fn removed(plan: &StaticPlan) -> Vec<&str> {
    plan.remove.iter().map(|it| &*it.node_claim).collect()
}

fn zones(plan: &StaticPlan) -> Vec<&str> {
    let claims = plan.create.iter();
    claims.map(|it| it.offerings[0].zone.as_str()).collect()
}

#[test]
fn missing_nodes_are_made_from_the_template_and_zones_take_turns() {
    let plan = plan(pool(5), vec![node("one", "h")]);

    assert_eq!(zones(&plan), ["i", "j", "h", "i"]);
    let claim = &plan.create[0];
    assert_eq!(&*claim.offerings[0].instance_type, "ecs.a");
    assert_eq!(claim.offerings.len(), 6);
    assert_eq!(claim.requirements.on(labels::INSTANCE_TYPE), None);
    assert_eq!(claim.labels[labels::NODE_POOL], "fixed");
    assert!(claim.pods.is_empty() && plan.remove.is_empty() && plan.short.is_empty());
}

#[test]
fn nodes_whose_replacement_is_on_its_way_are_not_made_twice() {
    let marked = Node {
        is_marked_for_deletion: true,
        ..node("old", "h")
    };

    let before = plan(pool(2), vec![marked.clone(), node("other", "i")]);
    let during = plan(pool(2), vec![marked, node("other", "i"), node("new", "j")]);

    assert_eq!(before, StaticPlan::default());
    assert_eq!(during, StaticPlan::default());
}

#[test]
fn a_node_that_is_being_deleted_is_replaced_at_once() {
    let deleted = Node {
        is_deleting: true,
        is_marked_for_deletion: true,
        ..node("old", "h")
    };

    assert_eq!(plan(pool(1), vec![deleted]).create.len(), 1);
}

#[test]
fn a_limit_on_nodes_bounds_what_is_made_and_says_so() {
    let mut limited = pool(5);
    limited.limits.set(NODES, 3);
    let marked = Node {
        is_marked_for_deletion: true,
        ..node("old", "h")
    };

    let plan = plan(limited, vec![marked, node("other", "i")]);

    assert_eq!(plan.create.len(), 1);
    assert_eq!(
        (plan.short[0].missing, &*plan.short[0].reason),
        (2, "limits.nodes: 3 allows no more")
    );
}

#[test]
fn a_pool_that_is_not_ready_or_sells_nothing_makes_nothing_and_says_why() {
    let not_ready = NodePool {
        not_ready: Some("NodeClassNotReady: no image".to_owned()),
        ..pool(2)
    };
    let mut nowhere = pool(2);
    nowhere.template.requirements = [Requirement::in_values(labels::ZONE, ["x"])]
        .into_iter()
        .collect();

    let (first, second) = (plan(not_ready, vec![]), plan(nowhere, vec![]));

    assert!(first.create.is_empty() && second.create.is_empty());
    assert_eq!(first.short[0].reason, "NodeClassNotReady: no image");
    assert!(
        second.short[0]
            .reason
            .contains("no instance type can be bought")
    );
}

#[test]
fn what_goes_first_is_not_launched_then_empty_then_cheap_and_protected_ones_last() {
    let with_pods = |name: &str, pods: Vec<Pod>| Node {
        pods: pods.into_iter().map(Arc::new).collect(),
        ..node(name, "h")
    };
    let web = |priority| {
        let spec = PodSpec {
            priority,
            ..PodSpec::requesting(100, 1)
        };
        Pod::new("web", spec)
    };
    let daemon = PodSpec {
        owner: OwnerKind::DaemonSet,
        ..PodSpec::requesting(100, 1)
    };
    let mut kept = web(0);
    kept.do_not_disrupt = DoNotDisrupt::Forever;
    let nodes = vec![
        with_pods("kept", vec![kept]),
        with_pods("two", vec![web(0), web(0)]),
        with_pods("important", vec![web(1 << 26)]),
        with_pods("one", vec![web(0)]),
        with_pods("daemon", vec![Pod::new("agent", daemon)]),
        Node {
            is_launched: false,
            ..node("young", "h")
        },
    ];

    let all = plan(pool(0), nodes.clone());
    let some = plan(pool(4), nodes);

    assert_eq!(
        removed(&all),
        ["young", "daemon", "one", "two", "important", "kept"]
    );
    assert_eq!(removed(&some), ["young", "daemon"]);
    assert!(some.remove[1].note.contains("has 6 nodes and wants 4"));
}

#[test]
fn of_equal_nodes_the_one_with_the_least_life_left_goes_first() {
    let aged = |name: &str, hours: i64| Node {
        created_at: Some(NOW - SignedDuration::from_hours(hours)),
        expires_at: Some(NOW - SignedDuration::from_hours(hours - 10)),
        ..node(name, "h")
    };

    let plan = plan(
        pool(1),
        vec![aged("young", 1), aged("old", 8), aged("middle", 4)],
    );

    assert_eq!(removed(&plan), ["old", "middle"]);
}

#[test]
fn the_order_of_the_nodes_does_not_matter() {
    let nodes = vec![node("a", "h"), node("b", "i"), node("c", "j")];
    let reversed = nodes.iter().rev().cloned().collect();

    assert_eq!(plan(pool(1), nodes), plan(pool(1), reversed));
}

#[test]
fn what_a_policy_bars_or_prefers_counts_for_static_pools_too() {
    let mut preferences = Preferences::none();
    let of_pool = preferences.pool_mut(&"fixed".into());
    of_pool.bars.push(Bar {
        instance_type: "ecs.a".into(),
        zone: None,
        capacity_type: None,
        policy: "no-a".to_owned(),
        reason: "too small".to_owned(),
    });
    let snapshot = Snapshot {
        pools: vec![Arc::new(pool(1))],
        ..Snapshot::default()
    };

    let plan = static_capacity(&snapshot, &preferences, NOW);

    assert_eq!(&*plan.create[0].offerings[0].instance_type, "ecs.b");
}
