//! `kerf adopt`: what taking over a cluster from another Alibaba Cloud provider means, and what is in the way.
//!
//! It never writes. Taking over happens by itself when the controller starts: pools, claims, nodes and instances stay
//! as they are.

mod judge;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::io::Write;

use anyhow::{Context as _, Result};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodepool::NodePool;
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use crate::api_server::{Rate, connect};
use crate::args::Adopt;
use crate::exit::Findings;
use judge::{Report, Seen};

/// A handful of lists.
const RATE: Rate = Rate {
    per_second: 20,
    burst: 30,
};
/// Objects per page.
const PAGE: u32 = 500;

/// Shows what would happen.
///
/// # Errors
/// [`Findings`] when something stands in the way; otherwise when the cluster cannot be read.
pub(crate) fn run(args: &Adopt) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    runtime.block_on(run_async(args))
}

async fn run_async(args: &Adopt) -> Result<()> {
    // A second installer would be our own bug and changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = connect(args.kubeconfig.as_deref(), RATE).await?;
    let report = judge::judge(&look(&client).await?);
    print(&report)?;
    if !report.obstacles.is_empty() {
        return Err(Findings(report.obstacles.len()).into());
    }
    Ok(())
}

async fn look(client: &Client) -> Result<Seen> {
    let classes = list::<EcsNodeClass>(client).await?;
    let classes: BTreeSet<String> = classes.iter().map(ResourceExt::name_any).collect();
    Ok(Seen {
        pools: list::<NodePool>(client).await?,
        claims: list::<NodeClaim>(client).await?,
        nodes: list::<Node>(client).await?,
        leases: list::<Lease>(client).await?,
        classes,
        now: kerf_controllers::clock::now(),
    })
}

async fn list<K>(client: &Client) -> Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let api: Api<K> = Api::all(client.clone());
    let mut params = ListParams::default().limit(PAGE);
    let mut found = Vec::new();
    loop {
        let page = api.list(&params).await.with_context(|| {
            format!(
                "cannot list {}; hint: install the definitions of crds/ first",
                K::plural(&())
            )
        })?;
        found.extend(page.items);
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => params = params.continue_token(&next),
            None => return Ok(found),
        }
    }
}

fn print(report: &Report) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for line in &report.lines {
        writeln!(out, "{line}")?;
    }
    for obstacle in &report.obstacles {
        writeln!(out, "in the way: {obstacle}")?;
    }
    writeln!(
        out,
        "{} NodeClaims kept; 0 objects edited, 0 instances launched, 0 replaced, 0 deleted",
        report.kept
    )?;
    Ok(())
}
