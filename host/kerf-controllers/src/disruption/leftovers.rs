//! Signs of commands that nobody carries out: of a crash, of a person, of an older version. They are taken away.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use kerf_api::names::{annotation, condition, label, taint};
use kerf_api::nodeclaim::NodeClaim;
use kube::ResourceExt;

use crate::clock;
use crate::context::Context;
use crate::disruption::{edit, execute};
use crate::error::chain;
use crate::interruption::notice::Notice;

/// Gives back every claim and Node that looks chosen and is not in `candidates`.
///
/// What is being deleted is left alone: its signs are true.
pub async fn clear(candidates: &BTreeSet<String>, context: &Context) {
    let signs = [annotation::DISRUPTION_COMMAND, condition::DISRUPTION_REASON];
    for claim in context.stores.nodeclaims.iter_saying(&signs) {
        let is_ours = context.manages(&claim.spec.node_class_ref);
        if !is_ours || !is_left_over(&claim, candidates) {
            continue;
        }
        give_back(&claim, context).await;
    }
    for node in context.stores.nodes.iter_saying(&[taint::DISRUPTED]) {
        if !looks_chosen(&node) {
            continue;
        }
        let Some(claim) = context.claim_of(&node) else {
            continue;
        };
        if is_free(&claim, candidates) {
            give_back(&claim, context).await;
        }
    }
}

async fn give_back(claim: &NodeClaim, context: &Context) {
    if let Err(error) = execute::release(claim, context).await {
        tracing::warn!(nodeclaim = %claim.name_any(), error = %chain(&error), "cannot take away what is left of a command; tried again");
    }
}

/// Pure.
fn is_left_over(claim: &NodeClaim, candidates: &BTreeSet<String>) -> bool {
    let is_signed = claim
        .annotations()
        .contains_key(annotation::DISRUPTION_COMMAND)
        || claim.is_true(condition::DISRUPTION_REASON);
    is_signed && is_free(claim, candidates)
}

fn is_free(claim: &NodeClaim, candidates: &BTreeSet<String>) -> bool {
    claim.metadata.deletion_timestamp.is_none()
        && !candidates.contains(&claim.name_any())
        && !Notice::evacuates(claim, clock::now())
}

fn looks_chosen(node: &Node) -> bool {
    node.metadata.deletion_timestamp.is_none()
        && node.labels().contains_key(label::NODEPOOL)
        && edit::is_tainted(node)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn only_what_no_command_holds_and_nobody_deletes_is_left_over() {
        let mut claim = NodeClaim::new("general-1", Default::default());
        let none = BTreeSet::new();
        assert!(!is_left_over(&claim, &none));

        let key = annotation::DISRUPTION_COMMAND.to_owned();
        claim.annotations_mut().insert(key, "{".to_owned());
        assert!(is_left_over(&claim, &none));
        assert!(!is_left_over(&claim, &["general-1".to_owned()].into()));

        claim.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        assert!(!is_left_over(&claim, &none));
    }
}
