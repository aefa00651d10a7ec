//! What a replay has on stage: nodes, pods that run on them, pods that wait, and what it all costs.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kerf_core::disruption::Command;
use kerf_core::disruption::command::PromisedPlace;
use kerf_core::ids::PodUid;
use kerf_core::labels;
use kerf_core::node::Node;
use kerf_core::plan::{PlacementTarget, Plan, PlannedClaim};
use kerf_core::pod::Pod;
use kerf_core::price::Price;
use kerf_core::snapshot::Snapshot;

use crate::simulate::machine;

/// Why a pod waits that the plan does not speak of.
const WITHHELD: &str =
    "a policy with failurePolicy Fail gave no answer, so its NodeClaim is not made";

/// The world between two decisions.
pub(super) struct Stage {
    /// Pools, daemons, budgets: everything but nodes and pods.
    world: Snapshot,
    /// By the name of the NodeClaim, or of the Node where kerf does not manage it.
    nodes: BTreeMap<String, Standing>,
    /// Names of Nodes and NodeClaims, and the name that each is known by here.
    keys: BTreeMap<String, String>,
    /// The node of each pod that runs.
    homes: BTreeMap<PodUid, String>,
    /// Pods that no plan has seen yet.
    fresh: BTreeMap<PodUid, Arc<Pod>>,
    /// Pods that had no place, with the reason.
    refused: BTreeMap<PodUid, (Arc<Pod>, String)>,
    /// Nodes made so far, for names.
    made: usize,
    /// What all nodes cost per hour, in millionths.
    price_micros: u64,
    start: Timestamp,
    clock_secs: i64,
    figures: Figures,
    totals: Totals,
}

struct Standing {
    node: Arc<Node>,
    price: Price,
}

/// What happened since somebody asked last.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Figures {
    pub(super) arrived: usize,
    pub(super) left: usize,
    pub(super) launched: usize,
    pub(super) removed: usize,
    pub(super) moved: usize,
}

/// What happened from the beginning.
#[derive(Debug, Clone, Default)]
pub(super) struct Totals {
    /// Millionths of the currency, times the seconds of an hour.
    pub(super) bill: u128,
    pub(super) secs: i64,
    pub(super) nodes_peak: usize,
    pub(super) pending_peak: usize,
    pub(super) price_peak_micros: u64,
    /// Reasons of the pods that left, or still wait, without ever having had a place; each with one pod's name.
    pub(super) homeless: BTreeMap<String, (usize, String)>,
}

impl Stage {
    /// The nodes of the snapshot, ready, with their pods; its pending pods wait.
    pub(super) fn new(snapshot: Snapshot, start: Timestamp, clock_secs: i64) -> Self {
        let mut stage = Self {
            nodes: BTreeMap::new(),
            keys: BTreeMap::new(),
            homes: BTreeMap::new(),
            fresh: BTreeMap::new(),
            refused: BTreeMap::new(),
            made: 0,
            price_micros: 0,
            start,
            clock_secs,
            figures: Figures::default(),
            totals: Totals::default(),
            world: Snapshot {
                nodes: Vec::new(),
                pending_pods: Vec::new(),
                ..snapshot.clone()
            },
        };
        for pod in snapshot.pending_pods {
            stage.fresh.insert(pod.uid.clone(), pod);
        }
        for node in snapshot.nodes {
            if node.is_active() {
                let price = stage.price_of(&node);
                let mut node = Arc::unwrap_or_clone(node);
                let pods = std::mem::take(&mut node.pods);
                let key = node.node_claim.as_ref().map(ToString::to_string);
                let key = key.unwrap_or_else(|| node.display_name().to_owned());
                for pod in &pods {
                    stage.homes.insert(pod.uid.clone(), key.clone());
                }
                node.pods = pods;
                stage.put(&key, node, price);
            } else {
                // It is on its way out, and so are its pods.
                let moving = node.pods.iter().filter(|pod| pod.is_reschedulable());
                let moving = moving.map(|pod| (pod.uid.clone(), Arc::clone(pod)));
                stage.fresh.extend(moving);
            }
        }
        stage
    }

    /// The price of a node that exists, by its labels.
    fn price_of(&self, node: &Node) -> Price {
        let mut pools = self.world.pools.iter();
        let pool = pools.find(|pool| Some(&pool.name) == node.pool.as_ref());
        let offering = pool.and_then(|pool| pool.offering_of(node));
        offering.map_or(Price::UNKNOWN, |it| it.price)
    }

    pub(super) fn now(&self) -> Timestamp {
        let passed = SignedDuration::from_secs(self.clock_secs);
        self.start.checked_add(passed).unwrap_or(self.start)
    }

    /// Lets time pass, which costs.
    pub(super) fn go_to(&mut self, secs: i64) {
        let passed = (secs - self.clock_secs).max(0);
        self.totals.bill += u128::from(self.price_micros) * u128::from(passed.unsigned_abs());
        self.totals.secs += passed;
        self.clock_secs += passed;
    }

    /// The world with these pods waiting.
    pub(super) fn snapshot(&self, waiting: Vec<Arc<Pod>>) -> Snapshot {
        let nodes = self.nodes.values().map(|it| Arc::clone(&it.node));
        Snapshot {
            nodes: nodes.collect(),
            pending_pods: waiting,
            ..self.world.clone()
        }
    }

    pub(super) fn arrive(&mut self, pod: Arc<Pod>) {
        self.figures.arrived += 1;
        self.fresh.insert(pod.uid.clone(), pod);
    }

    /// Whether a pod is there and has no place.
    pub(super) fn waits(&self, pod: &Pod) -> bool {
        self.fresh.contains_key(&pod.uid) || self.refused.contains_key(&pod.uid)
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.fresh.is_empty() || !self.refused.is_empty()
    }

    /// The pods that wait; those that a plan has refused already only when `is_whole`.
    pub(super) fn waiting(&self, is_whole: bool) -> Vec<Arc<Pod>> {
        let refused = self.refused.values().filter(|_| is_whole);
        let refused = refused.map(|(pod, _)| pod);
        self.fresh.values().chain(refused).cloned().collect()
    }

    /// A pod ends, wherever it is.
    pub(super) fn leave(&mut self, pod: &Pod) {
        self.figures.left += 1;
        self.fresh.remove(&pod.uid);
        if let Some((pod, reason)) = self.refused.remove(&pod.uid) {
            self.totals.count_homeless(&pod, &reason);
        }
        self.take_off(pod);
    }

    fn take_off(&mut self, pod: &Pod) {
        let now = self.now();
        let home = self.homes.remove(&pod.uid);
        if let Some(standing) = home.and_then(|key| self.nodes.get_mut(&key)) {
            let node = Arc::make_mut(&mut standing.node);
            node.pods.retain(|it| it.uid != pod.uid);
            node.last_pod_event = Some(now);
        }
    }

    fn place(&mut self, pod: &Arc<Pod>, name: &str) {
        self.take_off(pod);
        self.fresh.remove(&pod.uid);
        self.refused.remove(&pod.uid);
        let now = self.now();
        let key = self.keys.get(name).cloned().unwrap_or_default();
        let Some(standing) = self.nodes.get_mut(&key) else {
            // A plan names no other nodes than those it was given; the pod would only wait.
            self.fresh.insert(pod.uid.clone(), Arc::clone(pod));
            return;
        };
        let node = Arc::make_mut(&mut standing.node);
        node.pods.push(Arc::new(Pod {
            is_ready: true,
            started_at: Some(now),
            ..(**pod).clone()
        }));
        node.last_pod_event = Some(now);
        self.homes.insert(pod.uid.clone(), key);
    }

    /// Launches a node, which is ready at once; its name.
    pub(super) fn launch(&mut self, claim: &PlannedClaim) -> String {
        self.made += 1;
        self.figures.launched += 1;
        let name = format!("{}-{:05}", claim.pool, self.made);
        let node = machine::on_its_way(&name, claim, &self.world.pools, self.now());
        self.put(&name, node, claim.price());
        name
    }

    /// Puts a node on stage as one that has started.
    fn put(&mut self, key: &str, mut node: Node, price: Price) {
        if node.name.is_none() {
            node.name = Some(key.into());
        }
        let name = node.display_name().to_owned();
        if !node.is_initialized && node.is_managed() {
            let ready = [
                (labels::REGISTERED, "true"),
                (labels::INITIALIZED, "true"),
                (labels::HOSTNAME, &name),
            ];
            node.labels = node.labels.with(&ready.into_iter().collect());
            node.is_launched = true;
            node.is_registered = true;
            node.is_initialized = true;
            node.is_ready = true;
            node.initialized_at = Some(self.now());
        }
        self.keys.insert(name, key.to_owned());
        self.keys.insert(key.to_owned(), key.to_owned());
        self.price_micros += known_micros(price);
        let node = Arc::new(node);
        self.nodes.insert(key.to_owned(), Standing { node, price });
        self.totals.nodes_peak = self.totals.nodes_peak.max(self.nodes.len());
        self.totals.price_peak_micros = self.totals.price_peak_micros.max(self.price_micros);
    }

    /// Removes a node; its pods that must run again wait.
    fn remove(&mut self, claim: &str) {
        let Some(Standing { node, price }) = self.nodes.remove(claim) else {
            return;
        };
        self.figures.removed += 1;
        self.price_micros -= known_micros(price);
        self.keys.remove(node.display_name());
        self.keys.remove(claim);
        for pod in &node.pods {
            self.homes.remove(&pod.uid);
            if pod.is_reschedulable() {
                self.fresh.insert(pod.uid.clone(), Arc::clone(pod));
            }
        }
    }

    /// Does what a plan says.
    pub(super) fn carry_out(&mut self, plan: &Plan) {
        for placement in &plan.placements {
            self.place(&placement.pod, target(&placement.node));
        }
        for claim in &plan.new_claims {
            let name = self.launch(claim);
            for pod in &claim.pods {
                self.place(pod, &name);
            }
        }
        for (uid, pod) in std::mem::take(&mut self.fresh) {
            self.refused.insert(uid, (pod, WITHHELD.to_owned()));
        }
        for group in &plan.unschedulable {
            let reason = group.reason.to_string();
            for pod in &group.pods {
                if let Some((_, known)) = self.refused.get_mut(&pod.uid) {
                    known.clone_from(&reason);
                }
            }
        }
        self.totals.pending_peak = self.totals.pending_peak.max(self.refused.len());
    }

    /// Does what was decided about nodes: replacements come, nodes go, pods move to where they were promised a place.
    pub(super) fn disrupt(&mut self, commands: &[Command]) {
        for command in commands {
            let replacements = command.replacements.iter();
            let names: Vec<String> = replacements.map(|it| self.launch(it)).collect();
            for claim in command.claims() {
                self.remove(claim);
            }
            for promise in &command.promises {
                let name = match &promise.place {
                    PromisedPlace::Node(node) => Some(target(node)),
                    PromisedPlace::Replacement(index) => names.get(*index).map(String::as_str),
                };
                if let Some(name) = name {
                    self.figures.moved += 1;
                    self.place(&promise.pod, name);
                }
            }
        }
    }

    /// What happened since the last call.
    pub(super) fn take_figures(&mut self) -> Figures {
        std::mem::take(&mut self.figures)
    }

    /// What happened from the beginning, pods that wait now among those without a place.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = self.totals.clone();
        for (pod, reason) in self.refused.values() {
            totals.count_homeless(pod, reason);
        }
        totals
    }

    pub(super) fn running(&self) -> usize {
        self.homes.len()
    }

    pub(super) fn pending(&self) -> usize {
        self.fresh.len() + self.refused.len()
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn price(&self) -> Price {
        Price::from_micros(self.price_micros)
    }
}

impl Totals {
    fn count_homeless(&mut self, pod: &Pod, reason: &str) {
        let name = || format!("{}/{}", pod.namespace, pod.name);
        let (count, _) = self
            .homeless
            .entry(reason.to_owned())
            .or_insert_with(|| (0, name()));
        *count += 1;
    }
}

fn target(node: &PlacementTarget) -> &str {
    match node {
        PlacementTarget::Node(name) => name,
        PlacementTarget::InFlight(name) => name,
    }
}

/// What a price adds to a sum: nothing where it is unknown.
fn known_micros(price: Price) -> u64 {
    if price.is_known() { price.micros() } else { 0 }
}
