//! Nodes that could go: what blocks them, what they cost, and what their going costs the pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::disruption::cost::rescheduling_cost;
use crate::disruption::emptiness::quiet_since;
use crate::disruption::kept::KeptReason;
use crate::disruption::pod_budget::PodBudget;
use crate::disruption::settings::{DisruptionSettings, Hysteresis};
use crate::ids::NodeClaimName;
use crate::instance_type::{CapacityType, InstanceType};
use crate::labels;
use crate::node::Node;
use crate::node_pool::{ConsolidationPolicy, NodePool};
use crate::pod::{OwnerKind, Pod, PodPhase};
use crate::preferences::OfferingKey;
use crate::price::Price;
use crate::snapshot::Snapshot;
use crate::taint::Taint;

/// A node that may go.
#[derive(Debug, Clone)]
pub(super) struct Candidate<'a> {
    pub(super) node: &'a Arc<Node>,
    pub(super) claim: NodeClaimName,
    pub(super) pool: &'a Arc<NodePool>,
    /// What it is; none when its labels do not say.
    pub(super) offering: Option<OfferingKey>,
    pub(super) price: Price,
    /// What moving its pods costs, at least 1.
    pub(super) cost: f64,
}

/// How gracefully a method takes nodes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grace {
    /// Pods are evicted and may refuse.
    Graceful,
    /// Where the claim has a terminationGracePeriod, pods that refuse are ended by it.
    Eventual,
}

/// What candidates are judged with.
#[derive(Debug)]
pub(super) struct World<'a> {
    pub(super) now: Timestamp,
    pub(super) settings: &'a DisruptionSettings,
    pub(super) pools: BTreeMap<&'a str, &'a Arc<NodePool>>,
    types: BTreeMap<&'a str, BTreeMap<&'a str, &'a Arc<InstanceType>>>,
    budgets: BTreeMap<&'a str, Vec<&'a PodBudget>>,
    /// By pool: when its youngest node was made.
    grown_at: BTreeMap<&'a str, Timestamp>,
}

impl<'a> World<'a> {
    pub(super) fn new(
        snapshot: &'a Snapshot,
        settings: &'a DisruptionSettings,
        now: Timestamp,
    ) -> Self {
        let mut world = Self {
            now,
            settings,
            pools: BTreeMap::new(),
            types: BTreeMap::new(),
            budgets: BTreeMap::new(),
            grown_at: BTreeMap::new(),
        };
        for pool in &snapshot.pools {
            let types = pool.instance_types.iter().map(|it| (&*it.name, it));
            world.types.insert(&pool.name, types.collect());
            world.pools.insert(&pool.name, pool);
        }
        for budget in &snapshot.pod_budgets {
            world
                .budgets
                .entry(&budget.namespace)
                .or_default()
                .push(budget);
        }
        for budgets in world.budgets.values_mut() {
            budgets.sort_by(|a, b| a.name.cmp(&b.name));
        }
        for node in snapshot.nodes.iter().filter(|node| node.is_managed()) {
            if let (Some(pool), Some(at)) = (&node.pool, node.created_at) {
                let grown_at = world.grown_at.entry(pool).or_insert(at);
                *grown_at = at.max(*grown_at);
            }
        }
        world
    }

    pub(super) fn pool_of(&self, node: &Node) -> Option<&'a Arc<NodePool>> {
        self.pools.get(node.pool.as_deref()?).copied()
    }

    pub(super) fn instance_type(&self, pool: &str, name: &str) -> Option<&'a Arc<InstanceType>> {
        self.types.get(pool)?.get(name).copied()
    }

    /// Whether the pod moves when its node goes. Karpenter: same; pods that nobody may evict leave only when they end.
    pub(super) fn moves(&self, pod: &Pod) -> bool {
        pod.is_reschedulable()
            && !pod.forbids_disruption(self.now)
            && !self.budgets_of(pod).any(|budget| budget.blocks_fully)
    }

    fn budgets_of(&self, pod: &Pod) -> impl Iterator<Item = &'a PodBudget> {
        let of_namespace = self.budgets.get(&*pod.namespace);
        let labels = Arc::clone(&pod.spec);
        of_namespace
            .into_iter()
            .flatten()
            .copied()
            .filter(move |budget| {
                let selector = budget.selector.as_ref();
                selector.is_some_and(|selector| selector.matches(&labels.labels))
            })
    }

    /// The candidate that a node is for a method, or what blocks it. Whether the method has any use for it is for the
    /// method to say.
    pub(super) fn candidate(
        &self,
        node: &'a Arc<Node>,
        grace: Grace,
    ) -> Result<Candidate<'a>, KeptReason> {
        let claim = node.node_claim.clone().ok_or(KeptReason::NotInitialized)?;
        if !node.is_active() {
            return Err(KeptReason::Leaving);
        }
        if !node.is_initialized || node.name.is_none() {
            return Err(KeptReason::NotInitialized);
        }
        let pool = self.pool_of(node).ok_or(KeptReason::PoolKeepsNodes)?;
        if node.is_nominated(self.now) {
            return Err(KeptReason::Nominated);
        }
        if node.forbids_disruption {
            return Err(KeptReason::NodeForbids);
        }
        if pool.instance_types.is_empty() {
            return Err(KeptReason::NoInstanceTypes {
                pool: pool.name.to_string(),
            });
        }
        let is_forced = grace == Grace::Eventual && node.termination_grace_period.is_some();
        if !is_forced {
            self.pods_allow(node)?;
        }
        let offering = offering_of(node);
        let price = offering
            .as_ref()
            .map_or(Price::UNKNOWN, |it| self.price(pool, it));
        Ok(Candidate {
            node,
            claim,
            pool,
            offering,
            price,
            cost: rescheduling_cost(node),
        })
    }

    /// The candidate that a node is for consolidation, or why consolidation leaves it alone.
    pub(super) fn consolidatable(&self, node: &'a Arc<Node>) -> Result<Candidate<'a>, KeptReason> {
        let candidate = self.candidate(node, Grace::Graceful)?;
        let pool = candidate.pool;
        let consolidate_after = pool.disruption.consolidate_after;
        let consolidate_after = consolidate_after
            .filter(|_| pool.replicas.is_none())
            .ok_or(KeptReason::PoolKeepsNodes)?;
        if pool.disruption.policy == ConsolidationPolicy::WhenEmpty {
            return Err(KeptReason::PolicyWhenEmpty);
        }
        if node.buffer_pods > 0 {
            return Err(KeptReason::Buffer);
        }
        for label in [labels::CAPACITY_TYPE, labels::ZONE] {
            if !node.labels.contains_key(label) {
                return Err(KeptReason::MissingLabel { label });
            }
        }
        let instance_type = node.labels.get(labels::INSTANCE_TYPE);
        let instance_type = instance_type.unwrap_or_default().to_owned();
        if self.instance_type(&pool.name, &instance_type).is_none() {
            return Err(KeptReason::UnknownInstanceType { instance_type });
        }
        let quiet = quiet_since(node).ok_or(KeptReason::NotInitialized)?;
        match quiet.checked_add(consolidate_after) {
            Ok(until) if until <= self.now => {}
            Ok(until) => return Err(KeptReason::Waiting { until }),
            Err(_) => return Err(KeptReason::PoolKeepsNodes),
        }
        self.settled(&candidate)?;
        Ok(candidate)
    }

    /// What the pool and the controller ask of a node before it is worth looking at.
    fn settled(&self, candidate: &Candidate<'_>) -> Result<(), KeptReason> {
        let hysteresis = self.hysteresis(candidate.pool);
        let ends = |from: Option<Timestamp>, length: Option<jiff::SignedDuration>| {
            let until = from?.checked_add(length?).ok()?;
            (until > self.now).then_some(until)
        };
        if let Some(until) = ends(candidate.node.created_at, hysteresis.node_age_min) {
            return Err(KeptReason::TooYoung { until });
        }
        let grown_at = self.grown_at.get(&*candidate.pool.name).copied();
        if let Some(until) = ends(grown_at, hysteresis.cool_down) {
            return Err(KeptReason::CoolDown { until });
        }
        if let Some(threshold) = hysteresis.utilization_max_percent {
            let percent = utilization_percent(candidate.node);
            if percent > threshold {
                return Err(KeptReason::WellUsed { percent, threshold });
            }
        }
        Ok(())
    }

    pub(super) fn hysteresis(&self, pool: &NodePool) -> Hysteresis {
        pool.disruption.hysteresis.or(self.settings.hysteresis)
    }

    /// What exactly this offering costs; unknown when the pool does not sell it.
    pub(super) fn price(&self, pool: &NodePool, key: &OfferingKey) -> Price {
        let found = self.instance_type(&pool.name, &key.instance_type);
        let offering = found.and_then(|it| it.offering(&key.zone, key.capacity_type));
        offering.map_or(Price::UNKNOWN, |it| it.price)
    }

    fn pods_allow(&self, node: &Node) -> Result<(), KeptReason> {
        let active = node.pods.iter().filter(|pod| pod.phase == PodPhase::Active);
        // A mirror pod goes with its node whatever anybody says about it.
        for pod in active.filter(|pod| pod.spec.owner != OwnerKind::Node) {
            let name = || format!("{}/{}", pod.namespace, pod.name);
            if pod.forbids_disruption(self.now) {
                return Err(KeptReason::PodForbids { pod: name() });
            }
            if self.budgets.is_empty() || tolerates_disruption(pod) {
                continue;
            }
            let budgets: Vec<&PodBudget> = self.budgets_of(pod).collect();
            let blocks = match budgets.as_slice() {
                [] => false,
                [one] => (pod.is_ready || !one.lets_unready_go) && one.allowed == 0,
                // The eviction API refuses pods of several budgets.
                _ => true,
            };
            if blocks {
                let names: Vec<&str> = budgets.iter().map(|it| &*it.name).collect();
                return Err(KeptReason::PodBudget {
                    pod: name(),
                    budget: names.join(", "),
                });
            }
        }
        Ok(())
    }
}

/// Such a pod is not evicted at all: it stays until its node ends.
fn tolerates_disruption(pod: &Pod) -> bool {
    let taint = Taint::disrupted();
    pod.spec.tolerations.iter().any(|it| it.tolerates(&taint))
}

/// What a node is, as far as its labels say.
pub(super) fn offering_of(node: &Node) -> Option<OfferingKey> {
    Some(OfferingKey {
        instance_type: node.labels.get(labels::INSTANCE_TYPE)?.into(),
        zone: node.zone()?.into(),
        capacity_type: CapacityType::parse(node.labels.get(labels::CAPACITY_TYPE)?)?,
    })
}

/// How much of the node's scarcest resource its pods ask for.
pub(super) fn utilization_percent(node: &Node) -> u32 {
    let mut used = crate::resources::Resources::default();
    for pod in node.pods.iter().filter(|pod| pod.phase == PodPhase::Active) {
        used.add(&pod.spec.requests);
    }
    let shares = used
        .iter()
        .filter(|(_, amount)| *amount > 0)
        .map(|(name, amount)| {
            let there = node.allocatable.amount(name).max(1);
            u32::try_from(i128::from(amount) * 100 / i128::from(there)).unwrap_or(u32::MAX)
        });
    shares.max().unwrap_or(0)
}
