//! Nodes and NodeClaims, and how one of each becomes one node.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kerf_api::condition::{self, Condition};
use kerf_api::names::{annotation, condition as types, label};
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::bound_pods::BoundPods;
use kerf_core::ids::{NodeClaimName, NodeName};
use kerf_core::labels;
use kerf_core::node::{Drift, Node, Replaced};
use kerf_core::node_labels::NodeLabels;
use kerf_core::requirement::Operator;
use kerf_core::requirements::Requirements;
use kerf_core::resources::Resources;
use kerf_core::selector::Labels;
use kerf_core::taint::Taint;

use crate::convert::{quantities, requirements, taints};
use crate::nominations::Nominations;
use crate::problem::{ObjectKey, Problems};
use crate::provider_ids::{ProviderIds, bare};
use crate::shared::Shared;

/// A Node in the index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodeEntry {
    provider_id: Option<Arc<str>>,
    labels: NodeLabels,
    taints: Vec<Taint>,
    allocatable: Resources,
    capacity: Resources,
    created_at: Option<Timestamp>,
    is_ready: bool,
    is_deleting: bool,
    forbids_disruption: bool,
}

impl NodeEntry {
    /// Whether its pods must move, as far as the Node itself says.
    pub(crate) fn is_leaving(&self) -> bool {
        let disrupted = Taint::disrupted();
        self.is_deleting || self.taints.iter().any(|it| it.is_same_kind(&disrupted))
    }
}

/// A NodeClaim in the index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodeClaimEntry {
    provider_id: Option<Arc<str>>,
    node_name: Option<String>,
    pool: Option<String>,
    labels: NodeLabels,
    taints: Vec<Taint>,
    startup_taints: Vec<Taint>,
    requests: Resources,
    allocatable: Resources,
    capacity: Resources,
    created_at: Option<Timestamp>,
    is_launched: bool,
    is_registered: bool,
    is_initialized: bool,
    initialized_at: Option<Timestamp>,
    last_pod_event: Option<Timestamp>,
    is_deleting: bool,
    is_disrupted: bool,
    forbids_disruption: bool,
    drifted: Option<Drift>,
    expires_at: Option<Timestamp>,
    termination_grace_period: Option<SignedDuration>,
    replaced: Vec<Replaced>,
}

pub(crate) fn node(node: &k8s::Node, shared: &mut Shared, problems: &mut Problems) -> NodeEntry {
    let metadata = &node.metadata;
    let spec = node.spec.clone().unwrap_or_default();
    let status = node.status.clone().unwrap_or_default();
    let is_ready = status
        .conditions
        .iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    NodeEntry {
        provider_id: provider_id(spec.provider_id.as_deref()),
        labels: shared.labels(metadata.labels.as_ref().unwrap_or(&Labels::new())),
        taints: taints::taints(&spec.taints.unwrap_or_default(), "spec.taints", problems),
        allocatable: quantities::resources(
            &status.allocatable.unwrap_or_default(),
            "status.allocatable",
            problems,
        ),
        capacity: quantities::resources(
            &status.capacity.unwrap_or_default(),
            "status.capacity",
            problems,
        ),
        created_at: created_at(metadata),
        is_ready,
        is_deleting: metadata.deletion_timestamp.is_some(),
        forbids_disruption: forbids_disruption(metadata),
    }
}

pub(crate) fn node_claim(
    claim: &NodeClaim,
    shared: &mut Shared,
    problems: &mut Problems,
) -> NodeClaimEntry {
    let metadata = &claim.metadata;
    let spec = &claim.spec;
    let status = claim.status.clone().unwrap_or_default();
    let required = requirements::requirements(&spec.requirements, "spec.requirements", problems);
    let labels = metadata.labels.clone().unwrap_or_default();
    let requests = spec
        .resources
        .as_ref()
        .map_or_else(Resources::default, |resources| {
            quantities::resources(&resources.requests, "spec.resources.requests", problems)
        });
    let initialized = condition::find(&status.conditions, types::INITIALIZED);
    let initialized = initialized.filter(|condition| condition.is_true());
    NodeClaimEntry {
        provider_id: provider_id(status.provider_id.as_deref()),
        node_name: status.node_name.filter(|name| !name.is_empty()),
        pool: labels.get(label::NODEPOOL).cloned(),
        labels: shared.labels(&with_single_values(labels, &required)),
        taints: taints::taints(&spec.taints, "spec.taints", problems),
        startup_taints: taints::taints(&spec.startup_taints, "spec.startupTaints", problems),
        requests,
        allocatable: quantities::resources(&status.allocatable, "status.allocatable", problems),
        capacity: quantities::resources(&status.capacity, "status.capacity", problems),
        created_at: created_at(metadata),
        is_launched: condition::is_true(&status.conditions, types::LAUNCHED),
        is_registered: condition::is_true(&status.conditions, types::REGISTERED),
        is_initialized: initialized.is_some(),
        initialized_at: initialized.map(|condition| condition.last_transition_time),
        last_pod_event: status.last_pod_event_time,
        is_deleting: metadata.deletion_timestamp.is_some(),
        is_disrupted: condition::is_true(&status.conditions, types::DISRUPTION_REASON),
        forbids_disruption: forbids_disruption(metadata),
        drifted: drifted(&status.conditions),
        expires_at: expires_at(claim),
        termination_grace_period: termination_grace_period(claim),
        replaced: replaced(metadata),
    }
}

impl NodeEntry {
    /// A copy that shares nothing with this one but what it shares with others too.
    pub(crate) fn anew(&self) -> Self {
        Self {
            provider_id: self.provider_id.as_deref().map(Arc::from),
            labels: NodeLabels::of(self.labels.shared().cloned()),
            ..self.clone()
        }
    }

    pub(crate) fn provider_id(&self) -> Option<&Arc<str>> {
        self.provider_id.as_ref()
    }
}

impl NodeClaimEntry {
    /// A copy that shares nothing with this one but what it shares with others too.
    pub(crate) fn anew(&self) -> Self {
        Self {
            provider_id: self.provider_id.as_deref().map(Arc::from),
            labels: NodeLabels::of(self.labels.shared().cloned()),
            ..self.clone()
        }
    }

    pub(crate) fn stays_in(&self, pool: &str) -> bool {
        !self.is_deleting && self.pool.as_deref() == Some(pool)
    }

    pub(crate) fn add_capacity(&self, sum: &mut Resources) {
        for (name, amount) in self.capacity.iter() {
            sum.set(name, sum.amount(name).saturating_add(amount));
        }
    }

    /// Whether it was made within that time of the moment and stays.
    pub(crate) fn is_of_launch(&self, made: Timestamp, within: SignedDuration) -> bool {
        let is_near = |at: Timestamp| at.duration_since(made).abs() <= within;
        !self.is_deleting && self.created_at.is_some_and(is_near)
    }

    pub(crate) fn provider_id(&self) -> Option<&Arc<str>> {
        self.provider_id.as_ref()
    }
}

fn provider_id(written: Option<&str>) -> Option<Arc<str>> {
    let id = written.filter(|id| !id.is_empty())?;
    Some(Arc::from(bare(id)))
}

fn created_at(metadata: &ObjectMeta) -> Option<Timestamp> {
    metadata.creation_timestamp.as_ref().map(|time| time.0)
}

fn drifted(conditions: &[Condition]) -> Option<Drift> {
    let drifted = condition::find(conditions, types::DRIFTED)?;
    drifted.is_true().then(|| Drift {
        reason: drifted.reason.clone(),
        since: drifted.last_transition_time,
    })
}

/// When `expireAfter` ends the claim; what cannot be read or lies beyond the calendar never does.
fn expires_at(claim: &NodeClaim) -> Option<Timestamp> {
    let life = claim.spec.expire_after.as_ref()?.parse().ok()??;
    created_at(&claim.metadata)?.checked_add(life).ok()
}

fn termination_grace_period(claim: &NodeClaim) -> Option<SignedDuration> {
    claim.spec.termination_grace_period.as_ref()?.parse().ok()?
}

fn replaced(metadata: &ObjectMeta) -> Vec<Replaced> {
    let annotations = metadata.annotations.as_ref();
    let written = annotations.and_then(|all| all.get(labels::REPLACED));
    written.map_or_else(Vec::new, |text| Replaced::parse_all(text))
}

fn forbids_disruption(metadata: &ObjectMeta) -> bool {
    let value = |key| {
        metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get(key))
            .map(String::as_str)
    };
    value(annotation::DO_NOT_DISRUPT) == Some("true")
}

/// A claim whose requirement leaves one value will have that label.
fn with_single_values(mut labels: Labels, required: &Requirements) -> Labels {
    for requirement in required.iter().filter(|it| it.operator() == Operator::In) {
        let mut values = requirement.values();
        if let (Some(value), None) = (values.next(), values.next()) {
            labels
                .entry(requirement.key().to_owned())
                .or_insert_with(|| value.to_owned());
        }
    }
    labels
}

/// What the join looks at besides nodes and claims.
pub(crate) struct Surroundings<'a> {
    pub(crate) pods: &'a mut dyn FnMut(&str) -> BoundPods,
    pub(crate) attachment_limits: &'a BTreeMap<ObjectKey, BTreeMap<String, u32>>,
    pub(crate) nominations: &'a Nominations,
}

/// Every NodeClaim with its Node, if it has one, and every Node that no claim has.
///
/// A claim has the node with its providerID, or of the name in its status. A claim that is stuck is a node without a
/// name, nothing more: the others go on.
pub(crate) fn join(
    nodes: &BTreeMap<ObjectKey, NodeEntry>,
    claims: &BTreeMap<ObjectKey, NodeClaimEntry>,
    node_ids: &ProviderIds,
    mut surroundings: Surroundings<'_>,
) -> Vec<Arc<Node>> {
    let mut joined: HashSet<&str> = HashSet::with_capacity(nodes.len());
    let mut result = Vec::with_capacity(nodes.len().max(claims.len()));

    for (key, claim) in claims {
        let name = find_node(claim, nodes, node_ids).filter(|name| joined.insert(name));
        result.push(surroundings.of_claim(key, claim, name, nodes));
    }
    for (key, node) in nodes {
        if !joined.contains(&*key.name) {
            result.push(Arc::new(surroundings.complete(
                unmanaged(node),
                Some(&key.name),
                None,
            )));
        }
    }
    result
}

/// As [`join`], of these claims only.
pub(crate) fn of_claims<'a>(
    claims: impl Iterator<Item = (&'a ObjectKey, &'a NodeClaimEntry)>,
    nodes: &BTreeMap<ObjectKey, NodeEntry>,
    node_ids: &ProviderIds,
    mut surroundings: Surroundings<'_>,
) -> Vec<Arc<Node>> {
    let node = |(key, claim)| {
        let name = find_node(claim, nodes, node_ids);
        surroundings.of_claim(key, claim, name, nodes)
    };
    claims.map(node).collect()
}

fn find_node<'a>(
    claim: &'a NodeClaimEntry,
    nodes: &'a BTreeMap<ObjectKey, NodeEntry>,
    node_ids: &'a ProviderIds,
) -> Option<&'a Arc<str>> {
    let id = claim.provider_id.as_ref()?;
    if let Some(name) = node_ids.names(Arc::clone(id)).next() {
        return Some(name);
    }
    // A node may be there before the cloud controller has written its providerID.
    let name = claim.node_name.as_deref()?;
    let (key, node) = nodes.get_key_value(&ObjectKey::cluster(name))?;
    node.provider_id.is_none().then_some(&key.name)
}

fn managed(claim: &NodeClaimEntry, node: &NodeEntry) -> Node {
    let has_label = |key| node.labels.get(key) == Some("true");
    let is_registered = claim.is_registered || has_label(label::REGISTERED);
    let is_initialized = claim.is_initialized || has_label(label::INITIALIZED);
    let (labels, taints) = if is_registered {
        (node.labels.clone(), node.taints.clone())
    } else {
        // The node gets the claim's labels and taints when it registers, so that is what it will have.
        (node.labels.with(&claim.labels), claim.taints.clone())
    };
    let (mut allocatable, mut capacity) = (node.allocatable.clone(), node.capacity.clone());
    if !is_initialized {
        fill_zeros(&mut allocatable, &claim.allocatable);
        fill_zeros(&mut capacity, &claim.capacity);
    }
    Node {
        labels,
        taints,
        allocatable,
        capacity,
        is_ready: node.is_ready,
        is_registered,
        is_initialized,
        is_deleting: claim.is_deleting || node.is_deleting,
        forbids_disruption: claim.forbids_disruption || node.forbids_disruption,
        ..of_claim(claim)
    }
}

/// A device plugin reports its resource late; until then the claim's value is what the node will have.
fn fill_zeros(own: &mut Resources, expected: &Resources) {
    for (name, amount) in expected.iter() {
        if own.amount(name) == 0 {
            own.set(name, amount);
        }
    }
}

fn in_flight(claim: &NodeClaimEntry) -> Node {
    let known_or_planned = |known: &Resources| {
        if known.is_empty() {
            claim.requests.clone()
        } else {
            known.clone()
        }
    };
    Node {
        labels: claim.labels.clone(),
        taints: claim.taints.clone(),
        allocatable: known_or_planned(&claim.allocatable),
        capacity: known_or_planned(&claim.capacity),
        ..of_claim(claim)
    }
}

/// What is known of a node by its claim alone, whether it is there or not.
fn of_claim(claim: &NodeClaimEntry) -> Node {
    Node {
        pool: claim.pool.as_deref().map(Into::into),
        startup_taints: claim.startup_taints.clone(),
        created_at: claim.created_at,
        is_launched: claim.is_launched,
        // Without its Node, it still is one of those that are away, until it is gone itself.
        is_initialized: claim.is_initialized && claim.is_deleting,
        is_deleting: claim.is_deleting,
        is_marked_for_deletion: claim.is_disrupted,
        forbids_disruption: claim.forbids_disruption,
        drifted: claim.drifted.clone(),
        expires_at: claim.expires_at,
        termination_grace_period: claim.termination_grace_period,
        replaced: claim.replaced.clone(),
        last_pod_event: claim.last_pod_event,
        initialized_at: claim.initialized_at,
        ..Node::default()
    }
}

fn unmanaged(node: &NodeEntry) -> Node {
    Node {
        labels: node.labels.clone(),
        taints: node.taints.clone(),
        allocatable: node.allocatable.clone(),
        capacity: node.capacity.clone(),
        created_at: node.created_at,
        is_ready: node.is_ready,
        is_deleting: node.is_deleting,
        forbids_disruption: node.forbids_disruption,
        ..Node::default()
    }
}

impl Surroundings<'_> {
    /// The claim with the Node of that name, if there is one.
    fn of_claim(
        &mut self,
        key: &ObjectKey,
        claim: &NodeClaimEntry,
        name: Option<&Arc<str>>,
        nodes: &BTreeMap<ObjectKey, NodeEntry>,
    ) -> Arc<Node> {
        let node = name.and_then(|name| nodes.get(&ObjectKey::cluster(Arc::clone(name))));
        Arc::new(match (name, node) {
            (Some(name), Some(node)) => {
                self.complete(managed(claim, node), Some(name), Some(&key.name))
            }
            _ => self.complete(in_flight(claim), None, Some(&key.name)),
        })
    }

    /// Adds what is known by the names of the node and its claim.
    fn complete(&mut self, node: Node, name: Option<&Arc<str>>, claim: Option<&Arc<str>>) -> Node {
        let pods = name.map(|name| (self.pods)(name)).unwrap_or_default();
        let key = name.map(|name| ObjectKey::cluster(Arc::clone(name)));
        let limits = key.and_then(|key| self.attachment_limits.get(&key));
        let is_marked = claim.is_some_and(|claim| self.nominations.is_marked(claim));
        let node_name = name.map(|it| &**it);
        let claim_name = claim.map(|it| &**it);
        Node {
            name: name.cloned().map(NodeName::new),
            node_claim: claim.cloned().map(NodeClaimName::new),
            pods,
            attachment_limits: limits.cloned().unwrap_or_default(),
            nominated_until: self.nominations.until(node_name, claim_name),
            buffer_pods: self.nominations.buffer_pods(node_name, claim_name),
            is_marked_for_deletion: node.is_marked_for_deletion || is_marked,
            ..node
        }
    }
}
