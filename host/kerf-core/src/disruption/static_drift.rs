//! Drift of static pools: each drifted claim is replaced by one that the pool's template makes, pods or not.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::disruption::budget::DisruptionReason;
use crate::disruption::candidate::Candidate;
use crate::disruption::command::CommandKind;
use crate::disruption::kept::KeptReason;
use crate::disruption::pass::Pass;
use crate::node::Node;
use crate::node_pool::NodePool;
use crate::preferences::Preferences;
use crate::resources::NODES;
use crate::snapshot::Snapshot;
use crate::static_capacity::template::Template;

impl Pass<'_> {
    /// Starts commands for the drifted claims of static pools within budgets and the pools' limits on nodes.
    pub(super) fn static_drift(
        &mut self,
        mut drifted: Vec<Candidate<'_>>,
        snapshot: &Snapshot,
        preferences: &Preferences,
    ) {
        drifted.sort_by(|a, b| {
            let since = |it: &Candidate<'_>| it.node.drifted.as_ref().map(|drift| drift.since);
            (since(a), &a.claim).cmp(&(since(b), &b.claim))
        });
        let mut headroom: BTreeMap<&str, i64> = BTreeMap::new();
        for candidate in &drifted {
            let pool = candidate.pool;
            let headroom = headroom
                .entry(&pool.name)
                .or_insert_with(|| nodes_left(pool, snapshot));
            match self.static_drift_one(candidate, snapshot, preferences, *headroom) {
                Ok(()) => *headroom -= 1,
                Err(reason) => drop(self.kept.insert(candidate.claim.clone(), reason)),
            }
        }
    }

    fn static_drift_one(
        &mut self,
        candidate: &Candidate<'_>,
        snapshot: &Snapshot,
        preferences: &Preferences,
        headroom: i64,
    ) -> Result<(), KeptReason> {
        let pool = candidate.pool;
        let name = || pool.name.to_string();
        let nodes = nodes_of(pool, snapshot);
        let alive = i64::try_from(nodes.len()).unwrap_or(i64::MAX);
        if i64::from(pool.replicas.unwrap_or(0)) < alive {
            return Err(KeptReason::StaticSurplus);
        }
        if pool.unhealthy.is_some() {
            return Err(KeptReason::Unhealthy { pool: name() });
        }
        if self.book.left(pool, DisruptionReason::Drifted) == 0 {
            return Err(KeptReason::Budget);
        }
        if headroom < 1 {
            return Err(KeptReason::NodeLimit);
        }
        let own = preferences.pools.get(&pool.name);
        let replacement = Template::new(pool, own, &nodes)
            .claim("replaces a node that has drifted")
            .ok_or_else(|| KeptReason::NoInstanceTypes { pool: name() })?;
        if let Some(node) = self.simulator.node(&candidate.claim) {
            self.simulator.remove_for_good(node);
        }
        let reason = candidate.node.drifted.as_ref();
        let note = reason.map_or_else(String::new, |it| format!("drifted: {}", it.reason));
        self.start(
            CommandKind::StaticDrift,
            &[candidate],
            vec![replacement],
            &note,
        );
        Ok(())
    }
}

fn nodes_of<'s>(pool: &NodePool, snapshot: &'s Snapshot) -> Vec<&'s Node> {
    let nodes = snapshot.nodes.iter().map(Arc::as_ref);
    let is_of_pool = |node: &&Node| {
        node.is_managed() && node.is_active() && node.pool.as_ref() == Some(&pool.name)
    };
    nodes.filter(is_of_pool).collect()
}

/// How many more nodes the pool's limit allows, those that are leaving counted as there.
fn nodes_left(pool: &NodePool, snapshot: &Snapshot) -> i64 {
    let Some(bound) = pool.limits.bound(NODES) else {
        return i64::MAX;
    };
    let all = snapshot
        .nodes
        .iter()
        .filter(|node| node.pool.as_ref() == Some(&pool.name));
    bound.saturating_sub(i64::try_from(all.count()).unwrap_or(i64::MAX))
}
