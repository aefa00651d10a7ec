//! One round of scheduling: its tables, made from a snapshot.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::claims::Claims;
use super::class::{ATTACHMENTS_PREFIX, ClassContext, ClassTable, classify};
use super::domains::Domains;
use super::journal::Journal;
use super::limits::{self, Leaving, Remaining};
use super::nodes::{NodeOrder, Nodes};
use super::pool::{PoolContext, PoolEntry, Reservations};
use super::sets::{SetId, SetTable};
use super::stock::Stock;
use super::taints::TaintTable;
use super::topology::{Filter, GroupId, GroupKey, GroupKind, Host, Topology};
use super::vector::ResourceIndex;
use super::view::{Masks, View, ViewTable};
use crate::ids::NodePoolName;
use crate::node_pool::NodePool;
use crate::pod::{Pod, PodPhase, PodSpec};
use crate::preferences::Preferences;
use crate::resources::NODES;
use crate::selector::Labels;
use crate::snapshot::Snapshot;
use crate::taint::TaintEffect;

/// The anti-affinity groups of bound pods, by namespace and spec.
type BoundOwners<'a> = FxHashMap<(&'a str, *const PodSpec), Vec<GroupId>>;

/// How a pod got its place.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seat {
    /// Which variant of its class it was placed with.
    pub(super) variant: usize,
    /// How many pods were placed before it.
    pub(super) turn: usize,
}

/// What rounds about one snapshot and the same pods have in common, whatever policies say.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// By place among the pools that can grow.
    stocks: BTreeMap<usize, Option<Stock>>,
    zone_nodes: Option<Vec<ZoneNodes>>,
    pub(super) masks: Masks,
}

/// How many nodes of a pool are in each zone.
pub(super) type ZoneNodes = BTreeMap<Arc<str>, u32>;

/// The state of a round.
#[derive(Debug)]
pub(super) struct Round<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) resources: ResourceIndex,
    pub(super) sets: SetTable,
    pub(super) taints: TaintTable,
    pub(super) domains: Domains,
    pub(super) topology: Topology,
    pub(super) reservations: Reservations,
    /// Pools that can grow, best first.
    pub(super) pools: Vec<PoolEntry>,
    pub(super) limits: Vec<Remaining>,
    pub(super) views: ViewTable,
    pub(super) nodes: Nodes,
    pub(super) claims: Claims,
    pub(super) classes: ClassTable,
    /// The pods to plan, in their order.
    pub(super) pods: Vec<Arc<Pod>>,
    pub(super) class_of: Vec<usize>,
    /// By pod: how and when it got its place.
    pub(super) seats: Vec<Seat>,
    /// Nodes of each pool by zone, those that are planned and have settled on a zone too.
    pub(super) zone_nodes: Vec<ZoneNodes>,
    pub(super) work: u64,
    /// What has changed since a simulation began, so that it can be taken back; none while nothing will be.
    pub(super) journal: Option<Journal>,
}

impl<'a> Round<'a> {
    pub(super) fn new(
        snapshot: &'a Snapshot,
        preferences: &Preferences,
        pods: Vec<Arc<Pod>>,
    ) -> Self {
        Self::in_order(snapshot, preferences, pods, &|_| 0, None)
    }

    /// A round that fills nodes in that order, with what an earlier one about the same snapshot and pods has kept.
    pub(super) fn in_order(
        snapshot: &'a Snapshot,
        preferences: &Preferences,
        pods: Vec<Arc<Pod>>,
        order: NodeOrder<'_>,
        mut kept: Option<&mut Kept>,
    ) -> Self {
        let growing = growing_pools(snapshot);
        let resources = resource_index(snapshot, &growing, &pods);
        let (mut sets, mut taints, mut domains) =
            (SetTable::new(), TaintTable::default(), Domains::default());
        let (mut topology, mut reservations) = (Topology::default(), Reservations::default());
        let has_soft_taints = growing.iter().any(|pool| {
            pool.template
                .taints
                .iter()
                .any(|taint| taint.effect == TaintEffect::PreferNoSchedule)
        });
        let mut ctx = ClassContext {
            snapshot,
            resources: &resources,
            sets: &mut sets,
            taints: &mut taints,
            domains: &mut domains,
            topology: &mut topology,
            has_soft_taints,
        };
        let (mut classes, class_of) = classify(&pods, &mut ctx);
        let inverse_of_bound = groups_of_bound_pods(snapshot, &mut ctx);
        classes.join_groups(&topology);
        let mut ctx = PoolContext {
            resources: &resources,
            sets: &mut sets,
            taints: &mut taints,
            reservations: &mut reservations,
            daemons: &snapshot.daemon_pods,
        };
        let pools: Vec<PoolEntry> = growing
            .iter()
            .enumerate()
            .map(|(idx, pool)| {
                let kept = kept
                    .as_deref_mut()
                    .map(|it| it.stocks.entry(idx).or_default());
                PoolEntry::new(pool, preferences.pools.get(&pool.name), kept, &mut ctx)
            })
            .collect();
        let nodes = Nodes::new(snapshot, &resources, &mut taints, &mut domains, order);
        let count = || zones_of_nodes(&growing, snapshot);
        let zone_nodes = match kept.as_deref_mut() {
            Some(kept) => kept.zone_nodes.get_or_insert_with(count).clone(),
            None => count(),
        };
        let masks = kept.map(|it| std::mem::take(&mut it.masks));
        let masks = masks.unwrap_or_default();
        let mut round = Self {
            limits: limits::of_pools(&pools, snapshot, &resources, Leaving::Counts),
            zone_nodes,
            snapshot,
            resources,
            sets,
            taints,
            domains,
            topology,
            reservations,
            pools,
            views: ViewTable::with(masks),
            nodes,
            claims: Claims::default(),
            classes,
            seats: vec![Seat::default(); pods.len()],
            pods,
            class_of,
            work: 0,
            journal: None,
        };
        round.find_eligible_domains();
        round.count_bound_pods(&inverse_of_bound);
        round
    }

    /// What a claim of the pool can be under a set.
    pub(super) fn view(&mut self, pool: usize, set: SetId) -> Rc<View> {
        self.views
            .view(pool, &self.pools[pool], set, &self.sets, &mut self.domains)
    }

    /// Finds, for each spread group, which existing nodes count and which domains a pod could be in.
    fn find_eligible_domains(&mut self) {
        for id in 0..self.topology.groups.len() {
            let identity = &self.topology.groups[id].identity;
            if !matches!(identity.kind, GroupKind::Spread { .. }) {
                continue;
            }
            let (key, filter) = (identity.key, identity.filter.clone());
            let passing = (!filter.is_open()).then(|| {
                self.nodes.passing(
                    &filter.terms,
                    filter.tolerations,
                    &self.sets,
                    &mut self.taints,
                )
            });
            if let GroupKey::Label(key) = key {
                let mut eligible = self.nodes.domains_of(key, passing.as_ref());
                for pool in 0..self.pools.len() {
                    for set in self.passing_sets(pool, self.pools[pool].set, &filter) {
                        eligible.unite(&self.view(pool, set).domains[key.idx()]);
                    }
                }
                self.topology.groups[id].eligible = eligible;
            }
            self.topology.groups[id].eligible_nodes = passing;
        }
    }

    /// What the set of a pool's claim becomes when the claim's nodes pass the filter: one set per way to pass it.
    pub(super) fn passing_sets(&mut self, pool: usize, set: SetId, filter: &Filter) -> Vec<SetId> {
        let taints = self.pools[pool].taints;
        if filter
            .tolerations
            .is_some_and(|tolerations| !self.taints.tolerated(taints, tolerations))
        {
            return Vec::new();
        }
        if filter.terms.is_empty() {
            return vec![set];
        }
        filter
            .terms
            .iter()
            .filter_map(|term| self.sets.combine(set, *term))
            .collect()
    }

    /// Counts the pods that are on nodes and stay there.
    fn count_bound_pods(&mut self, inverse: &BoundOwners<'_>) {
        if self.topology.groups.is_empty() {
            return;
        }
        let mut known: FxHashMap<(&str, &Labels), Vec<GroupId>> = FxHashMap::default();
        for (idx, node) in self.nodes.entries.iter().enumerate() {
            let staying = node.node.pods.iter().filter(|pod| {
                let moves = !node.node.is_active() && pod.is_reschedulable();
                pod.phase != PodPhase::Terminal && !moves
            });
            for pod in staying {
                let key = (&*pod.namespace, &pod.spec.labels);
                let groups = known
                    .entry(key)
                    .or_insert_with(|| self.topology.groups_of(key.0, key.1));
                for id in groups.iter().copied() {
                    record_bound(&mut self.topology, id, idx, node, pod.phase);
                }
                for id in inverse
                    .get(&(&*pod.namespace, Arc::as_ptr(&pod.spec)))
                    .into_iter()
                    .flatten()
                {
                    let domain = domain_on(&self.topology, *id, node);
                    self.topology.groups[*id].record(Host::Node(idx), domain);
                }
            }
        }
    }
}

pub(super) fn domain_on(
    topology: &Topology,
    id: GroupId,
    node: &super::nodes::NodeEntry,
) -> Option<usize> {
    match topology.groups[id].identity.key {
        GroupKey::Label(key) => node.domain(key),
        GroupKey::Hostname => None,
    }
}

fn record_bound(
    topology: &mut Topology,
    id: GroupId,
    idx: usize,
    node: &super::nodes::NodeEntry,
    phase: PodPhase,
) {
    let group = &topology.groups[id];
    let counts = match group.identity.kind {
        // Owners are counted there, and these are the pods that the group keeps away.
        GroupKind::InverseAntiAffinity => false,
        GroupKind::Spread { .. } => {
            phase == PodPhase::Active
                && group
                    .eligible_nodes
                    .as_ref()
                    .is_none_or(|nodes| nodes.contains(idx))
        }
        GroupKind::Affinity | GroupKind::AntiAffinity => true,
    };
    if counts {
        let domain = domain_on(topology, id, node);
        topology.groups[id].record(Host::Node(idx), domain);
    }
}

/// Pools that can grow, by weight and then name, both descending as upstream has it.
fn growing_pools(snapshot: &Snapshot) -> Vec<Arc<NodePool>> {
    let mut pools: Vec<Arc<NodePool>> = snapshot
        .pools
        .iter()
        .filter(|it| it.can_grow_for_pods())
        .cloned()
        .collect();
    pools.sort_by_key(|pool| Reverse((pool.weight, pool.name.clone())));
    pools
}

fn resource_index(
    snapshot: &Snapshot,
    pools: &[Arc<NodePool>],
    pods: &[Arc<Pod>],
) -> ResourceIndex {
    let daemons = snapshot.daemon_pods.iter().map(|daemon| &daemon.spec);
    let requested = pods
        .iter()
        .map(|pod| &pod.spec)
        .chain(daemons)
        .flat_map(|spec| spec.requests.iter());
    let limited = pools
        .iter()
        .flat_map(|pool| pool.limits.iter())
        .filter(|(name, _)| *name != NODES);
    let volumes = pods
        .iter()
        .flat_map(|pod| &pod.spec.volumes)
        .filter_map(|volume| volume.attachment.as_ref());
    let attachments: Vec<String> = volumes
        .map(|it| format!("{ATTACHMENTS_PREFIX}{}", it.driver))
        .collect();
    let names = requested.chain(limited).map(|(name, _)| name);
    ResourceIndex::new(names.chain(attachments.iter().map(String::as_str)))
}

/// Makes the groups by which anti-affinity of bound pods keeps others away.
fn groups_of_bound_pods<'a>(snapshot: &'a Snapshot, ctx: &mut ClassContext<'_>) -> BoundOwners<'a> {
    let mut groups = FxHashMap::default();
    let nodes = snapshot.nodes.iter();
    let nodes = nodes.filter(|node| node.pods.held().has_anti_affinity);
    for pod in nodes.flat_map(|node| &node.pods) {
        let spec = &pod.spec;
        let key = (&*pod.namespace, Arc::as_ptr(spec));
        if pod.phase == PodPhase::Terminal
            || spec.anti_affinity.is_empty()
            || groups.contains_key(&key)
        {
            continue;
        }
        let mut of_spec = Vec::new();
        for term in &spec.anti_affinity {
            let scope = ctx.scope(&pod.namespace, spec, term);
            of_spec.push(ctx.inverse(&term.topology_key, vec![scope]));
        }
        groups.insert(key, of_spec);
    }
    groups
}

/// By pool, in one look at all nodes.
fn zones_of_nodes(pools: &[Arc<NodePool>], snapshot: &Snapshot) -> Vec<ZoneNodes> {
    let mut zones = vec![ZoneNodes::new(); pools.len()];
    let places = pools.iter().enumerate().map(|(idx, it)| (&it.name, idx));
    let places: FxHashMap<&NodePoolName, usize> = places.collect();
    for node in snapshot.nodes.iter().filter(|node| node.is_active()) {
        let place = node.pool.as_ref().and_then(|pool| places.get(pool));
        let (Some(place), Some(zone)) = (place, node.zone()) else {
            continue;
        };
        match zones[*place].get_mut(zone) {
            Some(count) => *count += 1,
            None => drop(zones[*place].insert(Arc::from(zone), 1)),
        }
    }
    zones
}
