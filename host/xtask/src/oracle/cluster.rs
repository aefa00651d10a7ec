//! The objects of one case on the real control plane: created, waited for, and removed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use kerf_core::labels;
use kerf_core::resources::Resources;
use serde_json::{Value, json};

use super::api::Api;
use super::case::{Case, name, namespace};
use super::machines::Machine;
use super::manifest::{self, RUN_LABEL};

/// How long nothing may change before an unbound pod counts as refused: kube-scheduler tries again after 1 s, then 2 s.
const QUIET: Duration = Duration::from_millis(2500);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The daemonset controller has seen new nodes by then.
const DAEMONS_NOTICE: Duration = Duration::from_millis(500);
/// Far above what any step takes on a machine on which others compile.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);
/// Marks the pods of one step, so that they can be listed apart.
const STEP_LABEL: &str = "oracle.kerf/step";
const PIN_AMOUNT: i64 = 1000;
/// Where kube-scheduler writes the node for which a volume is to be made.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

#[derive(Debug)]
pub(super) struct Cluster<'a> {
    api: &'a Api,
    case: &'a Case,
    /// The zone of each node, and the claims that have been given a volume.
    zones: RefCell<BTreeMap<String, String>>,
    provisioned: RefCell<BTreeSet<String>>,
}

/// A pod of a step and where it went.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) node: Option<String>,
    pub(super) message: String,
}

impl<'a> Cluster<'a> {
    pub(super) fn new(api: &'a Api, case: &'a Case) -> Self {
        Self {
            api,
            case,
            zones: RefCell::default(),
            provisioned: RefCell::default(),
        }
    }

    pub(super) fn create_all(&self, kind: &str) -> Result<()> {
        self.case
            .of_kind(kind)
            .try_for_each(|object| self.api.create(object))
    }

    pub(super) fn create_node(&self, machine: &Machine, pins: &[&str]) -> Result<()> {
        if !machine.attachment_limits.is_empty() {
            let limits = machine.attachment_limits.iter();
            let limits = limits.map(|(driver, limit)| (&**driver, *limit));
            self.api
                .create(&manifest::csi_node(&machine.name, limits))?;
        }
        if let Some(zone) = machine.labels.get(labels::ZONE) {
            let mut zones = self.zones.borrow_mut();
            zones.insert(machine.name.clone(), zone.clone());
        }
        let pinned = |resources: &Resources| {
            pins.iter().fold(resources.clone(), |resources, pin| {
                resources.with(pin, PIN_AMOUNT)
            })
        };
        let amounts = [&pinned(&machine.capacity), &pinned(&machine.allocatable)];
        self.api.create(&manifest::node(
            &machine.name,
            &machine.labels,
            &machine.taints,
            amounts,
        ))
    }

    pub(super) fn delete_node(&self, name: &str) -> Result<()> {
        self.api.delete(&format!("/api/v1/nodes/{name}"))?;
        self.api
            .delete(&format!("/apis/storage.k8s.io/v1/csinodes/{name}"))
    }

    /// A pod that runs already, with what its kubelet says.
    pub(super) fn create_bound_pod(&self, pod: &Value) -> Result<()> {
        self.api.create(pod)?;
        if pod["status"].is_null() {
            return Ok(());
        }
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}/status",
            namespace(pod),
            name(pod)
        );
        self.api.patch(&path, &json!({"status": pod["status"]}))
    }

    /// A pod that waits for a place, changed as the step wants.
    pub(super) fn create_pod(
        &self,
        pod: &Value,
        step: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<()> {
        let mut object = pod.clone();
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        if let Some(spec) = object["spec"].as_object_mut() {
            spec.remove("nodeName");
        }
        object["metadata"]["labels"][STEP_LABEL] = json!(step);
        change(&mut object);
        self.api.create(&object)
    }

    /// Waits until every pod is bound, or nothing has changed for a while.
    pub(super) fn settle(&self, step: &str, count: usize) -> Result<Vec<Outcome>> {
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
            let is_made = self.provision()?;
            if (bound, judged) != last || is_made {
                last = (bound, judged);
                changed = Instant::now();
            } else if judged >= count
                && (changed.elapsed() > QUIET || (bound == 0 && self.saw_all_nodes(&outcomes)?))
            {
                return Ok(outcomes);
            } else if changed.elapsed() > STEP_TIMEOUT {
                bail!(
                    "{} of {count} pods of the step {step} are gone, and kube-scheduler has not judged {}",
                    count.saturating_sub(outcomes.len()),
                    outcomes.len() - judged
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

    /// Makes the volumes for which kube-scheduler has chosen a node, as a CSI driver would. Whether there were any.
    fn provision(&self) -> Result<bool> {
        if self.case.of_kind("StorageClass").next().is_none() {
            return Ok(false);
        }
        let mut is_made = false;
        for claim in self.claims()? {
            let node = claim["metadata"]["annotations"][SELECTED_NODE].as_str();
            let is_bound = claim["spec"]["volumeName"].is_string();
            let Some(node) = node.filter(|_| !is_bound) else {
                continue;
            };
            let volume = format!("{}-{}", namespace(&claim), name(&claim));
            if !self.provisioned.borrow_mut().insert(volume.clone()) {
                continue;
            }
            let class = claim["spec"]["storageClassName"].as_str();
            let mut object = manifest::volume_for(
                &volume,
                namespace(&claim),
                name(&claim),
                class.unwrap_or_default(),
            );
            if let Some(zone) = self.zones.borrow().get(node) {
                object["spec"]["nodeAffinity"] = manifest::in_zone(zone);
            }
            self.api.create(&object)?;
            is_made = true;
        }
        Ok(is_made)
    }

    fn claims(&self) -> Result<Vec<Value>> {
        self.api.list(&format!(
            "/api/v1/persistentvolumeclaims?labelSelector={RUN_LABEL}%3Dyes"
        ))
    }

    /// Waits until each daemonset has a pod on each of its nodes, and each of these has been judged.
    pub(super) fn await_daemons(&self) -> Result<()> {
        if self.case.of_kind("DaemonSet").next().is_none() {
            return Ok(());
        }
        thread::sleep(DAEMONS_NOTICE);
        let selector = format!("labelSelector={RUN_LABEL}%3Dyes");
        self.wait("the daemonsets have not settled", || {
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
            Ok(seen && judged.count() as u64 >= wanted)
        })
    }

    /// kube-scheduler refuses a pod whose volume is not in its cache yet, and tries again too late for us.
    pub(super) fn await_volumes(&self) -> Result<()> {
        let is_bound = |claim: &Value| {
            claim["status"]["phase"] == "Bound" || !claim["spec"]["volumeName"].is_string()
        };
        self.wait("the volumes have not been bound", || {
            Ok(self.claims()?.iter().all(is_bound))
        })
    }

    pub(super) fn delete_pods(&self, step: &str) -> Result<()> {
        let selector = format!("labelSelector={STEP_LABEL}%3D{step}");
        for namespace in self.case.of_kind("Namespace").map(name) {
            self.api.delete(&format!(
                "/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0&{selector}"
            ))?;
        }
        self.wait("pods of a step do not go away", || {
            let left = self.api.list(&format!("/api/v1/pods?{selector}"))?;
            Ok(left.is_empty())
        })
    }

    /// Removes what other cases could see: daemonsets, pods, nodes, volumes. The namespaces stay, empty.
    pub(super) fn clean(&self) -> Result<()> {
        let namespaces = || self.case.of_kind("Namespace").map(name);
        for namespace in namespaces() {
            self.api
                .delete(&format!("/apis/apps/v1/namespaces/{namespace}/daemonsets"))?;
        }
        self.api.delete("/api/v1/nodes")?;
        self.api.delete("/apis/storage.k8s.io/v1/csinodes")?;
        for namespace in namespaces() {
            self.api.delete(&format!(
                "/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0"
            ))?;
            self.api.delete(&format!(
                "/api/v1/namespaces/{namespace}/persistentvolumeclaims"
            ))?;
        }
        self.api.delete("/api/v1/persistentvolumes")?;
        self.api.delete("/apis/storage.k8s.io/v1/storageclasses")?;
        // The same case may be tried again, under the same names.
        self.wait("volumes do not go away", || {
            let volumes = self.api.list("/api/v1/persistentvolumes")?;
            Ok(volumes.is_empty() && self.claims()?.is_empty())
        })
    }

    fn wait(&self, complaint: &str, mut is_done: impl FnMut() -> Result<bool>) -> Result<()> {
        let deadline = Instant::now() + STEP_TIMEOUT;
        while !is_done()? {
            if Instant::now() > deadline {
                bail!("{complaint}");
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }
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
