//! A planned claim as the node that it becomes.

use std::sync::Arc;

use jiff::Timestamp;
use kerf_core::instance_type::InstanceType;
use kerf_core::labels;
use kerf_core::node::{Node, Replaced};
use kerf_core::node_pool::NodePool;
use kerf_core::plan::PlannedClaim;
use kerf_core::requirements::Requirements;
use kerf_core::selector::Labels;

/// The claim as the index shows one that was just created, bound for its first offering.
pub(crate) fn on_its_way(
    name: &str,
    claim: &PlannedClaim,
    pools: &[Arc<NodePool>],
    now: Timestamp,
) -> Node {
    let first = claim.offerings.first();
    let mut node_labels = claim.labels.clone();
    if let Some(first) = first {
        let pool = pools.iter().find(|pool| pool.name == claim.pool);
        let types = pool.into_iter().flat_map(|pool| pool.instance_types.iter());
        let mut types = types.filter(|it| it.name == first.instance_type);
        let of_type = types.next().map(|it: &Arc<InstanceType>| &it.requirements);
        node_labels.insert(labels::ZONE.to_owned(), first.zone.to_string());
        let capacity_type = first.capacity_type.as_str().to_owned();
        node_labels.insert(labels::CAPACITY_TYPE.to_owned(), capacity_type);
        add_single_values(&mut node_labels, of_type);
    }
    add_single_values(&mut node_labels, Some(&claim.requirements));
    let replaced = claim.annotations.get(labels::REPLACED);
    Node {
        node_claim: Some(name.into()),
        pool: Some(claim.pool.clone()),
        labels: node_labels.into(),
        taints: claim.taints.clone(),
        startup_taints: claim.startup_taints.clone(),
        allocatable: first.map(|it| it.allocatable.clone()).unwrap_or_default(),
        capacity: first.map(|it| it.capacity.clone()).unwrap_or_default(),
        created_at: Some(now),
        termination_grace_period: claim.termination_grace_period,
        replaced: replaced.map_or_else(Vec::new, |text| Replaced::parse_all(text)),
        ..Node::default()
    }
}

/// A requirement that leaves one value is a label of the node.
fn add_single_values(node_labels: &mut Labels, requirements: Option<&Requirements>) {
    for requirement in requirements.into_iter().flat_map(Requirements::iter) {
        if let Some(value) = requirement.single_value() {
            node_labels
                .entry(requirement.key().to_owned())
                .or_insert_with(|| value.to_owned());
        }
    }
}
