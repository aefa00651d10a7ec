//! Existing nodes and claims on their way, with what is left on them.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::bits::Bits;
use super::class::Class;
use super::daemon::{Daemons, outstanding_on};
use super::domains::{Domains, KeyId};
use super::sets::{SetId, SetTable};
use super::shelf::Shelf;
use super::taints::{TaintTable, TaintsId, TolerationsId};
use super::vector::{ResourceIndex, Vector};
use crate::node::Node;
use crate::node_labels::Found;
use crate::plan::PlacementTarget;
use crate::planted::{self, Bug};
use crate::pod::{DaemonPod, HostPort, Pod, PodPhase};
use crate::snapshot::Snapshot;

/// The nodes of a round. Those that take no new pods have their pods counted, and are no candidates.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) entries: Vec<NodeEntry>,
    pub(super) shelf: Shelf,
    active: Bits,
    /// Nodes that take no pods although they are active: what a simulation has closed.
    pub(super) closed: Bits,
    /// Nodes by topology key and domain.
    by_domain: Vec<FxHashMap<usize, Bits>>,
    /// The domains of all nodes, by topology key.
    all_domains: Vec<Bits>,
    /// Nodes without the topology key.
    without_key: Vec<Bits>,
    compatible: FxHashMap<(SetId, TolerationsId), Rc<Bits>>,
}

/// Which of the nodes that are equally far in their lives are filled first: those of the least number.
pub(super) type NodeOrder<'o> = &'o dyn Fn(&Node) -> usize;

/// A node and what is on it.
#[derive(Debug)]
pub(super) struct NodeEntry {
    pub(super) node: Arc<Node>,
    pub(super) taints: TaintsId,
    ports: Vec<HostPort>,
    attachments: BTreeMap<String, BTreeSet<String>>,
    /// By topology key.
    domains: Vec<Option<usize>>,
}

impl Nodes {
    pub(super) fn new(
        snapshot: &Snapshot,
        resources: &ResourceIndex,
        taints: &mut TaintTable,
        domains: &mut Domains,
        order: NodeOrder<'_>,
    ) -> Self {
        let rank = |node: &Node| (!node.is_initialized, node.name.is_none(), order(node));
        let nodes = snapshot.nodes.iter();
        let ranked = nodes.map(|node| (rank(node), node.display_name(), node));
        let mut sorted: Vec<_> = ranked.collect();
        sorted.sort_by_key(|(rank, name, _)| (*rank, *name));
        let daemons = Daemons::of(&snapshot.daemon_pods);
        let keys: Vec<KeyId> = domains.keys().collect();
        let mut nodes = Self {
            entries: Vec::new(),
            shelf: Shelf::default(),
            active: Bits::default(),
            closed: Bits::default(),
            by_domain: vec![FxHashMap::default(); keys.len()],
            all_domains: vec![Bits::default(); keys.len()],
            without_key: vec![Bits::default(); keys.len()],
            compatible: FxHashMap::default(),
        };
        for (idx, (_, _, node)) in sorted.into_iter().enumerate() {
            let mut entry = NodeEntry::new(node, taints, &keys, domains);
            let daemons = daemons.belonging(node);
            // Who comes later than its daemons must leave them their ports.
            let of_daemons = daemons.iter().flat_map(|it| &it.spec.host_ports);
            entry.ports.extend(of_daemons);
            for (key, domain) in entry.domains.iter().enumerate() {
                match domain {
                    Some(domain) => {
                        nodes.by_domain[key].entry(*domain).or_default().insert(idx);
                        nodes.all_domains[key].insert(*domain);
                    }
                    None => nodes.without_key[key].insert(idx),
                }
            }
            if node.is_active() {
                nodes.active.insert(idx);
            }
            nodes.shelf.push(free_on(node, &daemons, resources));
            nodes.entries.push(entry);
        }
        nodes
    }

    /// The nodes whose labels and taints suit.
    pub(super) fn compatible(
        &mut self,
        set: SetId,
        tolerations: TolerationsId,
        sets: &SetTable,
        taints: &mut TaintTable,
    ) -> Rc<Bits> {
        if let Some(known) = self.compatible.get(&(set, tolerations)) {
            return Rc::clone(known);
        }
        let wanted = sets.at(set);
        let suits = |entry: &NodeEntry, taints: &mut TaintTable| {
            taints.tolerated(entry.taints, tolerations) && entry.node.meets(wanted)
        };
        let bits = self
            .active
            .iter()
            .filter(|idx| suits(&self.entries[*idx], taints))
            .collect();
        let bits = Rc::new(bits);
        self.compatible.insert((set, tolerations), Rc::clone(&bits));
        bits
    }

    /// All nodes that pass a filter, those that take no new pods too.
    pub(super) fn passing(
        &self,
        terms: &[SetId],
        tolerations: Option<TolerationsId>,
        sets: &SetTable,
        taints: &mut TaintTable,
    ) -> Bits {
        let mut passing = Bits::default();
        for (idx, entry) in self.entries.iter().enumerate() {
            let meets = |term: &SetId| entry.node.meets(sets.at(*term));
            let tolerated =
                tolerations.is_none_or(|tolerations| taints.tolerated(entry.taints, tolerations));
            if tolerated && (terms.is_empty() || terms.iter().any(meets)) {
                passing.insert(idx);
            }
        }
        passing
    }

    /// The nodes in some of the domains, and those without the key if that is allowed.
    pub(super) fn in_domains(&self, key: KeyId, domains: &Bits, allow_without: bool) -> Bits {
        let by_domain = &self.by_domain[key.idx()];
        let mut nodes = if allow_without {
            self.without_key[key.idx()].clone()
        } else {
            Bits::default()
        };
        for domain in domains.iter() {
            if let Some(bits) = by_domain.get(&domain) {
                nodes.unite(bits);
            }
        }
        nodes
    }

    /// The domains that these nodes are in; none: all nodes.
    pub(super) fn domains_of(&self, key: KeyId, nodes: Option<&Bits>) -> Bits {
        match nodes {
            None => self.all_domains[key.idx()].clone(),
            Some(nodes) => nodes
                .iter()
                .filter_map(|idx| self.entries[idx].domain(key))
                .collect(),
        }
    }

    /// Whether host ports and volume limits of a node leave room for a pod of the class.
    pub(super) fn can_attach(&self, idx: usize, class: &Class) -> bool {
        let entry = &self.entries[idx];
        !conflicts(&class.spec.host_ports, &entry.ports) && entry.can_attach_volumes(class)
    }

    pub(super) fn place(&mut self, idx: usize, class: &Class) {
        let entry = &mut self.entries[idx];
        entry.ports.extend(&class.spec.host_ports);
        entry.attach(&class.spec);
        let room = self.shelf.room(idx).difference(&class.request);
        self.shelf.set(idx, room);
    }

    /// What [`Self::place`] will change about a node for a pod of the class.
    pub(super) fn before(&self, idx: usize, class: &Class) -> NodeBefore {
        let entry = &self.entries[idx];
        let attaches = class.spec.volumes.iter().any(|it| it.attachment.is_some());
        NodeBefore {
            node: idx,
            room: self.shelf.room(idx).clone(),
            ports: entry.ports.len(),
            attachments: attaches.then(|| entry.attachments.clone()),
        }
    }

    /// Takes back what was placed on a node since then.
    pub(super) fn restore(&mut self, before: NodeBefore) {
        let entry = &mut self.entries[before.node];
        entry.ports.truncate(before.ports);
        if let Some(attachments) = before.attachments {
            entry.attachments = attachments;
        }
        self.shelf.set(before.node, before.room);
    }

    /// All nodes by target; a claim's name finds its node too, once there is one.
    pub(super) fn by_target(&self) -> BTreeMap<PlacementTarget, usize> {
        let targets = self.entries.iter().enumerate().flat_map(|(idx, entry)| {
            let name = entry.node.name.clone().map(PlacementTarget::Node);
            let claim = entry.node.node_claim.clone().map(PlacementTarget::InFlight);
            name.into_iter()
                .chain(claim)
                .map(move |target| (target, idx))
        });
        targets.collect()
    }

    pub(super) fn target(&self, idx: usize) -> PlacementTarget {
        let node = &self.entries[idx].node;
        match (&node.name, &node.node_claim) {
            (Some(name), _) => PlacementTarget::Node(name.clone()),
            (None, claim) => PlacementTarget::InFlight(claim.clone().unwrap_or_default()),
        }
    }
}

/// A node before a pod was placed on it.
#[derive(Debug)]
pub(super) struct NodeBefore {
    node: usize,
    room: Vector,
    ports: usize,
    attachments: Option<BTreeMap<String, BTreeSet<String>>>,
}

impl NodeBefore {
    pub(super) fn node(&self) -> usize {
        self.node
    }
}

impl NodeEntry {
    fn new(
        node: &Arc<Node>,
        taints: &mut TaintTable,
        keys: &[KeyId],
        domains: &mut Domains,
    ) -> Self {
        let mut domain_of = |key: &KeyId| match node.label(&domains.name(*key)) {
            Found::Value(value) => Some(domains.intern(*key, value)),
            Found::Nothing | Found::Contradiction => None,
        };
        let domains = keys.iter().map(&mut domain_of).collect();
        let mut entry = Self {
            node: Arc::clone(node),
            taints: taints.taints(node.effective_taints().cloned()),
            ports: Vec::new(),
            attachments: BTreeMap::new(),
            domains,
        };
        if !node.pods.held().has_attachments {
            return entry;
        }
        let staying = |pod: &&Arc<Pod>| pod.phase != PodPhase::Terminal;
        for pod in node.pods.iter().filter(staying) {
            entry.ports.extend(&pod.spec.host_ports);
            entry.attach(&pod.spec);
        }
        entry
    }

    pub(super) fn domain(&self, key: KeyId) -> Option<usize> {
        self.domains.get(key.idx()).copied().flatten()
    }

    fn attach(&mut self, spec: &crate::pod::PodSpec) {
        for attachment in spec
            .volumes
            .iter()
            .filter_map(|volume| volume.attachment.as_ref())
        {
            let handles = self
                .attachments
                .entry(attachment.driver.clone())
                .or_default();
            handles.insert(attachment.handle.clone());
        }
    }

    fn can_attach_volumes(&self, class: &Class) -> bool {
        let attachments = class
            .spec
            .volumes
            .iter()
            .filter_map(|volume| volume.attachment.as_ref());
        let mut wanted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for attachment in attachments {
            wanted
                .entry(&attachment.driver)
                .or_default()
                .insert(&attachment.handle);
        }
        wanted.into_iter().all(|(driver, mut handles)| {
            let Some(limit) = self.node.attachment_limits.get(driver) else {
                return true;
            };
            if planted::is_on(Bug::AttachLimitsIgnored) {
                return true;
            }
            let there = self.attachments.get(driver);
            handles.extend(there.into_iter().flatten().map(String::as_str));
            handles.len() <= usize::try_from(*limit).unwrap_or(usize::MAX)
        })
    }
}

/// Whether one node cannot serve both lists.
pub(super) fn conflicts(wanted: &[HostPort], taken: &[HostPort]) -> bool {
    let is_taken = |port: &HostPort| taken.iter().any(|other| port.conflicts_with(other));
    wanted.iter().any(is_taken) && !planted::is_on(Bug::HostPortsShared)
}

/// What new pods can use: allocatable less the pods that are there and the daemons that will come.
fn free_on(node: &Node, daemons: &[&DaemonPod], resources: &ResourceIndex) -> Vector {
    let mut free = node.allocatable.clone();
    if !planted::is_on(Bug::BoundPodsWeightless) {
        free.subtract(&node.pods.held().requests);
    }
    free.subtract(&outstanding_on(node, daemons));
    resources.vector(&free)
}
