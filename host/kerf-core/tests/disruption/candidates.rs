//! Who may go at all, in which order, and how many at once.

use std::sync::Arc;

use jiff::SignedDuration;
use kerf_core::disruption::budget::{Budget, BudgetNodes, DisruptionReason};
use kerf_core::disruption::{KeptKind, KeptReason};
use kerf_core::labels;
use kerf_core::node::Node;
use kerf_core::node_pool::ConsolidationPolicy;
use kerf_core::pod::{DoNotDisrupt, OwnerKind, Pod};
use kerf_core::taint::{TaintEffect, Toleration};

use crate::kit::{
    budget, decided, drifted, kept, labelled, node, now, of_app, pod, pod_budget, pool, shown,
    snapshot, with_spec,
};

/// A node whose pod would fit on another one goes unless something keeps it.
fn kept_because(change: impl FnOnce(Node) -> Node) -> KeptReason {
    let small = change(node("a", "g.2", vec![of_app(pod("p", 500), "web")]));
    let other = node("b", "g.8", vec![pod("q", 7000)]);
    kept(&decided(&snapshot(pool(), vec![small, other])), "a")
}

#[test]
fn each_thing_that_keeps_a_node_is_told() {
    let kept = kept_because(|node| Node {
        is_deleting: true,
        ..node
    });
    assert_eq!(kept, KeptReason::Leaving);
    let kept = kept_because(|node| Node {
        is_marked_for_deletion: true,
        ..node
    });
    assert_eq!(kept, KeptReason::Leaving);
    let kept = kept_because(|node| Node {
        is_initialized: false,
        ..node
    });
    assert_eq!(kept, KeptReason::NotInitialized);
    let soon = now() + SignedDuration::from_secs(5);
    let kept = kept_because(|node| Node {
        nominated_until: Some(soon),
        ..node
    });
    assert_eq!(kept, KeptReason::Nominated);
    let kept = kept_because(|node| Node {
        forbids_disruption: true,
        ..node
    });
    assert_eq!(kept, KeptReason::NodeForbids);
    assert_eq!(kept.kind(), KeptKind::Blocked);
    let kept = kept_because(|node| Node {
        pool: Some("gone".into()),
        ..node
    });
    assert_eq!(kept, KeptReason::PoolKeepsNodes);
    let kept = kept_because(|node| labelled(node, labels::INSTANCE_TYPE, "old.2"));
    assert_eq!(
        kept,
        KeptReason::UnknownInstanceType {
            instance_type: "old.2".to_owned()
        }
    );
    let kept = kept_because(|mut node| {
        node.labels.remove(labels::ZONE);
        node
    });
    assert_eq!(
        kept,
        KeptReason::MissingLabel {
            label: labels::ZONE
        }
    );
}

#[test]
fn a_pod_that_forbids_disruption_keeps_its_node_daemons_too_mirror_pods_not() {
    let forbidding = |owner| Pod {
        do_not_disrupt: DoNotDisrupt::Forever,
        ..with_spec(pod("f", 100), |spec| spec.owner = owner)
    };
    for owner in [OwnerKind::Other, OwnerKind::DaemonSet] {
        let kept = kept_because(|mut node| {
            node.pods.push(Arc::new(forbidding(owner)));
            node
        });
        assert_eq!(
            kept,
            KeptReason::PodForbids {
                pod: "default/f".to_owned()
            }
        );
    }
    let mut small = node("a", "g.2", vec![pod("p", 500)]);
    small.pods.push(Arc::new(forbidding(OwnerKind::Node)));
    let decision = decided(&snapshot(
        pool(),
        vec![small, node("b", "g.8", vec![pod("q", 7000)])],
    ));
    assert_eq!(shown(&decision), ["Single: a -> "]);
}

#[test]
fn pod_disruption_budgets_keep_nodes() {
    let decide_with = |budgets: Vec<_>, change: &dyn Fn(Pod) -> Pod| {
        let small = node("a", "g.2", vec![change(of_app(pod("p", 500), "web"))]);
        let mut all = snapshot(pool(), vec![small, node("b", "g.8", vec![pod("q", 7000)])]);
        all.pod_budgets = budgets.into_iter().map(Arc::new).collect();
        decided(&all)
    };
    let blocked = |budget: &str| KeptReason::PodBudget {
        pod: "default/p".to_owned(),
        budget: budget.to_owned(),
    };
    let same = |pod| pod;
    let decision = decide_with(vec![pod_budget("strict", "web", 0)], &same);
    assert_eq!(kept(&decision, "a"), blocked("strict"));
    let two = vec![pod_budget("one", "web", 1), pod_budget("two", "web", 1)];
    assert_eq!(kept(&decide_with(two, &same), "a"), blocked("one, two"));
    let decision = decide_with(vec![pod_budget("loose", "web", 1)], &same);
    assert_eq!(shown(&decision), ["Single: a -> "]);
    let decision = decide_with(vec![pod_budget("other", "db", 0)], &same);
    assert_eq!(shown(&decision), ["Single: a -> "]);
    let mut lenient = pod_budget("lenient", "web", 0);
    lenient.lets_unready_go = true;
    let unready = |pod| Pod {
        is_ready: false,
        ..pod
    };
    assert_eq!(
        shown(&decide_with(vec![lenient], &unready)),
        ["Single: a -> "]
    );
    // Such a pod is never evicted, so no budget is asked.
    let tolerant = |pod| {
        with_spec(pod, |spec| {
            spec.tolerations
                .push(Toleration::every(TaintEffect::NoSchedule));
        })
    };
    assert_eq!(
        shown(&decide_with(
            vec![pod_budget("strict", "web", 0)],
            &tolerant
        )),
        ["Single: a -> "]
    );
}

#[test]
fn f83_a_node_with_recent_pod_movement_is_left_alone() {
    let ago = |mins| Some(now() - SignedDuration::from_mins(mins));
    let mut slow = pool();
    slow.disruption.consolidate_after = Some(SignedDuration::from_mins(30));
    let moving = Node {
        last_pod_event: ago(5),
        ..node("a", "g.2", vec![pod("p", 500)])
    };
    let quiet = Node {
        last_pod_event: ago(31),
        ..node("b", "g.2", vec![pod("q", 500)])
    };
    let large = node("c", "g.8", vec![pod("r", 6500)]);
    let decision = decided(&snapshot(slow, vec![moving, quiet, large]));
    assert_eq!(shown(&decision), ["Single: b -> "]);
    let until = now() + SignedDuration::from_mins(25);
    assert_eq!(kept(&decision, "a"), KeptReason::Waiting { until });
    assert_eq!(decision.next_check, Some(until));
}

#[test]
fn pools_that_keep_their_nodes_are_left_alone() {
    let decision_of = |change: &dyn Fn(&mut kerf_core::node_pool::NodePool)| {
        let mut pool = pool();
        change(&mut pool);
        let nodes = vec![
            node("a", "g.2", vec![pod("p", 500)]),
            node("b", "g.8", vec![pod("q", 7000)]),
        ];
        decided(&snapshot(pool, nodes))
    };
    let never = decision_of(&|pool| pool.disruption.consolidate_after = None);
    assert_eq!(kept(&never, "a"), KeptReason::PoolKeepsNodes);
    let when_empty = decision_of(&|pool| pool.disruption.policy = ConsolidationPolicy::WhenEmpty);
    assert_eq!(kept(&when_empty, "a"), KeptReason::PolicyWhenEmpty);
    let fixed = decision_of(&|pool| pool.replicas = Some(2));
    assert_eq!(kept(&fixed, "a"), KeptReason::PoolKeepsNodes);
    let typeless = decision_of(&|pool| pool.instance_types = Arc::default());
    assert!(matches!(
        kept(&typeless, "a"),
        KeptReason::NoInstanceTypes { .. }
    ));
}

#[test]
fn the_dearest_for_the_least_disruption_goes_first() {
    let heavy = with_spec(pod("p", 500), |spec| spec.priority = 1 << 27);
    let mut one = pool();
    one.disruption.budgets = vec![budget(BudgetNodes::Count(1))];
    let nodes = vec![
        node("a", "g.2", vec![heavy]),
        node("b", "g.2", vec![pod("q", 500)]),
        node("c", "g.8", vec![pod("r", 6000)]),
    ];
    let decision = decided(&snapshot(one, nodes));
    assert_eq!(shown(&decision), ["Single: b -> "]);
    // The pods of what goes first gather on what would go last.
    assert_eq!(kept(&decision, "a"), KeptReason::TakesInPods);
    assert_eq!(kept(&decision, "c"), KeptReason::Budget);
}

#[test]
fn budgets_hold_over_all_methods_of_a_pass() {
    let mut two = pool();
    two.disruption.budgets = vec![budget(BudgetNodes::Count(2))];
    let nodes = vec![
        node("empty", "g.2", vec![]),
        drifted(node("old", "g.2", vec![pod("o", 500)]), 3),
        node("small", "g.2", vec![pod("p", 500)]),
        node("large", "g.8", vec![pod("r", 5000)]),
    ];
    let decision = decided(&snapshot(two, nodes));
    assert_eq!(shown(&decision), ["Empty: empty -> ", "Drift: old -> "]);
    assert_eq!(kept(&decision, "large"), KeptReason::Budget);
}

#[test]
fn a_budget_for_one_reason_leaves_the_others_free() {
    let mut frozen = pool();
    frozen.disruption.budgets = vec![Budget {
        nodes: BudgetNodes::Count(0),
        reasons: vec![DisruptionReason::Underutilized],
        ..Budget::default()
    }];
    let nodes = vec![
        drifted(node("old", "g.2", vec![pod("o", 500)]), 3),
        node("small", "g.2", vec![pod("p", 500)]),
        node("large", "g.8", vec![pod("r", 5000)]),
    ];
    let decision = decided(&snapshot(frozen, nodes));
    assert_eq!(shown(&decision), ["Drift: old -> "]);
}

#[test]
fn empty_drifted_and_underutilized_nodes_go_in_one_pass_and_a_blocked_pool_starves_no_other() {
    let mut other = pool();
    other.name = "other".into();
    other.disruption.budgets = vec![budget(BudgetNodes::Count(0))];
    let of_other = Node {
        pool: Some("other".into()),
        ..labelled(
            node("x", "g.8", vec![pod("x", 7500)]),
            labels::NODE_POOL,
            "other",
        )
    };
    let nodes = vec![
        node("empty", "g.2", vec![]),
        drifted(node("old", "g.2", vec![pod("o", 1900)]), 3),
        node("small", "g.2", vec![pod("p", 500)]),
        node("large", "g.8", vec![pod("r", 5000)]),
        of_other,
    ];
    let mut all = snapshot(pool(), nodes);
    all.pools.push(Arc::new(other));
    let decision = decided(&all);
    assert_eq!(
        shown(&decision),
        ["Empty: empty -> ", "Drift: old -> ", "Single: small -> "]
    );
    assert_eq!(kept(&decision, "x"), KeptReason::Budget);
}
