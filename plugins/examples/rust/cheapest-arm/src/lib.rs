//! Launches the cheapest arm64 type where one fits the pods and costs no more than allowed.
//!
//! Pods that do not say which architecture they need must have images for both.

use kerf_policy_sdk::{
    About, Candidate, Context, PolicyError, Ranked, Selection, SelectionPolicy, export_selection,
    word,
};
use serde::Deserialize;

struct CheapestArm;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Config {
    #[serde(default)]
    max_premium_percent: u32,
}

impl SelectionPolicy for CheapestArm {
    type Config = Config;

    fn about() -> About {
        About {
            name: "cheapest-arm",
            version: env!("CARGO_PKG_VERSION"),
            summary: "prefers arm64 up to a price premium",
            config_schema: include_str!("config-schema.json"),
            default_config: r#"{"maxPremiumPercent":0}"#,
            time_step_secs: 0,
        }
    }

    fn select(
        config: &Config,
        ctx: &Context,
        candidates: &[Candidate],
    ) -> Result<Selection, PolicyError> {
        let is_arm =
            |it: &&Candidate| word(&ctx.vocabulary.architectures, it.architecture) == "arm64";
        let cheapest_other = candidates
            .iter()
            .filter(|it| !is_arm(it))
            .map(price)
            .min()
            .unwrap_or(u32::MAX);
        let limit =
            u64::from(cheapest_other) * u64::from(100 + config.max_premium_percent.min(1000)) / 100;
        let affordable = |it: &&Candidate| is_arm(it) && u64::from(price(it)) <= limit;
        // All of them get one score: at equal scores the cheapest stays first.
        let ranked = (0..).zip(candidates).filter(|(_, it)| affordable(it));
        Ok(Selection {
            ranked: ranked
                .map(|(candidate, _)| Ranked {
                    candidate,
                    score: 1,
                })
                .collect(),
            excluded: Vec::new(),
        })
    }
}

/// Of the cheapest offering; the largest number when no price is known.
fn price(candidate: &Candidate) -> u32 {
    candidate
        .offerings
        .iter()
        .map(|it| it.price_micros)
        .min()
        .unwrap_or(u32::MAX)
}

export_selection!(CheapestArm);
