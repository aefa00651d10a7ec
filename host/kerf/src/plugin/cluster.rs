//! `kerf plugin ls`, and the way to a cluster.

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::names::label;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::api_server::{Rate, connect};
use crate::plugin::args::Cluster;
use crate::plugin::{Environment, Outcome};

/// A handful of requests in a row.
const RATE: Rate = Rate {
    per_second: 20,
    burst: 30,
};
/// How many characters of a digest tell versions apart for people.
const DIGEST_CHARS: usize = 19;

/// A runtime for clients, and what rustls encrypts with.
pub(super) fn runtime() -> Result<Runtime> {
    // Only the first one counts; another of the process is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start a runtime")
}

/// A runtime and a client.
pub(super) fn open(cluster: &Cluster) -> Result<(Runtime, Client)> {
    let runtime = runtime()?;
    let client = runtime
        .block_on(connect(cluster.kubeconfig.as_deref(), RATE))
        .map_err(|error| Environment(format!("{error:#}")))?;
    Ok((runtime, client))
}

pub(super) fn list(args: &Cluster) -> Result<Outcome> {
    let (runtime, client) = open(args)?;
    let classes: Api<EcsNodeClass> = Api::all(client.clone());
    let maps: Api<ConfigMap> = Api::namespaced(client, &args.namespace);
    let labelled = ListParams::default().labels(&format!("{}=true", label::POLICY));
    let (classes, maps) = runtime.block_on(async {
        let classes = classes.list(&ListParams::default()).await;
        let maps = maps.list(&labelled).await;
        anyhow::Ok((
            classes.context("cannot list ECSNodeClasses")?,
            maps.context("cannot list ConfigMaps")?,
        ))
    })?;
    let policies: Vec<Value> = classes.items.iter().flat_map(of_class).collect();
    let mut text = String::new();
    for it in &policies {
        text += &format!(
            "{} {} {} {} {} {} {}\n",
            word(it, "nodeClass"),
            word(it, "name"),
            word(it, "hook"),
            word(it, "state"),
            word(it, "version"),
            word(it, "digest")
                .chars()
                .take(DIGEST_CHARS)
                .collect::<String>(),
            word(it, "lastError")
        );
    }
    if policies.is_empty() {
        text += "no ECSNodeClass declares a policy\n";
    }
    let published: Vec<Value> = maps.items.iter().map(of_map).collect();
    for it in &published {
        text += &format!(
            "ConfigMap {} {} bytes {}\n",
            word(it, "name"),
            it["bytes"],
            word(it, "digest")
        );
    }
    Ok(Outcome {
        text,
        json: json!({"policies": policies, "configMaps": published}),
        is_good: true,
    })
}

fn of_class(class: &EcsNodeClass) -> Vec<Value> {
    let statuses = class.status.as_ref().map_or(&[][..], |it| &it.policies);
    let of_entry = |entry: &kerf_api::ecsnodeclass::Policy| {
        let status = statuses.iter().find(|it| it.name == entry.name);
        let state = status.map_or("Unknown", |it| it.state.as_str());
        json!({
            "nodeClass": class.name_any(), "name": entry.name, "hook": entry.hook.as_str(), "state": state,
            "version": status.and_then(|it| it.version.clone()), "digest": status.and_then(|it| it.digest.clone()),
            "lastError": status.and_then(|it| it.last_error.clone()),
        })
    };
    class.spec.policies.iter().map(of_entry).collect()
}

fn of_map(map: &ConfigMap) -> Value {
    let bytes: usize = map
        .binary_data
        .iter()
        .flatten()
        .map(|(_, it)| it.0.len())
        .sum();
    json!({
        "name": map.name_any(), "bytes": bytes,
        "digest": map.annotations().get(super::publish::DIGEST),
    })
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("-")
}
