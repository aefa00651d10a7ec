//! The cluster index as the whole process shares it: short locks, and a bell for those who wait for changes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::ids::{NodeClaimName, PodUid};
use kerf_core::node::Node;
use kerf_core::plan::PlacementTarget;
use kerf_core::pod::are_alike;
use kerf_core::resources::Resources;
use kerf_core::snapshot::{Settings, Snapshot};
use kerf_state::{Catalog, Cluster};
use tokio::sync::watch;

/// The index and its bells.
#[derive(Debug)]
pub struct SharedCluster {
    index: RwLock<Cluster>,
    changes: watch::Sender<u64>,
    demand: watch::Sender<u64>,
    arrivals: watch::Sender<u64>,
    /// By node name. The claims' status has them too, a little later; a decision in between must not miss them.
    pod_events: Mutex<HashMap<Box<str>, Timestamp>>,
}

impl SharedCluster {
    /// Shares an index.
    #[must_use]
    pub fn new(index: Cluster) -> Self {
        Self {
            index: RwLock::new(index),
            changes: watch::Sender::new(0),
            demand: watch::Sender::new(0),
            arrivals: watch::Sender::new(0),
            pod_events: Mutex::default(),
        }
    }
}

/// What an update meant for those who wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that a decision looks at.
    None,
    /// Something changed.
    Changed,
    /// Something changed that can give pending pods a place.
    Demand,
    /// Pods came that need a place: more may follow.
    Arrival,
}

impl SharedCluster {
    /// The world as decisions see it.
    #[must_use]
    pub fn snapshot(&self, catalog: &Catalog, settings: Settings, now: Timestamp) -> Arc<Snapshot> {
        let mut snapshot = self.read(|index| index.snapshot(catalog, settings, now));
        self.add_pod_events(&mut Arc::make_mut(&mut snapshot).nodes);
        self.forget_pod_events(&snapshot.nodes);
        snapshot
    }

    /// The nodes of these claims as decisions see them; those that are gone are left out.
    #[must_use]
    pub fn nodes_of_claims(&self, names: &[String]) -> Vec<Arc<Node>> {
        let names = names.iter().map(String::as_str);
        let mut nodes = self.read(|index| index.nodes_of_claims(names));
        self.add_pod_events(&mut nodes);
        nodes
    }

    fn add_pod_events(&self, nodes: &mut [Arc<Node>]) {
        let events = self.pod_events();
        for node in nodes {
            let seen = node.name.as_ref().and_then(|it| events.get(it.as_str()));
            if let Some(at) = seen.copied().filter(|at| node.last_pod_event < Some(*at)) {
                Arc::make_mut(node).last_pod_event = Some(at);
            }
        }
    }

    /// Forgets the events of all other nodes: names come from addresses, and addresses are used again.
    fn forget_pod_events(&self, nodes: &[Arc<Node>]) {
        let names = nodes.iter().filter_map(|node| node.name.as_ref());
        let known: HashSet<&str> = names.map(|it| it.as_str()).collect();
        self.pod_events().retain(|node, _| known.contains(&**node));
    }

    fn pod_events(&self) -> MutexGuard<'_, HashMap<Box<str>, Timestamp>> {
        let events = self.pod_events.lock();
        events.unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the index and rings the bells that the effect asks for.
    pub fn update(&self, change: impl FnOnce(&mut Cluster) -> Effect) {
        let effect = change(&mut self.index.write().unwrap_or_else(PoisonError::into_inner));
        if effect != Effect::None {
            self.changes
                .send_modify(|count| *count = count.wrapping_add(1));
        }
        if matches!(effect, Effect::Demand | Effect::Arrival) {
            self.demand_changed();
        }
        if effect == Effect::Arrival {
            self.arrivals
                .send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    /// Moves the index together in memory; nobody can use it meanwhile.
    pub fn repack(&self) {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.repack();
    }

    /// Names of the Nodes with this provider id.
    #[must_use]
    pub fn nodes_of(&self, provider_id: &str) -> Vec<String> {
        self.read(|index| index.nodes_of(provider_id).map(str::to_owned).collect())
    }

    /// Names of the NodeClaims with this provider id.
    #[must_use]
    pub fn claims_of(&self, provider_id: &str) -> Vec<String> {
        self.read(|index| index.claims_of(provider_id).map(str::to_owned).collect())
    }

    /// Whether a claim other than `claim`, made within that time of `made`, stays and has no Node yet.
    #[must_use]
    pub fn awaits_node_of_launch(
        &self,
        claim: &str,
        made: Timestamp,
        within: SignedDuration,
    ) -> bool {
        self.read(|index| index.awaits_node_of_launch(claim, made, within))
    }

    /// How many NodeClaims of the pool stay, and what capacity they have together.
    #[must_use]
    pub fn pool_total(&self, pool: &str) -> (usize, Resources) {
        self.read(|index| index.pool_total(pool))
    }

    /// How many pods on the Node must run elsewhere when it goes.
    #[must_use]
    pub fn reschedulable_pods(&self, node: &str) -> usize {
        self.read(|index| index.reschedulable_pods(node))
    }

    /// Whether the pod is there and waits for a node.
    #[must_use]
    pub fn is_waiting(&self, namespace: &Arc<str>, name: &Arc<str>, uid: &PodUid) -> bool {
        self.read(|index| index.is_waiting(namespace, name, uid))
    }

    fn read<T>(&self, look: impl FnOnce(&Cluster) -> T) -> T {
        look(&self.index.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A claim that this process has written itself.
    pub fn apply_claim(&self, claim: &NodeClaim) {
        self.update(|index| {
            if index.seed(claim) {
                Effect::Changed
            } else {
                Effect::None
            }
        });
    }

    /// A claim that this process has decided to remove.
    pub fn mark_for_deletion(&self, claim: &NodeClaimName) {
        self.update(|index| {
            index.mark_for_deletion(claim);
            Effect::Demand
        });
    }

    /// A claim that stays after all.
    pub fn unmark_for_deletion(&self, claim: &NodeClaimName) {
        self.update(|index| {
            index.unmark_for_deletion(claim);
            Effect::Changed
        });
    }

    /// Pods are expected on these nodes for a while from now on.
    pub fn nominate<'a>(
        &self,
        targets: impl IntoIterator<Item = &'a PlacementTarget>,
        now: Timestamp,
        length: Duration,
    ) {
        let until = now.checked_add(length).unwrap_or(Timestamp::MAX);
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.forget_ended(now);
        for target in targets {
            index.nominate(target, until);
        }
    }

    /// These pods are expected on these nodes, for a while from now on at most.
    pub fn expect<'a>(
        &self,
        pods: impl IntoIterator<Item = (PodUid, &'a PlacementTarget)>,
        now: Timestamp,
        length: Duration,
    ) {
        let until = now.checked_add(length).unwrap_or(Timestamp::MAX);
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.forget_ended(now);
        for (pod, target) in pods {
            index.expect(pod, target, until);
        }
    }

    /// A plan has just looked at the pods of this snapshot.
    pub fn note_planned(&self, snapshot: &Snapshot) {
        let pending = &snapshot.pending_pods;
        let left = snapshot.nodes.iter().filter(|node| !node.is_active());
        let moving = left.flat_map(|node| node.pods.iter());
        let moving = moving.filter(|pod| pod.is_reschedulable());
        let are_alike = are_alike(pending.iter().chain(moving).map(|pod| &**pod));
        let uids: Vec<PodUid> = pending.iter().map(|pod| pod.uid.clone()).collect();
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.note_planned(uids, are_alike);
    }

    /// Whether the last plan looked at so many pods or more, of which not every one could take the place of every other.
    #[must_use]
    pub fn has_planned_a_mix(&self, least: usize) -> bool {
        self.read(|index| index.planned_pods() >= least && !index.planned_pods_are_alike())
    }

    /// A pod came to the node or left it.
    pub fn note_pod_event(&self, node: &str, at: Timestamp) {
        self.pod_events().insert(node.into(), at);
    }

    /// When a pod last came to the node or left it, as far as this process saw it.
    #[must_use]
    pub fn pod_event(&self, node: &str) -> Option<Timestamp> {
        self.pod_events().get(node).copied()
    }

    /// Rings when anything changed.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Rings when pods may need a new plan.
    #[must_use]
    pub fn demand(&self) -> watch::Receiver<u64> {
        self.demand.subscribe()
    }

    /// Rings when pods came that need a place and are in no plan yet.
    #[must_use]
    pub fn arrivals(&self) -> watch::Receiver<u64> {
        self.arrivals.subscribe()
    }

    /// Says so from outside the index: a class became usable, a policy changed.
    pub fn demand_changed(&self) {
        self.demand
            .send_modify(|count| *count = count.wrapping_add(1));
    }
}
