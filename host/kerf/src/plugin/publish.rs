//! `kerf plugin publish` and `rollback`: components in ConfigMaps, by server-side apply.
//!
//! The key is the same whether a component is packed or not, so that another form of it needs no other entry in the
//! NodeClass. What a publish replaces is kept in a second ConfigMap without the label that kerf watches.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kerf_api::ecsnodeclass::policy::POLICY_KEY_DEFAULT;
use kerf_api::names::label;
use kerf_policy::{Engine, Hook, PolicyDigest};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::plugin::Outcome;
use crate::plugin::args::{Form, Publish, Rollback};
use crate::plugin::cluster::open;
use crate::plugin::component::{CONFIG_MAP_BYTES_MAX, Component, Delivery};
use crate::plugin::push;

/// The digest of the component in a ConfigMap.
pub(super) const DIGEST: &str = "karpenter.alibabacloud.com/policy-digest";
const MANAGER: &str = "kerf";
/// The ending of the ConfigMap that keeps what was replaced.
const PREVIOUS: &str = "-previous";
/// Characters of the digest in the names of shards: each version has names of its own.
const DIGEST_CHARS: usize = 8;
/// As many as an ECSNodeClass may name.
const SHARDS_MAX: usize = 32;

pub(super) fn publish(args: &Publish) -> Result<Outcome> {
    let component = Component::read(&args.one)?;
    let hook = component.hook(None)?;
    // What does not load here does not load there.
    let policy = component.load(&Engine::new()?, hook)?;
    if let Some(reference) = &args.oci {
        return push::run(args, reference, &component, &policy.metadata().name, hook);
    }
    let name = args
        .configmap
        .clone()
        .unwrap_or_else(|| policy.metadata().name.clone());
    let packed = component.packed();
    let delivery = match args.form {
        Form::Auto => component.delivery(&packed),
        Form::Raw => Delivery::Raw,
        Form::Zst => Delivery::Zst,
        Form::Shards => Delivery::Shards(packed.len().div_ceil(CONFIG_MAP_BYTES_MAX)),
    };
    let digest = component.digest();
    let maps = config_maps(&name, digest, &component.bytes, &packed, delivery)?;
    let (runtime, client) = open(&args.cluster)?;
    let api: Api<ConfigMap> = Api::namespaced(client, &args.cluster.namespace);
    runtime.block_on(async {
        if !args.dry_run && delivery_is_one(delivery) {
            keep_previous(&api, &name, digest).await?;
        }
        for map in &maps {
            apply(&api, map, args.dry_run).await?;
        }
        anyhow::Ok(())
    })?;
    let entry = entry(
        &policy.metadata().name,
        hook,
        digest,
        &name,
        &maps,
        delivery,
    );
    let names: Vec<&str> = maps
        .iter()
        .filter_map(|it| it.metadata.name.as_deref())
        .collect();
    let done = if args.dry_run { "would write" } else { "wrote" };
    Ok(Outcome {
        text: format!(
            "{done} {} in {}: {}\nthe entry for spec.policies of an ECSNodeClass:\n\n{entry}",
            names.join(", "),
            args.cluster.namespace,
            delivery.words()
        ),
        json: json!({
            "configMaps": names, "namespace": args.cluster.namespace, "digest": digest.to_string(),
            "delivery": delivery.words(), "entry": entry, "isDryRun": args.dry_run,
        }),
        is_good: true,
    })
}

pub(super) fn rollback(args: &Rollback) -> Result<Outcome> {
    let (runtime, client) = open(&args.cluster)?;
    let api: Api<ConfigMap> = Api::namespaced(client, &args.cluster.namespace);
    let name = &args.configmap;
    let kept = format!("{name}{PREVIOUS}");
    let digest = runtime.block_on(async {
        let current = api.get_opt(name).await?;
        let previous = api.get_opt(&kept).await?;
        let (Some(current), Some(previous)) = (current, previous) else {
            bail!(
                "there is no {name} with a {kept} in {}: only what `kerf plugin publish` replaced in one ConfigMap can be put \
                 back; shards stay where they are, so name the old ones in the ECSNodeClass",
                args.cluster.namespace
            );
        };
        let digest = annotation(&previous);
        apply(&api, &copy(&previous, name, true), false).await?;
        // What was rolled back can be rolled forward.
        apply(&api, &copy(&current, &kept, false), false).await?;
        Ok(digest)
    })?;
    Ok(Outcome {
        text: format!("{name} has {digest} again; an entry with another digest refuses it\n"),
        json: json!({"configMap": name, "digest": digest}),
        is_good: true,
    })
}

fn delivery_is_one(delivery: Delivery) -> bool {
    !matches!(delivery, Delivery::Shards(_))
}

/// Keeps what is in the ConfigMap now, unless it is the same.
async fn keep_previous(api: &Api<ConfigMap>, name: &str, digest: PolicyDigest) -> Result<()> {
    let current = api
        .get_opt(name)
        .await
        .with_context(|| format!("cannot read ConfigMap {name}"))?;
    match current {
        Some(current) if annotation(&current) != digest.to_string() => {
            let kept = copy(&current, &format!("{name}{PREVIOUS}"), false);
            apply(api, &kept, false).await
        }
        Some(_) | None => Ok(()),
    }
}

fn annotation(map: &ConfigMap) -> String {
    let annotations = map.metadata.annotations.as_ref();
    let digest = annotations.and_then(|it| it.get(DIGEST));
    digest
        .cloned()
        .unwrap_or_else(|| "an unnamed version".to_owned())
}

/// The data of a ConfigMap under another name; only one with the label is watched.
fn copy(map: &ConfigMap, name: &str, is_watched: bool) -> ConfigMap {
    let mut copy = ConfigMap {
        binary_data: map.binary_data.clone(),
        ..ConfigMap::default()
    };
    copy.metadata.name = Some(name.to_owned());
    copy.metadata.annotations = Some(BTreeMap::from([(DIGEST.to_owned(), annotation(map))]));
    if is_watched {
        copy.metadata.labels = Some(BTreeMap::from([(
            label::POLICY.to_owned(),
            "true".to_owned(),
        )]));
    }
    copy
}

async fn apply(api: &Api<ConfigMap>, map: &ConfigMap, is_dry_run: bool) -> Result<()> {
    let name = map.metadata.name.as_deref().unwrap_or_default();
    let params = PatchParams {
        dry_run: is_dry_run,
        ..PatchParams::apply(MANAGER).force()
    };
    api.patch(name, &params, &Patch::Apply(map))
        .await
        .map(drop)
        .with_context(|| format!("cannot write ConfigMap {name}"))
}

fn config_maps(
    name: &str,
    digest: PolicyDigest,
    raw: &[u8],
    packed: &[u8],
    delivery: Delivery,
) -> Result<Vec<ConfigMap>> {
    let parts: Vec<(String, &[u8])> = match delivery {
        Delivery::Raw => vec![(name.to_owned(), raw)],
        Delivery::Zst => vec![(name.to_owned(), packed)],
        Delivery::Shards(_) => {
            let text = digest.to_string();
            let hex = text.rsplit(':').next().unwrap_or_default();
            let short: String = hex.chars().take(DIGEST_CHARS).collect();
            let shards = packed.chunks(CONFIG_MAP_BYTES_MAX).enumerate();
            shards
                .map(|(i, part)| (format!("{name}-{short}-{i}"), part))
                .collect()
        }
    };
    if parts.len() > SHARDS_MAX {
        bail!(
            "it would take {} ConfigMaps, and the most is {SHARDS_MAX}",
            parts.len()
        );
    }
    if let Some((_, part)) = parts
        .iter()
        .find(|(_, part)| part.len() > CONFIG_MAP_BYTES_MAX)
    {
        bail!(
            "{} KiB do not fit into a ConfigMap: leave --as out, or use --as shards",
            part.len() / 1024
        );
    }
    let is_shard = !delivery_is_one(delivery);
    let map = |(name, part): (String, &[u8])| {
        let mut map = ConfigMap {
            binary_data: Some(BTreeMap::from([(
                POLICY_KEY_DEFAULT.to_owned(),
                ByteString(part.to_vec()),
            )])),
            immutable: is_shard.then_some(true),
            ..ConfigMap::default()
        };
        map.metadata.name = Some(name);
        map.metadata.labels = Some(BTreeMap::from([(
            label::POLICY.to_owned(),
            "true".to_owned(),
        )]));
        map.metadata.annotations = Some(BTreeMap::from([(DIGEST.to_owned(), digest.to_string())]));
        map
    };
    Ok(parts.into_iter().map(map).collect())
}

/// What to write into the ECSNodeClass.
fn entry(
    policy: &str,
    hook: Hook,
    digest: PolicyDigest,
    name: &str,
    maps: &[ConfigMap],
    delivery: Delivery,
) -> String {
    let mut text = format!("  - name: {policy}\n    hook: {hook}\n    digest: {digest}\n");
    if delivery_is_one(delivery) {
        text += &format!("    source: {{configMap: {{name: {name}}}}}\n");
        return text;
    }
    text += "    source:\n      configMap:\n        shards:\n";
    for name in maps.iter().filter_map(|it| it.metadata.name.as_deref()) {
        text += &format!("          - {{name: {name}, key: {POLICY_KEY_DEFAULT}}}\n");
    }
    text
}
