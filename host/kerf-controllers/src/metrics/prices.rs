//! Where the prices in use come from. Karpenter shows prices themselves; these say what they are worth.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use jiff::Timestamp;
use kerf_cloud::provider::prices::{PriceSource, Quote};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Where a price comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabels {
    source: &'static str,
}

/// What prices show.
#[derive(Debug, Default)]
pub struct PriceMetrics {
    sources: Family<SourceLabels, Gauge>,
    age: Gauge<f64, AtomicU64>,
}

impl PriceMetrics {
    /// Registers them; the registry's prefix is kerf's.
    #[must_use]
    pub fn new(kerf: &mut Registry) -> Self {
        let it = Self::default();
        kerf.register(
            "cloud_prices",
            "Offerings that NodePools allow, by where their price comes from: given, live, advice, catalog, estimate or unknown",
            it.sources.clone(),
        );
        kerf.register(
            "cloud_price_age_seconds",
            "Age of the oldest live price in use; 0 without one",
            it.age.clone(),
        );
        it
    }

    /// Takes in all prices in use.
    pub fn show(&self, quotes: &[Quote], now: Timestamp) {
        let mut counts: BTreeMap<PriceSource, i64> =
            PriceSource::ALL.map(|source| (source, 0)).into();
        for quote in quotes {
            *counts.entry(quote.source).or_default() += 1;
        }
        for (source, count) in counts {
            let labels = SourceLabels {
                source: source.as_str(),
            };
            self.sources.get_or_create(&labels).set(count);
        }
        let oldest = quotes.iter().filter_map(|it| it.asked_at).min();
        let age = oldest.map_or(0.0, |at| now.duration_since(at).as_secs_f64());
        self.age.set(age.max(0.0));
    }

    /// A family without members does not show.
    #[cfg(test)]
    pub(super) fn touch(&self) {
        self.show(&[], Timestamp::UNIX_EPOCH);
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use kerf_core::price::Price;
    use prometheus_client::encoding::prometheus_text::encode;

    use super::*;

    #[test]
    fn sources_are_counted_and_the_oldest_live_price_tells_the_age() {
        let mut registry = Registry::default();
        let metrics = PriceMetrics::new(&mut registry);
        let now = Timestamp::UNIX_EPOCH;
        let quote = |source, minutes: Option<i64>| Quote {
            price: Price::from_per_hour(1.0),
            source,
            asked_at: minutes.map(|it| now - SignedDuration::from_mins(it)),
        };
        let live = |minutes| quote(PriceSource::Live, Some(minutes));

        metrics.show(&[live(1), live(3), quote(PriceSource::Catalog, None)], now);

        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "cloud_prices{source=\"live\"} 2",
            "cloud_prices{source=\"catalog\"} 1",
            "cloud_prices{source=\"unknown\"} 0",
            "cloud_price_age_seconds 180.0",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        metrics.show(&[], now);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        assert!(text.contains("cloud_price_age_seconds 0.0"), "{text}");
    }
}
