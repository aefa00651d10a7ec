//! Keeps a share of the pool's nodes on spot capacity: while spot nodes are fewer, the next one is spot where spot can be had, and
//! while they are not, it is not. What cannot be had otherwise stays, so no pod waits for the share.

use kerf_policy_sdk::{
    About, Candidate, Context, Excluded, PolicyError, Selection, SelectionPolicy, export_selection,
    word,
};
use serde::Deserialize;

struct SpotShare;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Config {
    percent: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { percent: 50 }
    }
}

impl SelectionPolicy for SpotShare {
    type Config = Config;

    fn about() -> About {
        About {
            name: "spot-share",
            version: env!("CARGO_PKG_VERSION"),
            summary: "keeps a share of a pool's nodes on spot capacity",
            config_schema: include_str!("config-schema.json"),
            default_config: r#"{"percent":50}"#,
            time_step_secs: 0,
        }
    }

    fn select(
        config: &Config,
        ctx: &Context,
        candidates: &[Candidate],
    ) -> Result<Selection, PolicyError> {
        let is_spot =
            |capacity_type: u16| word(&ctx.vocabulary.capacity_types, capacity_type) == "spot";
        let nodes: u32 = ctx.fleet.iter().map(|it| it.nodes).sum();
        let spot = ctx.fleet.iter().filter(|it| is_spot(it.capacity_type));
        let spot: u32 = spot.map(|it| it.nodes).sum();
        // With the node that is being planned.
        let wants_spot = spot * 100 < config.percent * (nodes + 1);
        let mut offered = candidates.iter().flat_map(|it| &it.offerings);
        let mut excluded = Vec::new();
        if offered.any(|it| is_spot(it.capacity_type) == wants_spot) {
            for (candidate, it) in (0..).zip(candidates) {
                for (offering, sold) in (0..).zip(&it.offerings) {
                    if is_spot(sold.capacity_type) != wants_spot {
                        let reason = format!(
                            "{spot} of {nodes} nodes are spot, wanted are {} %",
                            config.percent
                        );
                        excluded.push(Excluded {
                            candidate,
                            offering: Some(offering),
                            reason,
                        });
                    }
                }
            }
        }
        Ok(Selection {
            ranked: Vec::new(),
            excluded,
        })
    }
}

export_selection!(SpotShare);
