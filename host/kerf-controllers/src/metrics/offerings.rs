//! What NodePools could launch: for how much, and whether it can be had now. The names are those of Karpenter's AWS
//! provider; it shows what no pool allows too.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use kerf_core::ids::{InstanceTypeName, ZoneId};
use kerf_core::instance_type::{CapacityType, Offering};
use kerf_core::price::Price;

use super::text::{head, sample};

const PRICE: &str = "karpenter_cloudprovider_instance_type_offering_price_estimate";
const AVAILABLE: &str = "karpenter_cloudprovider_instance_type_offering_available";

/// Offerings that some pool allows, each once.
pub type Offerings = BTreeMap<(InstanceTypeName, ZoneId, CapacityType), Shown>;

/// What is shown of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// The lowest, where NodeOverlays make it another for each pool.
    pub price: Price,
    /// Whether it can be launched for some pool.
    pub is_available: bool,
}

impl Shown {
    /// As one pool sees it.
    #[must_use]
    pub fn of(offering: &Offering) -> Self {
        Self {
            price: offering.price,
            is_available: offering.is_available(),
        }
    }

    /// As one more pool sees it.
    pub fn add(&mut self, other: Self) {
        self.price = self.price.min(other.price);
        self.is_available |= other.is_available;
    }
}

/// The offerings of the last look.
#[derive(Debug, Default)]
pub struct OfferingMetrics(Mutex<Offerings>);

impl OfferingMetrics {
    /// Takes in all that pools allow.
    pub fn show(&self, offerings: Offerings) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = offerings;
    }

    /// Their series. A price that nobody knows has none.
    pub fn render(&self, out: &mut String) {
        let offerings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if offerings.is_empty() {
            return;
        }
        let help = "Price per hour, in CNY, of offerings that NodePools allow";
        head(PRICE, "gauge", help, out);
        for (key, shown) in &*offerings {
            if let Some(price) = shown.price.per_hour() {
                sample(PRICE, labels(key), price, out);
            }
        }
        let help = "1 for offerings that NodePools allow and that can be launched now, 0 for others that they allow";
        head(AVAILABLE, "gauge", help, out);
        for (key, shown) in &*offerings {
            let value = if shown.is_available { 1.0 } else { 0.0 };
            sample(AVAILABLE, labels(key), value, out);
        }
    }

    /// Without an offering nothing shows.
    #[cfg(test)]
    pub(super) fn touch(&self) {
        let key = ("".into(), "".into(), CapacityType::OnDemand);
        let shown = Shown {
            price: Price::from_per_hour(1.0),
            is_available: true,
        };
        self.show([(key, shown)].into());
    }
}

fn labels(
    (instance_type, zone, capacity_type): &(InstanceTypeName, ZoneId, CapacityType),
) -> [(&str, &str); 3] {
    [
        ("capacity_type", capacity_type.as_str()),
        ("instance_type", instance_type),
        ("zone", zone),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offering_has_its_lowest_price_and_is_there_if_some_pool_can_have_it() {
        let metrics = OfferingMetrics::default();
        let mut out = String::new();
        metrics.render(&mut out);
        assert_eq!(out, "");
        let shown = |price: Price, is_available| Shown {
            price,
            is_available,
        };
        let mut first = shown(Price::from_per_hour(0.5), false);
        first.add(shown(Price::from_per_hour(0.4), true));
        first.add(shown(Price::UNKNOWN, false));
        let key = |zone: &str| ("ecs.g7.large".into(), zone.into(), CapacityType::Spot);

        metrics.show([(key("h"), first), (key("i"), shown(Price::UNKNOWN, false))].into());
        metrics.render(&mut out);

        let series: Vec<&str> = out.lines().filter(|it| !it.starts_with('#')).collect();
        let labels = |zone| {
            format!(r#"{{capacity_type="spot",instance_type="ecs.g7.large",zone="{zone}"}}"#)
        };
        let (h, i) = (labels("h"), labels("i"));
        assert_eq!(
            series,
            [
                format!("{PRICE}{h} 0.4"),
                format!("{AVAILABLE}{h} 1"),
                format!("{AVAILABLE}{i} 0")
            ]
        );
    }
}
