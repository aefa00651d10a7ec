//! Where the bytes of a component come from.

use std::path::Path;

use k8s_openapi::api::core::v1::ConfigMap;
use kerf_api::ecsnodeclass::Policy;
use kerf_api::ecsnodeclass::policy::{ConfigMapSource, POLICY_KEY_DEFAULT};
use kerf_api::names::label;
use kube::runtime::reflector::{ObjectRef, Store};

use crate::context::Context;

/// What is added to a component's name for its signature's, as cosign's documents do.
const SIGNATURE_ENDING: &str = ".sig";

/// The component's bytes, where they lie in a file or in ConfigMaps.
pub(super) fn bytes(policy: &Policy, context: &Context) -> Result<Vec<u8>, String> {
    if let Some(path) = &policy.source.path {
        return read_file(path, context.settings.policy_folder.as_deref());
    }
    let (config_maps, namespace) = (
        &context.stores.config_maps,
        context.settings.namespace.as_str(),
    );
    let Some(source) = &policy.source.config_map else {
        return Err("source: it is none of configMap, oci and path".to_owned());
    };
    if let Some(shards) = &source.shards {
        let mut joined = Vec::new();
        for shard in shards {
            joined.extend(read_key(&shard.name, &shard.key, config_maps, namespace)?);
        }
        return Ok(joined);
    }
    let (name, key) = whole(source);
    read_key(name, key, config_maps, namespace)
}

/// The signature that lies beside the component, where there is one: in a file or under a key that ends in `.sig`. Of parts
/// the first one's ConfigMap has it.
pub(super) fn signature(policy: &Policy, context: &Context) -> Option<Vec<u8>> {
    let with_ending = |name: &str| format!("{name}{SIGNATURE_ENDING}");
    if let Some(path) = &policy.source.path {
        let folder = context.settings.policy_folder.as_deref();
        return read_file(&with_ending(path), folder).ok();
    }
    let source = policy.source.config_map.as_ref()?;
    let (name, key) = match source.shards.as_ref().and_then(|all| all.first()) {
        Some(first) => (first.name.as_str(), first.key.as_str()),
        None => whole(source),
    };
    let namespace = context.settings.namespace.as_str();
    let place = ObjectRef::new(name).within(namespace);
    let config_map = context.stores.config_maps.get(&place)?;
    let key = with_ending(key);
    let binary = config_map.binary_data.as_ref();
    let binary = binary
        .and_then(|data| data.get(&key))
        .map(|it| it.0.clone());
    let text = config_map.data.as_ref();
    let text = text.and_then(|data| data.get(&key));
    binary.or_else(|| text.map(|it| it.clone().into_bytes()))
}

/// The ConfigMap and the key of a component that is in one piece.
fn whole(source: &ConfigMapSource) -> (&str, &str) {
    (
        source.name.as_deref().unwrap_or_default(),
        source.key.as_deref().unwrap_or(POLICY_KEY_DEFAULT),
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
