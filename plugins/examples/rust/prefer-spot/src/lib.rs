//! Buys spot capacity even where on-demand capacity of another type is a little cheaper.

use kerf_policy_sdk::{
    About, Adjustment, Candidate, PolicyError, PricingContext, PricingPolicy, export_pricing, word,
};
use serde::Deserialize;

struct PreferSpot;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Config {
    #[serde(default)]
    premium_percent: u32,
}

impl PricingPolicy for PreferSpot {
    type Config = Config;

    fn about() -> About {
        About {
            name: "prefer-spot",
            version: env!("CARGO_PKG_VERSION"),
            summary: "lets spot nodes cost some percent more than on-demand ones and still come first",
            config_schema: include_str!("config-schema.json"),
            default_config: r#"{"premiumPercent":0}"#,
            time_step_secs: 0,
        }
    }

    fn adjust(
        config: &Config,
        ctx: &PricingContext,
        candidates: &[Candidate],
    ) -> Result<Vec<Adjustment>, PolicyError> {
        let percent = config.premium_percent.min(900);
        let mut adjustments = Vec::new();
        for (candidate, it) in (0..).zip(candidates) {
            for (offering, sold) in (0..).zip(&it.offerings) {
                let capacity_type = word(&ctx.vocabulary.capacity_types, sold.capacity_type);
                // The largest number means that nobody knows the price.
                if capacity_type != "on-demand" || sold.price_micros == u32::MAX {
                    continue;
                }
                let price = u64::from(sold.price_micros) * u64::from(100 + percent) / 100;
                adjustments.push(Adjustment {
                    candidate,
                    offering,
                    price_micros: u32::try_from(price).unwrap_or(u32::MAX - 1),
                    reason: Some(format!("on-demand counts {percent} % dearer than it is")),
                });
            }
        }
        Ok(adjustments)
    }
}

export_pricing!(PreferSpot);
