//! A planned claim as a Kubernetes object. Pure.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kerf_api::duration::NillableDuration;
use kerf_api::names::{annotation, finalizer, label};
use kerf_api::nodeclaim::{NodeClaim, NodeClaimSpec, ResourceRequirements};
use kerf_api::nodepool::NodePool;
use kerf_api::requirement::{NodeClassReference, Operator, Requirement};
use kerf_core::plan::PlannedClaim;
use kerf_core::requirements::Requirements;
use kerf_core::resources::{Resources, quantity_of};
use kube::{Resource, ResourceExt};

use crate::lifecycle::offerings;

/// The longest pool name that goes into a claim's name: the claim's name is a label value, which holds 63 characters.
const POOL_NAME_MAX_CHARS: usize = 54;
/// Letters and digits that cannot be read as words or as each other.
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// 27^8 names per pool: two claims of the same name are not to be expected in the life of a cluster.
const SUFFIX_CHARS: usize = 8;

/// A fresh name, chosen before the call so that a create whose reply was lost can be repeated.
#[must_use]
pub fn fresh_name(pool: &str) -> String {
    let mut seed = RandomState::new().hash_one(pool);
    let mut name: String = pool.chars().take(POOL_NAME_MAX_CHARS).collect();
    name.push('-');
    let letters = SUFFIX_ALPHABET.len() as u64;
    for _ in 0..SUFFIX_CHARS {
        let index = usize::try_from(seed % letters).unwrap_or_default();
        name.push(char::from(SUFFIX_ALPHABET[index]));
        seed /= letters;
    }
    name
}

/// The object to create for a planned claim.
#[must_use]
pub fn build(name: &str, planned: &PlannedClaim, pool: &NodePool) -> NodeClaim {
    let mut claim = NodeClaim::new(name, spec(planned));
    claim.metadata = ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some(labels(planned)),
        annotations: Some(annotations(planned, pool)),
        finalizers: Some(vec![finalizer::TERMINATION.to_owned()]),
        owner_references: Some(vec![owner(pool)]),
        ..ObjectMeta::default()
    };
    claim
}

fn spec(planned: &PlannedClaim) -> NodeClaimSpec {
    let node_class = &planned.node_class;
    NodeClaimSpec {
        taints: planned.taints.iter().map(taint).collect(),
        startup_taints: planned.startup_taints.iter().map(taint).collect(),
        requirements: requirements(&planned.requirements),
        resources: Some(ResourceRequirements {
            requests: quantities(&planned.requests),
        }),
        node_class_ref: NodeClassReference {
            group: node_class.group.clone(),
            kind: node_class.kind.clone(),
            name: node_class.name.clone(),
        },
        termination_grace_period: planned.termination_grace_period.map(duration),
        expire_after: Some(
            planned
                .expire_after
                .map_or_else(NillableDuration::never, duration),
        ),
    }
}

fn labels(planned: &PlannedClaim) -> BTreeMap<String, String> {
    let mut labels: BTreeMap<String, String> = planned
        .labels
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    labels.insert(label::NODEPOOL.to_owned(), planned.pool.to_string());
    labels.insert(
        label::ECSNODECLASS.to_owned(),
        planned.node_class.name.clone(),
    );
    labels
}

fn annotations(planned: &PlannedClaim, pool: &NodePool) -> BTreeMap<String, String> {
    let mut annotations = planned.annotations.clone();
    for key in [annotation::NODEPOOL_HASH, annotation::NODEPOOL_HASH_VERSION] {
        if let Some(value) = pool.annotations().get(key) {
            annotations.insert(key.to_owned(), value.clone());
        }
    }
    annotations.insert(
        annotation::LAUNCH_OFFERINGS.to_owned(),
        offerings::encode(&planned.offerings),
    );
    annotations
}

fn owner(pool: &NodePool) -> OwnerReference {
    OwnerReference {
        api_version: NodePool::api_version(&()).into_owned(),
        kind: NodePool::kind(&()).into_owned(),
        name: pool.name_any(),
        uid: pool.uid().unwrap_or_default(),
        block_owner_deletion: Some(true),
        controller: None,
    }
}

fn requirements(requirements: &Requirements) -> Vec<Requirement> {
    let written = requirements
        .iter()
        .flat_map(kerf_core::requirement::Requirement::written);
    written
        .map(|item| Requirement {
            key: item.key,
            operator: Operator::from(item.operator.as_str()),
            values: item.values,
            min_values: item.min_values.and_then(|min| i32::try_from(min).ok()),
        })
        .collect()
}

fn taint(taint: &kerf_core::taint::Taint) -> Taint {
    Taint {
        key: taint.key.clone(),
        value: Some(taint.value.clone()).filter(|value| !value.is_empty()),
        effect: taint.effect.as_str().to_owned(),
        time_added: None,
    }
}

fn quantities(resources: &Resources) -> BTreeMap<String, Quantity> {
    let known = resources.iter().filter(|(_, amount)| *amount != 0);
    known
        .map(|(name, amount)| {
            (
                name.to_owned(),
                Quantity(quantity_of(name, amount).to_string()),
            )
        })
        .collect()
}

/// In whole seconds, as Go reads it.
fn duration(duration: SignedDuration) -> NillableDuration {
    NillableDuration::new(format!("{}s", duration.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_fresh_and_fit_into_a_label_value() {
        let name = fresh_name(&"p".repeat(100));

        assert!(name.len() <= 63, "{name}");
        assert_ne!(name, fresh_name(&"p".repeat(100)));
    }
}
