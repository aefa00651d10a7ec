//! Nodes and NodeClaims, and how one of each becomes one node.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kerf_api::condition::{self, Condition};
use kerf_api::names::{annotation, condition as types, label};
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::labels;
use kerf_core::node::{Drift, Node, Replaced};
use kerf_core::node_labels::NodeLabels;
use kerf_core::requirement::Operator;
use kerf_core::requirements::Requirements;
use kerf_core::resources::Resources;
use kerf_core::selector::Labels;
use kerf_core::taint::Taint;

use crate::convert::{quantities, requirements, taints};
use crate::problem::Problems;
use crate::provider_ids::bare;
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
    /// The Node's name in its status.
    pub(crate) fn node_name(&self) -> Option<&str> {
        self.node_name.as_deref()
    }

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

/// A claim with its Node.
pub(crate) fn managed(claim: &NodeClaimEntry, node: &NodeEntry) -> Node {
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

/// A claim that has no Node yet.
pub(crate) fn in_flight(claim: &NodeClaimEntry) -> Node {
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

/// A Node that no claim has.
pub(crate) fn unmanaged(node: &NodeEntry) -> Node {
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
