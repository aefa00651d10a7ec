//! Prefers GPU models by weight and excludes all others where it is told to. Types without a GPU are left as they are.

use kerf_policy_sdk::{
    About, Candidate, Context, Excluded, PolicyError, Ranked, Selection, SelectionPolicy,
    export_selection,
};
use serde::Deserialize;
use std::collections::BTreeMap;

struct GpuModel;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Config {
    weights: BTreeMap<String, i32>,
    only_these: bool,
}

impl SelectionPolicy for GpuModel {
    type Config = Config;

    fn about() -> About {
        About {
            name: "gpu-model",
            version: env!("CARGO_PKG_VERSION"),
            summary: "prefers GPU models by weight, and may exclude all others",
            config_schema: include_str!("config-schema.json"),
            default_config: r#"{"weights":{},"onlyThese":false}"#,
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
            let Some(model) = &it.gpu_model else { continue };
            if let Some(score) = config.weights.get(model) {
                selection.ranked.push(Ranked {
                    candidate,
                    score: *score,
                });
            } else if config.only_these {
                let reason = format!("GPU model {model} is not wanted");
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

export_selection!(GpuModel);
