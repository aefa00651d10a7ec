//! Asking what types cost, one at a time, and telling where the prices in use come from. Nothing waits for it.

use kerf_core::instance_type::CapacityType;

use crate::error::CloudError;
use crate::provider::Provider;
use crate::provider::prices::{Layers, PriceSource, Quote};

impl Provider {
    /// Asks what a type costs on demand; whether the answer was a usable price. The zone is one that sells it.
    ///
    /// # Errors
    /// When the call failed.
    pub async fn ask_price(&self, instance_type: &str, zone_id: &str) -> Result<bool, CloudError> {
        let inner = &*self.inner;
        let answer = inner.client.describe_price(instance_type, zone_id).await?;
        let now = inner.client.now();
        let live = &inner.live;
        Ok(live.learn_on_demand(instance_type, answer.as_ref(), now))
    }

    /// Asks what spot instances of a type cost in all zones; whether any answer was a usable price.
    ///
    /// # Errors
    /// When the call failed.
    pub async fn ask_spot_prices(&self, instance_type: &str) -> Result<bool, CloudError> {
        let inner = &*self.inner;
        let history = inner.client.describe_spot_price_history(instance_type);
        let answer = history.await?;
        let now = inner.client.now();
        Ok(inner.live.learn_spot(instance_type, &answer, now))
    }

    /// Lets instance types have the prices that were asked: every ten minutes at most, the first time as soon as
    /// everything was asked once. Whether they changed.
    pub fn publish_prices(&self, is_round_over: bool) -> bool {
        let inner = &*self.inner;
        inner.live.publish(is_round_over, inner.client.now())
    }

    /// What is known of the prices of offerings (type, zone, capacity type), in their order; none before the instance
    /// types were read. Makes no call.
    #[must_use]
    pub fn quotes<'a>(
        &self,
        offerings: impl IntoIterator<Item = (&'a str, &'a str, CapacityType)>,
    ) -> Option<Vec<Quote>> {
        let inner = &*self.inner;
        let (types, discounts) = inner.region.last_read()?;
        let live = inner.live.published();
        let layers = Layers::new(inner.known_prices(&types, &discounts, &live));
        let quote = |(name, zone, capacity_type): (&str, &str, CapacityType)| {
            let facts = types.get(name)?;
            let (price, source) = layers.price(facts, zone, capacity_type);
            let asked_at = (source == PriceSource::Live)
                .then(|| inner.live.asked_at(name, capacity_type))
                .flatten();
            Some(Quote {
                price,
                source,
                asked_at,
            })
        };
        Some(offerings.into_iter().filter_map(quote).collect())
    }
}
