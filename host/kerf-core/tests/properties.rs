//! What holds for every plan, whatever the input: checked on random clusters by a reader that knows nothing of how
//! plans are made.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_core::instance_type::{CapacityType, InstanceType, Offering};
use kerf_core::labels::{HOSTNAME, ZONE};
use kerf_core::node::Node;
use kerf_core::node_pool::NodePool;
use kerf_core::plan::{PlacementTarget, PlannedClaim};
use kerf_core::pod::{DaemonPod, Pod, PodAffinityTerm, PodSpec, TopologySpread};
use kerf_core::price::Price;
use kerf_core::requirement::Requirement;
use kerf_core::resources::Resources;
use kerf_core::selector::{LabelSelector, Labels};
use kerf_core::{Plan, Preferences, Snapshot, WorkBudget, schedule};
use proptest::prelude::*;

const ZONES: [&str; 3] = ["h", "i", "j"];
const APPS: [&str; 3] = ["web", "db", "batch"];
const GI: i64 = 1 << 30;

fn plan(snapshot: &Snapshot) -> Plan {
    schedule(
        snapshot,
        &Preferences::none(),
        WorkBudget::ROUND,
        Timestamp::UNIX_EPOCH,
    )
}

fn instance_types() -> Vec<Arc<InstanceType>> {
    let shapes = [
        ("c.2", 2, 4, 0.09),
        ("g.2", 2, 8, 0.1),
        ("r.4", 4, 32, 0.3),
        ("g.8", 8, 32, 0.38),
        ("g.16", 16, 64, 0.8),
    ];
    let make = |(name, cores, gib, price): (&str, i64, i64, f64)| {
        let capacity = Resources::of(cores * 1000, gib * GI).with("pods", 8 * cores);
        let offerings = ZONES
            .map(|zone| Offering::new(zone, CapacityType::OnDemand, Price::from_per_hour(price)));
        let arch = Requirement::in_values("kubernetes.io/arch", ["amd64"]);
        Arc::new(InstanceType::new(
            name,
            [arch],
            capacity,
            Resources::of(100, GI / 4),
            offerings.to_vec(),
        ))
    };
    shapes.map(make).to_vec()
}

prop_compose! {
    fn pod_spec()(
        cpu in 50_i64..4000,
        mem_mib in 50_i64..9000,
        app in 0..APPS.len(),
        target in 0..APPS.len(),
        zone in prop::option::weighted(0.1, 0..ZONES.len()),
        constraint in 0..8_u8,
    ) -> PodSpec {
        let mut spec = PodSpec::requesting(cpu, mem_mib << 20);
        spec.labels.insert("app".to_owned(), APPS[app].to_owned());
        if let Some(zone) = zone {
            spec.node_selector.insert(ZONE.to_owned(), ZONES[zone].to_owned());
        }
        let selector = LabelSelector::label("app", APPS[target]);
        let term = |key: &str| PodAffinityTerm {
            topology_key: key.to_owned(),
            selector: Some(selector.clone()),
            ..PodAffinityTerm::default()
        };
        match constraint {
            0 => spec.topology_spread.push(TopologySpread::new(ZONE, 1, selector)),
            1 => spec.topology_spread.push(TopologySpread::new(HOSTNAME, 2, selector)),
            2 => spec.anti_affinity.push(term(HOSTNAME)),
            3 => spec.anti_affinity.push(term(ZONE)),
            4 => spec.affinity.push(term(ZONE)),
            _ => {}
        }
        spec
    }
}

prop_compose! {
    fn cluster()(
        specs in prop::collection::vec(pod_spec(), 1..60),
        nodes in prop::collection::vec((1_i64..16, 0..ZONES.len()), 0..5),
        cpu_limit in prop::option::of(0_i64..60_000),
        node_limit in prop::option::of(0_i64..12),
        daemon_cpu in 0_i64..400,
    ) -> Snapshot {
        let mut pool = NodePool { name: "general".into(), instance_types: Arc::new(instance_types()), ..NodePool::default() };
        if let Some(limit) = cpu_limit {
            pool.limits.set("cpu", limit);
        }
        if let Some(limit) = node_limit {
            pool.limits.set("nodes", limit);
        }
        let nodes = nodes.into_iter().enumerate().map(|(n, (cores, zone))| Arc::new(node(n, cores, ZONES[zone])));
        let pods = specs.into_iter().enumerate().map(|(n, spec)| Arc::new(Pod::new(&format!("p-{n:03}"), spec)));
        let daemon = DaemonPod {
            namespace: "kube-system".into(),
            name: "agent".into(),
            spec: Arc::new(PodSpec::requesting(daemon_cpu, 0)),
        };
        Snapshot {
            pools: vec![Arc::new(pool)],
            nodes: nodes.collect(),
            pending_pods: pods.collect(),
            daemon_pods: vec![daemon],
            ..Snapshot::default()
        }
    }
}

fn node(n: usize, cores: i64, zone: &str) -> Node {
    let name = format!("n-{n}");
    let labels = [
        (ZONE, zone),
        (HOSTNAME, &*name),
        ("kubernetes.io/arch", "amd64"),
    ];
    let resources = Resources::of(cores * 1000, cores * 4 * GI).with("pods", 20);
    Node {
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
        is_initialized: true,
        is_registered: true,
        is_ready: true,
        ..Node::default()
    }
}

fn total<'a>(pods: impl Iterator<Item = &'a Arc<Pod>>, snapshot: &Snapshot) -> Resources {
    let mut total = snapshot.daemon_pods[0].spec.requests.clone();
    for pod in pods {
        total.add(&pod.spec.requests);
    }
    total
}

/// A host of the plan: its name, its zone and the pods that the plan put there.
struct Host {
    name: String,
    zone: String,
    pods: Vec<Arc<Pod>>,
}

fn hosts(snapshot: &Snapshot, plan: &Plan) -> Vec<Host> {
    let claims = plan.new_claims.iter().enumerate().map(|(n, claim)| Host {
        name: format!("claim-{n}"),
        zone: claim.offerings[0].zone.to_string(),
        pods: claim.pods.clone(),
    });
    let nodes = snapshot.nodes.iter().map(|node| {
        let target = PlacementTarget::Node(node.name.clone().unwrap());
        let here = plan
            .placements
            .iter()
            .filter(|placement| placement.node == target);
        Host {
            name: node.display_name().to_owned(),
            zone: node.zone().unwrap().to_owned(),
            pods: here.map(|placement| Arc::clone(&placement.pod)).collect(),
        }
    });
    nodes.chain(claims).collect()
}

/// Whether claims that may still be in several zones hold no pod that a zone matters to.
fn zone_is_settled(claim: &PlannedClaim) -> bool {
    let zone = &claim.offerings[0].zone;
    claim
        .offerings
        .iter()
        .all(|offering| offering.zone == *zone)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_pod_is_in_exactly_one_place(snapshot in cluster()) {
        let plan = plan(&snapshot);
        let in_claims = plan.new_claims.iter().flat_map(|claim| &claim.pods);
        let on_nodes = plan.placements.iter().map(|placement| &placement.pod);
        let without = plan.unschedulable.iter().flat_map(|group| &group.pods);
        let mut names: Vec<&str> = in_claims.chain(on_nodes).chain(without).map(|pod| &*pod.name).collect();
        names.sort_unstable();
        let expected: Vec<&str> = snapshot.pending_pods.iter().map(|pod| &*pod.name).collect();
        prop_assert_eq!(names, expected);
    }

    #[test]
    fn nothing_is_over_allocatable(snapshot in cluster()) {
        let plan = plan(&snapshot);
        for claim in &plan.new_claims {
            let total = total(claim.pods.iter(), &snapshot);
            for offering in claim.offerings.iter() {
                prop_assert!(total.fits_in(&offering.allocatable), "{} on {}", total.cpu_milli(), offering.instance_type);
            }
        }
        for node in &snapshot.nodes {
            let target = PlacementTarget::Node(node.name.clone().unwrap());
            let here: Vec<&Arc<Pod>> =
                plan.placements.iter().filter(|it| it.node == target).map(|it| &it.pod).collect();
            prop_assert!(here.is_empty() || total(here.into_iter(), &snapshot).fits_in(&node.allocatable));
        }
    }

    #[test]
    fn limits_hold_whichever_offerings_the_claims_become(snapshot in cluster()) {
        let plan = plan(&snapshot);
        let limits = &snapshot.pools[0].limits;
        let there: i64 = snapshot.nodes.iter().map(|node| node.capacity.cpu_milli()).sum();
        let largest = |claim: &PlannedClaim| claim.offerings.iter().map(|it| it.capacity.cpu_milli()).max().unwrap_or(0);
        let planned: i64 = plan.new_claims.iter().map(largest).sum();
        if let Some(limit) = limits.bound("cpu") {
            prop_assert!(planned == 0 || there + planned <= limit, "{there} + {planned} > {limit}");
        }
        if let Some(limit) = limits.bound("nodes") {
            let nodes = i64::try_from(snapshot.nodes.len() + plan.new_claims.len()).unwrap();
            prop_assert!(plan.new_claims.is_empty() || nodes <= limit);
        }
    }

    #[test]
    fn the_order_of_the_input_does_not_matter(snapshot in cluster(), seed in any::<u64>()) {
        let mut shuffled = snapshot.clone();
        let key = |name: &str| name.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        shuffled.pending_pods.sort_by_key(|pod| key(&pod.name));
        shuffled.nodes.sort_by_key(|node| key(node.display_name()));
        let mut pool = NodePool::clone(&snapshot.pools[0]);
        pool.instance_types = Arc::new(pool.instance_types.iter().rev().cloned().collect());
        shuffled.pools = vec![Arc::new(pool)];
        prop_assert_eq!(plan(&shuffled), plan(&snapshot));
    }

    #[test]
    fn hard_topology_constraints_hold(snapshot in cluster()) {
        let plan = plan(&snapshot);
        let hosts = hosts(&snapshot, &plan);
        let owners = |host: &Host| host.pods.clone();
        for host in &hosts {
            for pod in owners(host) {
                check_anti_affinity(&pod, host, &hosts)?;
                check_affinity(&pod, host, &hosts)?;
            }
        }
        for claim in &plan.new_claims {
            let zone_matters = claim.pods.iter().any(|pod| {
                let keys = pod.spec.anti_affinity.iter().chain(&pod.spec.affinity).map(|term| &term.topology_key);
                let spreads = pod.spec.topology_spread.iter().map(|spread| &spread.topology_key);
                keys.chain(spreads).any(|key| key == ZONE)
            });
            prop_assert!(!zone_matters || zone_is_settled(claim));
        }
    }

    #[test]
    fn zones_of_a_spread_that_selects_its_own_pods_differ_by_at_most_its_skew(count in 1_usize..40, cpu in 100_i64..3000) {
        let mut spec = PodSpec::requesting(cpu, 1 << 20);
        spec.labels.insert("app".to_owned(), "web".to_owned());
        spec.topology_spread.push(TopologySpread::new(ZONE, 1, LabelSelector::label("app", "web")));
        let pods = (0..count).map(|n| Arc::new(Pod::new(&format!("p-{n:03}"), spec.clone()))).collect();
        let pool = NodePool { name: "general".into(), instance_types: Arc::new(instance_types()), ..NodePool::default() };
        let snapshot = Snapshot { pools: vec![Arc::new(pool)], pending_pods: pods, ..Snapshot::default() };

        let plan = plan(&snapshot);

        let mut zones: BTreeMap<&str, usize> = ZONES.into_iter().map(|zone| (zone, 0)).collect();
        for claim in &plan.new_claims {
            *zones.entry(&claim.offerings[0].zone).or_default() += claim.pods.len();
        }
        prop_assert_eq!(plan.unschedulable_pods(), 0);
        prop_assert!(zones.values().max().unwrap() - zones.values().min().unwrap() <= 1, "{:?}", zones);
    }
}

fn in_domain<'a>(
    key: &'a str,
    host: &'a Host,
    hosts: &'a [Host],
) -> impl Iterator<Item = &'a Arc<Pod>> {
    let same = move |other: &&Host| {
        if key == ZONE {
            other.zone == host.zone
        } else {
            other.name == host.name
        }
    };
    hosts.iter().filter(same).flat_map(|other| &other.pods)
}

fn check_anti_affinity(pod: &Arc<Pod>, host: &Host, hosts: &[Host]) -> Result<(), TestCaseError> {
    for term in &pod.spec.anti_affinity {
        let selector = term.selector.as_ref().unwrap();
        let others =
            in_domain(&term.topology_key, host, hosts).filter(|other| other.uid != pod.uid);
        let hit = others
            .into_iter()
            .find(|other| selector.matches(&other.spec.labels));
        prop_assert!(
            hit.is_none(),
            "{} is with {:?}",
            pod.name,
            hit.map(|it| &it.name)
        );
    }
    Ok(())
}

fn check_affinity(pod: &Arc<Pod>, host: &Host, hosts: &[Host]) -> Result<(), TestCaseError> {
    for term in &pod.spec.affinity {
        let selector = term.selector.as_ref().unwrap();
        let met = in_domain(&term.topology_key, host, hosts)
            .any(|other| selector.matches(&other.spec.labels));
        prop_assert!(met, "{} is without {:?}", pod.name, selector);
    }
    Ok(())
}
