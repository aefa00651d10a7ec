//! The cluster around the pods: empty, with one NodePool.

use std::sync::Arc;

use kerf_core::Snapshot;
use kerf_core::instance_type::{CapacityType, InstanceType, Offering};
use kerf_core::labels;
use kerf_core::node_pool::{NodePool, NodeTemplate};
use kerf_core::pod::Pod;
use kerf_core::price::Price;
use kerf_core::requirement::Requirement;
use kerf_core::resources::{CPU, Limits, MEMORY, PODS, Resources};

const GIBIBYTE: i64 = 1 << 30;
const MEBIBYTE: i64 = 1 << 20;

/// Limits that upstream's benchmark sets so high that they are never met.
const LIMIT_CPU_MILLI: i64 = 10_000_000_000;
const LIMIT_MEMORY: i64 = 10_000_000 * GIBIBYTE;

/// Where upstream's fake provider sells each type, and how.
const FAKE_OFFERINGS: [(&str, CapacityType); 5] = [
    ("test-zone-1", CapacityType::Spot),
    ("test-zone-2", CapacityType::Spot),
    ("test-zone-1", CapacityType::OnDemand),
    ("test-zone-2", CapacityType::OnDemand),
    ("test-zone-3", CapacityType::OnDemand),
];

/// Upstream's benchmark: made-up types, huge limits.
pub(super) fn of_upstream(types: u32, pods: Vec<Arc<Pod>>) -> Snapshot {
    let mut limits = Limits::default();
    limits.set(CPU, LIMIT_CPU_MILLI);
    limits.set(MEMORY, LIMIT_MEMORY);
    snapshot(
        NodePool {
            limits,
            instance_types: Arc::new((1..=types).map(|size| Arc::new(fake_type(size))).collect()),
            ..NodePool::default()
        },
        pods,
    )
}

/// The catalog's types without limits.
pub(super) fn of_catalog(
    types: Vec<Arc<InstanceType>>,
    pods: Vec<Arc<Pod>>,
    any_arch: bool,
) -> Snapshot {
    let amd64 = (!any_arch).then(|| Requirement::in_values(labels::ARCH, ["amd64"]));
    snapshot(
        NodePool {
            template: NodeTemplate {
                requirements: amd64.into_iter().collect(),
                ..NodeTemplate::default()
            },
            instance_types: Arc::new(types),
            ..NodePool::default()
        },
        pods,
    )
}

fn snapshot(pool: NodePool, pending_pods: Vec<Arc<Pod>>) -> Snapshot {
    let pool = NodePool {
        name: "general".into(),
        ..pool
    };
    Snapshot {
        pools: vec![Arc::new(pool)],
        pending_pods,
        ..Snapshot::default()
    }
}

/// `size` vCPUs with 2 GiB and 10 pods each, at 0.1 per vCPU and per 10^9 bytes, spot as dear as on-demand.
pub(crate) fn fake_type(size: u32) -> InstanceType {
    let size = i64::from(size);
    let memory = 2 * size * GIBIBYTE;
    // In millionths: 0.1 per vCPU, and 0.1 per 10^9 bytes is one per 10^4.
    let micros = (size * 100_000 + memory / 10_000).unsigned_abs();
    let offerings = FAKE_OFFERINGS.map(|(zone, capacity_type)| {
        Offering::new(zone, capacity_type, Price::from_micros(micros))
    });
    InstanceType::new(
        format!("fake-it-{}", size - 1),
        [
            Requirement::in_values(labels::ARCH, ["amd64"]),
            Requirement::in_values(labels::OS, ["linux", "windows", "darwin"]),
        ],
        Resources::of(size * 1000, memory).with(PODS, 10 * size),
        Resources::of(100, 10 * MEBIBYTE),
        offerings.into(),
    )
}
