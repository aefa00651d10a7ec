//! Instance types as the scheduler takes them: facts, capacity model, prices and stock put together for one class.

use kerf_core::instance_type::{CapacityType, InstanceType, Offering};
use kerf_core::requirement::Requirement;

use crate::provider::capacity::{NodeCapacity, cannot_join, node_capacity};
use crate::provider::class::ResolvedNodeClass;
use crate::provider::config::{CniMode, ProviderConfig};
use crate::provider::facts::TypeFacts;
use crate::provider::prices::{self, SpotDiscounts};
use crate::provider::region::{Stock, StockState, Types};
use crate::provider::unavailable::OfferingKey;

/// Everything that one pass looks up.
pub(crate) struct Sources<'a> {
    pub(crate) class: &'a ResolvedNodeClass,
    pub(crate) config: &'a ProviderConfig,
    pub(crate) cni: CniMode,
    pub(crate) types: &'a Types,
    pub(crate) stock: &'a Stock,
    pub(crate) discounts: &'a SpotDiscounts,
    /// Why an offering was marked, if it was.
    pub(crate) mark: &'a dyn Fn(OfferingKey<'_>) -> Option<String>,
    /// Whether a zone has a vSwitch with addresses.
    pub(crate) has_addresses: &'a dyn Fn(&str) -> bool,
}

/// All types that are sold in the class's zones, in name order. What has no stock stays, as not available: a type that
/// vanished from the list would make its running nodes look drifted.
pub(crate) fn instance_types(sources: &Sources<'_>) -> Vec<InstanceType> {
    sources
        .types
        .values()
        .filter_map(|facts| instance_type(facts, sources))
        .collect()
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
    if let Some(reason) = unusable(facts, class, cni) {
        for offering in &mut offerings {
            offering.unavailable = Some(reason.clone());
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
fn unusable(facts: &TypeFacts, class: &ResolvedNodeClass, cni: CniMode) -> Option<String> {
    if let Some(reason) = cannot_join(facts, cni) {
        return Some(reason);
    }
    let Some(image) = class.image_for(facts.architecture) else {
        let architecture = facts.architecture;
        return Some(format!("the ECSNodeClass has no image for {architecture}"));
    };
    // A disk below the image's size is refused by the API, whatever the type.
    let disk_gib = class.spec.system_disk.size_gib;
    (image.size_gib > disk_gib).then(|| {
        format!(
            "the system disk of {disk_gib} GiB is smaller than its image of {} GiB",
            image.size_gib
        )
    })
}

fn offerings(facts: &TypeFacts, sources: &Sources<'_>) -> Vec<Offering> {
    let zones = sources.class.zone_ids();
    let both = [CapacityType::OnDemand, CapacityType::Spot];
    let pairs = zones
        .into_iter()
        .flat_map(|zone| both.map(|capacity_type| (zone, capacity_type)));
    pairs
        .filter_map(|(zone, capacity_type)| offering(facts, zone, capacity_type, sources))
        .collect()
}

fn offering(
    facts: &TypeFacts,
    zone_id: &str,
    capacity_type: CapacityType,
    sources: &Sources<'_>,
) -> Option<Offering> {
    let stock = sources.stock.has(&facts.name, zone_id, capacity_type);
    if stock == Some(StockState::NotSold) {
        return None;
    }
    let region = &sources.config.region_id;
    let given = (facts.name.clone(), zone_id.to_owned(), capacity_type);
    let price = match sources.config.prices.get(&given) {
        Some(price) => *price,
        None => {
            let discounts = sources.discounts;
            prices::price(region, &facts.name, zone_id, capacity_type, discounts).0
        }
    };
    let key = OfferingKey {
        instance_type: &facts.name,
        family: &facts.family,
        zone_id,
        capacity_type,
    };
    let unavailable = if stock == Some(StockState::SoldOut) {
        Some("no stock".to_owned())
    } else if !(sources.has_addresses)(zone_id) {
        Some("no free addresses in the zone's vSwitches".to_owned())
    } else {
        (sources.mark)(key).map(|reason| format!("a launch failed recently: {reason}"))
    };
    let mut offering = Offering::new(zone_id, capacity_type, price);
    offering.unavailable = unavailable;
    offering.is_stock_uncertain = stock == Some(StockState::Unpromised);
    Some(offering)
}

#[cfg(test)]
mod tests;
