//! Spreads the pool's nodes over families, so that one family that runs out of stock takes few of them: of families that have
//! fewer nodes the types come first, and within a family the cheapest stays first.

use kerf_policy_sdk::{
    About, Candidate, Context, PolicyError, Ranked, Selection, SelectionPolicy, export_selection,
};
use serde::Deserialize;

struct SpreadFamilies;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Config {
    tolerance: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { tolerance: 1 }
    }
}

impl SelectionPolicy for SpreadFamilies {
    type Config = Config;

    fn about() -> About {
        About {
            name: "spread-families",
            version: env!("CARGO_PKG_VERSION"),
            summary: "prefers families of which the pool has fewer nodes",
            config_schema: include_str!("config-schema.json"),
            default_config: r#"{"tolerance":1}"#,
            time_step_secs: 0,
        }
    }

    fn select(
        config: &Config,
        ctx: &Context,
        candidates: &[Candidate],
    ) -> Result<Selection, PolicyError> {
        let nodes = |family: u16| -> u32 {
            let own = ctx.fleet.iter().filter(|it| it.family == family);
            own.map(|it| it.nodes).sum()
        };
        let score = |it: &Candidate| {
            let steps = nodes(it.family) / config.tolerance.max(1);
            -i32::try_from(steps).unwrap_or(i32::MAX)
        };
        let ranked = (0..).zip(candidates).map(|(candidate, it)| Ranked {
            candidate,
            score: score(it),
        });
        Ok(Selection {
            ranked: ranked.collect(),
            excluded: Vec::new(),
        })
    }
}

export_selection!(SpreadFamilies);
