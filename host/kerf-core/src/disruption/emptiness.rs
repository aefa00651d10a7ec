//! Which empty NodeClaims may be removed now, and why the others may not.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::disruption::budget::{DisruptionReason, allowed_disruptions};
use crate::disruption::kept::{KeptNode, KeptReason};
use crate::ids::{NodeClaimName, NodePoolName};
use crate::node::Node;
use crate::node_pool::NodePool;
use crate::pod::OwnerKind;
use crate::snapshot::Snapshot;

/// What can be done about empty nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Emptiness {
    /// NodeClaims to remove now, within the budgets of their pools; by pool, then age, then name.
    pub removable: Vec<EmptyNode>,
    /// Managed nodes that stay, and why.
    pub kept: Vec<KeptNode>,
    /// When waiting alone could change the answer.
    pub next_check: Option<Timestamp>,
}

/// An empty node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmptyNode {
    /// The pool.
    pub pool: NodePoolName,
    /// The claim to delete.
    pub node_claim: NodeClaimName,
    /// Since when it has been quiet.
    pub quiet_since: Timestamp,
}

/// Finds the empty NodeClaims that may be removed now.
pub fn emptiness(snapshot: &Snapshot, now: Timestamp) -> Emptiness {
    let pools: BTreeMap<&str, &Arc<NodePool>> = snapshot
        .pools
        .iter()
        .map(|pool| (&*pool.name, pool))
        .collect();
    let mut result = Emptiness::default();
    let mut candidates: BTreeMap<&str, Vec<EmptyNode>> = BTreeMap::new();
    for node in &snapshot.nodes {
        let Some(node_claim) = node.node_claim.clone() else {
            continue;
        };
        let pool = node
            .pool
            .as_ref()
            .and_then(|name| pools.get(&**name).copied());
        match judge(node, pool, now) {
            Ok((pool, quiet_since)) => {
                let empty = EmptyNode {
                    pool: pool.name.clone(),
                    node_claim,
                    quiet_since,
                };
                candidates.entry(&pool.name).or_default().push(empty);
            }
            Err(reason) => result.kept.push(KeptNode { node_claim, reason }),
        }
    }
    for (name, mut nodes) in candidates {
        nodes.sort_by(|a, b| (a.quiet_since, &a.node_claim).cmp(&(b.quiet_since, &b.node_claim)));
        let allowed = pools.get(name).map_or(0, |pool| {
            allowed_now(pool, snapshot, DisruptionReason::Empty, now)
        });
        let over_budget = nodes.split_off(nodes.len().min(allowed));
        result.removable.append(&mut nodes);
        let kept = over_budget.into_iter().map(|it| KeptNode {
            node_claim: it.node_claim,
            reason: KeptReason::Budget,
        });
        result.kept.extend(kept);
    }
    result.kept.sort_by(|a, b| a.node_claim.cmp(&b.node_claim));
    result.next_check = result
        .kept
        .iter()
        .filter_map(|kept| kept.reason.ends_at())
        .min();
    result
}

/// The node's pool and since when it has been quiet, or why it stays.
fn judge<'a>(
    node: &Node,
    pool: Option<&'a Arc<NodePool>>,
    now: Timestamp,
) -> Result<(&'a NodePool, Timestamp), KeptReason> {
    if !node.is_active() {
        return Err(KeptReason::Leaving);
    }
    if !node.is_initialized || node.name.is_none() {
        return Err(KeptReason::NotInitialized);
    }
    let pool = pool
        .filter(|pool| pool.replicas.is_none())
        .ok_or(KeptReason::PoolKeepsNodes)?;
    let consolidate_after = pool
        .disruption
        .consolidate_after
        .ok_or(KeptReason::PoolKeepsNodes)?;
    // Karpenter: differs, because there pods of very low priority do not count, and an "empty" node evicts them.
    match node
        .pods
        .iter()
        .filter(|pod| pod.is_reschedulable())
        .count()
    {
        0 => {}
        count => return Err(KeptReason::HasPods { count }),
    }
    forbidden(node, now)?;
    let quiet_since = quiet_since(node).ok_or(KeptReason::NotInitialized)?;
    match quiet_since.checked_add(consolidate_after) {
        Ok(until) if until <= now => Ok((pool, quiet_since)),
        Ok(until) => Err(KeptReason::Waiting { until }),
        Err(_) => Err(KeptReason::PoolKeepsNodes),
    }
}

fn forbidden(node: &Node, now: Timestamp) -> Result<(), KeptReason> {
    if node.is_nominated(now) {
        return Err(KeptReason::Nominated);
    }
    if node.forbids_disruption {
        return Err(KeptReason::NodeForbids);
    }
    if node.buffer_pods > 0 {
        return Err(KeptReason::Buffer);
    }
    let active = node
        .pods
        .iter()
        .filter(|pod| pod.phase == crate::pod::PodPhase::Active);
    // A mirror pod goes with its node whatever its annotations say.
    let mut forbidding =
        active.filter(|pod| pod.spec.owner != OwnerKind::Node && pod.forbids_disruption(now));
    match forbidding.next() {
        Some(pod) => Err(KeptReason::PodForbids {
            pod: format!("{}/{}", pod.namespace, pod.name),
        }),
        None => Ok(()),
    }
}

pub(super) fn quiet_since(node: &Node) -> Option<Timestamp> {
    node.last_pod_event
        .max(node.initialized_at)
        .or(node.created_at)
}

/// How many more nodes of the pool may go now for this reason, those that are away already not counted.
pub fn allowed_now(
    pool: &NodePool,
    snapshot: &Snapshot,
    reason: DisruptionReason,
    now: Timestamp,
) -> usize {
    let of_pool = || {
        snapshot
            .nodes
            .iter()
            .filter(|node| node.pool.as_ref() == Some(&pool.name) && node.is_managed())
    };
    let counted = || of_pool().filter(|node| node.is_initialized);
    let total = u32::try_from(counted().count()).unwrap_or(u32::MAX);
    let away = counted()
        .filter(|node| !node.is_active() || !node.is_ready)
        .count();
    let allowed = allowed_disruptions(&pool.disruption.budgets, total, reason, now);
    usize::try_from(allowed)
        .unwrap_or(usize::MAX)
        .saturating_sub(away)
}

#[cfg(test)]
mod tests;
