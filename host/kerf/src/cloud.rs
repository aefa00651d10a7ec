//! The client for the cloud, from arguments.

mod credentials;

use anyhow::{Context as _, bail};
use kerf_cloud::provider::catalog::Catalog;
use kerf_cloud::provider::prices::PriceList;
use kerf_cloud::rpc::Client;
use kerf_cloud::rpc::config::{ClientConfig, Clock, SignatureVersion};
use kerf_cloud::rpc::endpoint::{Network, Product};
use kerf_controllers::clock;

use crate::args::Cloud;

/// A client for a region; it makes no call yet.
///
/// # Errors
/// When an argument means nothing, or there are no credentials.
pub(crate) fn client(cloud: &Cloud, region: &str) -> anyhow::Result<Client> {
    let network = match cloud.network.as_str() {
        "public" | "" => Network::Public,
        "vpc" => Network::Vpc,
        other => bail!("--network {other:?} is not known: use public or vpc"),
    };
    let credentials = credentials::source(cloud, region, network)?;
    let mut config = ClientConfig::new(region, credentials, Clock::new(clock::now));
    config.network = network;
    config.signature = match cloud.signature.as_str() {
        "acs3" => SignatureVersion::Acs3,
        "v1" => SignatureVersion::V1,
        other => bail!("--signature {other:?} is not known: use acs3 or v1"),
    };
    let endpoints = [
        (Product::Ecs, &cloud.ecs_endpoint),
        (Product::Vpc, &cloud.vpc_endpoint),
        (Product::Cs, &cloud.cs_endpoint),
        (Product::Ram, &cloud.ram_endpoint),
        (Product::Sts, &cloud.sts_endpoint),
    ];
    for (product, endpoint) in endpoints {
        if let Some(endpoint) = endpoint.as_deref().filter(|it| !it.is_empty()) {
            config.endpoints.insert(product, endpoint.to_owned());
        }
    }
    Client::new(config).context("cannot make a client for the cloud")
}

/// What the account really pays, where --price-catalog says so.
///
/// # Errors
/// When there is no such file, or it is no catalog.
pub(crate) fn prices(cloud: &Cloud) -> anyhow::Result<PriceList> {
    let Some(path) = &cloud.price_catalog else {
        return Ok(PriceList::new());
    };
    let read = || -> anyhow::Result<PriceList> {
        let json = std::fs::read_to_string(path).context("cannot read it")?;
        Ok(Catalog::parse(&json)?.prices())
    };
    read().with_context(|| format!("cannot use --price-catalog {}", path.display()))
}
