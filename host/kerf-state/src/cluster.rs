//! The index itself: what it is told, and the snapshot that it gives.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::bound_pods::BoundPods;
use kerf_core::buffer::Buffer;
use kerf_core::disruption::pod_budget::PodBudget;
use kerf_core::ids::{NodePoolName, PodUid, ZoneId};
use kerf_core::instance_type::InstanceType;
use kerf_core::node::Node;
use kerf_core::node_pool::NodePool;
use kerf_core::plan::PlacementTarget;
use kerf_core::pod::{DaemonPod, Pod, PodSpec, TopologySpread};
use kerf_core::resources::Resources;
use kerf_core::selector::Labels;
use kerf_core::snapshot::{Settings, Snapshot};

use crate::bound::Bound;
use crate::convert::node_pool::Converted;
use crate::convert::pod::PodEntry;
use crate::daemons::{self, DaemonEntry};
use crate::default_spread::{self, DefaultSpread};
use crate::join::{Join, Tables};
use crate::nodes::{NodeClaimEntry, NodeEntry};
use crate::nominations::Nominations;
use crate::pod_sets::PodSets;
use crate::pools::{self, NodeClassEntry};
use crate::problem::{Kind, ObjectKey, ObjectProblem, Problem};
use crate::provider_ids::{ProviderIds, bare};
use crate::shared::Shared;
use crate::tracked::Tracked;
use crate::volumes::{ClaimEntry, ClassEntry, Storage, VolumeEntry};
use crate::waiting::{PodNews, Scheduler};

/// What each NodePool can launch; a pool that is not in it cannot grow.
pub type Catalog = BTreeMap<NodePoolName, PoolOffers>;

/// What one NodePool can launch.
#[derive(Debug, Clone, Default)]
pub struct PoolOffers {
    /// Its instance types; pools of one node class share the list.
    pub instance_types: Arc<Vec<Arc<InstanceType>>>,
    /// Free addresses per zone, over the vSwitches of its node class.
    pub free_ips: BTreeMap<ZoneId, u64>,
    /// Whether its node class has the vSwitchSelectionPolicy `balanced`.
    pub is_zone_balanced: bool,
}

/// Deleted NodeClaims that are remembered, so that a late [`Cluster::seed`] cannot bring one back. A claim is seeded
/// within a second of its creation; a thousand deletions take longer.
const TOMBSTONES_MAX: usize = 1024;

/// The cluster index. Told by watches, asked for snapshots; the order in which kinds and objects come does not matter.
#[derive(Debug, Default)]
pub struct Cluster {
    pub(crate) pods: BTreeMap<ObjectKey, PodEntry>,
    pub(crate) bound: Bound,
    pub(crate) sets: PodSets,
    pub(crate) nodes: BTreeMap<ObjectKey, NodeEntry>,
    pub(crate) node_claims: BTreeMap<ObjectKey, NodeClaimEntry>,
    pub(crate) node_pools: BTreeMap<ObjectKey, Converted>,
    pub(crate) node_classes: BTreeMap<ObjectKey, NodeClassEntry>,
    pub(crate) daemon_sets: BTreeMap<ObjectKey, DaemonEntry>,
    pub(crate) volume_claims: BTreeMap<ObjectKey, ClaimEntry>,
    pub(crate) volumes: BTreeMap<ObjectKey, VolumeEntry>,
    pub(crate) storage_classes: BTreeMap<ObjectKey, ClassEntry>,
    pub(crate) csi_nodes: BTreeMap<ObjectKey, BTreeMap<String, u32>>,
    pub(crate) namespaces: BTreeMap<ObjectKey, Labels>,
    pub(crate) pod_budgets: BTreeMap<ObjectKey, Arc<PodBudget>>,
    pub(crate) default_spread: DefaultSpread,
    pub(crate) shared: Shared,
    pub(crate) node_ids: ProviderIds,
    pub(crate) claim_ids: ProviderIds,
    problems: BTreeMap<(Kind, ObjectKey), Vec<Problem>>,
    synced: BTreeSet<Kind>,
    pub(crate) nominations: Nominations,
    /// By `namespace/name`; what they refer to is read by their controller.
    buffers: BTreeMap<String, Buffer>,
    tombstones: VecDeque<String>,
    planned: Planned,
    /// Nodes whose pods must move.
    leaving: BTreeSet<String>,
    pub(crate) news: PodNews,
}

/// What the last plan looked at.
#[derive(Debug, Default)]
struct Planned {
    pods: BTreeSet<PodUid>,
    are_alike: bool,
}

impl Cluster {
    /// An index that knows nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An index that knows nothing, and gives these constraints to pods that have none. Their selectors are not looked at.
    #[must_use]
    pub fn with_default_spread(constraints: Vec<TopologySpread>) -> Self {
        let mut cluster = Self::default();
        cluster.default_spread.constraints = constraints;
        cluster
    }

    /// Takes in an object that is new or changed. Whether anything changed that a decision looks at: a heartbeat does
    /// not.
    pub fn apply<K: Tracked>(&mut self, object: &K) -> bool {
        object.put(self)
    }

    /// Forgets an object that is gone. Whether it was known.
    pub fn delete<K: Tracked>(&mut self, object: &K) -> bool {
        if K::KIND == Kind::NodeClaim {
            self.remember_deletion(object.metadata().uid.as_deref(), &object.key());
        }
        K::remove(self, &object.key())
    }

    /// Replaces all objects of a kind with the result of a list, after which the kind counts as synced. Whether
    /// anything changed that a decision looks at.
    pub fn reset<'a, K: Tracked + 'a>(&mut self, objects: impl IntoIterator<Item = &'a K>) -> bool {
        let mut gone: BTreeSet<ObjectKey> = K::keys(self).into_iter().collect();
        let mut changed = self.synced.insert(K::KIND);
        for object in objects {
            gone.remove(&object.key());
            changed |= object.put(self);
        }
        for key in &gone {
            changed |= K::remove(self, key);
        }
        changed
    }

    /// Takes in a NodeClaim that we have just created, so that the next plan counts it even where the watch is late.
    /// Does nothing where the watch was faster.
    pub fn seed(&mut self, claim: &NodeClaim) -> bool {
        let was_deleted = claim
            .metadata
            .uid
            .as_ref()
            .is_some_and(|uid| self.tombstones.contains(uid));
        let is_known = self.node_claims.contains_key(&claim.key());
        !was_deleted && !is_known && self.apply(claim)
    }

    /// Whether every kind has been listed once. Before that, decisions would be made on half a cluster.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.unsynced().next().is_none()
    }

    /// The kinds that have not been listed yet.
    pub fn unsynced(&self) -> impl Iterator<Item = Kind> {
        let has_default_spread = !self.default_spread.constraints.is_empty();
        let of_default_spread = Kind::OF_DEFAULT_SPREAD
            .into_iter()
            .filter(move |_| has_default_spread);
        Kind::ALWAYS
            .into_iter()
            .chain(of_default_spread)
            .filter(|kind| !self.synced.contains(kind))
    }

    /// Everything that could not be used as written, by kind and object.
    pub fn problems(&self) -> impl Iterator<Item = ObjectProblem> {
        self.problems.iter().flat_map(|((kind, key), problems)| {
            problems.iter().map(|problem| ObjectProblem {
                kind: *kind,
                key: key.clone(),
                problem: problem.clone(),
            })
        })
    }

    /// What could not be used of one object.
    #[must_use]
    pub fn problems_of<K: Tracked>(&self, object: &K) -> &[Problem] {
        self.problems
            .get(&(K::KIND, object.key()))
            .map_or(&[], Vec::as_slice)
    }

    /// Names of the Nodes with this providerID, in order. There should be one.
    pub fn nodes_of(&self, provider_id: &str) -> impl Iterator<Item = &str> {
        let names = self.node_ids.names(Arc::from(bare(provider_id)));
        names.map(|name| &**name)
    }

    /// Names of the NodeClaims with this providerID, in order. There should be one.
    pub fn claims_of(&self, provider_id: &str) -> impl Iterator<Item = &str> {
        let names = self.claim_ids.names(Arc::from(bare(provider_id)));
        names.map(|name| &**name)
    }

    /// Whether a claim other than `claim`, made within that time of `made`, stays and has no Node yet.
    #[must_use]
    pub fn awaits_node_of_launch(
        &self,
        claim: &str,
        made: Timestamp,
        within: SignedDuration,
    ) -> bool {
        let mut siblings = self
            .node_claims
            .iter()
            .filter(|(key, entry)| *key.name != *claim && entry.is_of_launch(made, within));
        siblings.any(|(_, entry)| {
            let id = entry.provider_id();
            id.is_none_or(|id| self.node_ids.names(Arc::clone(id)).next().is_none())
        })
    }

    /// How many NodeClaims of the pool stay, and what capacity they have together (Karpenter: same).
    #[must_use]
    pub fn pool_total(&self, pool: &str) -> (usize, Resources) {
        let mut capacity = Resources::default();
        let members = self.node_claims.values().filter(|it| it.stays_in(pool));
        let count = members
            .map(|member| member.add_capacity(&mut capacity))
            .count();
        (count, capacity)
    }

    /// How many pods on the Node must run elsewhere when it goes.
    #[must_use]
    pub fn reschedulable_pods(&self, node: &str) -> usize {
        let pods = self.bound.on(node).into_iter().flat_map(|it| &it.pods);
        pods.filter(|pod| pod.is_reschedulable()).count()
    }

    /// Whether the pod is there and waits for a node.
    #[must_use]
    pub fn is_waiting(&self, namespace: &Arc<str>, name: &Arc<str>, uid: &PodUid) -> bool {
        let pod = self.pods.get(&ObjectKey::pod(namespace, name));
        pod.is_some_and(|it| it.waiting.is_some() && it.pod.uid == *uid)
    }

    /// Remembers that pods are expected on a node until then, so that nothing disrupts it.
    pub fn nominate(&mut self, target: &PlacementTarget, until: Timestamp) {
        self.nominations.nominate(target, until);
    }

    /// Remembers that the pod is expected on a node until it has one, or until then, so that nothing disrupts that node.
    pub fn expect(&mut self, pod: PodUid, target: &PlacementTarget, until: Timestamp) {
        self.nominations.expect(pod, target, until);
    }

    /// Marks the node of a NodeClaim as chosen for removal: no new pods are planned on it, and its own elsewhere.
    pub fn mark_for_deletion(&mut self, claim: &str) {
        self.nominations.mark(claim);
    }

    /// Takes a mark back, after a command that was given up.
    pub fn unmark_for_deletion(&mut self, claim: &str) {
        self.nominations.unmark(claim);
    }

    /// Remembers which pods a plan has just looked at: what kube-scheduler says of them later is no news. `are_alike` says
    /// whether each of them can take the place of any other.
    pub fn note_planned(&mut self, pods: impl IntoIterator<Item = PodUid>, are_alike: bool) {
        self.planned = Planned {
            pods: pods.into_iter().collect(),
            are_alike,
        };
    }

    /// How many pods the last plan looked at.
    #[must_use]
    pub fn planned_pods(&self) -> usize {
        self.planned.pods.len()
    }

    /// Whether each of those pods can take the place of any other.
    #[must_use]
    pub fn planned_pods_are_alike(&self) -> bool {
        self.planned.are_alike
    }

    /// Whether the last plan looked at the pod.
    pub(crate) fn is_planned(&self, pod: &PodUid) -> bool {
        self.planned.pods.contains(pod)
    }

    /// How many pods came and went so far, as far as plans care.
    #[must_use]
    pub fn pod_news(&self) -> PodNews {
        self.news
    }

    /// Sets the pods of a CapacityBuffer, or takes them away. Whether that changed anything.
    pub fn set_buffer(&mut self, key: String, buffer: Option<Buffer>) -> bool {
        match buffer {
            Some(buffer) if self.buffers.get(&key) == Some(&buffer) => false,
            Some(buffer) => {
                self.buffers.insert(key, buffer);
                true
            }
            None => self.buffers.remove(&key).is_some(),
        }
    }

    /// Forgets the CapacityBuffers that are not among these. Whether that changed anything.
    pub fn retain_buffers(&mut self, keys: &BTreeSet<String>) -> bool {
        let before = self.buffers.len();
        self.buffers.retain(|key, _| keys.contains(key));
        self.buffers.len() != before
    }

    /// There are CapacityBuffers, and nobody knows where their room is: until a plan says so, every node counts as
    /// holding some.
    pub fn expect_buffers(&mut self) {
        self.nominations.expect_buffers();
    }

    /// Where the last plan put the virtual pods. Whether that is news.
    pub fn set_buffer_places(&mut self, places: BTreeMap<PlacementTarget, u32>) -> bool {
        self.nominations.set_buffer_places(places)
    }

    /// Forgets nominations that have ended.
    pub fn forget_ended(&mut self, now: Timestamp) {
        self.nominations.forget_ended(now);
    }

    /// The world as decisions see it. Equal indexes and times give equal snapshots.
    #[must_use]
    pub fn snapshot(&self, catalog: &Catalog, settings: Settings, now: Timestamp) -> Arc<Snapshot> {
        let mut specs = self.default_spread.specs();
        let mut pending_pods = self.pending_pods(&mut specs, now);
        let virtual_pods = self.buffers.values().flat_map(Buffer::virtual_pods);
        pending_pods.extend(virtual_pods.map(Arc::new));
        let join = Join::new(&self.tables(), |node| self.pods_on(node, &mut specs));
        Arc::new(Snapshot {
            pools: self
                .node_pools
                .values()
                .map(|pool| Arc::new(self.pool(pool, catalog)))
                .collect(),
            nodes: join.all(),
            pending_pods,
            daemon_pods: self.daemon_pods(),
            pod_budgets: self.pod_budgets.values().cloned().collect(),
            namespaces: self
                .namespaces
                .iter()
                .map(|(key, labels)| (key.name.to_string(), labels.clone()))
                .collect(),
            settings,
        })
    }

    /// The nodes of these claims as [`Self::snapshot`] has them; those that are gone are left out.
    #[must_use]
    pub fn nodes_of_claims<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<Arc<Node>> {
        let mut specs = self.default_spread.specs();
        Join::new(&self.tables(), |node| self.pods_on(node, &mut specs)).of_claims(names)
    }

    fn tables(&self) -> Tables<'_> {
        Tables {
            nodes: &self.nodes,
            claims: &self.node_claims,
            attachment_limits: &self.csi_nodes,
            nominations: &self.nominations,
        }
    }

    /// The pods that a plan looks at, by namespace and name.
    fn pending_pods<'a>(
        &'a self,
        specs: &mut default_spread::Specs<'a>,
        now: Timestamp,
    ) -> Vec<Arc<Pod>> {
        let (last_verdict, least_priority) =
            (self.sets.last_verdict(), self.bound.least_priority());
        let scheduler = Scheduler::new(last_verdict, least_priority, now);
        let waiting = self.sets.waiting().filter_map(|key| self.pods.get(key));
        let planned = waiting.filter(|entry| scheduler.leaves(entry));
        planned.map(|entry| self.resolved(entry, specs)).collect()
    }

    fn daemon_pods(&self) -> Vec<DaemonPod> {
        let newest = |uid: &str| self.pods.get(self.sets.newest_daemon(uid)?);
        daemons::daemon_pods(&self.daemon_sets, newest)
    }

    /// The pods on a node. Few have volumes or get constraints, so most lists are as the index has them.
    fn pods_on<'a>(&'a self, node: &str, specs: &mut default_spread::Specs<'a>) -> BoundPods {
        let Some(here) = self.bound.on(node) else {
            return BoundPods::default();
        };
        if here.with_volumes == 0 && self.default_spread.constraints.is_empty() {
            return here.pods.clone();
        }
        let resolved = here.pods.iter().map(|pod| {
            let entry = self.pods.get(&ObjectKey::pod(&pod.namespace, &pod.name));
            entry.map_or_else(|| Arc::clone(pod), |entry| self.resolved(entry, specs))
        });
        resolved.collect()
    }

    fn pool(&self, converted: &Converted, catalog: &Catalog) -> NodePool {
        let Converted { pool, problems, .. } = converted;
        let offers = catalog.get(&pool.name);
        let not_ready = pools::not_ready(&pool.template.node_class, problems, &self.node_classes);
        let not_ready = not_ready.or_else(|| {
            let is_unknown = offers.is_none();
            is_unknown.then(|| {
                "InstanceTypesUnknown: the cloud's catalog has not been read yet".to_owned()
            })
        });
        let offers = offers.cloned().unwrap_or_default();
        NodePool {
            instance_types: offers.instance_types,
            free_ips: offers.free_ips,
            is_zone_balanced: offers.is_zone_balanced,
            not_ready,
            ..pool.clone()
        }
    }

    /// The pod with what depends on other objects: default spread constraints and volumes.
    fn resolved<'a>(
        &'a self,
        entry: &'a PodEntry,
        specs: &mut default_spread::Specs<'a>,
    ) -> Arc<Pod> {
        let mut spec = specs.with_constraints(entry);
        if !entry.claims().is_empty() {
            let storage = Storage {
                claims: &self.volume_claims,
                volumes: &self.volumes,
                classes: &self.storage_classes,
            };
            let claims = entry.claims().iter();
            let volumes = claims
                .map(|name| storage.resolve(&entry.pod.namespace, name))
                .collect();
            let without = spec.as_ref().unwrap_or(&entry.pod.spec);
            spec = Some(Arc::new(PodSpec {
                volumes,
                ..(**without).clone()
            }));
        }
        match spec {
            Some(spec) => Arc::new(Pod {
                spec,
                ..(*entry.pod).clone()
            }),
            None => Arc::clone(&entry.pod),
        }
    }

    /// Takes a pod that was removed out of what is kept of pods.
    pub(crate) fn forget(&mut self, key: &ObjectKey, pod: &PodEntry) {
        self.bound.remove(pod);
        self.sets.remove(key, pod);
    }

    pub(crate) fn note_problems(&mut self, kind: Kind, key: &ObjectKey, problems: Vec<Problem>) {
        if problems.is_empty() {
            self.problems.remove(&(kind, key.clone()));
        } else {
            self.problems.insert((kind, key.clone()), problems);
        }
    }

    /// Of a Node or a NodeClaim, as the index has it.
    pub(crate) fn provider_id(&self, kind: Kind, key: &ObjectKey) -> Option<Arc<str>> {
        match kind {
            Kind::Node => self.nodes.get(key)?.provider_id().cloned(),
            Kind::NodeClaim => self.node_claims.get(key)?.provider_id().cloned(),
            _ => None,
        }
    }

    /// Takes in that an object was put or removed, which had that providerID before.
    pub(crate) fn note_provider_id(
        &mut self,
        kind: Kind,
        key: &ObjectKey,
        before: Option<Arc<str>>,
    ) {
        let now = self.provider_id(kind, key);
        if kind == Kind::Node {
            self.node_ids.change(&key.name, before, now);
            if !self.nodes.get(key).is_some_and(NodeEntry::is_leaving) {
                self.leaving.remove(&*key.name);
            } else if self.leaving.insert(key.name.to_string()) {
                self.news.left += 1;
            }
        } else if kind == Kind::NodeClaim {
            self.claim_ids.change(&key.name, before, now);
        }
    }

    fn remember_deletion(&mut self, uid: Option<&str>, claim: &ObjectKey) {
        self.nominations.unmark(&claim.name);
        if let Some(uid) = uid {
            if self.tombstones.len() == TOMBSTONES_MAX {
                self.tombstones.pop_front();
            }
            self.tombstones.push_back(uid.to_owned());
        }
    }
}
