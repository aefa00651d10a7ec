//! Registration: the Node joined, so it gets the claim's labels, taints, finalizer and owner.
//!
//! The Node is found by provider id, never by name: names come from addresses, and addresses are used again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kerf_api::condition::ConditionStatus;
use kerf_api::names::{annotation, condition, event, finalizer, label, reason, taint};
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::labels;
use kube::{Api, Resource, ResourceExt};

use crate::context::Context;
use crate::draft::Draft;
use crate::error::Error;
use crate::failpoint;
use crate::lifecycle::{initialization, together};
use crate::metrics::ZoneLabels;
use crate::patch;

/// The watch on Nodes triggers; this only covers a lost trigger.
const RECHECK: Duration = Duration::from_secs(30);

/// Moves the claim on if its Node is there; `nodes` are those with its providerID. Returns when to look again.
///
/// # Errors
/// When the Node cannot be written.
pub async fn advance(
    draft: &mut Draft,
    nodes: &mut [Arc<Node>],
    context: &Context,
) -> Result<Option<Duration>, Error> {
    let is_open =
        is_unknown(draft, condition::REGISTERED) && draft.conditions.is_true(condition::LAUNCHED);
    let Some(provider_id) = draft
        .claim
        .provider_id()
        .map(str::to_owned)
        .filter(|_| is_open)
    else {
        return Ok(None);
    };
    let [node] = &nodes[..] else {
        say_what_is_missing(draft, &provider_id, nodes.len());
        return Ok(Some(RECHECK));
    };
    if context.stores.nodes.is_behind(node) {
        return Ok(Some(RECHECK));
    }
    if let Some(wait) = together::wait(&draft.claim, node, context) {
        return Ok(Some(wait));
    }
    context.reach(failpoint::NODE_JOINED).await;
    if !node
        .metadata
        .labels
        .as_ref()
        .is_some_and(|labels| labels.contains_key(label::REGISTERED))
        && !is_unregistered(node)
    {
        let note = format!(
            "node {} joined without the taint {}: pods may have started on it before it was set up; \
             hint: pass --taints in the join script",
            node.name_any(),
            taint::UNREGISTERED
        );
        context
            .events
            .warning(&draft.claim, event::UNREGISTERED_TAINT_MISSING, &note)
            .await;
    }
    let mut wanted = registered(node, &draft.claim);
    // A Node that joins ready is written once.
    initialization::mark_if_ready(&mut wanted, &draft.claim);
    let written = patch::write(&Api::all(context.urgent_client.clone()), &**node, &wanted).await?;
    context.stores.nodes.note_written(&written);
    // What follows in this pass goes on from it: the watch is later than that.
    nodes[0] = Arc::new(written.clone());
    context.reach(failpoint::NODE_REGISTERED).await;
    let node_name = written.name_any();
    draft.conditions.set_true(condition::REGISTERED);
    context.registrations.succeeded(&draft.claim);
    draft.status_mut().node_name = Some(node_name.clone());
    context
        .events
        .normal(
            &draft.claim,
            event::REGISTERED,
            &format!("node {node_name} registered"),
        )
        .await;
    let label_of = |key: &str| draft.claim.labels().get(key).cloned().unwrap_or_default();
    let labels = ZoneLabels {
        nodepool: label_of(label::NODEPOOL),
        zone: label_of(labels::ZONE),
    };
    context.metrics.nodes_created.get_or_create(&labels).inc();
    Ok(None)
}

/// Whether the condition is still open.
pub fn is_unknown(draft: &Draft, type_: &str) -> bool {
    draft
        .conditions
        .find(type_)
        .is_none_or(|found| found.status == ConditionStatus::Unknown)
}

fn say_what_is_missing(draft: &mut Draft, provider_id: &str, nodes: usize) {
    if nodes == 0 {
        let message = format!("no node with providerID {provider_id} has joined yet");
        draft
            .conditions
            .set_unknown(condition::REGISTERED, reason::NODE_NOT_FOUND, &message);
    } else {
        let message = format!(
            "{nodes} nodes have the providerID {provider_id}: delete those that are not real"
        );
        draft.conditions.set_unknown(
            condition::REGISTERED,
            reason::MULTIPLE_NODES_FOUND,
            &message,
        );
    }
}

fn is_unregistered(node: &Node) -> bool {
    taints_of(node)
        .iter()
        .any(|found| found.key == taint::UNREGISTERED)
}

fn taints_of(node: &Node) -> &[Taint] {
    node.spec
        .as_ref()
        .and_then(|spec| spec.taints.as_deref())
        .unwrap_or_default()
}

/// The Node as it is once registered. Pure.
fn registered(node: &Node, claim: &NodeClaim) -> Node {
    let mut node = node.clone();
    let finalizers = node.metadata.finalizers.get_or_insert_default();
    if !finalizers
        .iter()
        .any(|found| found == finalizer::TERMINATION)
    {
        finalizers.push(finalizer::TERMINATION.to_owned());
    }
    own(&mut node, claim);
    let syncs_taints = node
        .labels()
        .get(label::DO_NOT_SYNC_TAINTS)
        .map(String::as_str)
        != Some("true");
    let spec = node.spec.get_or_insert_default();
    let mut taints = spec.taints.take().unwrap_or_default();
    if syncs_taints {
        merge_taints(
            &mut taints,
            claim.spec.taints.iter().chain(&claim.spec.startup_taints),
        );
    }
    taints.retain(|found| found.key != taint::UNREGISTERED);
    spec.taints = Some(taints).filter(|taints| !taints.is_empty());
    let labels = node.metadata.labels.get_or_insert_default();
    labels.extend(claim.labels().clone());
    labels.insert(label::REGISTERED.to_owned(), "true".to_owned());
    let annotations = node.metadata.annotations.get_or_insert_default();
    annotations.extend(
        claim
            .annotations()
            .iter()
            .filter(|(key, _)| !is_bookkeeping(key))
            .map(|(key, value)| (key.clone(), value.clone())),
    );
    node
}

/// The launch notes on a claim are of no use on its Node.
fn is_bookkeeping(key: &str) -> bool {
    key.starts_with(annotation::LAUNCH_PREFIX)
}

fn own(node: &mut Node, claim: &NodeClaim) {
    let owners = node.metadata.owner_references.get_or_insert_default();
    let uid = claim.uid().unwrap_or_default();
    if owners.iter().any(|owner| owner.uid == uid) {
        return;
    }
    owners.push(OwnerReference {
        api_version: NodeClaim::api_version(&()).into_owned(),
        kind: NodeClaim::kind(&()).into_owned(),
        name: claim.name_any(),
        uid,
        block_owner_deletion: Some(true),
        controller: None,
    });
}

/// Adds what is missing; of the same key and effect, the node's own stays.
fn merge_taints<'a>(taints: &mut Vec<Taint>, wanted: impl Iterator<Item = &'a Taint>) {
    let mut known: BTreeSet<(String, String)> = taints
        .iter()
        .map(|found| (found.key.clone(), found.effect.clone()))
        .collect();
    for taint in wanted {
        if known.insert((taint.key.clone(), taint.effect.clone())) {
            taints.push(taint.clone());
        }
    }
}

/// How much of a time is left of which so much has passed; none once it is over.
pub fn left(whole: Duration, passed: Duration) -> Option<Duration> {
    whole.checked_sub(passed).filter(|left| !left.is_zero())
}

/// How long ago, never negative.
pub fn since(then: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(then)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(key: &str, effect: &str) -> Taint {
        Taint {
            key: key.to_owned(),
            effect: effect.to_owned(),
            ..Taint::default()
        }
    }

    fn node(taints: Vec<Taint>) -> Node {
        let mut node = Node::default();
        node.spec.get_or_insert_default().taints = Some(taints);
        node
    }

    fn claim() -> NodeClaim {
        let mut claim = NodeClaim::new("general-1", Default::default());
        claim.metadata.uid = Some("u-1".to_owned());
        claim.labels_mut().insert("team".to_owned(), "a".to_owned());
        claim
            .annotations_mut()
            .insert(annotation::LAUNCH_GROUP.to_owned(), "u-1".to_owned());
        claim
            .annotations_mut()
            .insert("note".to_owned(), "x".to_owned());
        claim.spec.taints = vec![taint("dedicated", "NoSchedule")];
        claim
    }

    #[test]
    fn registration_trades_the_unregistered_taint_for_the_claims() {
        let joined = node(vec![
            taint(taint::UNREGISTERED, "NoExecute"),
            taint("node.kubernetes.io/not-ready", "NoSchedule"),
        ]);

        let node = registered(&joined, &claim());

        let keys: Vec<&str> = taints_of(&node)
            .iter()
            .map(|found| found.key.as_str())
            .collect();
        assert_eq!(keys, ["node.kubernetes.io/not-ready", "dedicated"]);
        assert_eq!(node.labels()["team"], "a");
        assert_eq!(node.labels()[label::REGISTERED], "true");
        assert_eq!(node.finalizers(), [finalizer::TERMINATION]);
        assert_eq!(node.owner_references()[0].uid, "u-1");
    }

    #[test]
    fn launch_notes_stay_on_the_claim() {
        let node = registered(&node(vec![]), &claim());

        assert_eq!(node.annotations().keys().collect::<Vec<_>>(), ["note"]);
    }

    #[test]
    fn registering_twice_changes_nothing() {
        let once = registered(&node(vec![]), &claim());

        assert_eq!(registered(&once, &claim()), once);
    }
}
