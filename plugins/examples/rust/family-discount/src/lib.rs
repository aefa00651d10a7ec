//! Orders by the price that you really pay: takes a discount per family off, or adds a cost that the bill does not show.

use kerf_policy_sdk::{
    About, Adjustment, Candidate, PolicyError, PricingContext, PricingPolicy, export_pricing, word,
};
use serde::Deserialize;
use std::collections::BTreeMap;

struct FamilyDiscount;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Config {
    #[serde(default)]
    percent_off: BTreeMap<String, i32>,
}

impl PricingPolicy for FamilyDiscount {
    type Config = Config;

    fn about() -> About {
        About {
            name: "family-discount",
            version: env!("CARGO_PKG_VERSION"),
            summary: "takes a discount per instance family off the price that ordering uses",
            config_schema: include_str!("config-schema.json"),
            default_config: r#"{"percentOff":{}}"#,
            time_step_secs: 0,
        }
    }

    fn adjust(
        config: &Config,
        ctx: &PricingContext,
        candidates: &[Candidate],
    ) -> Result<Vec<Adjustment>, PolicyError> {
        let mut adjustments = Vec::new();
        for (candidate, it) in (0..).zip(candidates) {
            let family = word(&ctx.vocabulary.families, it.family);
            let Some(percent) = config.percent_off.get(family) else {
                continue;
            };
            for (offering, sold) in (0..).zip(&it.offerings) {
                // The largest number means that nobody knows the price.
                if sold.price_micros == u32::MAX {
                    continue;
                }
                let price = i64::from(sold.price_micros) * i64::from(100 - percent) / 100;
                let price_micros = u32::try_from(price).unwrap_or(u32::MAX - 1);
                let reason = Some(format!("{percent} % off {family}"));
                adjustments.push(Adjustment {
                    candidate,
                    offering,
                    price_micros,
                    reason,
                });
            }
        }
        Ok(adjustments)
    }
}

export_pricing!(FamilyDiscount);
