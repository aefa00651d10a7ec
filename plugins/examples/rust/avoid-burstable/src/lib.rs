//! Keeps pods off burstable instance types: they come last, or never.

use kerf_policy_sdk::{
    About, Candidate, Context, Excluded, PolicyError, Ranked, Selection, SelectionPolicy,
    export_selection,
};
use serde::Deserialize;

struct AvoidBurstable;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Config {
    never: bool,
}

impl SelectionPolicy for AvoidBurstable {
    type Config = Config;

    fn about() -> About {
        About {
            name: "avoid-burstable",
            version: env!("CARGO_PKG_VERSION"),
            summary: "puts burstable instance types last, or excludes them",
            config_schema: include_str!("config-schema.json"),
            default_config: r#"{"never":false}"#,
            time_step_secs: 0,
        }
    }

    fn select(
        config: &Config,
        _ctx: &Context,
        candidates: &[Candidate],
    ) -> Result<Selection, PolicyError> {
        let mut selection = Selection {
            ranked: Vec::new(),
            excluded: Vec::new(),
        };
        for (candidate, it) in (0..).zip(candidates) {
            if !it.burstable {
                selection.ranked.push(Ranked {
                    candidate,
                    score: 0,
                });
            } else if config.never {
                let reason = "burstable".to_owned();
                selection.excluded.push(Excluded {
                    candidate,
                    offering: None,
                    reason,
                });
            }
        }
        Ok(selection)
    }
}

export_selection!(AvoidBurstable);
