//! Elastic strength: how much of what a pool or a class may launch could be launched now.
//!
//! A combination is an instance type, a zone and a capacity type. A launch that finds one sold out goes on to the next; with
//! few left, the next stock-out leaves pods waiting. It is told before a launch fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::instance_type::{InstanceType, Offering};
use crate::unavailable::Cause;

/// With fewer combinations than this one stock-out of a family, or of a zone, is enough to leave pods waiting.
const STRONG_LEAST: usize = 4;

/// What can be launched of what might.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strength {
    /// Combinations that can be launched now.
    pub launchable: usize,
    /// All combinations that the requirements allow.
    pub total: usize,
    /// How many cannot, by the reason.
    pub others: BTreeMap<Cause, usize>,
}

impl Strength {
    /// Of these types, in as far as `allows` lets them. A zone or a capacity type in which others of the types are sold and
    /// one is not counts as not sold for it.
    pub fn of<'a>(
        types: impl IntoIterator<Item = &'a InstanceType>,
        allows: impl Fn(&Offering) -> bool,
    ) -> Self {
        let mut strength = Self::default();
        let (mut count, mut places) = (0_usize, BTreeSet::new());
        let mut sold = 0_usize;
        for it in types {
            let allowed: Vec<&Offering> = it.offerings.iter().filter(|it| allows(it)).collect();
            if allowed.is_empty() {
                continue;
            }
            count += 1;
            for offering in allowed {
                // What is reserved is had beside the other, not in its place.
                if offering.reservation.is_none() {
                    places.insert((offering.zone.clone(), offering.capacity_type));
                    sold += 1;
                }
                strength.add(offering);
            }
        }
        let not_sold = (count * places.len()).saturating_sub(sold);
        if not_sold > 0 {
            strength.others.insert(Cause::NotSold, not_sold);
            strength.total += not_sold;
        }
        strength
    }

    fn add(&mut self, offering: &Offering) {
        self.total += 1;
        match &offering.unavailable {
            None => self.launchable += 1,
            Some(unavailable) => *self.others.entry(unavailable.cause).or_default() += 1,
        }
    }

    /// Whether the next stock-out may leave pods waiting.
    pub fn is_weak(&self) -> bool {
        self.launchable < STRONG_LEAST
    }
}

/// `12/48`
impl fmt::Display for Strength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.launchable, self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance_type::CapacityType;
    use crate::price::Price;
    use crate::requirement::Requirement;
    use crate::resources::Resources;
    use crate::unavailable::Unavailability;

    fn offering(zone: &str, capacity_type: CapacityType, cause: Option<Cause>) -> Offering {
        let mut offering = Offering::new(zone, capacity_type, Price::from_per_hour(1.0));
        offering.unavailable = cause.map(|cause| Unavailability::new(cause, "because"));
        offering
    }

    fn instance_type(name: &str, offerings: Vec<Offering>) -> InstanceType {
        let none: [Requirement; 0] = [];
        InstanceType::new(
            name,
            none,
            Resources::default(),
            Resources::default(),
            offerings,
        )
    }

    #[test]
    fn every_combination_is_launchable_or_has_its_reason() {
        use CapacityType::{OnDemand, Spot};
        let types = [
            instance_type(
                "ecs.g7.large",
                vec![
                    offering("h", OnDemand, None),
                    offering("h", Spot, Some(Cause::Stock)),
                    offering("i", OnDemand, Some(Cause::Addresses)),
                ],
            ),
            instance_type(
                "ecs.g8y.large",
                vec![offering("h", OnDemand, Some(Cause::Image))],
            ),
        ];

        let strength = Strength::of(&types, |_| true);

        assert_eq!((strength.launchable, strength.total), (1, 6));
        let others: Vec<_> = strength.others.into_iter().collect();
        assert_eq!(
            others,
            [
                (Cause::NotSold, 2),
                (Cause::Stock, 1),
                (Cause::Addresses, 1),
                (Cause::Image, 1)
            ]
        );
        let spot = Strength::of(&types, |it| it.capacity_type == Spot);
        assert_eq!((spot.to_string().as_str(), spot.is_weak()), ("0/1", true));
    }

    #[test]
    fn four_ways_are_enough() {
        let zones = ["h", "i", "j", "k"];
        let offerings = zones.map(|zone| offering(zone, CapacityType::OnDemand, None));
        let strong = instance_type("ecs.g7.large", offerings.to_vec());

        assert!(!Strength::of([&strong], |_| true).is_weak());
        assert!(Strength::of([&strong], |it| &*it.zone != "k").is_weak());
    }
}
