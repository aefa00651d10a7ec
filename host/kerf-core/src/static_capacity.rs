//! Static NodePools: as many nodes as `replicas` says, whatever the pods ask for.
//!
//! [`static_capacity`] says which claims to create and which to remove; pods play no part but in the choice of what goes.

mod surplus;
pub(crate) mod template;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::ids::{NodeClaimName, NodePoolName};
use crate::node::Node;
use crate::node_pool::NodePool;
use crate::plan::PlannedClaim;
use crate::preferences::Preferences;
use crate::resources::{NODES, Resources, quantity_of};
use crate::snapshot::Snapshot;

use template::Template;

/// What to do about static NodePools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StaticPlan {
    /// Claims to create, straight from the pools' templates.
    pub create: Vec<PlannedClaim>,
    /// Claims to remove, those that go first first. No budget bounds them.
    pub remove: Vec<SurplusClaim>,
    /// Pools that lack nodes and cannot get them now.
    pub short: Vec<ShortPool>,
}

/// A claim beyond `replicas`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SurplusClaim {
    /// The pool.
    pub pool: NodePoolName,
    /// The claim.
    pub node_claim: NodeClaimName,
    /// Why it goes, in words.
    pub note: String,
}

/// A pool that stays below `replicas`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortPool {
    /// The pool.
    pub pool: NodePoolName,
    /// How many nodes it lacks.
    pub missing: u32,
    /// What keeps it from having them.
    pub reason: String,
}

/// Compares each static pool with its `replicas`.
///
/// Nodes that a disruption command has chosen have a replacement on its way, so they count as there when nodes are
/// made, and as gone when surplus is removed. Nodes that are being deleted count as gone. The answer is the same for the
/// same input in any order.
///
/// Karpenter: differs, because it asks for `replicas` less what runs and so makes too many while replacements are on their
/// way.
pub fn static_capacity(
    snapshot: &Snapshot,
    preferences: &Preferences,
    now: Timestamp,
) -> StaticPlan {
    let mut pools: Vec<&Arc<NodePool>> = snapshot.pools.iter().collect();
    pools.retain(|pool| pool.replicas.is_some() && !pool.is_deleting);
    pools.sort_by(|a, b| a.name.cmp(&b.name));
    let mut of_pool: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
    for node in snapshot.nodes.iter().filter(|node| node.is_managed()) {
        if let Some(pool) = &node.pool {
            of_pool.entry(pool).or_default().push(node);
        }
    }
    let mut plan = StaticPlan::default();
    for pool in pools {
        let nodes = of_pool.remove(pool.name.as_str()).unwrap_or_default();
        let pool_now = PoolNow::new(pool, nodes);
        pool_now.remove_surplus(&mut plan, now);
        pool_now.make_missing(&mut plan, preferences);
    }
    plan
}

/// A static pool and its nodes, those that are being deleted left out.
struct PoolNow<'a> {
    pool: &'a NodePool,
    replicas: usize,
    /// Nodes that stay.
    running: Vec<&'a Node>,
    /// Nodes that go once their replacement is there.
    replaced: Vec<&'a Node>,
}

impl<'a> PoolNow<'a> {
    fn new(pool: &'a NodePool, mut nodes: Vec<&'a Node>) -> Self {
        nodes.retain(|node| !node.is_deleting);
        let (replaced, running) = nodes.into_iter().partition(|it| it.is_marked_for_deletion);
        let replicas = pool.replicas.unwrap_or_default();
        Self {
            pool,
            replicas: usize::try_from(replicas).unwrap_or(usize::MAX),
            running,
            replaced,
        }
    }

    fn remove_surplus(&self, plan: &mut StaticPlan, now: Timestamp) {
        let surplus = self.running.len().saturating_sub(self.replicas);
        let going = surplus::in_order(&self.running, now).into_iter();
        for (node, why) in going.take(surplus) {
            let note = format!(
                "NodePool {} has {} nodes and wants {}: {why}",
                self.pool.name,
                self.running.len(),
                self.replicas
            );
            plan.remove.push(SurplusClaim {
                pool: self.pool.name.clone(),
                node_claim: node.node_claim.clone().unwrap_or_default(),
                note,
            });
        }
    }

    fn make_missing(&self, plan: &mut StaticPlan, preferences: &Preferences) {
        let there = self.running.len() + self.replaced.len();
        let missing = self.replicas.saturating_sub(there);
        if missing == 0 {
            return;
        }
        let mut template = Template::new(
            self.pool,
            preferences.pools.get(&self.pool.name),
            &self.running,
        );
        let obstacle = self.pool.not_ready.clone().or_else(|| template.obstacle());
        let (allowed, reason) = match obstacle {
            Some(reason) => (0, reason),
            None => self.allowed(there),
        };
        let made = missing.min(allowed);
        for nth in 1..=made {
            let reason = format!("is node {} of {}", there + nth, self.replicas);
            plan.create.extend(template.claim(&reason));
        }
        if made < missing {
            plan.short.push(ShortPool {
                pool: self.pool.name.clone(),
                missing: u32::try_from(missing - made).unwrap_or(u32::MAX),
                reason,
            });
        }
    }

    /// How many more nodes the limits allow, and what bounds them.
    fn allowed(&self, there: usize) -> (usize, String) {
        let mut used = Resources::default();
        for node in self.running.iter().chain(&self.replaced) {
            used.add(&node.capacity);
        }
        // The schema lets a static pool have no other limit than nodes; an older object may have some.
        let mut limits = self.pool.limits.iter().filter(|(name, _)| *name != NODES);
        if let Some((name, bound)) = limits.find(|(name, bound)| used.amount(name) >= *bound) {
            let bound = quantity_of(name, bound);
            return (0, format!("limits.{name}: {bound} is used up"));
        }
        let Some(bound) = self.pool.limits.bound(NODES) else {
            return (usize::MAX, String::new());
        };
        let left = usize::try_from(bound).unwrap_or(0).saturating_sub(there);
        (left, format!("limits.nodes: {bound} allows no more"))
    }
}

#[cfg(test)]
mod tests;
