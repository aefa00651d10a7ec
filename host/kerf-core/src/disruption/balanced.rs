//! consolidationPolicy: Balanced. A command must save a share of its pool's cost that is worth its share of the pool's
//! disruption. Karpenter: same, except that a pool without cost or disruption refuses in both of its checks.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::disruption::candidate::{Candidate, World, offering_of};
use crate::disruption::cost::{life_left, rescheduling_cost};
use crate::disruption::report::Score;
use crate::ids::NodePoolName;
use crate::node_pool::{ConsolidationPolicy, NodePool};
use crate::price::Price;
use crate::snapshot::Snapshot;

/// Share of cost saved by share of disruption caused: half is enough.
const SCORE_MIN: f64 = 0.5;

/// What all nodes of each balanced pool cost together, in money and in disruption.
#[derive(Debug, Default)]
pub(super) struct PoolTotals<'a> {
    totals: BTreeMap<&'a str, Total>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Total {
    cost: f64,
    disruption: f64,
}

impl<'a> PoolTotals<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, world: &World<'a>) -> Self {
        let mut totals: BTreeMap<&str, Total> = BTreeMap::new();
        for node in snapshot.nodes.iter().filter(|node| node.is_managed()) {
            let pool = world.pool_of(node).filter(|pool| is_balanced(pool));
            if let Some(pool) = pool {
                let price = offering_of(node).map_or(Price::UNKNOWN, |it| world.price(pool, &it));
                let total = totals.entry(&pool.name).or_default();
                total.cost += price.per_hour().unwrap_or(0.0);
                total.disruption += disruption(node, world);
            }
        }
        Self { totals }
    }

    /// What each balanced pool among the candidates' thinks of the command.
    pub(super) fn judge(
        &self,
        candidates: &[&Candidate<'_>],
        saving: f64,
        world: &World<'_>,
    ) -> Vec<Score> {
        let price = |it: &Candidate<'_>| it.price.per_hour().unwrap_or(0.0);
        let whole: f64 = candidates.iter().map(|it| price(it)).sum();
        let mut pools: BTreeMap<&NodePoolName, (f64, f64)> = BTreeMap::new();
        for candidate in candidates.iter().filter(|it| is_balanced(it.pool)) {
            let of_pool = pools.entry(&candidate.pool.name).or_default();
            of_pool.0 += price(candidate);
            of_pool.1 += candidate.cost * life_left(candidate.node, world.now);
        }
        let judged = pools.into_iter().map(|(pool, (cost, disruption))| {
            let saved = if whole > 0.0 {
                saving * cost / whole
            } else {
                0.0
            };
            let total = self.totals.get(pool.as_str()).copied().unwrap_or_default();
            let score = score(saved, disruption, total);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "never negative; what is beyond is as good as the most"
            )]
            let percent = (score * 100.0) as u32;
            Score {
                pool: pool.clone(),
                percent,
                is_approved: score >= SCORE_MIN,
            }
        });
        judged.collect()
    }
}

fn is_balanced(pool: &Arc<NodePool>) -> bool {
    pool.disruption.policy == ConsolidationPolicy::Balanced
}

fn disruption(node: &crate::node::Node, world: &World<'_>) -> f64 {
    rescheduling_cost(node) * life_left(node, world.now)
}

fn score(saved: f64, disruption: f64, total: Total) -> f64 {
    if saved <= 0.0 || total.cost <= 0.0 || total.disruption <= 0.0 {
        return 0.0;
    }
    let share = disruption / total.disruption;
    match share > 0.0 {
        true => (saved / total.cost) / share,
        // Nothing is disrupted: any saving is worth it.
        false => f64::INFINITY,
    }
}
