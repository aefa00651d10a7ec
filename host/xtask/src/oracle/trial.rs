//! One case on the real control plane: its nodes, its daemons, then the pods in the order of the plan.
//!
//! A pod is pinned to its planned node by a required `matchFields` term on the node's name. Where a hard spread
//! constraint honours node affinity, that term would leave it one node to look at and so switch it off; such a pod asks
//! for a resource that only its node has instead.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use kerf_core::ids::PodUid;
use kerf_core::plan::PlacementTarget;
use kerf_core::pod::{NodeInclusionPolicy, Pod, PodSpec, WhenUnsatisfiable};
use kerf_core::reason::UnschedulableReason;
use kerf_core::{Plan, Preferences, Snapshot, WorkBudget, schedule};
use serde_json::{Value, json};

use super::api::Api;
use super::case::{self, Case};
use super::cluster::{Cluster, Outcome};
use super::dice::Dice;
use super::machines::{self, Machine};
use super::manifest::REQUIRED;

/// What every fresh node has, so that a pod can ask for any of them.
const FRESH_PIN: &str = "oracle.kerf/fresh";
/// Draws that are the trial's own.
const TRIAL: u64 = 1 << 32;

/// What a case showed.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) mismatches: Vec<String>,
    pub(super) placed: usize,
    pub(super) unschedulable: usize,
    pub(super) unbound_free: usize,
}

/// What kerf makes of a case.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) plan: Plan,
}

/// The plan of a case.
pub(super) fn plan(case: &Case) -> Result<Planned> {
    let snapshot = case.snapshot()?;
    let plan = schedule(
        &snapshot,
        &Preferences::none(),
        WorkBudget::ROUND,
        Timestamp::UNIX_EPOCH,
    );
    Ok(Planned { snapshot, plan })
}

pub(super) fn run(api: &Api, case: &Case, planned: &Planned) -> Result<Verdict> {
    let mut trial = Trial {
        cluster: Cluster::new(api, case),
        case,
        snapshot: &planned.snapshot,
        plan: &planned.plan,
        verdict: Verdict::default(),
    };
    let result = trial.steps();
    trial.cluster.clean()?;
    result?;
    Ok(trial.verdict)
}

#[derive(Debug)]
struct Trial<'a> {
    cluster: Cluster<'a>,
    case: &'a Case,
    snapshot: &'a Snapshot,
    plan: &'a Plan,
    verdict: Verdict,
}

impl Trial<'_> {
    fn steps(&mut self) -> Result<()> {
        for claim in &self.plan.new_claims {
            if claim.offerings.is_empty() {
                let text = format!(
                    "LAUNCHES NOTHING: a claim of {} has no offering",
                    claim.pool
                );
                self.verdict.mismatches.push(text);
            }
        }
        if !self.verdict.mismatches.is_empty() {
            return Ok(());
        }
        let targets = self.build()?;
        self.offer_planned(&targets)?;
        self.offer_unschedulable()?;
        self.offer_freely(&targets)
    }

    /// Creates everything but the pending pods; returns the planned node of each pod by its uid.
    fn build(&mut self) -> Result<BTreeMap<String, String>> {
        self.cluster.create_all("Namespace")?;
        for node in &self.snapshot.nodes {
            let machine = Machine::existing(node);
            let pin = own_pin(&machine.name);
            self.cluster.create_node(&machine, &[&pin])?;
            // The pods of a node that is being removed have been evicted.
            for pod in node.pods.iter().filter(|_| !node.is_marked_for_deletion) {
                self.cluster.create_bound_pod(self.object(pod)?)?;
            }
        }
        let mut targets = BTreeMap::new();
        for placement in &self.plan.placements {
            let node = match &placement.node {
                PlacementTarget::Node(name) => name.to_string(),
                PlacementTarget::InFlight(name) => name.to_string(),
            };
            targets.insert(placement.pod.uid.to_string(), node);
        }
        self.build_planned(&mut targets)?;
        for kind in ["StorageClass", "PersistentVolume", "PersistentVolumeClaim"] {
            self.cluster.create_all(kind)?;
        }
        self.cluster.await_volumes()?;
        self.cluster.create_all("DaemonSet")?;
        self.cluster.await_daemons()?;
        Ok(targets)
    }

    fn build_planned(&self, targets: &mut BTreeMap<String, String>) -> Result<()> {
        let mut dice = Dice::new(self.case.seed.wrapping_add(TRIAL));
        for (idx, claim) in self.plan.new_claims.iter().enumerate() {
            let name = format!("case-{}-new-{idx}", self.case.seed);
            let pools = &self.snapshot.pools;
            let pool = pools.iter().find(|pool| pool.name == claim.pool);
            let Some(pool) = pool.filter(|_| !claim.offerings.is_empty()) else {
                bail!("claim {idx} has no pool or no offering: {claim:?}");
            };
            // All offerings of a claim hold its pods, so any will do.
            let offering = &claim.offerings[dice.index(claim.offerings.len())];
            let machine = Machine::planned(&name, claim, offering, pool);
            self.cluster.create_node(&machine, &[&own_pin(&name)])?;
            for pod in &claim.pods {
                targets.insert(pod.uid.to_string(), name.clone());
            }
        }
        Ok(())
    }

    fn object(&self, pod: &Pod) -> Result<&Value> {
        self.case
            .pod(&pod.namespace, &pod.name)
            .with_context(|| format!("the plan has a pod {} that the case has not", pod.name))
    }

    /// Every pod on its planned node, in the order of the plan.
    fn offer_planned(&mut self, targets: &BTreeMap<String, String>) -> Result<()> {
        let homeless = homeless(self.snapshot);
        let offered = self.in_order(&homeless, targets);
        self.verdict.placed = offered.len();
        for (idx, (pod, node)) in offered.iter().enumerate() {
            // A higher priority would overtake those that still wait, and the plan's order is what is tried.
            let overtakes = idx > 0 && offered[idx - 1].0.spec.priority < pod.spec.priority;
            if overtakes {
                self.cluster.settle("planned", idx)?;
            }
            let change = |object: &mut Value| pin(object, &pod.spec, node);
            self.cluster
                .create_pod(self.object(pod)?, "planned", change)?;
        }
        for refused in self.cluster.settle("planned", offered.len())? {
            let found = offered.iter().find(|(pod, _)| is_of(&refused, pod));
            if let (None, Some((pod, node))) = (&refused.node, found) {
                let text = format!(
                    "REFUSED {} on {node}: {}\n    pod: {}",
                    refused.name,
                    refused.message,
                    self.short(pod)
                );
                self.verdict.mismatches.push(text);
            }
        }
        Ok(())
    }

    /// The pods with their planned nodes in the plan's order; notes which have both or neither of a place and a refusal.
    fn in_order<'p>(
        &mut self,
        homeless: &'p [Arc<Pod>],
        targets: &'p BTreeMap<String, String>,
    ) -> Vec<(&'p Arc<Pod>, &'p str)> {
        let pods: BTreeMap<&PodUid, &Arc<Pod>> = homeless.iter().map(|it| (&it.uid, it)).collect();
        let mut offered = Vec::new();
        for uid in &self.plan.order {
            let (Some(pod), Some(node)) = (pods.get(uid), targets.get(&*uid.text())) else {
                let text = format!("{uid} is in the order of the plan, but has no place");
                self.verdict.mismatches.push(text);
                continue;
            };
            offered.push((*pod, node.as_str()));
        }
        for pod in homeless {
            let mut groups = self.plan.unschedulable.iter();
            let is_refused = groups.any(|it| it.pods.iter().any(|refused| refused.uid == pod.uid));
            if is_refused == targets.contains_key(&*pod.uid.text()) {
                let text = format!("{} has a place and a refusal, or neither", pod.name);
                self.verdict.mismatches.push(text);
            }
        }
        offered
    }

    /// The pods that we called unschedulable, to a fresh node of each shape.
    fn offer_unschedulable(&mut self) -> Result<()> {
        let mut offered: Vec<(&Arc<Pod>, String)> = Vec::new();
        for group in &self.plan.unschedulable {
            self.verdict.unschedulable += group.pods.len();
            if !matches!(group.reason, UnschedulableReason::Gated { .. }) {
                let pods = group.pods.iter();
                offered.extend(pods.map(|pod| (pod, group.reason.to_string())));
            }
        }
        if offered.is_empty() {
            return Ok(());
        }
        let fresh = machines::fresh(self.case.seed, self.snapshot, self.plan);
        for machine in &fresh {
            let pins = [&*own_pin(&machine.name), FRESH_PIN];
            self.cluster.create_node(machine, &pins)?;
        }
        self.cluster.await_daemons()?;
        for (pod, _) in &offered {
            let change = |object: &mut Value| ask_for(object, FRESH_PIN);
            self.cluster
                .create_pod(self.object(pod)?, "fresh", change)?;
        }
        for bound in self.cluster.settle("fresh", offered.len())? {
            let Some(node) = &bound.node else { continue };
            let found = offered.iter().find(|(pod, _)| is_of(&bound, pod));
            let shape = fresh.iter().find(|machine| machine.name == *node);
            if let (Some((pod, reason)), Some(shape)) = (found, shape) {
                let text = format!(
                    "BINDS {} on a fresh node {:?}\n    we said: {reason}\n    pod: {}",
                    bound.name,
                    shape.labels,
                    self.short(pod)
                );
                self.verdict.mismatches.push(text);
            }
        }
        Ok(())
    }

    /// The planned pods on the planned nodes, as kube-scheduler likes.
    fn offer_freely(&mut self, targets: &BTreeMap<String, String>) -> Result<()> {
        self.cluster.delete_pods("planned")?;
        self.cluster.delete_pods("fresh")?;
        if self.verdict.unschedulable > 0 {
            for machine in machines::fresh(self.case.seed, self.snapshot, self.plan) {
                self.cluster.delete_node(&machine.name)?;
            }
        }
        let mut count = 0;
        for pod in &homeless(self.snapshot) {
            if targets.contains_key(&*pod.uid.text()) {
                self.cluster.create_pod(self.object(pod)?, "free", |_| {})?;
                count += 1;
            }
        }
        let outcomes = self.cluster.settle("free", count)?;
        self.verdict.unbound_free = outcomes.iter().filter(|it| it.node.is_none()).count();
        Ok(())
    }

    /// The pod without what is empty.
    fn short(&self, pod: &Pod) -> Value {
        let mut object = self.object(pod).cloned().unwrap_or_default();
        case::prune(&mut object);
        json!({"labels": object["metadata"]["labels"], "spec": object["spec"]})
    }
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

fn is_of(outcome: &Outcome, pod: &Pod) -> bool {
    *pod.name == outcome.name && *pod.namespace == outcome.namespace
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
