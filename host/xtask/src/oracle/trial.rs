//! One case on the real control plane: its nodes, its daemons, then the pods in the order of the plan.
//!
//! A pod is pinned to its planned node by a required `matchFields` term on the node's name. Where a hard spread
//! constraint honours node affinity, that term would leave it one node to look at and so switch it off; such a pod asks
//! for a resource that only its node has instead.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use jiff::Timestamp;
use kerf_core::plan::PlacementTarget;
use kerf_core::pod::{NodeInclusionPolicy, Pod, PodSpec, WhenUnsatisfiable};
use kerf_core::reason::UnschedulableReason;
use kerf_core::resources::Resources;
use kerf_core::{Plan, Preferences, Snapshot, WorkBudget, schedule};
use serde_json::{Value, json};

use super::api::Api;
use super::case::Case;
use super::dice::Dice;
use super::machines::{self, Machine};
use super::manifest::{self, REQUIRED, RUN_LABEL};

/// How long nothing may change before an unbound pod counts as refused: kube-scheduler tries again after 1 s, then 2 s.
const QUIET: Duration = Duration::from_millis(2500);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The daemonset controller has seen new nodes by then.
const DAEMONS_NOTICE: Duration = Duration::from_millis(500);
const DAEMONS_TIMEOUT: Duration = Duration::from_secs(20);
/// Marks the pods of one step, so that they can be listed apart.
const STEP_LABEL: &str = "oracle.kerf/step";
/// What every fresh node has, so that a pod can ask for any of them.
const FRESH_PIN: &str = "oracle.kerf/fresh";
const PIN_AMOUNT: i64 = 1000;

/// What a case showed.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) mismatches: Vec<String>,
    pub(super) placed: usize,
    pub(super) unschedulable: usize,
    pub(super) unbound_free: usize,
}

#[derive(Debug)]
struct Trial<'a> {
    api: &'a Api,
    case: &'a Case,
    plan: Plan,
    verdict: Verdict,
}

/// A pod of a step and where it went.
#[derive(Debug)]
struct Outcome {
    name: String,
    namespace: String,
    node: Option<String>,
    message: String,
}

/// The plan of a case.
pub(super) fn plan(case: &Case) -> Plan {
    schedule(
        &case.snapshot,
        &Preferences::none(),
        WorkBudget::ROUND,
        Timestamp::UNIX_EPOCH,
    )
}

pub(super) fn run(api: &Api, case: &Case, plan: Plan) -> Result<Verdict> {
    let mut trial = Trial {
        api,
        case,
        plan,
        verdict: Verdict::default(),
    };
    let result = trial.steps();
    trial.clean()?;
    result?;
    Ok(trial.verdict)
}

/// The pods that look for a place: those that wait, and those of nodes that are being removed.
fn homeless(snapshot: &Snapshot) -> Vec<Arc<Pod>> {
    let leaving = snapshot
        .nodes
        .iter()
        .filter(|node| node.is_marked_for_deletion);
    let pods = snapshot
        .pending_pods
        .iter()
        .chain(leaving.flat_map(|node| &node.pods));
    pods.cloned().collect()
}

impl Trial<'_> {
    fn steps(&mut self) -> Result<()> {
        let targets = self.build()?;
        self.offer_planned(&targets)?;
        self.offer_unschedulable()?;
        self.offer_freely(&targets)
    }

    /// Creates everything but the pending pods; returns the planned node of each pod by its uid.
    fn build(&mut self) -> Result<BTreeMap<String, String>> {
        let snapshot = &self.case.snapshot;
        for (name, labels) in &snapshot.namespaces {
            self.api.create(&json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels},
            }))?;
        }
        let mut targets = BTreeMap::new();
        for node in &snapshot.nodes {
            self.create_node(&Machine::existing(node), None)?;
            // The pods of a node that is being removed have been evicted.
            for pod in node.pods.iter().filter(|_| !node.is_marked_for_deletion) {
                let mut object = manifest::pod(&pod.namespace, &pod.name, &pod.spec);
                object["spec"]["nodeName"] = json!(node.display_name());
                self.api.create(&object)?;
            }
        }
        for placement in &self.plan.placements {
            let node = match &placement.node {
                PlacementTarget::Node(name) => name.to_string(),
                PlacementTarget::InFlight(name) => name.to_string(),
            };
            targets.insert(placement.pod.uid.to_string(), node);
        }
        let mut dice = Dice::new(self.case.seed.wrapping_add(1 << 32));
        for (idx, claim) in self.plan.new_claims.iter().enumerate() {
            let name = format!("case-{}-new-{idx}", self.case.seed);
            let pool = snapshot.pools.iter().find(|pool| pool.name == claim.pool);
            let Some(pool) = pool.filter(|_| !claim.offerings.is_empty()) else {
                bail!("claim {idx} has no pool or no offering: {claim:?}");
            };
            // All offerings of a claim hold its pods, so any will do.
            let offering = &claim.offerings[dice.index(claim.offerings.len())];
            self.create_node(&Machine::planned(&name, claim, offering, pool), None)?;
            for pod in &claim.pods {
                targets.insert(pod.uid.to_string(), name.clone());
            }
        }
        for pod in &snapshot.pending_pods {
            for volume in &pod.spec.volumes {
                for object in
                    manifest::bound_volume(&pod.namespace, &pod.name, &volume.alternatives)
                {
                    self.api.create(&object)?;
                }
            }
        }
        self.await_volumes()?;
        for daemon in &snapshot.daemon_pods {
            let object = manifest::daemon_set(&daemon.namespace, &daemon.name, &daemon.spec);
            self.api.create(&object)?;
        }
        self.await_daemons()?;
        Ok(targets)
    }

    fn create_node(&self, machine: &Machine, extra: Option<&str>) -> Result<()> {
        if !machine.attachment_limits.is_empty() {
            let limits = manifest::csi_node(&machine.name, &machine.attachment_limits);
            self.api.create(&limits)?;
        }
        let own = own_pin(&machine.name);
        let pinned = |resources: &Resources| {
            let resources = resources.clone().with(&own, PIN_AMOUNT);
            match extra {
                Some(extra) => resources.with(extra, PIN_AMOUNT),
                None => resources,
            }
        };
        let amounts = [&pinned(&machine.capacity), &pinned(&machine.allocatable)];
        self.api.create(&manifest::node(
            &machine.name,
            &machine.labels,
            &machine.taints,
            amounts,
        ))
    }

    /// Every pod on its planned node, in the order of the plan.
    fn offer_planned(&mut self, targets: &BTreeMap<String, String>) -> Result<()> {
        let homeless = homeless(&self.case.snapshot);
        let pods: BTreeMap<&str, &Arc<Pod>> = by_uid(&homeless);
        let mut offered = Vec::new();
        for uid in &self.plan.order {
            let (Some(pod), Some(node)) = (pods.get(&**uid), targets.get(&**uid)) else {
                let text = format!("{uid} is in the order of the plan, but has no place");
                self.verdict.mismatches.push(text);
                continue;
            };
            offered.push((*pod, node.as_str()));
        }
        for pod in &homeless {
            let is_refused = self
                .plan
                .unschedulable
                .iter()
                .any(|group| group.pods.iter().any(|refused| refused.uid == pod.uid));
            if is_refused == targets.contains_key(&*pod.uid) {
                let text = format!("{} has a place and a refusal, or neither", pod.name);
                self.verdict.mismatches.push(text);
            }
        }
        self.verdict.placed = offered.len();
        for (idx, (pod, node)) in offered.iter().enumerate() {
            // A higher priority would overtake those that still wait, and the plan's order is what is tried.
            let overtakes = idx > 0 && offered[idx - 1].0.spec.priority < pod.spec.priority;
            if overtakes {
                self.settle("planned", idx)?;
            }
            self.create_pod(pod, "planned", |object| pin(object, &pod.spec, node))?;
        }
        for refused in self.settle("planned", offered.len())? {
            if refused.node.is_none() {
                let found = offered.iter().find(|(pod, _)| {
                    *pod.name == refused.name && *pod.namespace == refused.namespace
                });
                let Some((pod, node)) = found else { continue };
                let text = format!(
                    "REFUSED {} on {node}: {}\n    pod: {}",
                    refused.name,
                    refused.message,
                    short(&pod.spec)
                );
                self.verdict.mismatches.push(text);
            }
        }
        Ok(())
    }

    /// The pods that we called unschedulable, to a fresh node of each shape.
    fn offer_unschedulable(&mut self) -> Result<()> {
        let mut offered: Vec<(Arc<Pod>, String)> = Vec::new();
        for group in &self.plan.unschedulable {
            self.verdict.unschedulable += group.pods.len();
            if !matches!(group.reason, UnschedulableReason::Gated { .. }) {
                let reason = group.reason.to_string();
                offered.extend(
                    group
                        .pods
                        .iter()
                        .map(|pod| (Arc::clone(pod), reason.clone())),
                );
            }
        }
        if offered.is_empty() {
            return Ok(());
        }
        let fresh = machines::fresh(self.case.seed, &self.case.snapshot, &self.plan);
        for machine in &fresh {
            self.create_node(machine, Some(FRESH_PIN))?;
        }
        self.await_daemons()?;
        for (pod, _) in &offered {
            self.create_pod(pod, "fresh", |object| ask_for(object, FRESH_PIN))?;
        }
        for bound in self.settle("fresh", offered.len())? {
            let Some(node) = bound.node else { continue };
            let found = offered
                .iter()
                .find(|(pod, _)| *pod.name == bound.name && *pod.namespace == bound.namespace);
            let shape = fresh.iter().find(|machine| machine.name == node);
            if let (Some((pod, reason)), Some(shape)) = (found, shape) {
                let text = format!(
                    "BINDS {} on a fresh node {:?}\n    we said: {reason}\n    pod: {}",
                    bound.name,
                    shape.labels,
                    short(&pod.spec)
                );
                self.verdict.mismatches.push(text);
            }
        }
        Ok(())
    }

    /// The planned pods on the planned nodes, as kube-scheduler likes.
    fn offer_freely(&mut self, targets: &BTreeMap<String, String>) -> Result<()> {
        self.delete_pods("planned")?;
        self.delete_pods("fresh")?;
        for machine in machines::fresh(self.case.seed, &self.case.snapshot, &self.plan) {
            if self.verdict.unschedulable > 0 {
                self.api
                    .delete(&format!("/api/v1/nodes/{}", machine.name))?;
                self.api.delete(&format!(
                    "/apis/storage.k8s.io/v1/csinodes/{}",
                    machine.name
                ))?;
            }
        }
        let mut count = 0;
        for pod in &homeless(&self.case.snapshot) {
            if targets.contains_key(&*pod.uid) {
                self.create_pod(pod, "free", |_| {})?;
                count += 1;
            }
        }
        let outcomes = self.settle("free", count)?;
        self.verdict.unbound_free = outcomes.iter().filter(|it| it.node.is_none()).count();
        Ok(())
    }

    fn create_pod(&self, pod: &Pod, step: &str, change: impl FnOnce(&mut Value)) -> Result<()> {
        let mut object = manifest::pod(&pod.namespace, &pod.name, &pod.spec);
        object["metadata"]["labels"][STEP_LABEL] = json!(step);
        change(&mut object);
        self.api.create(&object)
    }

    /// Waits until every pod is bound, or nothing has changed for a while.
    fn settle(&self, step: &str, count: usize) -> Result<Vec<Outcome>> {
        let path = format!("/api/v1/pods?labelSelector={STEP_LABEL}%3D{step}");
        let mut last = (0, 0);
        let mut changed = Instant::now();
        loop {
            let outcomes: Vec<Outcome> = self.api.list(&path)?.iter().map(outcome).collect();
            let bound = outcomes.iter().filter(|it| it.node.is_some()).count();
            let judged = bound + outcomes.iter().filter(|it| !it.message.is_empty()).count();
            if bound == count {
                return Ok(outcomes);
            }
            if (bound, judged) != last {
                last = (bound, judged);
                changed = Instant::now();
            } else if judged >= count
                && (changed.elapsed() > QUIET || (bound == 0 && self.saw_all_nodes(&outcomes)?))
            {
                return Ok(outcomes);
            } else if changed.elapsed() > DAEMONS_TIMEOUT {
                bail!(
                    "kube-scheduler has not judged {} of {count} pods",
                    count - judged
                );
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Whether every refusal speaks of every node. While no pod is bound nothing can change it any more.
    fn saw_all_nodes(&self, outcomes: &[Outcome]) -> Result<bool> {
        let all = format!("0/{} nodes", self.api.list("/api/v1/nodes")?.len());
        Ok(outcomes.iter().all(|it| it.message.starts_with(&all)))
    }

    /// Waits until each daemonset has a pod on each of its nodes, and each of these has been judged.
    fn await_daemons(&self) -> Result<()> {
        if self.case.snapshot.daemon_pods.is_empty() {
            return Ok(());
        }
        thread::sleep(DAEMONS_NOTICE);
        let deadline = Instant::now() + DAEMONS_TIMEOUT;
        let selector = format!("labelSelector={RUN_LABEL}%3Dyes");
        loop {
            let sets = self
                .api
                .list(&format!("/apis/apps/v1/daemonsets?{selector}"))?;
            let wanted: u64 = sets
                .iter()
                .filter_map(|set| set["status"]["desiredNumberScheduled"].as_u64())
                .sum();
            let seen = sets
                .iter()
                .all(|set| set["status"]["observedGeneration"] == set["metadata"]["generation"]);
            let pods = self
                .api
                .list(&format!("/api/v1/pods?labelSelector={RUN_LABEL}%3Ddaemon"))?;
            let judged = pods
                .iter()
                .map(outcome)
                .filter(|it| it.node.is_some() || !it.message.is_empty());
            if seen && judged.count() as u64 >= wanted {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("the daemonsets have not settled");
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// kube-scheduler refuses a pod whose volume is not in its cache yet, and tries again too late for us.
    fn await_volumes(&self) -> Result<()> {
        let path = format!("/api/v1/persistentvolumeclaims?labelSelector={RUN_LABEL}%3Dyes");
        let deadline = Instant::now() + DAEMONS_TIMEOUT;
        loop {
            let claims = self.api.list(&path)?;
            if claims
                .iter()
                .all(|claim| claim["status"]["phase"] == "Bound")
            {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("the volumes have not been bound");
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn delete_pods(&self, step: &str) -> Result<()> {
        for namespace in self.case.snapshot.namespaces.keys() {
            self.api.delete(&format!(
                "/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0&labelSelector={STEP_LABEL}%3D{step}"
            ))?;
        }
        let path = format!("/api/v1/pods?labelSelector={STEP_LABEL}%3D{step}");
        let deadline = Instant::now() + DAEMONS_TIMEOUT;
        while !self.api.list(&path)?.is_empty() {
            if Instant::now() > deadline {
                bail!("pods of step {step} do not go away");
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Removes what other cases could see: daemonsets, pods, nodes, volumes. The namespaces stay, empty.
    fn clean(&self) -> Result<()> {
        for namespace in self.case.snapshot.namespaces.keys() {
            self.api
                .delete(&format!("/apis/apps/v1/namespaces/{namespace}/daemonsets"))?;
        }
        self.api.delete("/api/v1/nodes")?;
        self.api.delete("/apis/storage.k8s.io/v1/csinodes")?;
        for namespace in self.case.snapshot.namespaces.keys() {
            self.api.delete(&format!(
                "/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0"
            ))?;
            self.api.delete(&format!(
                "/api/v1/namespaces/{namespace}/persistentvolumeclaims"
            ))?;
        }
        self.api.delete("/api/v1/persistentvolumes")
    }
}

fn by_uid(pods: &[Arc<Pod>]) -> BTreeMap<&str, &Arc<Pod>> {
    pods.iter().map(|pod| (&*pod.uid, pod)).collect()
}

fn outcome(pod: &Value) -> Outcome {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = pod["status"]["conditions"].as_array();
    let refused = conditions
        .into_iter()
        .flatten()
        .find(|it| it["type"] == "PodScheduled" && it["status"] == "False");
    Outcome {
        name: text(&pod["metadata"]["name"]),
        namespace: text(&pod["metadata"]["namespace"]),
        node: pod["spec"]["nodeName"].as_str().map(str::to_owned),
        message: refused.map_or_else(String::new, |it| text(&it["message"])),
    }
}

fn pin(object: &mut Value, spec: &PodSpec, node: &str) {
    let term_would_blind = spec.topology_spread.iter().any(|it| {
        it.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule
            && it.node_affinity_policy == NodeInclusionPolicy::Honor
    });
    if term_would_blind {
        ask_for(object, &own_pin(node));
        return;
    }
    let field = json!([{"key": "metadata.name", "operator": "In", "values": [node]}]);
    let required = &mut object["spec"]["affinity"]["nodeAffinity"][REQUIRED];
    match required["nodeSelectorTerms"].as_array_mut() {
        // Terms are alternatives, so each of them needs it.
        Some(terms) => terms
            .iter_mut()
            .for_each(|term| term["matchFields"] = field.clone()),
        None => *required = json!({"nodeSelectorTerms": [{"matchFields": field}]}),
    }
}

fn ask_for(object: &mut Value, resource: &str) {
    let resources = &mut object["spec"]["containers"][0]["resources"];
    resources["requests"][resource] = json!("1");
    resources["limits"][resource] = json!("1");
}

fn own_pin(node: &str) -> String {
    format!("oracle.kerf/{node}")
}

/// The pod's spec without what is empty.
fn short(spec: &PodSpec) -> Value {
    let mut object = manifest::pod("", "", spec)["spec"].take();
    object["labels"] = json!(spec.labels);
    prune(&mut object);
    object
}

fn prune(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(prune);
            fields.retain(|_, field| {
                !field.is_null()
                    && field.as_array().is_none_or(|it| !it.is_empty())
                    && field.as_object().is_none_or(|it| !it.is_empty())
            });
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
