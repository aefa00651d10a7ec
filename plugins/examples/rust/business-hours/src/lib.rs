//! In business hours spot capacity counts as dearer, so that nodes which may be taken away are launched at night and at weekends. It
//! asks for the time in steps of an hour.

use kerf_policy_sdk::{
    About, Adjustment, Candidate, ConfigError, PolicyError, PricingContext, PricingPolicy,
    export_pricing, word,
};
use serde::Deserialize;

const HOUR_SECS: i64 = 3600;
const DAY_SECS: i64 = 24 * HOUR_SECS;

struct BusinessHours;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Config {
    from_hour: u32,
    to_hour: u32,
    utc_offset_hours: i32,
    spot_premium_percent: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            from_hour: 8,
            to_hour: 20,
            utc_offset_hours: 8,
            spot_premium_percent: 100,
        }
    }
}

impl PricingPolicy for BusinessHours {
    type Config = Config;

    fn about() -> About {
        About {
            name: "business-hours",
            version: env!("CARGO_PKG_VERSION"),
            summary: "lets spot capacity count as dearer in business hours",
            config_schema: include_str!("config-schema.json"),
            default_config: r#"{"fromHour":8,"toHour":20,"utcOffsetHours":8,"spotPremiumPercent":100}"#,
            time_step_secs: 3600,
        }
    }

    fn check(config: &Config) -> Vec<ConfigError> {
        let message = "is not after fromHour; a night is what the hours between leave".to_owned();
        let error = ConfigError {
            path: "/toHour".into(),
            message,
        };
        if config.from_hour < config.to_hour {
            Vec::new()
        } else {
            vec![error]
        }
    }

    fn adjust(
        config: &Config,
        ctx: &PricingContext,
        candidates: &[Candidate],
    ) -> Result<Vec<Adjustment>, PolicyError> {
        let mut adjustments = Vec::new();
        if !is_business(config, ctx.as_of_unix_s) {
            return Ok(adjustments);
        }
        for (candidate, it) in (0..).zip(candidates) {
            for (offering, sold) in (0..).zip(&it.offerings) {
                let is_spot = word(&ctx.vocabulary.capacity_types, sold.capacity_type) == "spot";
                // The largest number means that nobody knows the price.
                if is_spot && sold.price_micros != u32::MAX {
                    let price = u64::from(sold.price_micros)
                        * u64::from(100 + config.spot_premium_percent)
                        / 100;
                    adjustments.push(Adjustment {
                        candidate,
                        offering,
                        price_micros: u32::try_from(price).unwrap_or(u32::MAX - 1),
                        reason: Some("spot in business hours".into()),
                    });
                }
            }
        }
        Ok(adjustments)
    }
}

fn is_business(config: &Config, unix_secs: u32) -> bool {
    let local = i64::from(unix_secs) + i64::from(config.utc_offset_hours) * HOUR_SECS;
    let hour = local.rem_euclid(DAY_SECS) / HOUR_SECS;
    // 1970 began on a Thursday; 0 is Monday.
    let weekday = (local.div_euclid(DAY_SECS) + 3).rem_euclid(7);
    weekday < 5 && (i64::from(config.from_hour)..i64::from(config.to_hour)).contains(&hour)
}

export_pricing!(BusinessHours);
