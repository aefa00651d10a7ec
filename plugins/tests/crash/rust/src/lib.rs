//! Fails in the way that its configuration names, so that tests see what becomes of panics.

use kerf_policy_sdk::{
    About, Candidate, Context, Level, PolicyError, Selection, SelectionPolicy, emit,
    export_selection,
};
use serde::Deserialize;

struct Crash;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Config {
    how: Option<String>,
}

impl SelectionPolicy for Crash {
    type Config = Config;

    fn about() -> About {
        About {
            name: "crash",
            version: env!("CARGO_PKG_VERSION"),
            ..About::default()
        }
    }

    fn select(
        config: &Config,
        _ctx: &Context,
        candidates: &[Candidate],
    ) -> Result<Selection, PolicyError> {
        let Some(how) = config.how.as_ref().filter(|_| !candidates.is_empty()) else {
            return Ok(Selection {
                ranked: Vec::new(),
                excluded: Vec::new(),
            });
        };
        emit(Level::Info, "about to fail", &[("how".into(), how.clone())]);
        match how.as_str() {
            "config" => Err(PolicyError::InvalidConfig("deliberate".into())),
            "unsupported" => Err(PolicyError::Unsupported("deliberate".into())),
            _ => panic!("deliberate"),
        }
    }
}

export_selection!(Crash);
