//! Asking what types cost, one at a time, and telling where the prices in use come from. Nothing waits for it.

use kerf_core::instance_type::CapacityType;
use tracing::debug;

use crate::error::{CloudError, ErrorClass};
use crate::provider::Provider;
use crate::provider::prices::live::Asked;
use crate::provider::prices::table::list_price;
use crate::provider::prices::{Layers, PriceSource, Quote};

impl Provider {
    /// Asks what a type costs on demand; whether the answer was a usable price. The zone is one that sells it.
    ///
    /// # Errors
    /// When the call failed in a way that is not about this type.
    pub async fn ask_price(&self, instance_type: &str, zone_id: &str) -> Result<bool, CloudError> {
        let inner = &*self.inner;
        let answer = inner.client.describe_price(instance_type, zone_id).await;
        let Some(answer) = unless_refused(instance_type, answer)? else {
            return Ok(false);
        };
        let now = inner.client.now();
        let live = &inner.live;
        Ok(live.learn_on_demand(self.asked(instance_type), answer.as_ref(), now))
    }

    /// Asks what spot instances of a type cost in all zones; whether any answer was a usable price.
    ///
    /// # Errors
    /// As [`Self::ask_price`].
    pub async fn ask_spot_prices(&self, instance_type: &str) -> Result<bool, CloudError> {
        let inner = &*self.inner;
        let history = inner.client.describe_spot_price_history(instance_type);
        let Some(answer) = unless_refused(instance_type, history.await)? else {
            return Ok(false);
        };
        let now = inner.client.now();
        let live = &inner.live;
        Ok(live.learn_spot(self.asked(instance_type), &answer, now))
    }

    fn asked<'a>(&self, name: &'a str) -> Asked<'a> {
        let region_id = &self.inner.config.region_id;
        Asked {
            name,
            list: list_price(region_id, name).map(|(list, _)| list),
        }
    }

    /// Asks for the prices of everything that is in stock, type by type, and uses them at once: minutes, with hundreds of
    /// types. A market that cannot be asked is given up at the first failure; returns why, for each such one.
    ///
    /// # Errors
    /// When the types cannot be read.
    pub async fn ask_all_prices(&self) -> Result<Vec<CloudError>, CloudError> {
        let region = &self.inner.region;
        let (types, stock) = futures::join!(region.types(), region.stock());
        let types = types?;
        let on_demand = async {
            for name in types.keys() {
                if let Some(zone) = stock.zone_with(name, CapacityType::OnDemand) {
                    self.ask_price(name, zone).await?;
                }
            }
            Ok(())
        };
        let spot = async {
            for name in types.keys() {
                if stock.zone_with(name, CapacityType::Spot).is_some() {
                    self.ask_spot_prices(name).await?;
                }
            }
            Ok(())
        };
        let (on_demand, spot) = futures::join!(on_demand, spot);
        self.publish_prices(true);
        Ok([on_demand, spot]
            .into_iter()
            .filter_map(Result::err)
            .collect())
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

/// None when the cloud has no price for this type: it would say so the next time too.
fn unless_refused<T>(
    instance_type: &str,
    answer: Result<T, CloudError>,
) -> Result<Option<T>, CloudError> {
    let error = match answer {
        Ok(answer) => return Ok(Some(answer)),
        Err(error) => error,
    };
    match error.class() {
        ErrorClass::Auth(_)
        | ErrorClass::Throttled
        | ErrorClass::Transient
        | ErrorClass::StaleSignature => Err(error),
        _ => {
            debug!(instance_type, %error, "the cloud tells no price");
            Ok(None)
        }
    }
}
