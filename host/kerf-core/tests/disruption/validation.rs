//! Commands are looked at again before they are carried out.

use std::sync::Arc;

use kerf_core::Snapshot;
use kerf_core::disruption::budget::BudgetNodes;
use kerf_core::disruption::{DisruptionSettings, Invalid, validate};
use kerf_core::node::Node;
use kerf_core::pod::{DoNotDisrupt, Pod};
use kerf_core::taint::{Taint, TaintEffect};

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

fn answer(before: &Snapshot, after: &Snapshot) -> Result<(), Invalid> {
    let commands = decided(before).commands;
    assert_eq!(commands.len(), 1);
    validate(&commands, after, &DisruptionSettings::default(), now()).remove(0)
}

fn told(after: &Snapshot) -> String {
    answer(&before(), after).unwrap_err().to_string()
}

fn with_node(idx: usize, change: impl FnOnce(&mut Node)) -> Snapshot {
    let mut after = before();
    change(Arc::make_mut(&mut after.nodes[idx]));
    after
}

#[test]
fn a_command_holds_while_nothing_has_changed() {
    assert_eq!(answer(&before(), &before()), Ok(()));
}

#[test]
fn f65_a_pod_that_forbids_disruption_and_came_meanwhile_stops_the_command() {
    let guard = Pod {
        do_not_disrupt: DoNotDisrupt::Forever,
        ..pod("ci", 100)
    };
    let after = cluster(vec![pod("p", 500), guard], vec![pod("q", 7000)]);
    assert_eq!(told(&after), "a pod default/ci forbids disruption");
}

#[test]
fn a_pod_that_nobody_promised_a_place_stops_the_command() {
    let after = cluster(vec![pod("p", 500), pod("new", 100)], vec![pod("q", 7000)]);
    assert_eq!(told(&after), "a has got pod default/new");
}

#[test]
fn a_promise_whose_place_is_lost_stops_the_command() {
    let full = cluster(vec![pod("p", 500)], vec![pod("q", 7000), pod("late", 800)]);
    let cordoned = with_node(1, |b| {
        b.taints.push(Taint::new(
            "node.kubernetes.io/unschedulable",
            TaintEffect::NoSchedule,
        ));
    });
    let mut gone = before();
    gone.nodes.remove(1);
    let leaving = with_node(1, |b| b.is_deleting = true);
    for (after, why) in [
        (full, "it has not enough cpu left"),
        (
            cordoned,
            "it has got the taint node.kubernetes.io/unschedulable",
        ),
        (gone, "it is gone"),
        (leaving, "it is being removed"),
    ] {
        assert_eq!(
            told(&after),
            format!("pod default/p has lost its place on b: {why}")
        );
    }
}

#[test]
fn f64_an_empty_node_that_got_a_pod_is_not_removed() {
    let empty = snapshot(pool(), vec![node("a", "g.2", vec![])]);
    let after = snapshot(pool(), vec![node("a", "g.2", vec![pod("p", 500)])]);
    assert_eq!(answer(&empty, &empty), Ok(()));
    assert_eq!(
        answer(&empty, &after).unwrap_err().to_string(),
        "a may not go as an empty node any more"
    );
}

#[test]
fn a_command_over_budget_or_for_a_node_that_is_gone_stops() {
    let mut frozen = pool();
    frozen.disruption.budgets = vec![budget(BudgetNodes::Count(0))];
    let mut after = before();
    after.pools = vec![Arc::new(frozen)];
    assert_eq!(
        told(&after),
        "disruption budgets of NodePool general allow fewer nodes now"
    );
    let mut after = before();
    after.nodes.remove(0);
    assert_eq!(told(&after), "a is gone");
    assert_eq!(
        told(&with_node(0, |a| a.is_deleting = true)),
        "a is being removed already"
    );
}
