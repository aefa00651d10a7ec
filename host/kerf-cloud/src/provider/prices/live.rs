//! What the API said that types cost, to this account. It is asked piece by piece ([`crate::provider::Provider::ask_price`]),
//! and what was learnt is published seldom. An old figure stays: it is nearer to what is paid than any list.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use kerf_core::instance_type::CapacityType;
use kerf_core::price::Price;
use tracing::warn;

use crate::actions::price::{HourlyPrice, SpotPrice};

/// The unit of all prices here.
pub(crate) const CURRENCY: &str = "CNY";

/// How far apart publications are at least. Each makes the lists of all classes anew and asks the policies about prices
/// again, some 100 ms of work; the spot market itself moves by the hour.
const PUBLISHED_EVERY: SignedDuration = SignedDuration::from_mins(10);

/// How far a price may be from the list price of its type, downwards and upwards. Accounts pay a tenth of it and spot a tenth of
/// that at the least, and lists are two years old at most: what is further off is a mistake, and one instance type for
/// nothing would draw the whole fleet to it.
const BELIEVED: (f64, f64) = (0.005, 20.0);

/// Prices that were asked, all of them known. As many as the region has types and zones at most.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LivePrices {
    on_demand: BTreeMap<String, Price>,
    /// By zone and then by type, because the names of zones would be most of it.
    spot: BTreeMap<String, BTreeMap<Box<str>, Price>>,
}

impl LivePrices {
    /// What a type costs; what is reserved costs what it costs on demand.
    pub(super) fn price(
        &self,
        instance_type: &str,
        zone_id: &str,
        capacity_type: CapacityType,
    ) -> Option<Price> {
        match capacity_type {
            CapacityType::OnDemand | CapacityType::Reserved => {
                self.on_demand.get(instance_type).copied()
            }
            CapacityType::Spot => self.spot.get(zone_id)?.get(instance_type).copied(),
        }
    }

    /// Type and price.
    pub(super) fn on_demand(&self) -> impl Iterator<Item = (&str, Price)> {
        self.on_demand
            .iter()
            .map(|(name, price)| (name.as_str(), *price))
    }

    /// Zone, type and price.
    pub(super) fn spot(&self) -> impl Iterator<Item = (&str, &str, Price)> {
        self.spot.iter().flat_map(|(zone, types)| {
            let types = types.iter();
            types.map(|(name, price)| (zone.as_str(), &**name, *price))
        })
    }

    /// Whether anything was asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.on_demand.is_empty() && self.spot.is_empty()
    }

    #[cfg(test)]
    pub(in crate::provider) fn with_on_demand(
        mut self,
        instance_type: &str,
        per_hour: f64,
    ) -> Self {
        let price = Price::from_per_hour(per_hour);
        self.on_demand.insert(instance_type.to_owned(), price);
        self
    }

    #[cfg(test)]
    pub(super) fn with_spot(mut self, instance_type: &str, zone: &str, per_hour: f64) -> Self {
        let price = Price::from_per_hour(per_hour);
        let types = self.spot.entry(zone.to_owned()).or_default();
        types.insert(instance_type.into(), price);
        self
    }
}

/// What was learnt, and what of it decisions are made from.
#[derive(Debug, Default)]
pub(crate) struct LiveStore(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    learnt: LivePrices,
    /// When the figures of a type were last confirmed.
    asked_at: BTreeMap<(CapacityType, String), Timestamp>,
    first_at: Option<Timestamp>,
    published: Arc<LivePrices>,
    published_at: Option<Timestamp>,
    has_warned: bool,
    /// Types whose last answer was not believed.
    strange: BTreeSet<(CapacityType, String)>,
}

/// A type that was asked about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) name: &'a str,
    /// Its public price per hour, where there is one.
    pub(crate) list: Option<f64>,
}

impl LiveStore {
    /// What decisions are made from: the very one of before while nothing was published.
    pub(crate) fn published(&self) -> Arc<LivePrices> {
        self.with(|state| Arc::clone(&state.published))
    }

    /// When the figures of a type were last confirmed, published or not.
    pub(crate) fn asked_at(
        &self,
        instance_type: &str,
        capacity_type: CapacityType,
    ) -> Option<Timestamp> {
        let key = (capacity_type, instance_type.to_owned());
        self.with(|state| state.asked_at.get(&key).copied())
    }

    /// Takes in an answer; whether it was a price. What is none changes nothing.
    pub(crate) fn learn_on_demand(
        &self,
        asked: Asked<'_>,
        answer: Option<&HourlyPrice>,
        now: Timestamp,
    ) -> bool {
        self.with(|state| {
            let Some(price) = answer.and_then(|it| state.usable(it)) else {
                return false;
            };
            if !state.believes(CapacityType::OnDemand, asked, &[price]) {
                return false;
            }
            let known = &mut state.learnt.on_demand;
            known.insert(asked.name.to_owned(), price);
            state.note(CapacityType::OnDemand, asked.name, now);
            true
        })
    }

    /// As [`Self::learn_on_demand`], for all zones together: one that is missing sells no spot instances of the type. With one
    /// price that is not believed none is.
    pub(crate) fn learn_spot(
        &self,
        asked: Asked<'_>,
        answer: &[SpotPrice],
        now: Timestamp,
    ) -> bool {
        let instance_type = asked.name;
        self.with(|state| {
            let rows = answer.iter();
            let usable: Vec<(&str, Price)> = rows
                .filter_map(|row| Some((row.zone_id.as_str(), state.usable(&row.price)?)))
                .collect();
            let prices: Vec<Price> = usable.iter().map(|(_, price)| *price).collect();
            if prices.is_empty() || !state.believes(CapacityType::Spot, asked, &prices) {
                return false;
            }
            for types in state.learnt.spot.values_mut() {
                types.remove(instance_type);
            }
            for (zone, price) in usable {
                let types = state.learnt.spot.entry(zone.to_owned()).or_default();
                types.insert(instance_type.into(), price);
            }
            state.note(CapacityType::Spot, instance_type, now);
            true
        })
    }

    /// Lets decisions see what was learnt, if that is something new and the last time was long enough ago. The first time
    /// comes when everything was asked once, so that a small cluster need not wait. Whether it did.
    pub(crate) fn publish(&self, is_round_over: bool, now: Timestamp) -> bool {
        self.with(|state| {
            let is_long_ago = |at: Timestamp| now.duration_since(at) >= PUBLISHED_EVERY;
            let is_due = match state.published_at {
                Some(at) => is_long_ago(at),
                None => is_round_over || state.first_at.is_some_and(is_long_ago),
            };
            if !is_due || *state.published == state.learnt {
                return false;
            }
            state.published = Arc::new(state.learnt.clone());
            state.published_at = Some(now);
            true
        })
    }

    fn with<T>(&self, update: impl FnOnce(&mut State) -> T) -> T {
        update(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    /// The price that an answer tells, if it is one that can be compared with others.
    fn usable(&mut self, answer: &HourlyPrice) -> Option<Price> {
        if answer.currency != CURRENCY {
            if !std::mem::replace(&mut self.has_warned, true) {
                warn!(currency = %answer.currency, "prices are told in another currency than {CURRENCY}; list prices are used instead");
            }
            return None;
        }
        Some(Price::from_per_hour(answer.amount)).filter(|it| it.is_known())
    }

    fn believes(
        &mut self,
        capacity_type: CapacityType,
        asked: Asked<'_>,
        prices: &[Price],
    ) -> bool {
        let key = (capacity_type, asked.name.to_owned());
        let Some((amount, list)) = asked.list.and_then(|list| strange(list, prices)) else {
            self.strange.remove(&key);
            return true;
        };
        if self.strange.insert(key) {
            warn!(
                instance_type = asked.name,
                amount,
                list,
                "the price that was told is far from the list price and is not believed; what was known before stays. hint: --price-catalog gives prices that are used as they are"
            );
        }
        false
    }

    fn note(&mut self, capacity_type: CapacityType, instance_type: &str, now: Timestamp) {
        self.first_at.get_or_insert(now);
        let key = (capacity_type, instance_type.to_owned());
        self.asked_at.insert(key, now);
    }
}

/// The first price that is too far from the list's, and that one.
fn strange(list: f64, prices: &[Price]) -> Option<(f64, f64)> {
    let (least, most) = BELIEVED;
    let mut amounts = prices.iter().filter_map(|price| price.per_hour());
    let amount = amounts.find(|amount| !(list * least..=list * most).contains(amount))?;
    Some((amount, list))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::UNIX_EPOCH;

    fn after(minutes: i64) -> Timestamp {
        NOON + SignedDuration::from_mins(minutes)
    }

    fn price(currency: &str, amount: f64) -> HourlyPrice {
        HourlyPrice {
            currency: currency.to_owned(),
            amount,
        }
    }

    fn asked(name: &str) -> Asked<'_> {
        Asked { name, list: None }
    }

    fn spot(zone: &str, amount: f64) -> SpotPrice {
        SpotPrice {
            zone_id: zone.to_owned(),
            price: price(CURRENCY, amount),
        }
    }

    #[test]
    fn what_is_no_price_in_our_currency_changes_nothing() {
        let store = LiveStore::default();
        assert!(store.learn_on_demand(asked("a"), Some(&price(CURRENCY, 2.0)), NOON));

        for (currency, amount) in [
            (CURRENCY, 0.0),
            (CURRENCY, -1.0),
            (CURRENCY, f64::NAN),
            (CURRENCY, f64::INFINITY),
            ("USD", 1.0),
            ("", 1.0),
        ] {
            assert!(!store.learn_on_demand(asked("a"), Some(&price(currency, amount)), after(1)));
            let mut row = spot("h", amount);
            currency.clone_into(&mut row.price.currency);
            assert!(!store.learn_spot(asked("a"), &[row], after(1)), "{amount}");
        }
        assert!(!store.learn_on_demand(asked("a"), None, after(1)));

        assert!(store.publish(true, after(1)));
        let expected = LivePrices::default().with_on_demand("a", 2.0);
        assert_eq!(*store.published(), expected);
        assert_eq!(store.asked_at("a", CapacityType::OnDemand), Some(NOON));
        assert_eq!(store.asked_at("a", CapacityType::Spot), None);
    }

    #[test]
    fn a_price_that_cannot_be_leaves_what_was_known() {
        let store = LiveStore::default();
        let of_list = Asked {
            name: "a",
            list: Some(4.0),
        };
        assert!(store.learn_on_demand(of_list, Some(&price(CURRENCY, 0.4)), NOON));
        assert!(store.learn_spot(of_list, &[spot("h", 0.05)], NOON));

        for amount in [0.000_1, 0.019, 81.0, 4000.0] {
            assert!(!store.learn_on_demand(of_list, Some(&price(CURRENCY, amount)), after(1)));
            let rows = [spot("h", amount), spot("i", 0.06)];
            assert!(!store.learn_spot(of_list, &rows, after(1)), "{amount}");
        }

        store.publish(true, NOON);
        let known = store.published();
        let of = |capacity_type| known.price("a", "h", capacity_type).unwrap().per_hour();
        assert_eq!(of(CapacityType::OnDemand), Some(0.4));
        assert_eq!(of(CapacityType::Spot), Some(0.05));
        assert!(store.learn_on_demand(of_list, Some(&price(CURRENCY, 0.5)), after(2)));
    }

    #[test]
    fn a_zone_that_no_longer_sells_a_type_as_spot_loses_its_price() {
        let store = LiveStore::default();
        store.learn_spot(asked("a"), &[spot("h", 1.0), spot("i", 2.0)], NOON);
        store.learn_spot(asked("a"), &[spot("i", 3.0), spot("j", 0.0)], NOON);
        store.publish(true, NOON);

        let expected = LivePrices::default().with_spot("a", "i", 3.0);
        assert_eq!(store.published().price("a", "h", CapacityType::Spot), None);
        assert_eq!(
            store.published().price("a", "i", CapacityType::Spot),
            expected.price("a", "i", CapacityType::Spot)
        );
    }

    #[test]
    fn the_first_publication_waits_for_the_round_or_ten_minutes() {
        let store = LiveStore::default();
        assert!(!store.publish(true, NOON), "nothing was learnt");
        store.learn_on_demand(asked("a"), Some(&price(CURRENCY, 2.0)), NOON);

        assert!(!store.publish(false, after(9)));
        assert!(store.publish(false, after(10)));
    }

    #[test]
    fn later_ones_come_every_ten_minutes_and_only_with_something_new() {
        let store = LiveStore::default();
        store.learn_on_demand(asked("a"), Some(&price(CURRENCY, 2.0)), NOON);
        assert!(store.publish(true, NOON));
        let first = store.published();

        store.learn_on_demand(asked("a"), Some(&price(CURRENCY, 2.0)), after(20));
        assert!(!store.publish(true, after(20)), "it says the same");
        assert!(Arc::ptr_eq(&first, &store.published()));
        assert_eq!(
            store.asked_at("a", CapacityType::OnDemand),
            Some(after(20)),
            "confirmed"
        );

        store.learn_on_demand(asked("a"), Some(&price(CURRENCY, 2.5)), after(20));
        assert!(store.publish(true, after(20)));
        store.learn_on_demand(asked("a"), Some(&price(CURRENCY, 2.0)), after(21));
        assert!(!store.publish(true, after(29)));
        assert!(store.publish(true, after(30)));
    }
}
