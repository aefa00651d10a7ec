//! The fleet: one on-demand NodePool of upstream's made-up types, its nodes and their pods.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use kerf_core::Snapshot;
use kerf_core::disruption::budget::{Budget, BudgetNodes};
use kerf_core::instance_type::{CapacityType, InstanceType};
use kerf_core::labels;
use kerf_core::node::Node;
use kerf_core::node_pool::{NodePool, NodeTemplate};
use kerf_core::pod::{OwnerKind, Pod, PodSpec};
use kerf_core::price::Price;
use kerf_core::requirement::Requirement;
use kerf_core::resources::{PODS, Resources};
use serde_json::Value;

use crate::dice::Dice;
use crate::scheduling::world::fake_type;

pub(super) const POOL: &str = "default";
const MEBIBYTE: i64 = 1 << 20;
/// How full nodes are in their scarcest resource, give or take, in thousandths. As upstream's program draws.
const FILL: i64 = 350;
const FILL_SPREAD: i64 = 100;
const CPU_MILLI: [i64; 5] = [100, 250, 500, 1000, 1500];
const MEMORY_MIB: [i64; 6] = [100, 256, 512, 1024, 2048, 4096];
/// Where upstream's fake provider sells on demand.
const ZONES: [&str; 3] = ["test-zone-1", "test-zone-2", "test-zone-3"];

/// Reads what `upstream consolidate --export` wrote.
pub(super) fn read(path: &Path, types: u32) -> Result<Snapshot> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let file: Value = serde_json::from_str(&text).with_context(|| format!("{shown} is no JSON"))?;
    let mut specs: BTreeMap<(i64, i64), Arc<PodSpec>> = BTreeMap::new();
    let mut nodes = Vec::new();
    for node in file["nodes"]
        .as_array()
        .with_context(|| format!("{shown} has no nodes"))?
    {
        let resources = Resources::of(
            number(node, "cpuMilli")?,
            number(node, "memoryMiB")? * MEBIBYTE,
        )
        .with(PODS, number(node, "maxPods")?);
        let mut pods = Vec::new();
        for pod in node["pods"].as_array().into_iter().flatten() {
            let size = (number(pod, "cpuMilli")?, number(pod, "memoryMiB")?);
            pods.push(running(
                text_of(pod, "name")?,
                text_of(pod, "uid")?,
                size,
                &mut specs,
            ));
        }
        let place = (text_of(node, "type")?, text_of(node, "zone")?);
        nodes.push(new_node(
            text_of(node, "name")?,
            place,
            CapacityType::OnDemand,
            resources,
            pods,
        ));
    }
    ensure!(!nodes.is_empty(), "{shown} has no nodes");
    Ok(snapshot(pool((1..=types).map(fake_type).collect()), nodes))
}

/// Draws pods for each node, and takes the smallest type on which they leave the drawn slack.
pub(super) fn draw(count: usize, pods_per_node: usize, seed: u64, types: u32) -> Result<Snapshot> {
    let mut dice = Dice::new(seed);
    let types: Vec<InstanceType> = (1..=types).map(fake_type).collect();
    let mut specs = BTreeMap::new();
    let mut nodes = Vec::new();
    for idx in 0..count {
        let sizes: Vec<(i64, i64)> = (0..pods_per_node)
            .map(|_| (pick(&mut dice, &CPU_MILLI), pick(&mut dice, &MEMORY_MIB)))
            .collect();
        let fill = FILL + dice.between(-FILL_SPREAD, FILL_SPREAD);
        let cpu: i64 = sizes.iter().map(|(cpu, _)| cpu).sum();
        let mem: i64 = sizes.iter().map(|(_, mem)| mem * MEBIBYTE).sum();
        let wanted = Resources::of(cpu * 1000 / fill, mem / fill * 1000)
            .with(PODS, i64::try_from(pods_per_node)?);
        let instance_type = types.iter().find(|it| wanted.fits_in(&it.allocatable()));
        let instance_type =
            instance_type.context("no type is large enough for the pods of a node")?;
        let zone = ZONES[usize::try_from(dice.between(0, 2))?];
        let pods = sizes.iter().enumerate().map(|(pod, size)| {
            let name = format!("pod-{idx:05}-{pod:03}");
            running(&name, &name, *size, &mut specs)
        });
        let pods = pods.collect();
        let place = (instance_type.name.as_str(), zone);
        let name = format!("node-{idx:05}");
        nodes.push(new_node(
            &name,
            place,
            CapacityType::OnDemand,
            instance_type.allocatable(),
            pods,
        ));
    }
    Ok(snapshot(pool(types), nodes))
}

fn pick(dice: &mut Dice, from: &[i64]) -> i64 {
    let last = i64::try_from(from.len()).unwrap_or(1) - 1;
    from[usize::try_from(dice.between(0, last)).unwrap_or(0)]
}

pub(super) fn pool(types: Vec<InstanceType>) -> NodePool {
    let on_demand = Requirement::in_values(labels::CAPACITY_TYPE, ["on-demand"]);
    let mut pool = NodePool {
        name: POOL.into(),
        template: NodeTemplate {
            requirements: [on_demand].into_iter().collect(),
            ..NodeTemplate::default()
        },
        instance_types: Arc::new(types.into_iter().map(Arc::new).collect()),
        ..NodePool::default()
    };
    pool.disruption.budgets = vec![Budget {
        nodes: BudgetNodes::Percent(100),
        ..Budget::default()
    }];
    pool
}

pub(super) fn snapshot(pool: NodePool, nodes: Vec<Node>) -> Snapshot {
    Snapshot {
        pools: vec![Arc::new(pool)],
        nodes: nodes.into_iter().map(Arc::new).collect(),
        ..Snapshot::default()
    }
}

fn running(
    name: &str,
    uid: &str,
    (cpu, mem): (i64, i64),
    specs: &mut BTreeMap<(i64, i64), Arc<PodSpec>>,
) -> Arc<Pod> {
    let spec = specs.entry((cpu, mem)).or_insert_with(|| {
        Arc::new(PodSpec {
            owner: OwnerKind::Other,
            ..PodSpec::requesting(cpu, mem * MEBIBYTE)
        })
    });
    Arc::new(Pod {
        uid: uid.into(),
        spec: Arc::clone(spec),
        ..Pod::new(name, PodSpec::default())
    })
}

/// An initialised node of the pool.
pub(super) fn new_node(
    name: &str,
    (instance_type, zone): (&str, &str),
    capacity_type: CapacityType,
    resources: Resources,
    pods: Vec<Arc<Pod>>,
) -> Node {
    let node_labels = [
        (labels::NODE_POOL, POOL),
        (labels::REGISTERED, "true"),
        (labels::INITIALIZED, "true"),
        (labels::CAPACITY_TYPE, capacity_type.as_str()),
        (labels::ZONE, zone),
        (labels::INSTANCE_TYPE, instance_type),
        (labels::ARCH, "amd64"),
        (labels::OS, "linux"),
        (labels::HOSTNAME, name),
    ];
    Node {
        name: Some(name.into()),
        node_claim: Some(name.into()),
        pool: Some(POOL.into()),
        labels: node_labels.into_iter().collect(),
        allocatable: resources.clone(),
        capacity: resources,
        pods: pods.into(),
        created_at: Some(Timestamp::UNIX_EPOCH),
        initialized_at: Some(Timestamp::UNIX_EPOCH),
        is_ready: true,
        is_registered: true,
        is_initialized: true,
        ..Node::default()
    }
}

/// What all nodes cost.
pub(super) fn hourly(snapshot: &Snapshot) -> Price {
    snapshot
        .nodes
        .iter()
        .map(|node| price(snapshot, node))
        .sum()
}

pub(super) fn price(snapshot: &Snapshot, node: &Node) -> Price {
    let mut pools = snapshot.pools.iter();
    let offering = pools.find_map(|pool| pool.offering_of(node));
    offering.map_or(Price::UNKNOWN, |it| it.price)
}

fn number(object: &Value, field: &str) -> Result<i64> {
    object[field]
        .as_i64()
        .with_context(|| format!("{field} is no whole number"))
}

fn text_of<'a>(object: &'a Value, field: &str) -> Result<&'a str> {
    object[field]
        .as_str()
        .with_context(|| format!("{field} is no text"))
}
