//! Where the bytes of a component come from.

use std::path::Path;

use k8s_openapi::api::core::v1::ConfigMap;
use kerf_api::ecsnodeclass::Policy;
use kerf_api::ecsnodeclass::policy::POLICY_KEY_DEFAULT;
use kerf_api::names::label;
use kube::runtime::reflector::{ObjectRef, Store};

use crate::context::Context;

/// The component's bytes.
pub(super) fn bytes(policy: &Policy, context: &Context) -> Result<Vec<u8>, String> {
    if let Some(path) = &policy.source.path {
        return read_file(path, context.settings.policy_folder.as_deref());
    }
    let (config_maps, namespace) = (
        &context.stores.config_maps,
        context.settings.namespace.as_str(),
    );
    let Some(source) = &policy.source.config_map else {
        return Err("source: only configMap and path can be loaded by this version".to_owned());
    };
    if let Some(shards) = &source.shards {
        let mut joined = Vec::new();
        for shard in shards {
            joined.extend(read_key(&shard.name, &shard.key, config_maps, namespace)?);
        }
        return Ok(joined);
    }
    let name = source.name.as_deref().unwrap_or_default();
    read_key(
        name,
        source.key.as_deref().unwrap_or(POLICY_KEY_DEFAULT),
        config_maps,
        namespace,
    )
}

/// Only what lies in the operator's folder is read: who may edit an ECSNodeClass must not see our other files.
fn read_file(path: &str, folder: Option<&Path>) -> Result<Vec<u8>, String> {
    let Some(folder) = folder else {
        return Err(
            "source.path needs a controller that was started with --policy-folder".to_owned(),
        );
    };
    let inside = || {
        let (path, folder) = (
            Path::new(path).canonicalize().ok()?,
            folder.canonicalize().ok()?,
        );
        path.starts_with(folder).then_some(path)
    };
    let Some(inside) = inside() else {
        return Err(format!(
            "source.path {path} is no file in the policy folder {}",
            folder.display()
        ));
    };
    std::fs::read(&inside).map_err(|error| format!("cannot read {path}: {error}"))
}

fn read_key(
    name: &str,
    key: &str,
    config_maps: &Store<ConfigMap>,
    namespace: &str,
) -> Result<Vec<u8>, String> {
    let Some(config_map) = config_maps.get(&ObjectRef::new(name).within(namespace)) else {
        return Err(format!(
            "ConfigMap {namespace}/{name} is not there or lacks the label {}=true",
            label::POLICY
        ));
    };
    let bytes = config_map
        .binary_data
        .as_ref()
        .and_then(|data| data.get(key));
    bytes.map(|bytes| bytes.0.clone()).ok_or_else(|| {
        let keys: Vec<&str> = config_map
            .binary_data
            .iter()
            .flatten()
            .map(|(key, _)| key.as_str())
            .collect();
        format!("ConfigMap {namespace}/{name} has no binaryData key {key}; it has {keys:?}")
    })
}
