//! Commands are looked at again before they are carried out.

use std::sync::Arc;

use kerf_core::disruption::budget::BudgetNodes;
use kerf_core::disruption::{DisruptionSettings, Invalid, validate};
use kerf_core::node::Node;
use kerf_core::pod::{DoNotDisrupt, Pod};
use kerf_core::{Preferences, Snapshot};

use crate::kit::{budget, decided, node, now, pod, pool, snapshot};

fn cluster(pods_of_a: Vec<Pod>, pods_of_b: Vec<Pod>) -> Snapshot {
    snapshot(
        pool(),
        vec![node("a", "g.2", pods_of_a), node("b", "g.8", pods_of_b)],
    )
}

fn before() -> Snapshot {
    cluster(vec![pod("p", 500)], vec![pod("q", 7000)])
}

fn validated(after: &Snapshot) -> Result<(), Invalid> {
    let commands = decided(&before()).commands;
    assert_eq!(commands.len(), 1);
    validate(
        &commands,
        after,
        &Preferences::none(),
        &DisruptionSettings::default(),
        now(),
    )
    .remove(0)
}

#[test]
fn a_command_holds_while_nothing_has_changed() {
    assert_eq!(validated(&before()), Ok(()));
}

#[test]
fn f65_a_pod_that_forbids_disruption_and_came_meanwhile_stops_the_command() {
    let guard = Pod {
        do_not_disrupt: DoNotDisrupt::Forever,
        ..pod("ci", 100)
    };
    let after = cluster(vec![pod("p", 500), guard], vec![pod("q", 7000)]);
    assert!(matches!(validated(&after), Err(Invalid::Churn { .. })));
}

#[test]
fn a_promise_whose_room_is_taken_stops_the_command() {
    let after = cluster(vec![pod("p", 500)], vec![pod("q", 7000), pod("late", 800)]);
    assert_eq!(validated(&after), Err(Invalid::Scheduling));
}

#[test]
fn f64_an_empty_node_that_got_a_pod_is_not_removed() {
    let empty = snapshot(pool(), vec![node("a", "g.2", vec![])]);
    let commands = decided(&empty).commands;
    let after = snapshot(pool(), vec![node("a", "g.2", vec![pod("p", 500)])]);
    let answer = validate(
        &commands,
        &after,
        &Preferences::none(),
        &DisruptionSettings::default(),
        now(),
    );
    assert!(
        matches!(&answer[0], Err(Invalid::Churn { why, .. }) if why == "has 1 pods to reschedule")
    );
}

#[test]
fn a_command_over_budget_or_for_a_node_that_is_gone_stops() {
    let mut frozen = pool();
    frozen.disruption.budgets = vec![budget(BudgetNodes::Count(0))];
    let mut after = before();
    after.pools = vec![Arc::new(frozen)];
    assert_eq!(
        validated(&after),
        Err(Invalid::Budget {
            pool: "general".to_owned()
        })
    );
    let mut after = before();
    after.nodes.remove(0);
    assert!(matches!(validated(&after), Err(Invalid::Churn { .. })));
    let mut after = before();
    let leaving = Node {
        is_deleting: true,
        ..Node::clone(&after.nodes[0])
    };
    after.nodes[0] = Arc::new(leaving);
    assert!(matches!(validated(&after), Err(Invalid::Churn { .. })));
}
