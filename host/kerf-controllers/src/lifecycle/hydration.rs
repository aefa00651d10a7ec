//! Hydration: objects that an older version or another provider made get the label of their class (Karpenter: same).

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use kerf_api::names::{condition, label};
use kerf_api::nodeclaim::NodeClaim;
use kube::{Api, ResourceExt};

use crate::adoption;
use crate::context::Context;
use crate::draft::Draft;
use crate::error::Error;
use crate::patch;

/// The claim's own label; it is written with whatever else the pass finds.
pub fn claim(draft: &mut Draft) {
    // The label names a class of ours.
    if adoption::is_adopted(&draft.claim.spec.node_class_ref) {
        return;
    }
    let class = draft.claim.spec.node_class_ref.name.clone();
    let labels = draft.claim.labels_mut();
    labels
        .entry(label::ECSNODECLASS.to_owned())
        .or_insert(class);
}

/// The label on the Node of a registered claim.
///
/// # Errors
/// When the Node cannot be written.
pub async fn node(draft: &Draft, nodes: &[Arc<Node>], context: &Context) -> Result<(), Error> {
    let [node] = nodes else { return Ok(()) };
    let is_behind = context.stores.nodes.is_behind(node);
    if is_behind || !draft.conditions.is_true(condition::REGISTERED) {
        return Ok(());
    }
    if let Some(wanted) = hydrated(node, &draft.claim) {
        let written = patch::write(&Api::all(context.client.clone()), &**node, &wanted).await?;
        context.stores.nodes.note_written(&written);
    }
    Ok(())
}

/// The Node with the label; none when it has it, or is going. Pure.
fn hydrated(node: &Node, claim: &NodeClaim) -> Option<Node> {
    let is_done = node.labels().contains_key(label::ECSNODECLASS)
        || node.metadata.deletion_timestamp.is_some()
        || adoption::is_adopted(&claim.spec.node_class_ref);
    if is_done {
        return None;
    }
    let mut node = node.clone();
    let class = claim.spec.node_class_ref.name.clone();
    node.labels_mut()
        .insert(label::ECSNODECLASS.to_owned(), class);
    Some(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_class(group: &str) -> NodeClaim {
        let mut claim = NodeClaim::new("general-1", Default::default());
        let class = &mut claim.spec.node_class_ref;
        class.group = group.to_owned();
        class.kind = "ECSNodeClass".to_owned();
        class.name = "default".to_owned();
        claim
    }

    #[test]
    fn a_claim_of_an_older_version_gets_the_label_of_its_class() {
        let old = of_class(label::PROVIDER_DOMAIN);
        let mut draft = Draft::open(&old, jiff::Timestamp::UNIX_EPOCH);

        claim(&mut draft);

        assert_eq!(draft.claim.labels()[label::ECSNODECLASS], "default");
    }

    #[test]
    fn a_node_of_an_older_version_gets_the_label_once() {
        let claim = of_class(label::PROVIDER_DOMAIN);

        let node = hydrated(&Node::default(), &claim).unwrap();

        assert_eq!(node.labels()[label::ECSNODECLASS], "default");
        assert_eq!(hydrated(&node, &claim), None);
    }

    #[test]
    fn what_another_provider_made_keeps_its_labels() {
        let other = of_class(adoption::OTHER_GROUP);
        let mut draft = Draft::open(&other, jiff::Timestamp::UNIX_EPOCH);

        claim(&mut draft);

        assert!(!draft.claim.labels().contains_key(label::ECSNODECLASS));
        assert_eq!(hydrated(&Node::default(), &other), None);
    }
}
