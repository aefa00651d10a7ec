//! Four small fleets of public reports. Each must end at the fleet that was found to be the cheapest by hand.

use std::sync::Arc;

use anyhow::{Result, ensure};
use kerf_core::Snapshot;
use kerf_core::disruption::budget::{Budget, BudgetNodes};
use kerf_core::instance_type::{CapacityType, InstanceType, Offering};
use kerf_core::labels;
use kerf_core::pod::{DaemonPod, OwnerKind, Pod, PodSpec, TopologySpread};
use kerf_core::price::Price;
use kerf_core::requirement::Requirement;
use kerf_core::resources::{PODS, Resources};
use kerf_core::selector::LabelSelector;
use serde_json::{Value, json};

use super::{fleet, settle};

const GI: i64 = 1 << 30;
const ZONES: [&str; 3] = ["h", "i", "j"];

/// A fleet and what it must become.
struct Fixture {
    name: &'static str,
    snapshot: Snapshot,
    /// Price per hour in millionths.
    cheapest: u64,
    /// How many nodes that is.
    nodes: usize,
}

pub(super) fn run() -> Result<Value> {
    let mut rows = Vec::new();
    for fixture in [
        memory_bound_on_compute_types(),
        dear_large_node(),
        spread_within_a_budget(),
        twice_as_large_at_the_same_price(DAEMONS_NONE),
        twice_as_large_at_the_same_price(DAEMONS_ONE),
    ] {
        let mut snapshot = fixture.snapshot;
        let before = fleet::hourly(&snapshot);
        let outcome = settle(&mut snapshot, true, false)?;
        let after = fleet::hourly(&snapshot);
        ensure!(
            after.micros() == fixture.cheapest && snapshot.nodes.len() == fixture.nodes,
            "{}: ended at {after} on {} nodes, the cheapest is {} on {}",
            fixture.name,
            snapshot.nodes.len(),
            Price::from_micros(fixture.cheapest),
            fixture.nodes
        );
        rows.push(json!({
            "name": fixture.name,
            "hourlyBefore": before.per_hour(),
            "hourlyAfter": after.per_hour(),
            "nodesAfter": snapshot.nodes.len(),
            "commands": outcome.commands,
            "passes": outcome.passes,
        }));
    }
    Ok(json!({ "fixtures": rows }))
}

fn sold(name: &str, cores: i64, gib: i64, micros: u64) -> InstanceType {
    let offering = |zone| Offering::new(zone, CapacityType::OnDemand, Price::from_micros(micros));
    InstanceType::new(
        name,
        [Requirement::in_values(labels::ARCH, ["amd64"])],
        Resources::of(cores * 1000, gib * GI).with(PODS, 110),
        Resources::default(),
        ZONES.map(offering).to_vec(),
    )
}

fn pods(prefix: &str, count: usize, spec: &PodSpec) -> Vec<Arc<Pod>> {
    let spec = PodSpec {
        owner: OwnerKind::Other,
        ..spec.clone()
    };
    let pod = |n| Arc::new(Pod::new(&format!("{prefix}-{n}"), spec.clone()));
    (0..count).map(pod).collect()
}

fn node(name: &str, it: &InstanceType, zone: &str, pods: Vec<Arc<Pod>>) -> kerf_core::node::Node {
    fleet::new_node(
        name,
        (&it.name, zone),
        CapacityType::OnDemand,
        it.allocatable(),
        pods,
    )
}

/// Eight c nodes of 4 vCPU and 8 GiB, full by memory at 30 % of their cpu, at 1.36: 32 pods, 9.6 cores and 64 GiB. An r
/// node of 8 vCPU holds 26 of them (0.5, and what is left needs 0.34 more), two m nodes of 8 vCPU all (0.84), one m node
/// of 16 vCPU and 64 GiB all for 0.8.
fn memory_bound_on_compute_types() -> Fixture {
    let compute = sold("c.x", 4, 8, 170_000);
    let types = vec![
        compute.clone(),
        sold("m.2x", 8, 32, 420_000),
        sold("m.4x", 16, 64, 800_000),
        sold("r.2x", 8, 64, 500_000),
    ];
    // Four pods of 0.3 cores and 2 GiB each fill a node's memory.
    let spec = PodSpec::requesting(300, 2 * GI);
    let nodes = (0..8)
        .map(|n| {
            node(
                &format!("c-{n}"),
                &compute,
                "h",
                pods(&format!("p{n}"), 4, &spec),
            )
        })
        .collect();
    Fixture {
        name: "memory-bound pods on compute types",
        snapshot: fleet::snapshot(fleet::pool(types), nodes),
        cheapest: 800_000,
        nodes: 1,
    }
}

/// One node of 8 vCPU that costs more than two of 4 vCPU, which hold its pods.
fn dear_large_node() -> Fixture {
    let large = sold("g.8", 8, 32, 1_000_000);
    let types = vec![large.clone(), sold("g.4", 4, 16, 300_000)];
    let spec = PodSpec::requesting(1900, 7 * GI);
    let nodes = vec![node("large", &large, "h", pods("p", 4, &spec))];
    Fixture {
        name: "a dear node whose pods fit two cheaper ones",
        snapshot: fleet::snapshot(fleet::pool(types), nodes),
        cheapest: 600_000,
        nodes: 2,
    }
}

/// Six nodes over three zones, each a third full, with a spread over zones and a budget of half of them: three stay.
fn spread_within_a_budget() -> Fixture {
    let it = sold("g.6", 6, 24, 600_000);
    let mut spec = PodSpec::requesting(2000, 2 * GI);
    spec.labels.insert("app".to_owned(), "web".to_owned());
    let selector = LabelSelector::label("app", "web");
    spec.topology_spread
        .push(TopologySpread::new(labels::ZONE, 1, selector));
    let nodes = (0..6)
        .map(|n| {
            node(
                &format!("n-{n}"),
                &it,
                ZONES[n % 3],
                pods(&format!("p{n}"), 1, &spec),
            )
        })
        .collect();
    let mut pool = fleet::pool(vec![it]);
    pool.disruption.budgets = vec![Budget {
        nodes: BudgetNodes::Percent(50),
        ..Budget::default()
    }];
    Fixture {
        name: "third-full nodes with a spread and a budget",
        snapshot: fleet::snapshot(pool, nodes),
        cheapest: 1_800_000,
        nodes: 3,
    }
}

const DAEMONS_NONE: usize = 0;
const DAEMONS_ONE: usize = 1;

/// Two full nodes, and a type twice as large for twice the price. Nothing is gained by it unless daemons are saved.
fn twice_as_large_at_the_same_price(daemons: usize) -> Fixture {
    let small = sold("g.4", 4, 16, 400_000);
    let types = vec![small.clone(), sold("g.8", 8, 32, 800_000)];
    let spec = PodSpec::requesting(3500, 14 * GI);
    let daemon = PodSpec {
        owner: OwnerKind::DaemonSet,
        ..PodSpec::requesting(100, GI / 10)
    };
    let nodes = (0..2)
        .map(|n| {
            let mut all = pods(&format!("p{n}"), 1, &spec);
            all.extend((0..daemons).map(|_| Arc::new(Pod::new(&format!("d{n}"), daemon.clone()))));
            node(&format!("n-{n}"), &small, "h", all)
        })
        .collect();
    let (name, nodes_after) = match daemons {
        DAEMONS_NONE => ("two nodes and one twice as large at the same price", 2),
        _ => ("the same with daemons, which one node runs once", 1),
    };
    let mut snapshot = fleet::snapshot(fleet::pool(types), nodes);
    snapshot.daemon_pods.extend((0..daemons).map(|_| DaemonPod {
        namespace: Arc::from("kube-system"),
        name: Arc::from("agent"),
        spec: Arc::new(daemon.clone()),
    }));
    Fixture {
        name,
        snapshot,
        cheapest: 800_000,
        nodes: nodes_after,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn fleets_of_public_reports_end_at_the_cheapest() {
        super::run().unwrap();
    }
}
