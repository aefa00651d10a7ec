//! Unit level: a snapshot in, text out.

use std::sync::Arc;

use kerf_core::instance_type::{CapacityType, InstanceType, Offering};
use kerf_core::labels;
use kerf_core::node::Node;
use kerf_core::node_pool::NodePool;
use kerf_core::pod::{OwnerKind, PodSpec};
use kerf_core::price::Price;
use kerf_core::resources::Limits;

use super::*;
use crate::metrics::{Scope, text};

const GIB: i64 = 1 << 30;

fn parts() -> (PodMetrics, CostErrors) {
    let mut registry = Registry::default();
    let scope = Scope {
        has_state: true,
        has_pods: false,
    };
    (PodMetrics::new(&mut registry, scope), CostErrors::default())
}

fn limited(name: &str) -> k8s_openapi::api::core::v1::Pod {
    let object = serde_json::json!({
        "metadata": {"name": name, "uid": name},
        "spec": {"nodeName": "node-1", "containers": [{"name": "main", "resources": {"limits": {"cpu": "1500m"}}}]},
    });
    serde_json::from_value(object).unwrap()
}

pub(super) fn snapshot() -> Snapshot {
    let pod = |owner, cpu| {
        let spec = PodSpec {
            owner,
            ..PodSpec::requesting(cpu, GIB)
        };
        Arc::new(Pod::new("p", spec))
    };
    let node = Node {
        name: Some("node-1".into()),
        node_claim: Some("general-1".into()),
        pool: Some("general".into()),
        labels: [
            (labels::NODE_POOL, "general"),
            (labels::INSTANCE_TYPE, "ecs.g7.large"),
            (labels::ZONE, "cn-hangzhou-h"),
            (labels::CAPACITY_TYPE, "spot"),
        ]
        .into_iter()
        .collect(),
        allocatable: Resources::of(1900, 7 * GIB),
        capacity: Resources::of(2000, 8 * GIB),
        pods: vec![pod(OwnerKind::Other, 500), pod(OwnerKind::DaemonSet, 100)].into(),
        created_at: Some(Timestamp::UNIX_EPOCH),
        is_ready: true,
        is_initialized: true,
        is_marked_for_deletion: true,
        ..Node::default()
    };
    let mut limits = Limits::default();
    limits.set("cpu", 10_000);
    let price = Price::from_per_hour(0.25);
    let offering = Offering::new("cn-hangzhou-h", CapacityType::Spot, price);
    let instance_type = InstanceType::new(
        "ecs.g7.large",
        [],
        Resources::of(2000, 8 * GIB),
        Resources::default(),
        vec![offering],
    );
    let pool = NodePool {
        name: "general".into(),
        limits,
        instance_types: Arc::new(vec![Arc::new(instance_type)]),
        ..NodePool::default()
    };
    Snapshot {
        pools: vec![Arc::new(pool)],
        nodes: vec![Arc::new(node)],
        ..Snapshot::default()
    }
}

fn rendered(snapshot: &Snapshot, pods: &PodMetrics, costs: &CostErrors, now: Timestamp) -> String {
    text::gathered(|pass_on| render(snapshot, pods, costs, now, pass_on))
}

#[test]
fn a_scrape_tells_what_nodes_and_pools_have_ask_for_and_cost() {
    let now = Timestamp::from_second(90).unwrap();

    let (pods, costs) = parts();
    pods.observe(&limited("p"), now);
    let text = rendered(&snapshot(), &pods, &costs, now);

    let value = |name: &str, with: &str| {
        let mut lines = text.lines();
        let line = lines.find(|it| it.starts_with(&format!("{name}{{")) && it.contains(with));
        let line = line.unwrap_or_else(|| panic!("no {name} with {with} in {text}"));
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let cpu = "resource_type=\"cpu\"";
    let expected = [
        ("karpenter_nodes_allocatable", cpu, 1.9),
        ("karpenter_nodes_total_pod_requests", cpu, 0.5),
        (
            "karpenter_nodes_total_pod_requests",
            "resource_type=\"pods\"",
            1.0,
        ),
        ("karpenter_nodes_total_daemon_requests", cpu, 0.1),
        ("karpenter_nodes_total_pod_limits", cpu, 1.5),
        (
            "karpenter_nodes_total_daemon_limits",
            "resource_type=\"pods\"",
            1.0,
        ),
        ("karpenter_nodes_system_overhead", cpu, 0.1),
        (
            "karpenter_nodes_current_lifetime_seconds",
            "instance_type=\"ecs.g7.large\"",
            90.0,
        ),
        ("karpenter_cluster_utilization_percent", cpu, 60.0 / 1.9),
        ("karpenter_nodepools_limit", cpu, 10.0),
        ("karpenter_nodepools_usage", cpu, 2.0),
        ("karpenter_nodepools_usage", "resource_type=\"nodes\"", 1.0),
        ("karpenter_nodepools_cost_total", "general", 0.25),
        (
            "karpenter_nodepools_nodes_consuming_budgets",
            "reason=\"drifted\"",
            1.0,
        ),
    ];
    for (name, with, wanted) in expected {
        let found = value(name, with);
        assert!((found - wanted).abs() < 1e-9, "{name}: {found}");
    }
    for label in [
        "node_name=\"node-1\"",
        "phase=\"Running\"",
        "managed=\"true\"",
        "capacity_type=\"spot\"",
        "windows_build=\"\"",
    ] {
        assert!(text.contains(label), "{label}");
    }
}

#[test]
fn a_node_whose_price_nobody_knows_is_an_error_once_and_again_when_it_was_priced_in_between() {
    let (pods, costs) = parts();
    let priced = snapshot();
    let mut unpriced = snapshot();
    let node = Arc::make_mut(&mut unpriced.nodes[0]);
    node.labels
        .insert(labels::INSTANCE_TYPE, "ecs.of.yesterday");
    node.is_launched = true;
    let look = |snapshot: &Snapshot| {
        let text = rendered(snapshot, &pods, &costs, Timestamp::UNIX_EPOCH);
        assert!(text.contains("karpenter_nodepools_cost_total"), "{text}");
        costs.of("general")
    };

    assert_eq!(look(&priced), 0);
    assert_eq!((look(&unpriced), look(&unpriced)), (1, 1));
    assert_eq!((look(&priced), look(&unpriced)), (1, 2));
}

/// Two claims of one shape had the same series, which Prometheus refuses.
#[test]
fn nodes_on_their_way_have_no_series() {
    let mut snapshot = snapshot();
    Arc::make_mut(&mut snapshot.nodes[0]).name = None;
    snapshot.nodes.push(Arc::clone(&snapshot.nodes[0]));

    let (pods, costs) = parts();
    let text = rendered(&snapshot, &pods, &costs, Timestamp::UNIX_EPOCH);

    assert!(!text.contains("karpenter_nodes_"), "{text}");
    assert!(text.contains("karpenter_nodepools_usage"), "{text}");
}

#[test]
fn what_is_gone_has_no_series_any_more() {
    let mut snapshot = snapshot();
    snapshot.nodes.clear();

    let (pods, costs) = parts();
    let text = rendered(&snapshot, &pods, &costs, Timestamp::UNIX_EPOCH);

    assert!(!text.contains("nodes_allocatable"), "{text}");
    assert!(text.contains("nodepools_limit"), "{text}");
}
