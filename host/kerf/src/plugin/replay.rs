//! `kerf plugin replay`: the same questions to two versions of a policy, and what would be decided otherwise.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use kerf_policy::{CallLimits, Engine, Hook, Policy};
use serde_json::{Value, json};

use crate::plugin::Outcome;
use crate::plugin::args::{One, Replay};
use crate::plugin::component::{Component, json_of};
use crate::plugin::question::Question;

/// One version with its configuration.
struct Version {
    policy: Policy,
    config: String,
}

/// What both said to one question.
struct Row {
    name: String,
    old: Value,
    new: Value,
    /// The hourly prices of what comes first, in millionths; only where a type is chosen and its price is known.
    prices: Option<(u32, u32)>,
}

impl Row {
    fn is_changed(&self) -> bool {
        self.old != self.new
    }
}

pub(super) fn run(args: &Replay) -> Result<Outcome> {
    let engine = Engine::new()?;
    let hook = Component::read(&one(&args.new))?.hook(args.hook.map(Hook::from))?;
    let old = version(&engine, hook, &args.old, args.old_config.as_deref())?;
    let new = version(&engine, hook, &args.new, args.new_config.as_deref())?;
    let mut rows = Vec::new();
    for path in files(&args.questions)? {
        rows.push(replay(&path, hook, &old, &new)?);
    }
    Ok(outcome(&rows))
}

fn one(path: &Path) -> One {
    One {
        component: path.to_owned(),
    }
}

fn version(engine: &Engine, hook: Hook, path: &Path, config: Option<&str>) -> Result<Version> {
    let policy = Component::read(&one(path))?.load(engine, hook)?;
    let config = match config {
        Some(text) => json_of(text)?,
        None => policy.metadata().default_config.clone(),
    };
    Ok(Version {
        policy,
        config: config.to_string(),
    })
}

/// The questions of a folder, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let about = || format!("cannot read the questions in {}", folder.display());
    let entries = std::fs::read_dir(folder).with_context(about)?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.with_context(about)?.path();
        if path.extension().is_some_and(|it| it == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        bail!(
            "there is no question in {}: put files there as `kerf plugin run --input` takes them",
            folder.display()
        );
    }
    Ok(paths)
}

fn replay(path: &Path, hook: Hook, old: &Version, new: &Version) -> Result<Row> {
    let about = || format!("{} is no question to {hook}", path.display());
    let text = std::fs::read_to_string(path).with_context(about)?;
    let question = serde_json::from_str(&text).with_context(about)?;
    let question = Question::parse(hook, question).with_context(about)?;
    let ask = |version: &Version| {
        let report = question.ask(&version.policy, &version.config, &CallLimits::default());
        // A version that gives no answer decides nothing, and that is a difference too.
        let answer = report.result;
        answer.unwrap_or_else(|error| json!({"error": error.to_string()}))
    };
    let (old, new) = (ask(old), ask(new));
    let price = |answer: &Value| question.price_of(answer["order"].get(0)?.as_str()?);
    Ok(Row {
        name: path.display().to_string(),
        prices: price(&old).zip(price(&new)),
        old,
        new,
    })
}

fn outcome(rows: &[Row]) -> Outcome {
    let changed: Vec<&Row> = rows.iter().filter(|row| row.is_changed()).collect();
    let prices = || rows.iter().filter_map(|row| row.prices);
    let before: u64 = prices().map(|(old, _)| u64::from(old)).sum();
    let after: u64 = prices().map(|(_, new)| u64::from(new)).sum();
    let percent = 100.0 * per(changed.len(), rows.len());
    let mut text = String::new();
    for row in &changed {
        text += &format!("{}\n  old: {}\n  new: {}\n", row.name, row.old, row.new);
    }
    text += &format!(
        "{} of {} decisions change ({percent:.1} %); what comes first costs {} an hour instead of {}\n",
        changed.len(),
        rows.len(),
        money(after),
        money(before)
    );
    let differences: Vec<Value> = changed
        .iter()
        .map(|row| json!({"question": row.name, "old": row.old, "new": row.new}))
        .collect();
    Outcome {
        text,
        json: json!({
            "questions": rows.len(), "changed": changed.len(), "changedPercent": percent,
            "oldPriceMicros": before, "newPriceMicros": after, "differences": differences,
        }),
        is_good: true,
    }
}

fn per(part: usize, whole: usize) -> f64 {
    let number = |it: usize| u32::try_from(it).map_or(f64::MAX, f64::from);
    number(part) / number(whole.max(1))
}

fn money(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}
