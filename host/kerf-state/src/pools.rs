//! Why a NodePool cannot be used now, from its own problems and its node class.

use std::collections::BTreeMap;

use kerf_api::condition::{self, ConditionStatus};
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::names::{condition as types, label, reason};
use kerf_core::node_pool::NodeClassRef;

use crate::problem::{ObjectKey, Problem};

/// The kind of node class that we serve.
const NODE_CLASS_KIND: &str = "ECSNodeClass";

/// An ECSNodeClass in the index: only what decisions need.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodeClassEntry {
    /// Why it is not ready; none when it is.
    not_ready: Option<String>,
}

pub(crate) fn node_class(class: &EcsNodeClass) -> NodeClassEntry {
    let is_deleting = class.metadata.deletion_timestamp.is_some();
    let not_ready = match condition::find(class.conditions(), types::READY) {
        _ if is_deleting => Some("it is being deleted".to_owned()),
        None => Some("nobody has looked at it yet".to_owned()),
        Some(ready) if ready.status == ConditionStatus::True => None,
        Some(ready) => Some(causes(class).unwrap_or_else(|| ready.message.clone())),
    };
    NodeClassEntry { not_ready }
}

/// What the conditions behind `Ready` say, which is more than its own list of names.
fn causes(class: &EcsNodeClass) -> Option<String> {
    let causes: Vec<String> = EcsNodeClass::CONDITIONS
        .dependents
        .iter()
        .filter_map(|type_| condition::find(class.conditions(), type_))
        .filter(|condition| condition.status == ConditionStatus::False)
        .map(|condition| format!("{}: {}", condition.reason, condition.message))
        .collect();
    (!causes.is_empty()).then(|| causes.join("; "))
}

/// Why the pool cannot be used now; none when it can.
pub(crate) fn not_ready(
    reference: &NodeClassRef,
    problems: &[Problem],
    classes: &BTreeMap<ObjectKey, NodeClassEntry>,
) -> Option<String> {
    if !problems.is_empty() {
        let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
        return Some(format!(
            "{}: {}",
            reason::NODEPOOL_VALIDATION_FAILED,
            lines.join("; ")
        ));
    }
    let NodeClassRef { group, kind, name } = reference;
    let is_ours = group == label::PROVIDER_DOMAIN && kind == NODE_CLASS_KIND;
    let class = classes
        .get(&ObjectKey::cluster(name.as_str()))
        .filter(|_| is_ours);
    let Some(class) = class else {
        return Some(format!(
            "{}: {kind}.{group} {name} does not exist",
            reason::NODE_CLASS_NOT_FOUND
        ));
    };
    let why = class.not_ready.as_ref()?;
    Some(format!(
        "{}: {kind} {name}: {why}",
        reason::NODE_CLASS_NOT_READY
    ))
}
