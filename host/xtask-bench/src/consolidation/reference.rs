//! Upstream's consolidation, written down plainly: the largest prefix of one sorted list whose pods fit with at most one
//! new, cheaper node, found by bisection; else the first single node of which that is true; one command a pass.
//!
//! It plans with the whole scheduler each time, as upstream does, and so is slow: it is here to be compared with.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use kerf_core::node::Node;
use kerf_core::plan::{PlacementTarget, PlannedClaim};
use kerf_core::price::Price;
use kerf_core::{Plan, Preferences, Snapshot, WorkBudget, schedule};
use serde_json::{Value, json};

use super::{carry_out, fleet, now};

/// Upstream's limit on nodes of one command.
const PREFIX_MAX: usize = 100;

/// Runs it to its fixed point.
pub(super) fn settle(mut snapshot: Snapshot) -> Result<Value> {
    let started = Instant::now();
    let mut commands = 0;
    while let Some((removed, plan)) = command(&snapshot) {
        carry_out(&mut snapshot, &removed, &plan, commands)?;
        commands += 1;
    }
    Ok(json!({
        "seconds": started.elapsed().as_secs_f64(),
        "commands": commands,
        "hourlyAfter": fleet::hourly(&snapshot).per_hour(),
        "nodesAfter": snapshot.nodes.len(),
    }))
}

fn command(snapshot: &Snapshot) -> Option<(Vec<usize>, Plan)> {
    let mut candidates: Vec<usize> = (0..snapshot.nodes.len()).collect();
    // Pods are alike in priority here, so the cost of moving them is their number.
    let worth = |idx: &usize| {
        let node = &snapshot.nodes[*idx];
        let pods = u64::try_from(node.pods.len()).unwrap_or(u64::MAX);
        fleet::price(snapshot, node).micros() / (1 + pods)
    };
    candidates.sort_by_key(|idx| (std::cmp::Reverse(worth(idx)), *idx));
    multi(snapshot, &candidates).or_else(|| {
        let mut singles = candidates.iter().map(|idx| vec![*idx]);
        singles.find_map(|set| Some((set.clone(), simulate(snapshot, &set)?)))
    })
}

fn multi(snapshot: &Snapshot, candidates: &[usize]) -> Option<(Vec<usize>, Plan)> {
    let (mut least, mut most) = (1, candidates.len().min(PREFIX_MAX).checked_sub(1)?);
    let mut found = None;
    while least <= most {
        let middle = usize::midpoint(least, most);
        let set = candidates[..=middle].to_vec();
        match simulate(snapshot, &set) {
            Some(plan) => {
                found = Some((set, plan));
                least = middle + 1;
            }
            None => most = middle - 1,
        }
    }
    found
}

/// What happens when the nodes go; none when pods have no place, or what they need is no single cheaper node.
fn simulate(snapshot: &Snapshot, set: &[usize]) -> Option<Plan> {
    let mut then = snapshot.clone();
    let mut before = 0;
    for idx in set {
        before += fleet::price(snapshot, &then.nodes[*idx]).micros();
        let node = Node::clone(&then.nodes[*idx]);
        then.nodes[*idx] = Arc::new(Node {
            is_marked_for_deletion: true,
            ..node
        });
    }
    let plan = schedule(&then, &Preferences::none(), WorkBudget::ROUND, now());
    let after: Price = plan.new_claims.iter().map(PlannedClaim::price).sum();
    let fits = plan.unschedulable.is_empty() && plan.new_claims.len() <= 1;
    (fits && after.micros() < before).then_some(plan)
}

fn carry_out(snapshot: &mut Snapshot, removed: &[usize], plan: &Plan, turn: usize) -> Result<()> {
    let mut arriving: BTreeMap<String, Vec<Arc<kerf_core::pod::Pod>>> = BTreeMap::new();
    for placement in &plan.placements {
        let name: &str = match &placement.node {
            PlacementTarget::Node(name) => name,
            PlacementTarget::InFlight(name) => name,
        };
        arriving
            .entry(name.to_owned())
            .or_default()
            .push(Arc::clone(&placement.pod));
    }
    let mut nodes = Vec::new();
    for (idx, node) in snapshot.nodes.iter().enumerate() {
        if removed.contains(&idx) {
            continue;
        }
        nodes.push(match arriving.remove(node.display_name()) {
            Some(pods) => Arc::new(carry_out::with_pods(node, pods)?),
            None => Arc::clone(node),
        });
    }
    for (idx, claim) in plan.new_claims.iter().enumerate() {
        let node = carry_out::node_of(&format!("made-{turn:05}-{idx}"), claim)?;
        nodes.push(Arc::new(carry_out::with_pods(&node, claim.pods.clone())?));
    }
    snapshot.nodes = nodes;
    Ok(())
}
