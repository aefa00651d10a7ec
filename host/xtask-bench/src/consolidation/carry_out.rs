//! Commands carried out on a snapshot at once: replacements become nodes, displaced pods go where they were promised.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use kerf_core::Snapshot;
use kerf_core::disruption::Command;
use kerf_core::disruption::command::PromisedPlace;
use kerf_core::labels;
use kerf_core::node::{Node, Replaced};
use kerf_core::plan::{PlacementTarget, PlannedClaim};
use kerf_core::pod::Pod;
use kerf_core::resources::Resources;

use super::{fleet, now};

/// Carries all of them out, and checks that nothing is lost and no node is overfull.
pub(super) fn all(snapshot: &mut Snapshot, commands: &[Command], turn: u32) -> Result<()> {
    if commands.is_empty() {
        return Ok(());
    }
    let pods_before: usize = snapshot.nodes.iter().map(|node| node.pods.len()).sum();
    let going: BTreeSet<&str> = commands
        .iter()
        .flat_map(Command::claims)
        .map(|it| &**it)
        .collect();
    let mut arriving: BTreeMap<String, Vec<Arc<Pod>>> = BTreeMap::new();
    let mut made = Vec::new();
    for command in commands {
        let mut names = Vec::new();
        for replacement in &command.replacements {
            let name = format!("new-{turn:03}-{:05}", made.len());
            made.push(node_of(&name, replacement)?);
            names.push(name);
        }
        for promise in &command.promises {
            let target = match &promise.place {
                PromisedPlace::Node(PlacementTarget::Node(name)) => name.to_string(),
                PromisedPlace::Node(PlacementTarget::InFlight(name)) => name.to_string(),
                PromisedPlace::Replacement(idx) => names[*idx].clone(),
            };
            arriving
                .entry(target)
                .or_default()
                .push(Arc::clone(&promise.pod));
        }
    }
    let staying = snapshot.nodes.iter().filter(|node| {
        let claim = node.node_claim.as_deref();
        claim.is_none_or(|claim| !going.contains(claim))
    });
    let mut nodes: Vec<Arc<Node>> = Vec::new();
    for node in staying.cloned().chain(made.into_iter().map(Arc::new)) {
        let arrivals = arriving.remove(node.display_name());
        nodes.push(match arrivals {
            Some(pods) => Arc::new(with_pods(&node, pods)?),
            None => node,
        });
    }
    ensure!(
        arriving.is_empty(),
        "pods were promised places on nodes that are gone"
    );
    let daemons = |nodes: &[Arc<Node>]| -> usize {
        nodes
            .iter()
            .flat_map(|node| &node.pods)
            .filter(|pod| pod.is_reschedulable())
            .count()
    };
    let (before, after) = (daemons(&snapshot.nodes), daemons(&nodes));
    ensure!(
        before == after,
        "{before} of {pods_before} pods had to move, {after} are there"
    );
    snapshot.nodes = nodes;
    Ok(())
}

pub(super) fn with_pods(node: &Node, pods: Vec<Arc<Pod>>) -> Result<Node> {
    let mut node = node.clone();
    node.pods.extend(pods);
    let mut used = Resources::default();
    for pod in &node.pods {
        used.add(&pod.spec.requests);
    }
    ensure!(
        used.fits_in(&node.allocatable),
        "{} is overfull",
        node.display_name()
    );
    Ok(node)
}

pub(super) fn node_of(name: &str, planned: &PlannedClaim) -> Result<Node> {
    let first = planned
        .offerings
        .first()
        .context("a replacement has no offering")?;
    let place = (first.instance_type.as_str(), first.zone.as_str());
    let node = fleet::new_node(
        name,
        place,
        first.capacity_type,
        first.allocatable.clone(),
        Vec::new(),
    );
    let replaced = planned.annotations.get(labels::REPLACED);
    Ok(Node {
        created_at: Some(now()),
        replaced: replaced.map_or_else(Vec::new, |it| Replaced::parse_all(it)),
        ..node
    })
}
