//! Short forms for clusters that run.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_core::disruption::budget::{Budget, BudgetNodes};
use kerf_core::disruption::pod_budget::PodBudget;
use kerf_core::disruption::{Command, Decision, DisruptionSettings, KeptReason, decide};
use kerf_core::instance_type::{CapacityType, InstanceType, Offering};
use kerf_core::labels;
use kerf_core::node::{Drift, Node};
use kerf_core::node_pool::NodePool;
use kerf_core::pod::{OwnerKind, Pod, PodSpec};
use kerf_core::price::Price;
use kerf_core::requirement::Requirement;
use kerf_core::resources::Resources;
use kerf_core::selector::LabelSelector;
use kerf_core::{Preferences, Snapshot};

pub(crate) const GI: i64 = 1 << 30;
pub(crate) const ZONES: [&str; 3] = ["h", "i", "j"];
pub(crate) const ON_DEMAND: &[(CapacityType, f64)] = &[(CapacityType::OnDemand, 1.0)];

pub(crate) fn now() -> Timestamp {
    "2026-08-20T10:00:00Z".parse().unwrap()
}

/// A type of that many cores with 4 GiB each, at 0.1 per core times the factor, in every zone.
pub(crate) fn sold(name: &str, cores: i64, how: &[(CapacityType, f64)]) -> InstanceType {
    let price = |factor: f64| {
        let cores = f64::from(i32::try_from(cores).unwrap());
        Price::from_per_hour(0.1 * cores * factor)
    };
    let offerings = ZONES.iter().flat_map(|zone| {
        how.iter()
            .map(move |(kind, factor)| Offering::new(*zone, *kind, price(*factor)))
    });
    InstanceType::new(
        name,
        [Requirement::in_values(labels::ARCH, ["amd64"])],
        Resources::of(cores * 1000, cores * 4 * GI).with("pods", 110),
        Resources::default(),
        offerings.collect(),
    )
}

/// `general` with on-demand types `g.2`, `g.4`, `g.8`; every node may go at once.
pub(crate) fn pool() -> NodePool {
    pool_of([2, 4, 8].map(|cores| sold(&format!("g.{cores}"), cores, ON_DEMAND)))
}

pub(crate) fn pool_of(types: impl IntoIterator<Item = InstanceType>) -> NodePool {
    let mut pool = NodePool {
        name: "general".into(),
        instance_types: Arc::new(types.into_iter().map(Arc::new).collect()),
        ..NodePool::default()
    };
    pool.disruption.budgets = vec![budget(BudgetNodes::Percent(100))];
    pool
}

pub(crate) fn budget(nodes: BudgetNodes) -> Budget {
    Budget {
        nodes,
        ..Budget::default()
    }
}

/// A running pod of a ReplicaSet that asks for that many thousandths of a core and a GiB per core.
pub(crate) fn pod(name: &str, cpu_milli: i64) -> Pod {
    let spec = PodSpec {
        owner: OwnerKind::Other,
        ..PodSpec::requesting(cpu_milli, cpu_milli * GI / 1000)
    };
    Pod::new(name, spec)
}

pub(crate) fn with_spec(mut pod: Pod, change: impl FnOnce(&mut PodSpec)) -> Pod {
    let mut spec = PodSpec::clone(&pod.spec);
    change(&mut spec);
    pod.spec = Arc::new(spec);
    pod
}

/// An initialised on-demand node of `general` in zone h, a week old.
pub(crate) fn node(name: &str, instance_type: &str, pods: Vec<Pod>) -> Node {
    let cores: i64 = instance_type.split('.').nth(1).unwrap().parse().unwrap();
    let resources = Resources::of(cores * 1000, cores * 4 * GI).with("pods", 110);
    let born = now() - SignedDuration::from_hours(24 * 7);
    let node = Node {
        name: Some(name.into()),
        node_claim: Some(name.into()),
        pool: Some("general".into()),
        allocatable: resources.clone(),
        capacity: resources,
        pods: pods.into_iter().map(Arc::new).collect(),
        created_at: Some(born),
        initialized_at: Some(born),
        is_ready: true,
        is_registered: true,
        is_initialized: true,
        ..Node::default()
    };
    let own = [
        (labels::ZONE, "h"),
        (labels::HOSTNAME, name),
        (labels::NODE_POOL, "general"),
        (labels::CAPACITY_TYPE, "on-demand"),
        (labels::INSTANCE_TYPE, instance_type),
        (labels::ARCH, "amd64"),
    ];
    own.into_iter()
        .fold(node, |node, (key, value)| labelled(node, key, value))
}

pub(crate) fn labelled(mut node: Node, key: &str, value: &str) -> Node {
    node.labels.insert(key, value);
    node
}

pub(crate) fn spot(node: Node) -> Node {
    labelled(node, labels::CAPACITY_TYPE, "spot")
}

pub(crate) fn drifted(node: Node, hours: i64) -> Node {
    let drift = Drift {
        reason: "NodePoolDrifted".to_owned(),
        since: now() - SignedDuration::from_hours(hours),
    };
    Node {
        drifted: Some(drift),
        ..node
    }
}

pub(crate) fn pod_budget(name: &str, app: &str, allowed: u32) -> PodBudget {
    PodBudget {
        namespace: "default".into(),
        name: name.into(),
        selector: Some(LabelSelector::label("app", app)),
        allowed,
        blocks_fully: false,
        lets_unready_go: false,
    }
}

pub(crate) fn of_app(pod: Pod, app: &str) -> Pod {
    with_spec(pod, |spec| {
        drop(spec.labels.insert("app".to_owned(), app.to_owned()));
    })
}

pub(crate) fn snapshot(pool: NodePool, nodes: Vec<Node>) -> Snapshot {
    Snapshot {
        pools: vec![Arc::new(pool)],
        nodes: nodes.into_iter().map(Arc::new).collect(),
        ..Snapshot::default()
    }
}

pub(crate) fn decided(snapshot: &Snapshot) -> Decision {
    decided_with(snapshot, &DisruptionSettings::default())
}

pub(crate) fn decided_with(snapshot: &Snapshot, settings: &DisruptionSettings) -> Decision {
    decide(snapshot, &Preferences::none(), settings, now())
}

/// Commands as `Single: a, b -> g.2` with the types of the replacements' first offerings.
pub(crate) fn shown(decision: &Decision) -> Vec<String> {
    decision.commands.iter().map(show).collect()
}

fn show(command: &Command) -> String {
    let claims: Vec<&str> = command.claims().map(|it| &**it).collect();
    let made = command.replacements.iter().map(|it| {
        let first = &it.offerings[0];
        match first.capacity_type {
            CapacityType::OnDemand => first.instance_type.to_string(),
            other => format!("{} {other}", first.instance_type),
        }
    });
    let made: Vec<String> = made.collect();
    format!(
        "{:?}: {} -> {}",
        command.kind,
        claims.join(", "),
        made.join(", ")
    )
}

/// Why that claim stays.
pub(crate) fn kept(decision: &Decision, claim: &str) -> KeptReason {
    let mut kept = decision.kept.iter();
    let own = kept.find(|it| *it.node_claim == *claim);
    own.unwrap().reason.clone()
}
