//! The hash of a NodePool's template, equal to upstream Karpenter's, so that taking over a fleet replaces no node.
//!
//! Upstream hashes its Go structs by reflection; here is the same arithmetic over the same fields. Names and order of
//! fields are those of the Go types, since both are part of the hash. The vectors in testdata/ are upstream's answers.
//! Peculiarities that must stay: an empty list is not an absent one, `Never` is, and a struct hashes its running value
//! anew after every field that is set.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint;

use super::{NodeClaimTemplate, NodeClaimTemplateSpec, NodePool, TemplateMetadata};
use crate::duration::{DurationError, NillableDuration};
use crate::requirement::NodeClassReference;

/// Version of the algorithm, for the annotation beside the hash.
pub const NODEPOOL_HASH_VERSION: &str = "v3";

impl NodePool {
    /// The hash of the template, for the annotation `karpenter.sh/nodepool-hash`. Requirements are not in it: they are
    /// compared by meaning.
    ///
    /// # Errors
    /// When a duration cannot be read; such a pool is not valid and makes no nodes.
    pub fn hash(&self) -> Result<String, DurationError> {
        template(&self.spec.template).map(|hash| hash.to_string())
    }
}

fn template(template: &NodeClaimTemplate) -> Result<u64, DurationError> {
    let mut hash = StructHash::new("NodeClaimTemplate");
    if let Some(metadata) = &template.metadata
        && *metadata != TemplateMetadata::default()
    {
        hash.field("ObjectMeta", object_meta(metadata));
    }
    hash.field("Spec", spec(&template.spec)?);
    Ok(hash.finish())
}

fn object_meta(metadata: &TemplateMetadata) -> u64 {
    let mut hash = StructHash::new("ObjectMeta");
    if let Some(labels) = &metadata.labels {
        hash.field("Labels", map(labels));
    }
    if let Some(annotations) = &metadata.annotations {
        hash.field("Annotations", map(annotations));
    }
    hash.finish()
}

fn spec(spec: &NodeClaimTemplateSpec) -> Result<u64, DurationError> {
    let mut hash = StructHash::new("NodeClaimTemplateSpec");
    if let Some(list) = &spec.taints {
        hash.field("Taints", taints(list));
    }
    if let Some(list) = &spec.startup_taints {
        hash.field("StartupTaints", taints(list));
    }
    hash.field("NodeClassRef", node_class_ref(&spec.node_class_ref));
    if let Some(nanoseconds) = nanoseconds(spec.termination_grace_period.as_ref())? {
        let mut duration = StructHash::new("Duration");
        if nanoseconds != 0 {
            duration.field("Duration", integer(nanoseconds));
        }
        hash.field("TerminationGracePeriod", duration.finish());
    }
    if let Some(nanoseconds) = nanoseconds(spec.expire_after.as_ref())? {
        let mut duration = StructHash::new("NillableDuration");
        duration.field("Duration", integer(nanoseconds));
        hash.field("ExpireAfter", duration.finish());
    }
    Ok(hash.finish())
}

fn nanoseconds(duration: Option<&NillableDuration>) -> Result<Option<i64>, DurationError> {
    let parsed = duration.map(NillableDuration::parse).transpose()?.flatten();
    // Parsing bounds the duration by what 64 bits of nanoseconds hold.
    Ok(parsed.map(|duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)))
}

fn node_class_ref(reference: &NodeClassReference) -> u64 {
    let NodeClassReference { kind, name, group } = reference;
    let mut hash = StructHash::new("NodeClassReference");
    hash.text_field("Kind", kind);
    hash.text_field("Name", name);
    hash.text_field("Group", group);
    hash.finish()
}

/// Taints count in any order. Karpenter: differs, because there `timeAdded` counts, which means nothing in a template.
fn taints(taints: &[Taint]) -> u64 {
    taints.iter().map(taint).fold(0, |all, one| all ^ one)
}

fn taint(taint: &Taint) -> u64 {
    let mut hash = StructHash::new("Taint");
    hash.text_field("Key", &taint.key);
    hash.text_field("Value", taint.value.as_deref().unwrap_or_default());
    hash.text_field("Effect", &taint.effect);
    hash.finish()
}

fn map(entries: &BTreeMap<String, String>) -> u64 {
    let entries = entries
        .iter()
        .map(|(key, value)| ordered(text(key), text(value)));
    scrambled(entries.fold(0, |all, one| all ^ one))
}

/// A struct whose zero fields do not count.
struct StructHash(u64);

impl StructHash {
    fn new(name: &str) -> Self {
        Self(text(name))
    }

    fn field(&mut self, name: &str, value: u64) {
        self.0 = scrambled(self.0 ^ ordered(text(name), value));
    }

    fn text_field(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.field(name, text(value));
        }
    }

    fn finish(self) -> u64 {
        self.0
    }
}

fn text(text: &str) -> u64 {
    fnv1(text.bytes())
}

fn integer(number: i64) -> u64 {
    fnv1(number.to_le_bytes())
}

fn ordered(first: u64, second: u64) -> u64 {
    fnv1(first.to_le_bytes().into_iter().chain(second.to_le_bytes()))
}

fn scrambled(hash: u64) -> u64 {
    fnv1(hash.to_le_bytes())
}

/// FNV-1 with 64 bits: multiply, then mix in.
fn fnv1(bytes: impl IntoIterator<Item = u8>) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.into_iter().fold(OFFSET, |hash, byte| {
        hash.wrapping_mul(PRIME) ^ u64::from(byte)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Vector {
        yaml: String,
        hash_defaulted: String,
    }

    #[test]
    fn hashes_equal_those_of_upstream() {
        let vectors = include_str!("../../testdata/nodepool-hash-vectors.json");
        let vectors: Vec<Vector> = serde_json::from_str(vectors).unwrap();

        for Vector {
            yaml,
            hash_defaulted,
        } in vectors
        {
            let pool: NodePool = serde_saphyr::from_str(&yaml).unwrap();

            assert_eq!(pool.hash().unwrap(), hash_defaulted, "{yaml}");
        }
    }
}
