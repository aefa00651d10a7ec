//! Uses up capacity reservations first, those that are named before the others: they are paid for whether a node is in them or not.

use kerf_policy_sdk::{
    About, Candidate, Context, PolicyError, Ranked, Selection, SelectionPolicy, export_selection,
};
use serde::Deserialize;

struct PreferReserved;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Config {
    first: Vec<String>,
}

impl SelectionPolicy for PreferReserved {
    type Config = Config;

    fn about() -> About {
        About {
            name: "prefer-reserved",
            version: env!("CARGO_PKG_VERSION"),
            summary: "launches instance types with a capacity reservation first",
            config_schema: include_str!("config-schema.json"),
            default_config: r#"{"first":[]}"#,
            time_step_secs: 0,
        }
    }

    fn select(
        config: &Config,
        _ctx: &Context,
        candidates: &[Candidate],
    ) -> Result<Selection, PolicyError> {
        let score = |reservation: &String| 1 + i32::from(config.first.contains(reservation));
        let best = |it: &Candidate| {
            let reservations = it.offerings.iter().filter_map(|it| it.reservation.as_ref());
            reservations.map(score).max()
        };
        let ranked = (0..).zip(candidates);
        let ranked = ranked.filter_map(|(candidate, it)| {
            Some(Ranked {
                candidate,
                score: best(it)?,
            })
        });
        Ok(Selection {
            ranked: ranked.collect(),
            excluded: Vec::new(),
        })
    }
}

export_selection!(PreferReserved);
