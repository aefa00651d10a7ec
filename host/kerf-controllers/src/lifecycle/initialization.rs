//! Initialization: the Node is ready for pods, and everything that was asked for is there.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kerf_api::names::{condition, event, label, reason};
use kerf_api::nodeclaim::NodeClaim;
use kube::{Api, ResourceExt};

use crate::context::Context;
use crate::draft::Draft;
use crate::error::Error;
use crate::failpoint;
use crate::lifecycle::registration::{is_unknown, left, since};
use crate::patch;

/// The watch on Nodes triggers; this only covers a lost trigger.
const RECHECK: Duration = Duration::from_secs(30);
/// What a new node is over so soon after it registered is not written: the last taints of its start go one by one (Karpenter:
/// differs, because each of them is a write of the claim there).
const SAID_AFTER: Duration = Duration::from_secs(5);

/// Moves the claim on if its Node is ready for pods; `nodes` are those with its providerID. Returns when to look again.
///
/// # Errors
/// When the Node cannot be written.
pub async fn advance(
    draft: &mut Draft,
    nodes: &[Arc<Node>],
    context: &Context,
) -> Result<Option<Duration>, Error> {
    let is_open = is_unknown(draft, condition::INITIALIZED)
        && draft.conditions.is_true(condition::REGISTERED);
    let Some(provider_id) = draft
        .claim
        .provider_id()
        .map(str::to_owned)
        .filter(|_| is_open)
    else {
        return Ok(None);
    };
    if nodes.iter().any(|it| context.stores.nodes.is_behind(it)) {
        return Ok(Some(RECHECK));
    }
    let obstacle = match nodes {
        [node] => obstacle(node, &draft.claim),
        _ => Some((
            reason::NODE_NOT_FOUND,
            format!("no node with providerID {provider_id}"),
        )),
    };
    if let Some((reason, message)) = obstacle {
        if let Some(wait) = said_in(draft) {
            return Ok(Some(wait));
        }
        draft
            .conditions
            .set_unknown(condition::INITIALIZED, reason, &message);
        return Ok(Some(RECHECK));
    }
    let node = &nodes[0];
    let mut wanted = (**node).clone();
    mark(&mut wanted);
    let written = patch::write(&Api::all(context.client.clone()), &**node, &wanted).await?;
    context.stores.nodes.note_written(&written);
    context.reach(failpoint::NODE_INITIALIZED).await;
    draft.conditions.set_true(condition::INITIALIZED);
    let note = format!("node {} is ready for pods", node.name_any());
    context
        .events
        .normal(&draft.claim, event::INITIALIZED, &note)
        .await;
    Ok(None)
}

/// How long what keeps the node back is not yet worth a word; none once it is. Pure.
fn said_in(draft: &Draft) -> Option<Duration> {
    let registered = draft.conditions.find(condition::REGISTERED)?;
    left(
        SAID_AFTER,
        since(registered.last_transition_time, draft.now),
    )
}

/// Puts the label on a Node that is ready for pods, where that is to be written with something else. Pure.
pub fn mark_if_ready(node: &mut Node, claim: &NodeClaim) {
    if obstacle(node, claim).is_none() {
        mark(node);
    }
}

fn mark(node: &mut Node) {
    let labels = node.labels_mut();
    labels.insert(label::INITIALIZED.to_owned(), "true".to_owned());
}

/// The first thing that keeps the Node from being ready for pods, as a reason and a message. Pure.
fn obstacle(node: &Node, claim: &NodeClaim) -> Option<(&'static str, String)> {
    let name = node.name_any();
    if !is_ready(node) {
        return Some((reason::NODE_NOT_READY, format!("node {name} is not Ready")));
    }
    let taints = node
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.as_deref())
        .unwrap_or_default();
    let is_same = |a: &Taint, b: &Taint| a.key == b.key && a.effect == b.effect;
    let startup = |found: &&Taint| {
        claim
            .spec
            .startup_taints
            .iter()
            .any(|startup| is_same(startup, found))
    };
    if let Some(found) = taints.iter().find(startup) {
        let message = format!(
            "startup taint {}:{} is still on node {name}",
            found.key, found.effect
        );
        return Some((reason::STARTUP_TAINTS_EXIST, message));
    }
    if let Some(found) = taints.iter().find(|found| is_ephemeral(found)) {
        let message = format!(
            "taint {}:{} is still on node {name}",
            found.key, found.effect
        );
        return Some((reason::KNOWN_EPHEMERAL_TAINTS_EXIST, message));
    }
    let resource = missing_resource(node, claim)?;
    let message = format!("node {name} does not show the requested resource {resource} yet");
    Some((reason::RESOURCE_NOT_REGISTERED, message))
}

fn is_ephemeral(taint: &Taint) -> bool {
    kerf_state::taint(taint).is_some_and(|taint| taint.is_ephemeral())
}

/// Whether the Node's Ready condition is True.
#[must_use]
pub fn is_ready(node: &Node) -> bool {
    let conditions = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    conditions
        .iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn missing_resource<'a>(node: &Node, claim: &'a NodeClaim) -> Option<&'a str> {
    let requests = &claim.spec.resources.as_ref()?.requests;
    let allocatable = node
        .status
        .as_ref()
        .and_then(|status| status.allocatable.as_ref());
    let is_shown = |name: &String| {
        allocatable
            .and_then(|it| it.get(name))
            .is_some_and(|amount| !is_zero(amount))
    };
    requests
        .iter()
        .find(|(name, amount)| !is_zero(amount) && !is_shown(name))
        .map(|(name, _)| name.as_str())
}

/// A quantity is zero when none of its digits is not: the unit does not matter.
fn is_zero(quantity: &Quantity) -> bool {
    !quantity.0.chars().any(|c| ('1'..='9').contains(&c))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{NodeCondition, NodeStatus};

    use super::*;

    fn ready_node() -> Node {
        let ready = NodeCondition {
            type_: "Ready".to_owned(),
            status: "True".to_owned(),
            ..NodeCondition::default()
        };
        Node {
            status: Some(NodeStatus {
                conditions: Some(vec![ready]),
                ..NodeStatus::default()
            }),
            ..Node::default()
        }
    }

    fn claim_for(resource: &str, amount: &str) -> NodeClaim {
        let mut claim = NodeClaim::new("general-1", Default::default());
        let requests = &mut claim.spec.resources.get_or_insert_default().requests;
        requests.insert(resource.to_owned(), Quantity(amount.to_owned()));
        claim
    }

    #[test]
    fn a_gpu_that_the_device_plugin_has_not_announced_keeps_the_node_back() {
        let found = obstacle(&ready_node(), &claim_for("nvidia.com/gpu", "1")).unwrap();

        assert_eq!(found.0, reason::RESOURCE_NOT_REGISTERED);
        assert!(found.1.contains("nvidia.com/gpu"), "{}", found.1);
    }

    #[test]
    fn a_request_of_zero_needs_nothing() {
        assert_eq!(
            obstacle(&ready_node(), &claim_for("nvidia.com/gpu", "0")),
            None
        );
    }

    #[test]
    fn a_startup_taint_keeps_the_node_back_until_it_is_gone() {
        let agent = Taint {
            key: "agent".to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        };
        let mut claim = claim_for("cpu", "0");
        claim.spec.startup_taints = vec![agent.clone()];
        let mut node = ready_node();
        node.spec.get_or_insert_default().taints = Some(vec![agent]);

        assert_eq!(
            obstacle(&node, &claim).unwrap().0,
            reason::STARTUP_TAINTS_EXIST
        );
    }
}
