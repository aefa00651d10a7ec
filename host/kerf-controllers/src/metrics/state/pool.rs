//! What NodePools have, may have and cost.

use std::collections::BTreeSet;

use kerf_core::disruption::budget::DisruptionReason;
use kerf_core::node::Node;
use kerf_core::node_pool::NodePool;
use kerf_core::resources::{NODES, Resources};
use kerf_core::snapshot::Snapshot;

use super::{Table, snake, value_of};

/// The series of one NodePool. Returns the names of its nodes whose price nobody knows.
pub(super) fn series(pool: &NodePool, snapshot: &Snapshot, table: &mut Table) -> Vec<String> {
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
    budgets(pool, snapshot, table);
    // Without a catalog nothing is known of any price, and the pool says that it is not ready.
    let has_catalog = !pool.instance_types.is_empty();
    let unpriced = of_pool().filter(|node| {
        has_catalog && node.is_managed() && node.is_launched && price(node, pool).is_none()
    });
    unpriced
        .map(|node| node.display_name().to_owned())
        .collect()
}

fn budgets(pool: &NodePool, snapshot: &Snapshot, table: &mut Table) {
    let of_pool = || {
        let nodes = snapshot.nodes.iter();
        nodes.filter(|node| node.pool.as_ref() == Some(&pool.name))
    };
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
    pool.offering_of(node)?.price.per_hour()
}
