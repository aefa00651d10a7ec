//! Pods in equivalence classes, and the steps in which each class gives up its soft constraints.
//!
//! Pods with equal specs (and namespaces) are one class: every question about them is asked once.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::domains::{Domains, KeyId};
use super::sets::{SetId, SetTable};
use super::taints::{TaintTable, TolerationsId};
use super::topology::{GroupId, GroupKey, GroupKind, Topology};
use super::vector::{ResourceIndex, Vector};
use crate::planted::{self, Bug};
use crate::pod::{Pod, PodSpec};
use crate::requirements::Requirements;
use crate::snapshot::Snapshot;

/// Resource names that count attached volumes, by CSI driver.
pub(super) const ATTACHMENTS_PREFIX: &str = "attachable-volumes-csi-";

/// Pods that are alike.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) namespace: Arc<str>,
    pub(super) spec: Arc<PodSpec>,
    /// What a pod asks of an existing node.
    pub(super) request: Vector,
    /// What a pod asks of a new node: the same with its volumes counted.
    pub(super) claim_request: Vector,
    /// What its volumes ask of a node: one of these.
    pub(super) alternatives: Vec<SetId>,
    /// The class with all its preferences, then with one less each.
    pub(super) variants: Vec<Variant>,
    /// Groups that count it.
    pub(super) counted: Vec<GroupId>,
    /// Anti-affinity of others that keeps it away.
    pub(super) blocked_by: Vec<GroupId>,
    /// Its own anti-affinity, as it holds for others.
    pub(super) inverse: Vec<GroupId>,
    /// How many placements there were when it was last tried in vain.
    pub(super) failed_at: Option<usize>,
}

/// A class with some of its preferences.
#[derive(Debug)]
pub(super) struct Variant {
    /// What it asks of a node's labels; none when that is contradictory.
    pub(super) set: Option<SetId>,
    pub(super) tolerations: TolerationsId,
    pub(super) owned: Vec<Owned>,
    /// Whether spreads count only the domains that have nodes, as kube-scheduler does. Upstream counts all domains that
    /// could have some, which spreads better but can leave a pod without a place that would have had one.
    pub(super) is_last_resort: bool,
    /// Label keys whose value a node must have settled on once the pod is there.
    pub(super) keys: Vec<KeyId>,
}

/// A class in one of its variants, looking for a host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guest<'a> {
    pub(super) class: &'a Class,
    pub(super) variant: &'a Variant,
}

/// A constraint that a pod has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owned {
    pub(super) group: GroupId,
    /// Whether the pod is one of those that the constraint speaks of.
    pub(super) counts_itself: bool,
}

impl Class {
    /// Whether nothing but its requests and its node requirements decides where it can be.
    pub(super) fn is_plain(&self) -> bool {
        let is_counted = !self.counted.is_empty() || !self.inverse.is_empty();
        !is_counted
            && !self.depends_on_others()
            && self.spec.host_ports.is_empty()
            && self.variants.len() == 1
    }

    /// Whether its fate can change while others are placed.
    pub(super) fn depends_on_others(&self) -> bool {
        !self.blocked_by.is_empty()
            || self
                .variants
                .iter()
                .any(|variant| !variant.owned.is_empty())
    }
}

/// What classes are made with.
pub(super) struct ClassContext<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) resources: &'a ResourceIndex,
    pub(super) sets: &'a mut SetTable,
    pub(super) taints: &'a mut TaintTable,
    pub(super) domains: &'a mut Domains,
    pub(super) topology: &'a mut Topology,
    /// Whether some pool has a `PreferNoSchedule` taint.
    pub(super) has_soft_taints: bool,
}

/// All classes of a round.
#[derive(Debug, Default)]
pub(super) struct ClassTable {
    pub(super) classes: Vec<Class>,
}

/// Gives each pod its class, in the order of the pods.
pub(super) fn classify(pods: &[Arc<Pod>], ctx: &mut ClassContext<'_>) -> (ClassTable, Vec<usize>) {
    let mut table = ClassTable::default();
    let mut ids: FxHashMap<(&str, &PodSpec), usize> = FxHashMap::default();
    let of_pod = pods.iter().map(|pod| {
        *ids.entry((&pod.namespace, &pod.spec)).or_insert_with(|| {
            table.classes.push(ctx.class(&pod.namespace, &pod.spec));
            table.classes.len() - 1
        })
    });
    let of_pod = of_pod.collect();
    (table, of_pod)
}

impl ClassTable {
    /// Finds the groups that each class is counted in or kept away by. All groups must exist.
    pub(super) fn join_groups(&mut self, topology: &Topology) {
        for class in &mut self.classes {
            for id in topology.groups_of(&class.namespace, &class.spec.labels) {
                match topology.groups[id].identity.kind {
                    GroupKind::InverseAntiAffinity => {
                        if !planted::is_on(Bug::InverseAntiAffinityMissed) {
                            class.blocked_by.push(id);
                        }
                    }
                    GroupKind::Spread { .. } | GroupKind::Affinity | GroupKind::AntiAffinity => {
                        class.counted.push(id);
                    }
                }
            }
            let of_all: Vec<GroupId> = class
                .counted
                .iter()
                .chain(&class.blocked_by)
                .chain(&class.inverse)
                .copied()
                .collect();
            for variant in &mut class.variants {
                let groups = of_all
                    .iter()
                    .copied()
                    .chain(variant.owned.iter().map(|owned| owned.group));
                let keys: BTreeSet<KeyId> = groups
                    .filter_map(|id| match topology.groups[id].identity.key {
                        GroupKey::Label(key) => Some(key),
                        GroupKey::Hostname => None,
                    })
                    .collect();
                variant.keys = keys.into_iter().collect();
            }
        }
    }
}

impl ClassContext<'_> {
    fn class(&mut self, namespace: &Arc<str>, spec: &Arc<PodSpec>) -> Class {
        let mut requests = spec.requests.with_one_pod();
        let request = self.resources.vector(&requests);
        for volume in &spec.volumes {
            if let Some(attachment) = &volume.attachment {
                let name = format!("{ATTACHMENTS_PREFIX}{}", attachment.driver);
                requests.set(&name, requests.amount(&name) + 1);
            }
        }
        let constraints = self.constraints(namespace, spec);
        Class {
            namespace: Arc::clone(namespace),
            spec: Arc::clone(spec),
            request,
            claim_request: self.resources.vector(&requests),
            alternatives: self.volume_alternatives(spec),
            variants: self.variants(spec, &constraints),
            counted: Vec::new(),
            blocked_by: Vec::new(),
            inverse: constraints.inverse,
            failed_at: None,
        }
    }

    /// One set per way in which all volumes can be used. When no way is free of contradictions, the first is kept:
    /// it fails everywhere, and says so.
    fn volume_alternatives(&mut self, spec: &PodSpec) -> Vec<SetId> {
        let mut ways = vec![Requirements::default()];
        for volume in spec
            .volumes
            .iter()
            .filter(|volume| !volume.alternatives.is_empty())
            .filter(|_| !planted::is_on(Bug::VolumeZonesIgnored))
        {
            let pairs = ways
                .iter()
                .flat_map(|way| volume.alternatives.iter().map(move |term| (way, term)));
            let together: Vec<Requirements> =
                pairs.filter_map(|(way, term)| way.together(term)).collect();
            if together.is_empty() {
                ways.truncate(1);
                ways[0].add_all(&volume.alternatives[0]);
            } else {
                ways = together;
            }
            ways.truncate(MAX_VOLUME_ALTERNATIVES);
        }
        ways.into_iter().map(|way| self.sets.intern(way)).collect()
    }
}

/// More ways than this to use a pod's volumes together do not occur; the bound keeps their product small.
const MAX_VOLUME_ALTERNATIVES: usize = 64;
