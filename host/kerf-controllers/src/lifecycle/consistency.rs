//! Consistency: the Node shows at least nine tenths of what its claim was planned with.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use kerf_api::names::{condition, event, reason};
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::quantity::Quantity;
use kerf_core::resources::amount_of;
use kube::ResourceExt;

use crate::context::Context;
use crate::draft::Draft;

/// A Node may show this much less: the operating system keeps some memory for itself (Karpenter: same).
const SHOWN_TENTHS_MIN: i128 = 9;

/// Judges an initialised claim; `nodes` are those with its providerID.
pub async fn advance(draft: &mut Draft, nodes: &[Arc<Node>], context: &Context) {
    let [node] = nodes else { return };
    if !draft.conditions.is_true(condition::INITIALIZED) {
        return;
    }
    let Some(message) = shortfall(node, &draft.claim) else {
        draft.conditions.set_true(condition::CONSISTENT_STATE_FOUND);
        return;
    };
    draft.conditions.set_false(
        condition::CONSISTENT_STATE_FOUND,
        reason::CONSISTENCY_CHECK_FAILED,
        &message,
    );
    context
        .events
        .warning(&draft.claim, event::FAILED_CONSISTENCY_CHECK, &message)
        .await;
}

/// The first requested resource of which the Node shows too little. Pure.
fn shortfall(node: &Node, claim: &NodeClaim) -> Option<String> {
    let requests = &claim.spec.resources.as_ref()?.requests;
    let planned = &claim.status.as_ref()?.capacity;
    let shown = node.status.as_ref()?.capacity.as_ref()?;
    let amount = |name: &str, text: &str| {
        Quantity::parse(text)
            .map(|quantity| amount_of(name, quantity))
            .ok()
    };
    requests.keys().find_map(|name| {
        let planned = planned.get(name)?;
        let has = shown.get(name);
        let expected = i128::from(amount(name, &planned.0)?);
        let found = has.and_then(|it| amount(name, &it.0)).unwrap_or_default();
        (i128::from(found) * 10 < expected * SHOWN_TENTHS_MIN).then(|| {
            let has = has.map_or("0", |it| it.0.as_str());
            let (node, planned) = (node.name_any(), &planned.0);
            format!("node {node} shows {name} {has} where {planned} was planned")
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::NodeStatus;
    use k8s_openapi::apimachinery::pkg::api::resource;

    use super::*;

    fn memory(amount: &str) -> BTreeMap<String, resource::Quantity> {
        BTreeMap::from([("memory".to_owned(), resource::Quantity(amount.to_owned()))])
    }

    fn check(shown: &str) -> Option<String> {
        let mut claim = NodeClaim::new("general-1", Default::default());
        claim.spec.resources.get_or_insert_default().requests = memory("1Gi");
        claim.status.get_or_insert_default().capacity = memory("100Gi");
        let node = Node {
            status: Some(NodeStatus {
                capacity: Some(memory(shown)),
                ..NodeStatus::default()
            }),
            ..Node::default()
        };
        shortfall(&node, &claim)
    }

    #[test]
    fn a_node_that_shows_less_than_nine_tenths_is_told() {
        assert_eq!(check("90Gi"), None);
        let message = check("89Gi").unwrap();
        assert!(message.contains("memory 89Gi"), "{message}");
    }
}
