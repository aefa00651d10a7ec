//! Policies whose component is among the manifests or in a file: whether they load, and take their configuration.
//!
//! A component that is elsewhere (in a registry, in a ConfigMap of the cluster) is not looked at.

use anyhow::Result;
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_policy::{Engine, LoadError, Registry};

use super::Finding;
use crate::document::Document;
use crate::simulate::{Objects, policy_source};

/// What is wrong, by the index of the document.
pub(super) fn check(documents: &[Document]) -> Result<Vec<(usize, Finding)>> {
    let mut findings = Vec::new();
    let classes: Vec<(usize, EcsNodeClass)> = documents
        .iter()
        .enumerate()
        .filter(|(_, it)| it.value["kind"] == "ECSNodeClass")
        // A class that does not read has findings of its own.
        .filter_map(|(idx, it)| Some((idx, serde_json::from_value(it.value.clone()).ok()?)))
        .filter(|(_, class): &(usize, EcsNodeClass)| !class.spec.policies.is_empty())
        .collect();
    if classes.is_empty() {
        return Ok(findings);
    }
    let mut objects = Objects::default();
    for (idx, document) in documents.iter().enumerate() {
        if document.value["kind"] == "ConfigMap"
            && let Ok(config_map) = serde_json::from_value(document.value.clone())
        {
            objects.config_maps.push((idx, config_map));
        }
    }
    let registry = Registry::new(Engine::new()?);
    for (document, class) in classes {
        let name = class.metadata.name.as_deref().unwrap_or_default();
        for (idx, policy) in class.spec.policies.iter().enumerate() {
            let Ok(bytes) = policy_source(policy, &objects) else {
                continue;
            };
            // What cannot be read of the policy itself is a finding of its definition.
            let (spec, None) = kerf_controllers::policies::spec(policy) else {
                continue;
            };
            if let Err(error) = registry.update(name, spec, &bytes) {
                let part = match &error {
                    LoadError::Config(_) => "config",
                    LoadError::DigestMismatch { .. } => "digest",
                    _ => "source",
                };
                let path = format!("spec.policies[{idx}].{part}");
                let reason = kerf_controllers::error::chain(&error);
                findings.push((document, Finding::new(&path, reason)));
            }
        }
    }
    Ok(findings)
}
