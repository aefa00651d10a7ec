//! Launches the families that you like first, and never those that you dislike. Within a family the cheapest stays first.

use kerf_policy_sdk::{
    About, Candidate, ConfigError, Context, Excluded, PolicyError, Ranked, Selection,
    SelectionPolicy, export_selection, word,
};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

struct PreferFamily;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Config {
    weights: BTreeMap<String, i32>,
    exclude: BTreeSet<String>,
}

impl SelectionPolicy for PreferFamily {
    type Config = Config;

    fn about() -> About {
        About {
            name: "prefer-family",
            version: env!("CARGO_PKG_VERSION"),
            summary: "ranks instance families by weight and excludes some",
            config_schema: include_str!("config-schema.json"),
            default_config: r#"{"weights":{},"exclude":[]}"#,
            time_step_secs: 0,
        }
    }

    fn check(config: &Config) -> Vec<ConfigError> {
        let both = config
            .weights
            .keys()
            .filter(|family| config.exclude.contains(*family));
        let no_prefix = config
            .weights
            .keys()
            .chain(&config.exclude)
            .filter(|family| !family.starts_with("ecs."));
        both.map(|family| ConfigError {
            path: format!("/weights/{family}"),
            message: "is excluded too; remove it from one of the two".into(),
        })
        .chain(no_prefix.map(|family| ConfigError {
            path: String::new(),
            message: format!("{family:?} is not a family; write it as ecs.{family}"),
        }))
        .collect()
    }

    fn select(
        config: &Config,
        ctx: &Context,
        candidates: &[Candidate],
    ) -> Result<Selection, PolicyError> {
        let mut selection = Selection {
            ranked: Vec::new(),
            excluded: Vec::new(),
        };
        for (candidate, it) in (0..).zip(candidates) {
            let family = word(&ctx.vocabulary.families, it.family);
            if config.exclude.contains(family) {
                let reason = format!("family {family} is excluded");
                selection.excluded.push(Excluded {
                    candidate,
                    offering: None,
                    reason,
                });
            } else if let Some(score) = config.weights.get(family) {
                selection.ranked.push(Ranked {
                    candidate,
                    score: *score,
                });
            }
        }
        Ok(selection)
    }
}

export_selection!(PreferFamily);
