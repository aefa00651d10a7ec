//! Random clusters with every kind of constraint.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_core::Snapshot;
use kerf_core::instance_type::{CapacityType, InstanceType, Offering};
use kerf_core::labels::{HOSTNAME, NODE_POOL, ZONE};
use kerf_core::node::Node;
use kerf_core::node_pool::NodePool;
use kerf_core::pod::{
    DaemonPod, HostPort, NodeInclusionPolicy, Pod, PodAffinityTerm, PodSpec, Protocol,
    TopologySpread, Weighted, WhenUnsatisfiable,
};
use kerf_core::price::Price;
use kerf_core::requirement::{Operator, Requirement};
use kerf_core::resources::Resources;
use kerf_core::selector::{LabelSelector, Labels};
use kerf_core::taint::{Taint, TaintEffect, Toleration, TolerationOperator};
use proptest::prelude::*;

const ZONES: [&str; 3] = ["h", "i", "j"];
const APPS: [&str; 3] = ["web", "db", "batch"];
const KEYS: [&str; 3] = [ZONE, HOSTNAME, "example.com/team"];
const NAMESPACES: [&str; 2] = ["default", "other"];
const GI: i64 = 1 << 30;
const TEAM_TAINT: &str = "example.com/dedicated";

fn instance_type(
    (name, cores, gib, price): (&str, i64, i64, f64),
    zones: &[&str],
) -> Arc<InstanceType> {
    let capacity = Resources::of(cores * 1000, gib * GI).with("pods", 8 * cores);
    let offer =
        |zone: &&str| Offering::new(*zone, CapacityType::OnDemand, Price::from_per_hour(price));
    let arch = Requirement::in_values("kubernetes.io/arch", ["amd64"]);
    let offerings = zones.iter().map(offer).collect();
    Arc::new(InstanceType::new(
        name,
        [arch],
        capacity,
        Resources::of(100, GI / 4),
        offerings,
    ))
}

fn general(zones: usize) -> NodePool {
    let shapes = [
        ("c.2", 2, 4, 0.09),
        ("g.2", 2, 8, 0.1),
        ("r.4", 4, 32, 0.3),
        ("g.16", 16, 64, 0.8),
    ];
    let instance_types = shapes
        .map(|shape| instance_type(shape, &ZONES[..zones]))
        .to_vec();
    NodePool {
        name: "general".into(),
        instance_types: Arc::new(instance_types),
        ..NodePool::default()
    }
}

/// A pool of another team: tainted, labelled, and in a zone of its own too.
fn dedicated() -> NodePool {
    let instance_types = vec![instance_type(("c.8", 8, 16, 0.3), &["j", "k"])];
    let mut pool = NodePool {
        name: "dedicated".into(),
        instance_types: Arc::new(instance_types),
        ..NodePool::default()
    };
    pool.template
        .labels
        .insert("example.com/team".to_owned(), "x".to_owned());
    pool.template
        .taints
        .push(Taint::new(TEAM_TAINT, TaintEffect::NoSchedule));
    pool
}

prop_compose! {
    fn term()(key in 0..4_usize, app in 0..APPS.len(), all_namespaces in prop::bool::weighted(0.2)) -> PodAffinityTerm {
        PodAffinityTerm {
            // Hostname and zone are far more common than anything else.
            topology_key: KEYS.get(key).copied().unwrap_or(ZONE).to_owned(),
            selector: Some(LabelSelector::label("app", APPS[app])),
            namespace_selector: all_namespaces.then(LabelSelector::default),
            ..PodAffinityTerm::default()
        }
    }
}

prop_compose! {
    fn spread()(
        term in term(),
        max_skew in 1_u32..3,
        min_domains in prop::option::weighted(0.2, 1_u32..5),
        is_hard in prop::bool::weighted(0.8),
        ignores_affinity in prop::bool::weighted(0.2),
        honours_taints in prop::bool::weighted(0.3),
        by_revision in prop::bool::weighted(0.2),
    ) -> TopologySpread {
        let mut spread = TopologySpread::new(&term.topology_key, max_skew, term.selector.unwrap());
        spread.min_domains = min_domains.filter(|_| is_hard);
        if !is_hard {
            spread.when_unsatisfiable = WhenUnsatisfiable::ScheduleAnyway;
        }
        if ignores_affinity {
            spread.node_affinity_policy = NodeInclusionPolicy::Ignore;
        }
        if honours_taints {
            spread.node_taints_policy = NodeInclusionPolicy::Honor;
        }
        if by_revision {
            spread.match_label_keys.push("revision".to_owned());
        }
        spread
    }
}

fn node_term() -> impl Strategy<Value = kerf_core::requirements::Requirements> {
    (0..3_u8, 0..ZONES.len()).prop_map(|(kind, zone)| {
        let requirement = match kind {
            0 => Requirement::in_values(ZONE, [ZONES[zone]]),
            1 => Requirement::parse(ZONE, Operator::NotIn, [ZONES[zone]]).unwrap(),
            _ => Requirement::parse("example.com/team", Operator::NotIn, ["x"]).unwrap(),
        };
        [requirement].into_iter().collect()
    })
}

prop_compose! {
    fn soft()(affinity in prop::option::weighted(0.1, term()), anti in prop::option::weighted(0.1, term())) -> PodSpec {
        let weigh = |term| Weighted { weight: 10, term };
        PodSpec {
            preferred_affinity: affinity.map(weigh).into_iter().collect(),
            preferred_anti_affinity: anti.map(weigh).into_iter().collect(),
            ..PodSpec::default()
        }
    }
}

prop_compose! {
    fn spec()(
        soft in soft(),
        size in (50_i64..3000, 50_i64..6000),
        app in 0..APPS.len(),
        revision in 0..2_u8,
        node_terms in prop::collection::vec(node_term(), 0..3),
        selects_nodes in prop::bool::weighted(0.25),
        tolerates in prop::bool::weighted(0.3),
        port in prop::option::weighted(0.1, 80_u16..82),
        spreads in prop::collection::vec(spread(), 0..2),
        affinity in prop::option::weighted(0.15, term()),
        anti_affinity in prop::option::weighted(0.2, term()),
    ) -> PodSpec {
        let labels = [("app".to_owned(), APPS[app].to_owned()), ("revision".to_owned(), revision.to_string())];
        let tolerations = tolerates.then(|| Toleration {
            key: Some(TEAM_TAINT.to_owned()),
            operator: TolerationOperator::Exists,
            value: String::new(),
            effect: None,
        });
        PodSpec {
            labels: labels.into_iter().collect(),
            requests: PodSpec::requesting(size.0, size.1 << 20).requests,
            required_node_terms: if selects_nodes { node_terms } else { Vec::new() },
            tolerations: tolerations.into_iter().collect(),
            host_ports: port.map(|port| HostPort { ip: None, port, protocol: Protocol::Tcp }).into_iter().collect(),
            topology_spread: spreads,
            affinity: affinity.into_iter().collect(),
            anti_affinity: anti_affinity.into_iter().collect(),
            ..soft
        }
    }
}

fn pods(
    prefix: &'static str,
    count: std::ops::Range<usize>,
) -> impl Strategy<Value = Vec<Arc<Pod>>> {
    // Few specs and many pods, as workloads are.
    let specs = prop::collection::vec((spec(), 0..NAMESPACES.len()), 1..6);
    (
        specs,
        prop::collection::vec(any::<prop::sample::Index>(), count),
    )
        .prop_map(move |(specs, picks)| {
            let shared: Vec<(Arc<PodSpec>, &str)> = specs
                .into_iter()
                .map(|(spec, namespace)| (Arc::new(spec), NAMESPACES[namespace]))
                .collect();
            let pod = |(n, pick): (usize, prop::sample::Index)| {
                let (spec, namespace) = pick.get(&shared).clone();
                let namespace: Arc<str> = namespace.into();
                Arc::new(Pod {
                    namespace,
                    spec,
                    ..Pod::new(&format!("{prefix}-{n:03}"), PodSpec::default())
                })
            };
            picks.into_iter().enumerate().map(pod).collect()
        })
}

fn node(n: usize, cores: i64, zone: &str, pods: Vec<Arc<Pod>>) -> Arc<Node> {
    let name = format!("n-{n}");
    let labels = [
        (ZONE, zone),
        (HOSTNAME, &*name),
        (NODE_POOL, "general"),
        ("kubernetes.io/arch", "amd64"),
    ];
    let resources = Resources::of(cores * 1000, cores * 4 * GI).with("pods", 30);
    Arc::new(Node {
        name: Some(name.as_str().into()),
        node_claim: Some(name.as_str().into()),
        pool: Some("general".into()),
        labels: labels
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into_iter()
            .collect::<Labels>()
            .into(),
        allocatable: resources.clone(),
        capacity: resources,
        pods: pods.into(),
        is_initialized: true,
        is_registered: true,
        is_ready: true,
        ..Node::default()
    })
}

pub(crate) fn snapshot() -> impl Strategy<Value = Snapshot> {
    let nodes = prop::collection::vec((2_i64..20, 0..ZONES.len()), 0..4);
    let bound = pods("old", 0..6);
    (pods("p", 1..40), nodes, bound, 0_i64..300, 1..=ZONES.len()).prop_map(
        |(pending, nodes, bound, daemon_cpu, zones)| {
            let mut on_node: BTreeMap<usize, Vec<Arc<Pod>>> = BTreeMap::new();
            for (n, pod) in bound.into_iter().enumerate().filter(|_| !nodes.is_empty()) {
                on_node.entry(n % nodes.len()).or_default().push(pod);
            }
            let nodes = nodes.into_iter().enumerate();
            let nodes = nodes.map(|(n, (cores, zone))| {
                node(
                    n,
                    cores,
                    ZONES[zone],
                    on_node.remove(&n).unwrap_or_default(),
                )
            });
            let daemon = DaemonPod {
                namespace: "kube-system".into(),
                name: "agent".into(),
                spec: Arc::new(PodSpec {
                    tolerations: vec![Toleration::every(TaintEffect::NoSchedule)],
                    ..PodSpec::requesting(daemon_cpu, 0)
                }),
            };
            Snapshot {
                pools: vec![Arc::new(general(zones)), Arc::new(dedicated())],
                nodes: nodes.collect(),
                pending_pods: pending,
                daemon_pods: vec![daemon],
                ..Snapshot::default()
            }
        },
    )
}
