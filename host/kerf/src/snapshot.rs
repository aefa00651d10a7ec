//! `kerf snapshot`: what decisions are made from, read from a cluster and written as one List that `-f` takes.
//!
//! It only reads. What a decision does not look at is left out, by lists of what may stay ([`redact`]): no environment,
//! no commands, no images, no user data, no annotations but those that decisions read.

mod redact;

use std::io::Write;

use anyhow::{Context as _, Result};
use kerf_controllers::api_call::bounded;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client};
use serde_json::Value;

use crate::api_server::{Rate, connect};
use crate::args::Snapshot;
use crate::output::{Whole, tell};
use crate::work::Work;

/// One list after the other.
const RATE: Rate = Rate {
    per_second: 20,
    burst: 30,
};
/// Objects per page.
const PAGE: u32 = 500;
/// What the API server answers for a kind that it does not serve.
const NOT_FOUND: u16 = 404;

/// Group, version, kind and plural of what decisions are made from.
const KINDS: [[&str; 4]; 14] = [
    [
        "karpenter.alibabacloud.com",
        "v1alpha1",
        "ECSNodeClass",
        "ecsnodeclasses",
    ],
    ["karpenter.sh", "v1", "NodePool", "nodepools"],
    ["karpenter.sh", "v1", "NodeClaim", "nodeclaims"],
    ["karpenter.sh", "v1alpha1", "NodeOverlay", "nodeoverlays"],
    ["", "v1", "Namespace", "namespaces"],
    ["", "v1", "Node", "nodes"],
    ["", "v1", "Pod", "pods"],
    ["", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"],
    ["", "v1", "PersistentVolume", "persistentvolumes"],
    ["apps", "v1", "DaemonSet", "daemonsets"],
    [
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
    ],
    [
        "scheduling.k8s.io",
        "v1",
        "PriorityClass",
        "priorityclasses",
    ],
    ["storage.k8s.io", "v1", "StorageClass", "storageclasses"],
    ["storage.k8s.io", "v1", "CSINode", "csinodes"],
];

/// Reads and writes.
///
/// # Errors
/// When the cluster cannot be read or the file cannot be written; then there is no file.
pub(crate) fn run(args: &Snapshot) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    runtime.block_on(run_async(args))
}

async fn run_async(args: &Snapshot) -> Result<()> {
    // A second installer would be our own bug and changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = connect(args.kubeconfig.as_deref(), RATE).await?;
    let work = Work::begin();
    let mut out = Whole::create(&args.output)?;
    let written = write(&client, &mut out, &work).await;
    work.end();
    let count = written?;
    out.finish()?;
    tell(&format!("{count} objects in {}", args.output.display()));
    Ok(())
}

/// Writes page by page, so that a large cluster takes little memory. How many objects there were.
async fn write(client: &Client, out: &mut impl Write, work: &Work) -> Result<usize> {
    let mut count = 0;
    out.write_all(br#"{"apiVersion":"v1","kind":"List","items":["#)?;
    for [group, version, kind, plural] in KINDS {
        let api_version = match group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version,
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        work.doing(&format!("listing {plural}, {count} objects so far"));
        count += write_kind(client, &resource, count > 0, out).await?;
    }
    out.write_all(b"]}\n")?;
    Ok(count)
}

async fn write_kind(
    client: &Client,
    resource: &ApiResource,
    mut has_items: bool,
    out: &mut impl Write,
) -> Result<usize> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let mut params = ListParams::default().limit(PAGE);
    let mut count = 0;
    loop {
        let page = match bounded(api.list(&params)).await {
            Ok(page) => page,
            Err(kube::Error::Api(status)) if status.code == NOT_FOUND => {
                tell(&format!("left out: the cluster has no {}", resource.plural));
                return Ok(count);
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot list {}", resource.plural));
            }
        };
        for object in page.items {
            let mut value = serde_json::to_value(&object)?;
            // Objects in a list do not say what they are.
            value["apiVersion"] = Value::from(resource.api_version.as_str());
            value["kind"] = Value::from(resource.kind.as_str());
            redact::redact(&mut value);
            if has_items {
                out.write_all(b",\n")?;
            }
            serde_json::to_writer(&mut *out, &value)?;
            has_items = true;
            count += 1;
        }
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => params = params.continue_token(&next),
            None => return Ok(count),
        }
    }
}
