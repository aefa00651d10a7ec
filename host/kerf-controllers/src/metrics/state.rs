//! What the cluster is like now: nodes, NodePools and pods that wait, computed when somebody asks.
//!
//! Karpenter renews these series every five seconds; here a scrape reads the cluster index, so that no series outlives
//! what it is about. Amounts are in cores for CPU and in whole units for everything else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::AtomicU64;

use jiff::Timestamp;
use kerf_core::disruption::budget::DisruptionReason;
use kerf_core::instance_type::CapacityType;
use kerf_core::labels;
use kerf_core::node::Node;
use kerf_core::node_pool::NodePool;
use kerf_core::pod::{OwnerKind, Pod, PodPhase};
use kerf_core::resources::{CPU, MEMORY, NODES, Resources};
use kerf_core::snapshot::Snapshot;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::pods::PodTimes;

/// Names and values; which ones there are depends on the node.
type Labels = Vec<(String, String)>;
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;

/// Families by metric name.
#[derive(Debug, Default)]
struct Table(BTreeMap<&'static str, (&'static str, Gauges)>);

impl Table {
    fn set(&mut self, name: &'static str, help: &'static str, labels: &Labels, value: f64) {
        let (_, family) = self
            .0
            .entry(name)
            .or_insert_with(|| (help, Gauges::default()));
        family.get_or_create(labels).set(value);
    }
}

/// The text of these series, without the mark of the end; `waiting` for those of single pods.
///
/// # Errors
/// Only when the formatter fails, which a `String` does not.
pub fn render(
    snapshot: &Snapshot,
    waiting: Option<&PodTimes>,
    now: Timestamp,
) -> Result<String, fmt::Error> {
    let mut table = Table::default();
    for node in &snapshot.nodes {
        node_series(node, now, &mut table);
    }
    utilization(snapshot, &mut table);
    for pool in &snapshot.pools {
        pool_series(pool, snapshot, &mut table);
    }
    let mut registry = Registry::default();
    let karpenter = registry.sub_registry_with_prefix("karpenter");
    for (name, (help, family)) in table.0 {
        karpenter.register(name, help, family);
    }
    if let Some(times) = waiting {
        times.register_waiting(karpenter, now);
    }
    let mut text = String::new();
    encode_registry(&mut text, &registry)?;
    Ok(text)
}

/// All series, for the reference.
#[cfg(test)]
pub(super) fn example() -> String {
    let times = PodTimes::example();
    render(&tests::snapshot(), Some(&times), Timestamp::UNIX_EPOCH).expect("a String takes it")
}

fn node_series(node: &Node, now: Timestamp, table: &mut Table) {
    let labels = node_labels(node);
    let is_daemon = |pod: &&Pod| pod.spec.owner == OwnerKind::DaemonSet;
    let pods = || {
        let pods = node.pods.iter().map(|pod| &**pod);
        pods.filter(|pod| pod.phase != PodPhase::Terminal)
    };
    let mut overhead = node.capacity.clone();
    overhead.subtract(&node.allocatable);
    let amounts = [
        (
            "nodes_allocatable",
            "What the pods of a node can use",
            node.allocatable.clone(),
        ),
        (
            "nodes_total_pod_requests",
            "What the pods of a node ask for, daemons not counted",
            requests(pods().filter(|pod| !is_daemon(pod))),
        ),
        (
            "nodes_total_daemon_requests",
            "What the daemons of a node ask for",
            requests(pods().filter(is_daemon)),
        ),
        (
            "nodes_system_overhead",
            "What system and kubelet of a node keep back",
            overhead,
        ),
    ];
    for (name, help, resources) in amounts {
        for (resource, amount) in resources.iter() {
            let mut labels = labels.clone();
            labels.push(("resource_type".to_owned(), snake(resource)));
            table.set(name, help, &labels, value_of(resource, amount));
        }
    }
    if let Some(created) = node.created_at {
        table.set(
            "nodes_current_lifetime_seconds",
            "Age of a node",
            &labels,
            now.duration_since(created).as_secs_f64(),
        );
    }
}

fn requests<'a>(pods: impl Iterator<Item = &'a Pod>) -> Resources {
    let mut total = Resources::default();
    for pod in pods {
        total.add(&pod.spec.requests);
    }
    total
}

/// The node's name, phase and owner, and every label that Karpenter knows, in snake case.
fn node_labels(node: &Node) -> Labels {
    let phase = match node {
        it if it.is_deleting => "Terminating",
        it if it.is_ready => "Running",
        _ => "Pending",
    };
    let mut found = vec![
        (
            "node_name".to_owned(),
            node.name
                .as_ref()
                .map_or_else(String::new, ToString::to_string),
        ),
        ("phase".to_owned(), phase.to_owned()),
        ("managed".to_owned(), node.is_managed().to_string()),
    ];
    for key in labels::WELL_KNOWN {
        let name = snake(key.rsplit('/').next().unwrap_or(key));
        let value = node.labels.get(*key).cloned().unwrap_or_default();
        found.push((name, value));
    }
    found
}

/// Requests over allocatable of all nodes, in percent.
fn utilization(snapshot: &Snapshot, table: &mut Table) {
    let mut asked = Resources::default();
    let mut allocatable = Resources::default();
    for node in &snapshot.nodes {
        let pods = node.pods.iter().map(|pod| &**pod);
        asked.add(&requests(
            pods.filter(|pod| pod.phase != PodPhase::Terminal),
        ));
        allocatable.add(&node.allocatable);
    }
    for resource in [CPU, MEMORY] {
        let has = value_of(resource, allocatable.amount(resource));
        if has > 0.0 {
            table.set(
                "cluster_utilization_percent",
                "What all pods ask for, in percent of what all nodes have",
                &vec![("resource_type".to_owned(), resource.to_owned())],
                value_of(resource, asked.amount(resource)) / has * 100.0,
            );
        }
    }
}

fn pool_series(pool: &NodePool, snapshot: &Snapshot, table: &mut Table) {
    let of_pool = || {
        let nodes = snapshot.nodes.iter();
        nodes.filter(|node| node.pool.as_ref() == Some(&pool.name))
    };
    let labels = |resource: &str| {
        vec![
            ("nodepool".to_owned(), pool.name.to_string()),
            ("resource_type".to_owned(), snake(resource)),
        ]
    };
    for (resource, limit) in pool.limits.iter() {
        table.set(
            "nodepools_limit",
            "What the nodes of a NodePool may have together",
            &labels(resource),
            value_of(resource, limit),
        );
    }
    let mut usage = Resources::default();
    for node in of_pool() {
        usage.add(&node.capacity);
        usage.add(&Resources::default().with(NODES, 1));
    }
    let bounded: BTreeSet<&str> = pool.limits.iter().map(|(name, _)| name).collect();
    let used: BTreeSet<&str> = usage.iter().map(|(name, _)| name).collect();
    for resource in bounded.union(&used) {
        table.set(
            "nodepools_usage",
            "What the nodes of a NodePool have together",
            &labels(resource),
            value_of(resource, usage.amount(resource)),
        );
    }
    let only_pool = vec![("nodepool".to_owned(), pool.name.to_string())];
    table.set(
        "nodepools_cost_total",
        "What the nodes of a NodePool cost per hour, as far as their prices are known",
        &only_pool,
        of_pool().filter_map(|node| price(node, pool)).sum(),
    );
    let leaving = of_pool().filter(|node| {
        node.is_managed() && node.is_initialized && (!node.is_active() || !node.is_ready)
    });
    let leaving = u32::try_from(leaving.count()).unwrap_or(u32::MAX);
    for reason in [
        DisruptionReason::Underutilized,
        DisruptionReason::Empty,
        DisruptionReason::Drifted,
    ] {
        table.set(
            "nodepools_nodes_consuming_budgets",
            "Nodes of a NodePool that are leaving or not ready, which its budgets count",
            &vec![
                ("nodepool".to_owned(), pool.name.to_string()),
                ("reason".to_owned(), reason.as_str().to_lowercase()),
            ],
            f64::from(leaving),
        );
    }
}

/// What the node costs per hour, by its labels and the catalog.
fn price(node: &Node, pool: &NodePool) -> Option<f64> {
    let label = |key: &str| node.labels.get(key).map(String::as_str);
    let name = label(labels::INSTANCE_TYPE)?;
    let capacity_type = CapacityType::parse(label(labels::CAPACITY_TYPE)?)?;
    let zone = node.zone()?;
    let instance_type = pool.instance_types.iter().find(|it| &*it.name == name)?;
    let mut offerings = instance_type.offerings.iter();
    let offering = offerings.find(|it| &*it.zone == zone && it.capacity_type == capacity_type)?;
    offering.price.per_hour()
}

/// Cores for CPU, whole units for everything else. Beyond 2^53 a digit may be lost, which no machine has.
#[expect(clippy::cast_precision_loss, reason = "see above")]
fn value_of(resource: &str, amount: i64) -> f64 {
    match resource {
        CPU => amount as f64 / 1000.0,
        _ => amount as f64,
    }
}

/// As Karpenter writes names in labels.
fn snake(name: &str) -> String {
    name.replace(['-', '/', '.'], "_").to_lowercase()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kerf_core::instance_type::{InstanceType, Offering};
    use kerf_core::pod::PodSpec;
    use kerf_core::price::Price;
    use kerf_core::resources::Limits;

    use super::*;

    const GIB: i64 = 1 << 30;

    pub(super) fn snapshot() -> Snapshot {
        let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
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
                label(labels::NODE_POOL, "general"),
                label(labels::INSTANCE_TYPE, "ecs.g7.large"),
                label(labels::ZONE, "cn-hangzhou-h"),
                label(labels::CAPACITY_TYPE, "spot"),
            ]
            .into(),
            allocatable: Resources::of(1900, 7 * GIB),
            capacity: Resources::of(2000, 8 * GIB),
            pods: vec![pod(OwnerKind::Other, 500), pod(OwnerKind::DaemonSet, 100)],
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

    #[test]
    fn a_scrape_tells_what_nodes_and_pools_have_ask_for_and_cost() {
        let now = Timestamp::from_second(90).unwrap();

        let text = render(&snapshot(), None, now).unwrap();

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
    fn what_is_gone_has_no_series_any_more() {
        let mut snapshot = snapshot();
        snapshot.nodes.clear();

        let text = render(&snapshot, None, Timestamp::UNIX_EPOCH).unwrap();

        assert!(!text.contains("nodes_allocatable"), "{text}");
        assert!(text.contains("nodepools_limit"), "{text}");
    }
}
