//! One test for each thing that lets an empty node go or keeps it.

use jiff::SignedDuration;

use super::*;
use crate::disruption::budget::{Budget, BudgetNodes};
use crate::pod::{DoNotDisrupt, Pod, PodSpec};

const NOW: &str = "2026-08-20T10:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn node(name: &str) -> Node {
    Node {
        name: Some(name.into()),
        node_claim: Some(name.into()),
        pool: Some("general".into()),
        is_ready: true,
        is_registered: true,
        is_initialized: true,
        initialized_at: Some(now() - SignedDuration::from_mins(10)),
        ..Node::default()
    }
}

fn pool(consolidate_after_mins: i64, budget: BudgetNodes) -> NodePool {
    let mut pool = NodePool {
        name: "general".into(),
        ..NodePool::default()
    };
    pool.disruption.consolidate_after = Some(SignedDuration::from_mins(consolidate_after_mins));
    pool.disruption.budgets = vec![Budget {
        nodes: budget,
        ..Budget::default()
    }];
    pool
}

fn decide(pool: NodePool, nodes: Vec<Node>) -> Emptiness {
    let nodes = nodes.into_iter().map(Arc::new).collect();
    emptiness(
        &Snapshot {
            pools: vec![Arc::new(pool)],
            nodes,
            ..Snapshot::default()
        },
        now(),
    )
}

fn removable(result: &Emptiness) -> Vec<&str> {
    result
        .removable
        .iter()
        .map(|node| node.node_claim.as_str())
        .collect()
}

fn kept_because(node: Node) -> KeptReason {
    let mut result = decide(pool(5, BudgetNodes::Percent(100)), vec![node]);
    assert!(result.removable.is_empty());
    result.kept.remove(0).reason
}

#[test]
fn a_node_that_was_quiet_for_long_enough_goes() {
    let result = decide(pool(10, BudgetNodes::Percent(100)), vec![node("a")]);
    assert_eq!(removable(&result), ["a"]);
}

#[test]
fn a_node_that_was_quiet_too_shortly_is_looked_at_again_when_its_time_comes() {
    let mut young = node("a");
    young.last_pod_event = Some(now() - SignedDuration::from_mins(2));

    let result = decide(pool(5, BudgetNodes::Percent(100)), vec![young]);

    assert!(result.removable.is_empty());
    assert_eq!(
        result.next_check,
        Some(now() + SignedDuration::from_mins(3))
    );
}

#[test]
fn daemon_and_finished_pods_do_not_count() {
    let daemon = Pod::new(
        "daemon",
        PodSpec {
            owner: OwnerKind::DaemonSet,
            ..PodSpec::default()
        },
    );
    let finished = Pod {
        phase: crate::pod::PodPhase::Terminal,
        ..Pod::new("job", PodSpec::default())
    };
    let mut empty = node("a");
    empty.pods = vec![Arc::new(daemon), Arc::new(finished)].into();
    assert_eq!(
        removable(&decide(pool(5, BudgetNodes::Percent(100)), vec![empty])),
        ["a"]
    );
}

#[test]
fn what_keeps_a_node_is_said() {
    let with_pod = |pod: Pod| Node {
        pods: vec![Arc::new(pod)].into(),
        ..node("a")
    };
    let daemon = Pod::new(
        "daemon",
        PodSpec {
            owner: OwnerKind::DaemonSet,
            ..PodSpec::default()
        },
    );
    let kept_daemon = Pod {
        do_not_disrupt: DoNotDisrupt::Forever,
        ..daemon
    };

    let later = now() + SignedDuration::from_secs(5);
    let cases = [
        (
            with_pod(Pod::new("web", PodSpec::default())),
            KeptReason::HasPods { count: 1 },
        ),
        (
            with_pod(kept_daemon),
            KeptReason::PodForbids {
                pod: "default/daemon".to_owned(),
            },
        ),
        (
            Node {
                is_initialized: false,
                ..node("a")
            },
            KeptReason::NotInitialized,
        ),
        (
            Node {
                is_marked_for_deletion: true,
                ..node("a")
            },
            KeptReason::Leaving,
        ),
        (
            Node {
                forbids_disruption: true,
                ..node("a")
            },
            KeptReason::NodeForbids,
        ),
        (
            Node {
                nominated_until: Some(later),
                ..node("a")
            },
            KeptReason::Nominated,
        ),
        (
            Node {
                buffer_pods: 1,
                ..node("a")
            },
            KeptReason::Buffer,
        ),
        (
            Node {
                pool: Some("gone".into()),
                ..node("a")
            },
            KeptReason::PoolKeepsNodes,
        ),
    ];
    for (node, reason) in cases {
        assert_eq!(kept_because(node), reason);
    }
}

#[test]
fn budgets_count_nodes_that_are_away_already() {
    let leaving = Node {
        is_deleting: true,
        ..node("x")
    };
    let not_ready = Node {
        is_ready: false,
        pods: vec![Arc::new(Pod::new("web", PodSpec::default()))].into(),
        ..node("y")
    };
    let nodes = vec![node("c"), node("b"), node("a"), leaving, not_ready];

    let result = decide(pool(5, BudgetNodes::Count(4)), nodes);

    assert_eq!(removable(&result), ["a", "b"]);
    let reason = result
        .kept
        .iter()
        .find(|kept| &*kept.node_claim == "c")
        .map(|kept| &kept.reason);
    assert_eq!(reason, Some(&KeptReason::Budget));
}

#[test]
fn nodes_that_we_do_not_manage_are_not_spoken_of() {
    let foreign = Node {
        node_claim: None,
        ..node("foreign")
    };
    assert_eq!(
        decide(pool(5, BudgetNodes::Percent(100)), vec![foreign]),
        Emptiness::default()
    );
}
