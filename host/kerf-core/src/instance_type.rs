//! Instance types and their offerings: what a new node could be, where, and for how much.

use std::fmt;

use crate::ids::{InstanceTypeName, ReservationId, ZoneId};
use crate::labels;
use crate::price::Price;
use crate::requirement::Requirement;
use crate::requirements::Requirements;
use crate::resources::{HUGE_PAGES_PREFIX, MEMORY, Resources};
use crate::unavailable::Unavailability;

/// How capacity is bought. The order is that in which a launch prefers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CapacityType {
    /// Paid for already, by a capacity reservation.
    Reserved,
    /// Interruptible.
    Spot,
    /// Pay as you go.
    OnDemand,
}

impl CapacityType {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Reserved, Self::Spot, Self::OnDemand];

    /// The label value.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Spot => "spot",
            Self::OnDemand => "on-demand",
        }
    }

    /// The capacity type of that label value.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|capacity_type| capacity_type.as_str() == text)
    }
}

impl fmt::Display for CapacityType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A capacity reservation behind an offering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// Its id.
    pub id: ReservationId,
    /// How many more instances it has room for.
    pub remaining: u32,
}

/// One way to buy an instance type: in a zone, as a capacity type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offering {
    /// The zone.
    pub zone: ZoneId,
    /// How it is bought.
    pub capacity_type: CapacityType,
    /// The real price, for bills, caps and metrics. Ordering may use another: [`Self::ordering_price`] and
    /// [`crate::Preferences`].
    pub price: Price,
    /// The price that a NodeOverlay gives it; [`crate::overlay`] sets it.
    pub overlay_price: Option<Price>,
    /// Whether a NodeOverlay added something to its capacity.
    pub is_capacity_overlaid: bool,
    /// Why it cannot be bought now ("no stock", "no free IPs"); none when it can.
    pub unavailable: Option<Unavailability>,
    /// It is sold, but the cloud does not promise stock: at equal price others come first.
    pub is_stock_uncertain: bool,
    /// The reservation, when `capacity_type` is reserved.
    pub reservation: Option<Reservation>,
    /// Capacity that differs from the instance type's; boxed like the next, because thousands of offerings have neither.
    pub capacity_override: Option<Box<Resources>>,
    /// Overhead that differs from the instance type's.
    pub overhead_override: Option<Box<Resources>>,
}

impl Offering {
    /// An offering that can be bought, without a reservation.
    pub fn new(zone: impl Into<ZoneId>, capacity_type: CapacityType, price: Price) -> Self {
        Self {
            zone: zone.into(),
            capacity_type,
            price,
            overlay_price: None,
            is_capacity_overlaid: false,
            unavailable: None,
            is_stock_uncertain: false,
            reservation: None,
            capacity_override: None,
            overhead_override: None,
        }
    }

    /// The price by which it is compared with others, where no policy says another.
    pub fn ordering_price(&self) -> Price {
        self.overlay_price.unwrap_or(self.price)
    }

    /// Whether it can be bought now.
    pub fn is_available(&self) -> bool {
        self.unavailable.is_none()
    }

    /// What a node of this offering has in its labels.
    pub fn requirements(&self) -> Requirements {
        let zone = Requirement::in_values(labels::ZONE, [&*self.zone]);
        let capacity_type =
            Requirement::in_values(labels::CAPACITY_TYPE, [self.capacity_type.as_str()]);
        let reservation = self.reservation.as_ref();
        let reservation =
            reservation.map(|it| Requirement::in_values(labels::RESERVATION_ID, [&*it.id]));
        [zone, capacity_type]
            .into_iter()
            .chain(reservation)
            .collect()
    }

    /// Whether a node with these requirements may be of this offering.
    pub fn is_allowed_by(&self, requirements: &Requirements) -> bool {
        let reservation_allowed = match (&self.reservation, requirements.on(labels::RESERVATION_ID))
        {
            (_, None) => true,
            (Some(reservation), Some(requirement)) => requirement.has(&reservation.id),
            (None, Some(requirement)) => requirement.tolerates_absence(),
        };
        reservation_allowed
            && requirements.allows(labels::ZONE, &self.zone)
            && requirements.allows(labels::CAPACITY_TYPE, self.capacity_type.as_str())
    }
}

/// An instance type as a NodePool can use it: with the labels, capacity and overhead that its NodeClass gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceType {
    /// Its name.
    pub name: InstanceTypeName,
    /// The labels of its nodes. Zone and capacity type list what the offerings have.
    pub requirements: Requirements,
    /// What the machine has.
    pub capacity: Resources,
    /// What kubelet, system and eviction threshold keep back.
    pub overhead: Resources,
    /// Where and how it is sold.
    pub offerings: Vec<Offering>,
}

impl InstanceType {
    /// An instance type whose requirements are the given labels, its name, and its offerings' zones and capacity types.
    pub fn new(
        name: impl Into<InstanceTypeName>,
        labels_of_type: impl IntoIterator<Item = Requirement>,
        capacity: Resources,
        overhead: Resources,
        offerings: Vec<Offering>,
    ) -> Self {
        let name = name.into();
        let mut requirements: Requirements = labels_of_type.into_iter().collect();
        requirements.replace(Requirement::in_values(labels::INSTANCE_TYPE, [&*name]));
        requirements.replace(Requirement::in_values(
            labels::ZONE,
            offerings.iter().map(|it| &*it.zone),
        ));
        let capacity_types = offerings.iter().map(|it| it.capacity_type.as_str());
        requirements.replace(Requirement::in_values(
            labels::CAPACITY_TYPE,
            capacity_types,
        ));
        Self {
            name,
            requirements,
            capacity,
            overhead,
            offerings,
        }
    }

    /// What pods can use on a node of this type, when the offering has no overrides.
    pub fn allocatable(&self) -> Resources {
        allocatable(&self.capacity, &self.overhead)
    }

    /// What is sold in that zone in that way.
    pub fn offering(&self, zone: &str, capacity_type: CapacityType) -> Option<&Offering> {
        let mut offerings = self.offerings.iter();
        offerings.find(|it| *it.zone == *zone && it.capacity_type == capacity_type)
    }

    /// What the machine has, bought that way.
    pub fn capacity_of<'a>(&'a self, offering: &'a Offering) -> &'a Resources {
        offering
            .capacity_override
            .as_deref()
            .unwrap_or(&self.capacity)
    }

    /// What pods can use on a node of this offering.
    pub fn allocatable_of(&self, offering: &Offering) -> Resources {
        let capacity = self.capacity_of(offering);
        let overhead = offering
            .overhead_override
            .as_deref()
            .unwrap_or(&self.overhead);
        allocatable(capacity, overhead)
    }
}

fn allocatable(capacity: &Resources, overhead: &Resources) -> Resources {
    let mut allocatable = capacity.clone();
    allocatable.subtract(overhead);
    let huge: i64 = capacity
        .iter()
        .filter(|(name, _)| name.starts_with(HUGE_PAGES_PREFIX))
        .map(|(_, amount)| amount)
        .sum();
    if huge > 0 {
        let memory = allocatable.memory_bytes().saturating_sub(huge).max(0);
        allocatable.set(MEMORY, memory);
    }
    allocatable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_taken_out_of_memory() {
        let capacity = Resources::of(4000, 8 << 30).with("hugepages-2Mi", 1 << 30);
        let instance_type = InstanceType::new(
            "ecs.g7.xlarge",
            [],
            capacity,
            Resources::of(100, 1 << 30),
            vec![],
        );
        assert_eq!(instance_type.allocatable().memory_bytes(), 6 << 30);
    }

    #[test]
    fn requirements_list_zones_and_capacity_types_of_the_offerings() {
        let offerings = vec![
            Offering::new("h", CapacityType::Spot, Price::UNKNOWN),
            Offering::new("i", CapacityType::OnDemand, Price::UNKNOWN),
        ];
        let it = InstanceType::new(
            "ecs.g7.large",
            [],
            Resources::default(),
            Resources::default(),
            offerings,
        );
        assert!(
            it.requirements.allows(labels::ZONE, "i") && !it.requirements.allows(labels::ZONE, "j")
        );
        assert!(!it.requirements.allows(labels::CAPACITY_TYPE, "reserved"));
    }
}
