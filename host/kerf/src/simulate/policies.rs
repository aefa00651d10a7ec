//! Policies of a simulation: those that the node classes declare, and those of --policy.

use std::path::Path;

use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::ecsnodeclass::policy::{POLICY_KEY_DEFAULT, Policy};
use kerf_policy::{Engine, Hook, PolicySpec, Registry};

use crate::simulate::args::WhatIf;
use crate::simulate::complaint::Complaint;
use crate::simulate::objects::Objects;

/// Loads all policies; what a declared one lacks is told in `notes`, as the controller goes on without it.
pub(crate) fn load(
    objects: &Objects,
    what_if: &WhatIf,
    notes: &mut Vec<Complaint>,
) -> Result<Registry, Vec<Complaint>> {
    let engine = Engine::new()
        .map_err(|error| vec![Complaint::of("the policy host", &error.to_string())])?;
    let registry = Registry::new(engine);
    for (_, class) in &objects.node_classes {
        for policy in &class.spec.policies {
            if let Err(message) = declared(&registry, class, policy, objects) {
                let class = class.metadata.name.as_deref().unwrap_or_default();
                notes.push(Complaint::note(&format!(
                    "ECSNodeClass {class}: policy {} is not asked: {message}",
                    policy.name
                )));
            }
        }
    }
    for (index, path) in what_if.policy.iter().enumerate() {
        extra(&registry, objects, path, what_if.policy_config.get(index))
            .map_err(|complaint| vec![complaint])?;
    }
    Ok(registry)
}

fn declared(
    registry: &Registry,
    class: &EcsNodeClass,
    policy: &Policy,
    objects: &Objects,
) -> Result<(), String> {
    let (spec, problem) = kerf_controllers::policies::spec(policy);
    let class = class.metadata.name.as_deref().unwrap_or_default();
    let bytes = match problem {
        Some(problem) => Err(problem),
        None => source(policy, objects),
    };
    let bytes = bytes.inspect_err(|reason| registry.fail(class, spec.clone(), reason))?;
    registry
        .update(class, spec, &bytes)
        .map(drop)
        .map_err(|error| kerf_controllers::error::chain(&error))
}

/// The component of a policy, where a file or the manifests have it.
pub(crate) fn source(policy: &Policy, objects: &Objects) -> Result<Vec<u8>, String> {
    if let Some(path) = &policy.source.path {
        return std::fs::read(path).map_err(|error| format!("cannot read {path}: {error}"));
    }
    let Some(source) = &policy.source.config_map else {
        return Err("source: only configMap and path can be loaded by this version".to_owned());
    };
    let read = |name: &str, key: &str| {
        let found = objects
            .config_maps
            .iter()
            .find(|(_, it)| it.metadata.name.as_deref() == Some(name));
        let (_, map) =
            found.ok_or_else(|| format!("ConfigMap {name} is not among the manifests"))?;
        let bytes = map.binary_data.as_ref().and_then(|data| data.get(key));
        bytes
            .map(|bytes| bytes.0.clone())
            .ok_or_else(|| format!("ConfigMap {name} has no binaryData key {key}"))
    };
    if let Some(shards) = &source.shards {
        let parts: Result<Vec<Vec<u8>>, String> = shards
            .iter()
            .map(|shard| read(&shard.name, &shard.key))
            .collect();
        return Ok(parts?.concat());
    }
    let key = source.key.as_deref().unwrap_or(POLICY_KEY_DEFAULT);
    read(source.name.as_deref().unwrap_or_default(), key)
}

/// A policy of the command line, for every class. Which hook it serves is in its exports.
fn extra(
    registry: &Registry,
    objects: &Objects,
    path: &Path,
    config: Option<&String>,
) -> Result<(), Complaint> {
    let file = path.display().to_string();
    let wrong = |message: String| Complaint::of(&format!("--policy {file}"), &message);
    let bytes = std::fs::read(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let bytes = kerf_policy::unpack(&bytes).map_err(|error| wrong(error.to_string()))?;
    let interfaces = kerf_policy::interfaces(&bytes).map_err(|error| wrong(error.to_string()))?;
    let serves = |part: &str| {
        interfaces
            .exports
            .iter()
            .any(|export| export.contains(part))
    };
    let hook = if serves("instance-selection") {
        Hook::InstanceSelection
    } else if serves("pricing-preference") {
        Hook::PricingPreference
    } else {
        let message =
            "exports neither instance-selection nor pricing-preference, so it changes no plan";
        return Err(wrong(message.to_owned()));
    };
    let name = path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or("policy");
    let mut spec = PolicySpec::new(name, hook);
    if let Some(config) = config {
        let parsed = serde_json::from_str(config);
        spec.config = Some(parsed.map_err(|error| {
            Complaint::of(
                &format!("--policy-config {config}"),
                &format!("is no JSON: {error}"),
            )
        })?);
    }
    for (_, class) in &objects.node_classes {
        let class = class.metadata.name.as_deref().unwrap_or_default();
        registry
            .update(class, spec.clone(), &bytes)
            .map_err(|error| wrong(error.to_string()))?;
    }
    Ok(())
}
