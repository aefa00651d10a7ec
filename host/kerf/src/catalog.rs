//! `kerf catalog pull`: what an account sees of a region, written as a catalog for `--catalog`. It only reads.

use std::io::Write as _;

use anyhow::{Context as _, Result};
use kerf_cloud::provider::Provider;
use kerf_cloud::provider::config::ProviderConfig;

use crate::args::{Catalog, CatalogCommand, Pull};
use crate::cloud;
use crate::output::{Whole, tell};

/// Nothing is launched, so no tag ever carries it.
const CLUSTER: &str = "catalog";

/// Reads and writes.
///
/// # Errors
/// When the account cannot be asked or the file cannot be written; then there is no file.
pub(crate) fn run(args: &Catalog) -> Result<()> {
    let CatalogCommand::Pull(pull) = &args.command;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    runtime.block_on(write(pull))
}

async fn write(args: &Pull) -> Result<()> {
    // A second installer would be our own bug and changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = cloud::client(&args.cloud, &args.region)?;
    let mut config = ProviderConfig::new(args.region.as_str(), CLUSTER);
    config.prices = cloud::prices(&args.cloud)?;
    config.account_discount_percent = args.cloud.account_discount_percent;
    let provider = Provider::new(client, config);
    if args.live_prices {
        ask(&provider, &args.region).await?;
    }
    let read = provider.catalog().await;
    let catalog = read.with_context(|| format!("cannot read what region {} sells", args.region))?;
    let mut out = Whole::create(&args.output)?;
    serde_json::to_writer(&mut out, &catalog)?;
    out.write_all(b"\n")?;
    out.finish()?;
    tell(&format!(
        "{} instance types in {} zones of {}: {}",
        catalog.types.len(),
        catalog.zones.len(),
        catalog.region,
        catalog.source
    ));
    Ok(())
}

/// What cannot be asked is left to the lists, and told.
async fn ask(provider: &Provider, region: &str) -> Result<()> {
    let asked = provider.ask_all_prices().await;
    let failures = asked.with_context(|| format!("cannot read what region {region} sells"))?;
    for error in failures {
        let error = anyhow::Error::from(error);
        tell(&format!("some prices are those of lists: {error:#}"));
    }
    Ok(())
}
