//! Drift of dynamic and static pools.

use std::sync::Arc;

use jiff::SignedDuration;
use kerf_core::disruption::budget::BudgetNodes;
use kerf_core::disruption::command::PromisedPlace;
use kerf_core::disruption::{CommandKind, KeptReason};
use kerf_core::node::Node;
use kerf_core::pod::{DoNotDisrupt, Pod};

use crate::kit::{budget, decided, drifted, kept, node, pod, pool, shown, snapshot, with_spec};

#[test]
fn the_longest_drifted_goes_first_and_nodes_without_pods_before() {
    let mut three = pool();
    three.disruption.budgets = vec![budget(BudgetNodes::Count(2))];
    three.disruption.consolidate_after = None;
    let nodes = vec![
        drifted(node("young", "g.2", vec![pod("p", 1500)]), 1),
        drifted(node("old", "g.2", vec![pod("q", 1500)]), 9),
        drifted(node("bare", "g.2", vec![]), 1),
    ];
    let decision = decided(&snapshot(three, nodes));
    assert_eq!(shown(&decision), ["Drift: bare -> ", "Drift: old -> g.2"]);
    assert_eq!(kept(&decision, "young"), KeptReason::Budget);
}

#[test]
fn a_drifted_pool_rolls_within_its_budget_and_its_pods_move_once() {
    let mut tenth = pool();
    tenth.disruption.budgets = vec![budget(BudgetNodes::Percent(10))];
    let nodes: Vec<Node> = (0..50)
        .map(|n| {
            drifted(
                node(&format!("n{n:02}"), "g.2", vec![pod(&format!("p{n}"), 900)]),
                n + 1,
            )
        })
        .collect();
    let decision = decided(&snapshot(tenth, nodes));
    assert_eq!(decision.commands.len(), 5);
    for command in &decision.commands {
        // The other half-full nodes have room, but have drifted too.
        assert_eq!(
            (command.kind, command.replacements.len()),
            (CommandKind::Drift, 1)
        );
        assert!(
            command
                .promises
                .iter()
                .all(|it| it.place == PromisedPlace::Replacement(0))
        );
    }
    assert_eq!(decision.kept.len(), 45);
}

#[test]
fn pods_of_a_drifted_node_may_need_several_new_nodes_at_any_price() {
    let pods = (0..4).map(|n| pod(&format!("p{n}"), 1900)).collect();
    let old = drifted(node("old", "x.8", pods), 1);
    let mut small = pool();
    small.instance_types = Arc::new(small.instance_types[..1].to_vec());
    let decision = decided(&snapshot(small, vec![old]));
    assert_eq!(shown(&decision), ["Drift: old -> g.2, g.2, g.2, g.2"]);
}

#[test]
fn a_pod_without_another_place_keeps_its_drifted_node_and_the_next_one_goes() {
    let stuck = with_spec(pod("p", 500), |spec| {
        spec.node_selector
            .insert("disk".to_owned(), "here".to_owned());
    });
    let mut one = pool();
    one.disruption.budgets = vec![budget(BudgetNodes::Count(1))];
    let nodes = vec![
        drifted(node("a", "g.2", vec![stuck]), 9),
        drifted(node("b", "g.2", vec![pod("q", 500)]), 1),
    ];
    let decision = decided(&snapshot(one, nodes));
    assert_eq!(shown(&decision), ["Drift: b -> g.2"]);
    assert!(matches!(kept(&decision, "a"), KeptReason::NoPlace { pod, .. } if pod == "default/p"));
}

#[test]
fn f62_drift_with_a_grace_period_ignores_do_not_disrupt_and_without_it_does_not() {
    let forbidding = || Pod {
        do_not_disrupt: DoNotDisrupt::Forever,
        ..pod("p", 500)
    };
    let old = drifted(node("a", "g.2", vec![forbidding()]), 1);
    let with_grace = Node {
        termination_grace_period: Some(SignedDuration::from_mins(10)),
        ..old.clone()
    };
    let decision = decided(&snapshot(pool(), vec![with_grace]));
    // Nobody may evict the pod, so it needs no place before it ends.
    assert_eq!(shown(&decision), ["Drift: a -> "]);
    let decision = decided(&snapshot(pool(), vec![old]));
    assert_eq!(
        kept(&decision, "a"),
        KeptReason::PodForbids {
            pod: "default/p".to_owned()
        }
    );
}

#[test]
fn f76_drift_stops_where_replacements_do_not_join() {
    let mut broken = pool();
    broken.unhealthy = Some("the last nodes did not register".to_owned());
    let nodes = vec![drifted(node("a", "g.2", vec![pod("p", 500)]), 1)];
    let decision = decided(&snapshot(broken, nodes));
    assert_eq!(
        kept(&decision, "a"),
        KeptReason::Unhealthy {
            pool: "general".to_owned()
        }
    );
}

#[test]
fn drifted_nodes_of_a_static_pool_are_replaced_within_budget_and_limit() {
    let decide_with = |replicas, limit: Option<i64>| {
        let mut fixed = pool();
        fixed.replicas = Some(replicas);
        if let Some(limit) = limit {
            fixed.limits.set("nodes", limit);
        }
        let nodes = (0..3).map(|n| {
            drifted(
                node(&format!("n{n}"), "g.2", vec![pod(&format!("p{n}"), 500)]),
                n + 1,
            )
        });
        decided(&snapshot(fixed, nodes.collect()))
    };
    let all = decide_with(3, None);
    assert_eq!(
        shown(&all),
        [
            "StaticDrift: n2 -> g.2",
            "StaticDrift: n1 -> g.2",
            "StaticDrift: n0 -> g.2"
        ]
    );
    let tight = decide_with(3, Some(4));
    assert_eq!(shown(&tight), ["StaticDrift: n2 -> g.2"]);
    assert_eq!(kept(&tight, "n0"), KeptReason::NodeLimit);
    let surplus = decide_with(2, None);
    assert_eq!(kept(&surplus, "n0"), KeptReason::StaticSurplus);
}

#[test]
fn a_node_that_does_not_drift_any_more_is_for_consolidation_again() {
    let nodes = vec![
        node("a", "g.2", vec![pod("p", 500)]),
        node("b", "g.8", vec![pod("q", 7000)]),
    ];
    let decision = decided(&snapshot(pool(), nodes));
    assert_eq!(shown(&decision), ["Single: a -> "]);
    assert_eq!(decision.commands[0].price_before.per_hour(), Some(0.2));
}
