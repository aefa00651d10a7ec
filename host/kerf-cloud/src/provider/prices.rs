//! What an offering costs per hour, in layers: what somebody gave, what the API told, what the spot market was like, the
//! list in this binary, an estimate.
//!
//! Prices order choices; they are no bill. A price is never zero: what nobody knows is unknown and sorts last.

pub(crate) mod calibration;
pub mod live;
pub(crate) mod table;

use std::collections::BTreeMap;

use jiff::Timestamp;
use kerf_core::instance_type::CapacityType;
use kerf_core::price::Price;

use crate::provider::facts::TypeFacts;
use crate::provider::region::Types;
use calibration::{Calibration, median};
use live::LivePrices;

/// What spot costs of the on-demand price where the market was never asked. Between what the public history shows for
/// common families (0.1 to 0.5) and the price cap (1.0), on the dear side, so that an estimate wins over nothing real.
const SPOT_PART_ESTIMATE: f64 = 0.5;

/// Which layer a price came from, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PriceSource {
    /// Somebody gave it (`--price-catalog`).
    Given,
    /// Asked from the API, for this type.
    Live,
    /// The list's on-demand price, with the part of it that spot cost on average of late.
    Advice,
    /// The list in this binary, at the account's discount as far as that is known.
    Catalog,
    /// Derived: another region's price, a part of the on-demand price, or what types of the family cost.
    Estimate,
    /// No layer knows.
    Unknown,
}

impl PriceSource {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Given,
        Self::Live,
        Self::Advice,
        Self::Catalog,
        Self::Estimate,
        Self::Unknown,
    ];

    /// As metrics show it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Live => "live",
            Self::Advice => "advice",
            Self::Catalog => "catalog",
            Self::Estimate => "estimate",
            Self::Unknown => "unknown",
        }
    }
}

/// A price and what is known about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quote {
    pub price: Price,
    pub source: PriceSource,
    /// Of a live price: when the API last said so.
    pub asked_at: Option<Timestamp>,
}

/// What was learnt from the spot market: per cent of the on-demand price. By zone and then by type, because the names of
/// zones would be most of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpotDiscounts(BTreeMap<String, BTreeMap<Box<str>, u32>>);

impl SpotDiscounts {
    fn percent(&self, instance_type: &str, zone_id: &str) -> Option<u32> {
        let percent = self.0.get(zone_id)?.get(instance_type).copied();
        percent.filter(|percent| (1..=100).contains(percent))
    }

    /// Whether nothing was learnt.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<((String, String), u32)> for SpotDiscounts {
    /// From rows of type, zone and per cent.
    fn from_iter<I: IntoIterator<Item = ((String, String), u32)>>(rows: I) -> Self {
        let mut discounts = Self::default();
        for ((instance_type, zone_id), percent) in rows {
            let zone = discounts.0.entry(zone_id).or_default();
            zone.insert(instance_type.into(), percent);
        }
        discounts
    }
}

/// Prices that somebody gave, by type, zone and capacity type: they come before every layer.
pub type PriceList = BTreeMap<(String, String, CapacityType), Price>;

/// The layers that hold for every account.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lists<'a> {
    pub(crate) region_id: &'a str,
    pub(crate) discounts: &'a SpotDiscounts,
}

impl Lists<'_> {
    /// A price per hour, more than zero, and its layer.
    pub(crate) fn price(
        &self,
        instance_type: &str,
        zone_id: &str,
        capacity_type: CapacityType,
    ) -> Option<(f64, PriceSource)> {
        let on_demand = table::list_price(self.region_id, instance_type)?;
        Some(match capacity_type {
            CapacityType::OnDemand | CapacityType::Reserved => on_demand,
            CapacityType::Spot => self.spot(on_demand.0, instance_type, zone_id),
        })
    }

    fn spot(&self, on_demand: f64, instance_type: &str, zone_id: &str) -> (f64, PriceSource) {
        match self.discounts.percent(instance_type, zone_id) {
            Some(percent) => (on_demand * f64::from(percent) / 100.0, PriceSource::Advice),
            None => (on_demand * SPOT_PART_ESTIMATE, PriceSource::Estimate),
        }
    }
}

/// What the layers are made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) lists: Lists<'a>,
    /// They come before all layers.
    pub(crate) given: &'a PriceList,
    pub(crate) live: &'a LivePrices,
    pub(crate) types: &'a Types,
    /// What the account pays less than the list price on demand, in per cent, while nothing live says so.
    pub(crate) account_discount_percent: f64,
}

/// All layers of a region, in their order.
#[derive(Debug)]
pub(crate) struct Layers<'a> {
    known: Known<'a>,
    calibration: Calibration,
    /// What a vCPU costs on demand, by family: the middle of its types.
    per_vcpu: BTreeMap<&'a str, f64>,
}

impl<'a> Layers<'a> {
    pub(crate) fn new(known: Known<'a>) -> Self {
        let mut layers = Self {
            calibration: Calibration::new(known.live, known.types, &known.lists),
            per_vcpu: BTreeMap::new(),
            known,
        };
        let mut families: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for facts in known.types.values() {
            if let Some((price, _)) = layers.on_demand(facts) {
                let of_family = families.entry(&facts.family).or_default();
                of_family.push(price / f64::from(facts.cpus));
            }
        }
        let families = families.into_iter();
        layers.per_vcpu = families
            .filter_map(|(family, prices)| Some((family, median(prices)?)))
            .collect();
        layers
    }

    /// The price of an offering and its layer.
    pub(crate) fn price(
        &self,
        facts: &TypeFacts,
        zone_id: &str,
        capacity_type: CapacityType,
    ) -> (Price, PriceSource) {
        if let Some(given) = self.given(&facts.name, zone_id, capacity_type) {
            return (given, PriceSource::Given);
        }
        let live = self.known.live;
        if let Some(live) = live.price(&facts.name, zone_id, capacity_type) {
            return (live, PriceSource::Live);
        }
        let found = match capacity_type {
            CapacityType::OnDemand | CapacityType::Reserved => self.on_demand_or_like(facts),
            CapacityType::Spot => self.spot(facts, zone_id),
        };
        match found {
            Some((price, source)) => (Price::from_per_hour(price), source),
            None => (Price::UNKNOWN, PriceSource::Unknown),
        }
    }

    fn given(&self, name: &str, zone_id: &str, capacity_type: CapacityType) -> Option<Price> {
        // Mostly nobody gave any, and a key is two strings.
        if self.known.given.is_empty() {
            return None;
        }
        let key = (name.to_owned(), zone_id.to_owned(), capacity_type);
        self.known.given.get(&key).copied()
    }

    /// What a type costs on demand, as the API or the list says.
    fn on_demand(&self, facts: &TypeFacts) -> Option<(f64, PriceSource)> {
        let Known { live, lists, .. } = self.known;
        if let Some(live) = live.price(&facts.name, "", CapacityType::OnDemand) {
            return Some((live.per_hour()?, PriceSource::Live));
        }
        let (list, source) = lists.price(&facts.name, "", CapacityType::OnDemand)?;
        let factor = self
            .calibration
            .factor(CapacityType::OnDemand, source, &facts.family);
        let factor = factor.unwrap_or(1.0 - self.known.account_discount_percent / 100.0);
        Some((list * factor, source))
    }

    fn on_demand_or_like(&self, facts: &TypeFacts) -> Option<(f64, PriceSource)> {
        self.on_demand(facts).or_else(|| {
            let per_vcpu = self.per_vcpu.get(facts.family.as_str())?;
            Some((per_vcpu * f64::from(facts.cpus), PriceSource::Estimate))
        })
    }

    /// The market's price starts from the list price, whatever the account pays on demand.
    fn spot(&self, facts: &TypeFacts, zone_id: &str) -> Option<(f64, PriceSource)> {
        let Known { lists, .. } = self.known;
        let name = &facts.name;
        let (price, source) = match lists.price(name, zone_id, CapacityType::Spot) {
            Some(found) => found,
            None => lists.spot(self.on_demand_or_like(facts)?.0, name, zone_id),
        };
        let factor = self
            .calibration
            .factor(CapacityType::Spot, source, &facts.family);
        Some((price * factor.unwrap_or(1.0), source))
    }
}

#[cfg(test)]
mod tests;
