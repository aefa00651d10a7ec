//! Instance types as the scheduler takes them: facts, capacity model, prices and stock put together for one class.

use kerf_core::ids::ZoneId;
use kerf_core::instance_type::{CapacityType, InstanceType, Offering};
use kerf_core::requirement::Requirement;
use kerf_core::unavailable::{Cause, Unavailability};

use crate::provider::capacity::{NodeCapacity, cannot_join, node_capacity};
use crate::provider::class::ResolvedNodeClass;
use crate::provider::config::{CniMode, ProviderConfig};
use crate::provider::facts::TypeFacts;
use crate::provider::prices::Layers;
use crate::provider::region::{Stock, StockState, Types};
use crate::provider::unavailable::OfferingKey;

/// Why what is sold cannot be bought, also in a catalog that was pulled.
pub(super) const NO_STOCK: &str = "no stock";
/// Why a class with `capacityReservationPreference: target` cannot buy an offering.
const NO_PRIVATE_POOL: &str = "no private pool that the ECSNodeClass selects has room for it";

/// Everything that one pass looks up.
pub(crate) struct Sources<'a> {
    pub(crate) class: &'a ResolvedNodeClass,
    pub(crate) config: &'a ProviderConfig,
    pub(crate) cni: CniMode,
    pub(crate) types: &'a Types,
    pub(crate) stock: &'a Stock,
    pub(crate) prices: &'a Layers<'a>,
    /// Why an offering was marked, if it was.
    pub(crate) mark: &'a dyn Fn(OfferingKey<'_>) -> Option<String>,
    pub(crate) zones: &'a [Zone],
}

/// A zone of a class. Its name is shared by all offerings in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Zone {
    pub(crate) id: ZoneId,
    /// Whether it has a vSwitch with addresses.
    pub(crate) has_addresses: bool,
}

/// All types that are sold in the class's zones, in name order. What has no stock stays, as not available: a type that
/// vanished from the list would make its running nodes look drifted.
pub(crate) fn instance_types<'a>(
    sources: Sources<'a>,
) -> impl Iterator<Item = InstanceType> + use<'a> {
    let types = sources.types.values();
    types.filter_map(move |facts| instance_type(facts, &sources))
}

fn instance_type(facts: &TypeFacts, sources: &Sources<'_>) -> Option<InstanceType> {
    assemble(
        facts,
        sources.class,
        sources.cni,
        sources.config,
        offerings(facts, sources),
    )
}

/// A type as a node of the class, sold as given; none when it is not sold in the class's zones at all. What can be no node
/// of the class stays too, as not available with the reason: a pod that only fits there is told why.
pub(crate) fn assemble(
    facts: &TypeFacts,
    class: &ResolvedNodeClass,
    cni: CniMode,
    config: &ProviderConfig,
    mut offerings: Vec<Offering>,
) -> Option<InstanceType> {
    if offerings.is_empty() {
        return None;
    }
    let reason = unusable(facts, class, cni);
    for offering in &mut offerings {
        if let Some(reason) = &reason {
            offering.unavailable = Some(reason.clone());
        } else if !class.has_pool_for(&facts.name, &offering.zone)
            || (class.spec.private_pools.is_targeted()
                && offering.capacity_type == CapacityType::Spot)
        {
            offering.unavailable = Some(Unavailability::new(Cause::PrivatePool, NO_PRIVATE_POOL));
        }
    }
    let node = node_capacity(facts, &class.spec, cni, config);
    let labels = facts.labels(&config.region_id);
    let labels = labels
        .iter()
        .map(|(key, value)| Requirement::in_values(key, [value.as_str()]));
    let overhead = node.overhead();
    let NodeCapacity { capacity, .. } = node;
    Some(InstanceType::new(
        facts.name.as_str(),
        labels,
        capacity,
        overhead,
        offerings,
    ))
}

/// Why the type can be no node of the class, wherever it is bought.
fn unusable(facts: &TypeFacts, class: &ResolvedNodeClass, cni: CniMode) -> Option<Unavailability> {
    if let Some(reason) = cannot_join(facts, cni) {
        return Some(Unavailability::new(Cause::PodAddresses, reason));
    }
    let Some(image) = class.image_for(facts.architecture) else {
        let architecture = facts.architecture;
        let text = format!("the ECSNodeClass has no image for {architecture}");
        return Some(Unavailability::new(Cause::Image, text));
    };
    // A disk below the image's size is refused by the API, whatever the type.
    let disk_gib = class.spec.system_disk.size_gib;
    (image.size_gib > disk_gib).then(|| {
        let text = format!(
            "the system disk of {disk_gib} GiB is smaller than its image of {} GiB",
            image.size_gib
        );
        Unavailability::new(Cause::Disk, text)
    })
}

fn offerings(facts: &TypeFacts, sources: &Sources<'_>) -> Vec<Offering> {
    let both = [CapacityType::OnDemand, CapacityType::Spot];
    let zones = sources.zones.iter();
    let pairs = zones.flat_map(|zone| both.map(|capacity_type| (zone, capacity_type)));
    pairs
        .filter_map(|(zone, capacity_type)| offering(facts, zone, capacity_type, sources))
        .collect()
}

fn offering(
    facts: &TypeFacts,
    zone: &Zone,
    capacity_type: CapacityType,
    sources: &Sources<'_>,
) -> Option<Offering> {
    let market = Market {
        stock: sources.stock,
        prices: sources.prices,
    };
    let mut offering = market.offering(facts, &zone.id, capacity_type)?;
    if offering.is_available() {
        let key = OfferingKey {
            instance_type: &facts.name,
            family: &facts.family,
            zone_id: &zone.id,
            capacity_type,
        };
        offering.unavailable = if zone.has_addresses {
            (sources.mark)(key).map(|reason| {
                let text = format!("a launch failed recently: {reason}");
                Unavailability::new(Cause::RecentFailure, text)
            })
        } else {
            let text = "no free addresses in the zone's vSwitches";
            Some(Unavailability::new(Cause::Addresses, text))
        };
    }
    Some(offering)
}

/// What a region sells, whoever buys it.
pub(super) struct Market<'a> {
    pub(super) stock: &'a Stock,
    pub(super) prices: &'a Layers<'a>,
}

impl Market<'_> {
    /// One way to buy a type, as stock and prices are; none when it is not sold.
    pub(super) fn offering(
        &self,
        facts: &TypeFacts,
        zone: &ZoneId,
        capacity_type: CapacityType,
    ) -> Option<Offering> {
        let stock = self.stock.has(&facts.name, zone, capacity_type);
        if stock == Some(StockState::NotSold) {
            return None;
        }
        let (price, _) = self.prices.price(facts, zone, capacity_type);
        let mut offering = Offering::new(zone.clone(), capacity_type, price);
        offering.unavailable = (stock == Some(StockState::SoldOut))
            .then(|| Unavailability::new(Cause::Stock, NO_STOCK));
        offering.is_stock_uncertain = stock == Some(StockState::Unpromised);
        Some(offering)
    }
}

#[cfg(test)]
mod tests;
