//! What the region has: types, stock, the spot market, and the cluster's network. Read now and then, shared by all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kerf_core::instance_type::CapacityType;
use tracing::warn;

use crate::actions::stock::{AvailableZone, RowStock, StockMarket};
use crate::error::{CloudError, ErrorClass};
use crate::provider::cache::Cache;
use crate::provider::config::{CniMode, ProviderConfig};
use crate::provider::facts::TypeFacts;
use crate::provider::prices::SpotDiscounts;
use crate::rpc::Client;

/// Mask of a Flannel cluster that does not say its own: ACK's default of 64 pods per node.
const FLANNEL_MASK_DEFAULT: u8 = 26;

/// Long enough that an API that is down costs few calls, short enough that estimates do not outlive the trouble.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// Types by name.
pub(crate) type Types = BTreeMap<String, TypeFacts>;

/// What the two markets say of a type in a zone; `None` where it is not listed.
#[derive(Debug, Clone, Copy, Default)]
struct Markets {
    on_demand: Option<RowStock>,
    spot: Option<RowStock>,
}

impl Markets {
    /// What one says; reservations have no market.
    fn of(&mut self, capacity_type: CapacityType) -> Option<&mut Option<RowStock>> {
        match capacity_type {
            CapacityType::OnDemand => Some(&mut self.on_demand),
            CapacityType::Spot => Some(&mut self.spot),
            CapacityType::Reserved => None,
        }
    }
}

/// What the stock table says of (type, zone, capacity type).
#[derive(Debug, Default)]
pub(crate) struct Stock {
    /// By zone and then by type, because the names of zones would be most of it.
    rows: BTreeMap<String, BTreeMap<Box<str>, Markets>>,
    /// Markets that could be asked; of the others nothing is known, which is not the same as sold out.
    known: BTreeSet<CapacityType>,
}

impl Stock {
    /// `None` if the market was never read, else whether there is stock; what is not listed is not sold.
    pub(crate) fn has(
        &self,
        instance_type: &str,
        zone_id: &str,
        capacity_type: CapacityType,
    ) -> Option<StockState> {
        if !self.known.contains(&capacity_type) {
            return None;
        }
        let zone = self.rows.get(zone_id);
        let mut markets = zone.and_then(|zone| zone.get(instance_type)).copied();
        let row = markets.as_mut().and_then(|it| *it.of(capacity_type)?);
        Some(match row {
            Some(RowStock::Promised) => StockState::InStock,
            Some(RowStock::Unpromised) => StockState::Unpromised,
            Some(RowStock::None) => StockState::SoldOut,
            None => StockState::NotSold,
        })
    }

    /// The first zone that has the type in stock; an empty name when the market could not be asked.
    pub(crate) fn zone_with(
        &self,
        instance_type: &str,
        capacity_type: CapacityType,
    ) -> Option<&str> {
        if !self.known.contains(&capacity_type) {
            return Some("");
        }
        let is_there = |zone: &&String| {
            let stock = self.has(instance_type, zone, capacity_type);
            matches!(stock, Some(StockState::InStock | StockState::Unpromised))
        };
        self.rows.keys().find(is_there).map(String::as_str)
    }

    /// The markets that could not be asked.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = CapacityType> {
        let both = [CapacityType::OnDemand, CapacityType::Spot];
        both.into_iter().filter(|it| !self.known.contains(it))
    }

    fn read(&mut self, capacity_type: CapacityType, zones: Vec<AvailableZone>) {
        self.known.insert(capacity_type);
        for zone in zones {
            let resources = zone.available_resources.available_resource.into_iter();
            let rows = resources
                .filter(|resource| matches!(resource.kind.as_str(), "" | "InstanceType"))
                .flat_map(|resource| resource.supported_resources.supported_resource);
            let known = self.rows.entry(zone.zone_id).or_default();
            for row in rows {
                let stock = Some(row.stock());
                // A type may be listed twice; stock in one listing is stock.
                if let Some(market) = known.entry(row.value.into()).or_default().of(capacity_type) {
                    *market = stock.max(*market);
                }
            }
        }
    }
}

/// One cell of the stock table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StockState {
    InStock,
    /// Sold without a promise.
    Unpromised,
    SoldOut,
    NotSold,
}

/// The caches.
#[derive(Debug)]
pub(crate) struct Region {
    client: Client,
    types: Cache<(), Types>,
    stock: Cache<(), Stock>,
    discounts: Cache<(), SpotDiscounts>,
    networks: Cache<String, CniMode>,
    cni: Option<CniMode>,
    types_ttl: Duration,
    stock_ttl: Duration,
}

impl Region {
    pub(crate) fn new(client: Client, config: &ProviderConfig) -> Self {
        Self {
            client,
            types: Cache::new(config.types_ttl),
            stock: Cache::new(config.stock_ttl),
            discounts: Cache::new(config.types_ttl),
            networks: Cache::new(config.types_ttl),
            cni: config.cni,
            types_ttl: config.types_ttl,
            stock_ttl: config.stock_ttl,
        }
    }

    /// All types. An old list is better than none.
    pub(crate) async fn types(&self) -> Result<Arc<Types>, CloudError> {
        if let Some(types) = self.types.fresh(&()) {
            return Ok(types);
        }
        match self.client.describe_instance_types().await {
            Ok(items) => {
                let facts = items.iter().filter_map(TypeFacts::parse);
                Ok(self
                    .types
                    .put((), facts.map(|facts| (facts.name.clone(), facts)).collect()))
            }
            Err(error) => self.types.stale(&()).ok_or(error),
        }
    }

    /// The stock table. What cannot be read is taken from the last reading, or left unknown: stock is then learnt from
    /// launches.
    pub(crate) async fn stock(&self) -> Arc<Stock> {
        if let Some(stock) = self.stock.fresh(&()) {
            return stock;
        }
        let (on_demand, spot) = futures::join!(
            self.client
                .describe_available_resource(StockMarket::OnDemand),
            self.client.describe_available_resource(StockMarket::Spot),
        );
        let mut stock = Stock::default();
        let mut failure = None;
        for (capacity_type, zones) in [
            (CapacityType::OnDemand, on_demand),
            (CapacityType::Spot, spot),
        ] {
            match zones {
                Ok(zones) => stock.read(capacity_type, zones),
                Err(error) => failure = Some(error),
            }
        }
        if let Some(error) = failure {
            warn!(%error, "the stock table cannot be read; stock is learnt from launches meanwhile");
            let stand_in = self.stock.stale(&()).unwrap_or_else(|| Arc::new(stock));
            let good_for = stand_in_good_for(&error, self.stock_ttl);
            return self.stock.put_for((), stand_in, good_for);
        }
        self.stock.put((), stock)
    }

    /// Spot discounts; none when the market cannot be asked.
    pub(crate) async fn discounts(&self) -> Arc<SpotDiscounts> {
        if let Some(discounts) = self.discounts.fresh(&()) {
            return discounts;
        }
        match self.client.describe_spot_advice().await {
            Ok(zones) => {
                let rows = zones.into_iter().flat_map(|zone| {
                    let zone_id = zone.zone_id;
                    zone.available_spot_resources
                        .available_spot_resource
                        .into_iter()
                        .map(move |row| {
                            (
                                (row.instance_type, zone_id.clone()),
                                row.average_spot_discount,
                            )
                        })
                });
                self.discounts.put((), rows.collect())
            }
            Err(error) => {
                warn!(%error, "spot prices cannot be read; they are estimated meanwhile");
                let stand_in = self.discounts.stale(&()).unwrap_or_default();
                let good_for = stand_in_good_for(&error, self.types_ttl);
                self.discounts.put_for((), stand_in, good_for)
            }
        }
    }

    /// What was last read of types and the spot market, without a call; none before the types were read.
    pub(crate) fn last_read(&self) -> Option<(Arc<Types>, Arc<SpotDiscounts>)> {
        let discounts = self.discounts.stale(&()).unwrap_or_default();
        Some((self.types.stale(&())?, discounts))
    }

    /// The cluster's network.
    pub(crate) async fn cni(&self, cluster_id: &str) -> Result<CniMode, CloudError> {
        if let Some(cni) = self.cni {
            return Ok(cni);
        }
        if cluster_id.is_empty() {
            return Ok(CniMode::Other);
        }
        let key = cluster_id.to_owned();
        if let Some(cni) = self.networks.fresh(&key) {
            return Ok(*cni);
        }
        match self.client.cluster_detail(cluster_id).await {
            Ok(detail) => {
                let cni = cni_of(&detail.network_plugin(), &detail.node_cidr_mask);
                Ok(*self.networks.put(key, cni))
            }
            Err(error) => self.networks.stale(&key).map(|cni| *cni).ok_or(error),
        }
    }
}

/// How long old or empty data stands in for an optional answer. A missing permission is asked for as rarely as the
/// data itself; what only failed is asked for again soon, but not by every pass.
fn stand_in_good_for(error: &CloudError, ttl: Duration) -> Duration {
    match error.class() {
        ErrorClass::Auth(_) => ttl,
        _ => ttl.min(ASK_AGAIN_AFTER),
    }
}

fn cni_of(plugin: &str, node_cidr_mask: &str) -> CniMode {
    match plugin.to_lowercase().as_str() {
        "terway-eniip" | "terway" | "terway-controlplane" => CniMode::TerwayShared,
        "terway-eni" => CniMode::TerwayExclusive,
        "flannel" => {
            let node_cidr_mask = node_cidr_mask
                .trim()
                .parse()
                .unwrap_or(FLANNEL_MASK_DEFAULT);
            CniMode::Flannel { node_cidr_mask }
        }
        _ => CniMode::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::stock::{AvailableResource, SupportedResource};

    #[test]
    fn the_cni_follows_the_clusters_words() {
        assert_eq!(cni_of("terway-eniip", ""), CniMode::TerwayShared);
        assert_eq!(
            cni_of("Flannel", "25"),
            CniMode::Flannel { node_cidr_mask: 25 }
        );
        assert_eq!(
            cni_of("flannel", ""),
            CniMode::Flannel { node_cidr_mask: 26 }
        );
        assert_eq!(cni_of("", ""), CniMode::Other);
    }

    #[test]
    fn f18_closed_with_stock_is_sold_and_sold_out_not_sold_and_unknown_are_told_apart() {
        let row = |value: &str, category: &str| SupportedResource {
            value: value.to_owned(),
            status_category: category.to_owned(),
            ..SupportedResource::default()
        };
        let mut resource = AvailableResource::default();
        resource.supported_resources.supported_resource = vec![
            row("a", "WithStock"),
            row("b", "ClosedWithStock"),
            row("c", "WithoutStock"),
            row("d", "ClosedWithoutStock"),
        ];
        let mut zone = AvailableZone {
            zone_id: "h".to_owned(),
            ..AvailableZone::default()
        };
        zone.available_resources.available_resource = vec![resource];
        let mut stock = Stock::default();
        stock.read(CapacityType::OnDemand, vec![zone]);

        let states: Vec<_> = ["a", "b", "c", "d", "e"]
            .into_iter()
            .map(|name| stock.has(name, "h", CapacityType::OnDemand).unwrap())
            .collect();

        use StockState::{InStock, NotSold, SoldOut, Unpromised};
        assert_eq!(states, [InStock, Unpromised, SoldOut, SoldOut, NotSold]);
        assert_eq!(stock.has("a", "h", CapacityType::Spot), None);
    }
}
