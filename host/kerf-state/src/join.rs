//! Every NodeClaim with its Node, and every Node that no claim has.
//!
//! A large fleet has thousands of both in every snapshot, and a look into a large ordered table costs a handful of cache misses:
//! such tables are walked once, in order, and what is looked for is hashed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kerf_core::bound_pods::BoundPods;
use kerf_core::ids::{NodeClaimName, NodeName};
use kerf_core::node::Node;

use crate::nodes::{NodeClaimEntry, NodeEntry, in_flight, managed, unmanaged};
use crate::nominations::{Nominations, Outlook};
use crate::problem::ObjectKey;

type AttachmentLimits = BTreeMap<String, u32>;

/// What is joined.
pub(crate) struct Tables<'a> {
    pub(crate) nodes: &'a BTreeMap<ObjectKey, NodeEntry>,
    pub(crate) claims: &'a BTreeMap<ObjectKey, NodeClaimEntry>,
    /// Of Nodes, by their names.
    pub(crate) attachment_limits: &'a BTreeMap<ObjectKey, AttachmentLimits>,
    pub(crate) nominations: &'a Nominations,
}

/// A Node, and what else is known by its name.
#[derive(Debug, Clone, Copy)]
struct Here<'a> {
    key: &'a ObjectKey,
    entry: &'a NodeEntry,
    attachment_limits: Option<&'a AttachmentLimits>,
}

/// The tables, made ready for joining.
pub(crate) struct Join<'a, P> {
    /// By name.
    nodes: Vec<Here<'a>>,
    /// Positions in `nodes`; of several Nodes with one id the first by name counts.
    by_provider_id: HashMap<&'a str, usize>,
    claims: &'a BTreeMap<ObjectKey, NodeClaimEntry>,
    nominations: &'a Nominations,
    outlook: Outlook<'a>,
    pods_on: P,
}

impl<'a, P: FnMut(&str) -> BoundPods> Join<'a, P> {
    /// `pods_on` has the pods of the Node of that name.
    pub(crate) fn new(tables: &Tables<'a>, pods_on: P) -> Self {
        let nodes = with_limits(tables.nodes, tables.attachment_limits);
        let mut by_provider_id = HashMap::with_capacity(nodes.len());
        for (at, node) in nodes.iter().enumerate() {
            if let Some(id) = node.entry.provider_id() {
                by_provider_id.entry(&**id).or_insert(at);
            }
        }
        Self {
            nodes,
            by_provider_id,
            claims: tables.claims,
            nominations: tables.nominations,
            outlook: tables.nominations.outlook(),
            pods_on,
        }
    }

    /// All of them, claims first, each by name.
    ///
    /// A claim has the node with its providerID, or of the name in its status. A claim that is stuck is a node without a
    /// name, nothing more: the others go on.
    pub(crate) fn all(mut self) -> Vec<Arc<Node>> {
        let mut is_joined = vec![false; self.nodes.len()];
        let mut result = Vec::with_capacity(self.nodes.len().max(self.claims.len()));
        for (key, claim) in self.claims {
            let at = self.node_of(claim);
            let at = at.filter(|at| !std::mem::replace(&mut is_joined[*at], true));
            result.push(self.of_claim(key, claim, at));
        }
        let here = std::mem::take(&mut self.nodes);
        for (here, _) in here.into_iter().zip(is_joined).filter(|it| !it.1) {
            let node = self.complete(unmanaged(here.entry), Some(here), None);
            result.push(Arc::new(node));
        }
        result
    }

    /// The claims of these names alone; those that are gone are left out.
    pub(crate) fn of_claims<'n>(mut self, names: impl Iterator<Item = &'n str>) -> Vec<Arc<Node>> {
        let claims = names.filter_map(|name| self.claims.get_key_value(&ObjectKey::cluster(name)));
        let claims: Vec<(&ObjectKey, &NodeClaimEntry)> = claims.collect();
        let node = |(key, claim)| self.of_claim(key, claim, self.node_of(claim));
        claims.into_iter().map(node).collect()
    }

    /// Where its Node is in `nodes`.
    fn node_of(&self, claim: &NodeClaimEntry) -> Option<usize> {
        let id = claim.provider_id()?;
        if let Some(at) = self.by_provider_id.get(&**id) {
            return Some(*at);
        }
        // A node may be there before the cloud controller has written its providerID.
        let name = claim.node_name()?;
        let by_name = |it: &Here<'_>| (*it.key.name).cmp(name);
        let at = self.nodes.binary_search_by(by_name).ok()?;
        self.nodes[at].entry.provider_id().is_none().then_some(at)
    }

    fn of_claim(
        &mut self,
        key: &ObjectKey,
        claim: &NodeClaimEntry,
        at: Option<usize>,
    ) -> Arc<Node> {
        let here = at.map(|at| self.nodes[at]);
        let node = match here {
            Some(here) => managed(claim, here.entry),
            None => in_flight(claim),
        };
        Arc::new(self.complete(node, here, Some(&key.name)))
    }

    /// Adds what is known by the names of the node and its claim.
    fn complete(&mut self, node: Node, here: Option<Here<'_>>, claim: Option<&Arc<str>>) -> Node {
        let name = here.map(|it| &it.key.name);
        let limits = here.and_then(|it| it.attachment_limits);
        let is_marked = claim.is_some_and(|claim| self.nominations.is_marked(claim));
        let expected = self.outlook.on(name.map(|it| &**it), claim.map(|it| &**it));
        Node {
            name: name.cloned().map(NodeName::new),
            node_claim: claim.cloned().map(NodeClaimName::new),
            pods: name.map(|name| (self.pods_on)(name)).unwrap_or_default(),
            attachment_limits: limits.cloned().unwrap_or_default(),
            nominated_until: expected.until,
            buffer_pods: expected.buffer_pods,
            is_marked_for_deletion: node.is_marked_for_deletion || is_marked,
            ..node
        }
    }
}

/// Both tables are in the order of names: one walk joins them.
fn with_limits<'a>(
    nodes: &'a BTreeMap<ObjectKey, NodeEntry>,
    limits: &'a BTreeMap<ObjectKey, AttachmentLimits>,
) -> Vec<Here<'a>> {
    let mut limits = limits.iter().peekable();
    let here = nodes.iter().map(|(key, entry)| {
        while limits.next_if(|(other, _)| *other < key).is_some() {}
        let of_node = limits.next_if(|(other, _)| *other == key);
        Here {
            key,
            entry,
            attachment_limits: of_node.map(|it| it.1),
        }
    });
    here.collect()
}
