//! `kerf plugin run`: one question, what the policy changes, and what the call costs.

use anyhow::{Context as _, Result};
use kerf_policy::{CallLimits, CallReport, Engine, Hook};
use serde_json::{Value, json};

use crate::plugin::Outcome;
use crate::plugin::args::Run;
use crate::plugin::case::Case;
use crate::plugin::component::{Component, config};
use crate::plugin::question::{Question, usual_types};

pub(super) fn run(args: &Run) -> Result<Outcome> {
    let component = Component::read(&args.what.one)?;
    let hook = component.hook(args.what.hook.map(Hook::from))?;
    let policy = component.load(&Engine::new()?, hook)?;
    let (question, of_case) = question(args, hook)?;
    let config = config(&args.what)?
        .or(of_case)
        .unwrap_or_else(|| policy.metadata().default_config.clone())
        .to_string();
    let report = question.ask(&policy, &config, &CallLimits::default());
    let before = question.before();
    let is_good = report.result.is_ok();
    Ok(Outcome {
        text: text(&before, &report),
        json: json!({
            "before": before,
            "answer": report.result.as_ref().ok(),
            "error": report.result.as_ref().err().map(ToString::to_string),
            "class": report.result.as_ref().err().map(|error| error.class()),
            "fuel": report.fuel,
            "millis": report.elapsed.as_secs_f64() * 1e3,
            "memoryKiB": report.memory_bytes_max / 1024,
            "log": report.log, "logLinesDropped": report.log_lines_dropped,
        }),
        is_good,
    })
}

/// The question of --input and the configuration that comes with it.
fn question(args: &Run, hook: Hook) -> Result<(Question, Option<Value>)> {
    let Some(path) = &args.input else {
        return Ok((Question::small(hook, &usual_types()), None));
    };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the question {}", path.display()))?;
    let value: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?;
    if value.get("candidates").is_some() || value.get("node").is_some() {
        let question = Question::parse(hook, value)
            .with_context(|| format!("{} is no question to {hook}", path.display()))?;
        return Ok((question, None));
    }
    let case = Case::read(path)?;
    let question = case.question(hook)?;
    Ok((question, Some(case.config)))
}

fn text(before: &Value, report: &CallReport<Value>) -> String {
    let mut text = match &report.result {
        Err(error) => format!("no answer: it {error}\n"),
        Ok(answer) => {
            let mut text = String::new();
            for (key, after) in answer.as_object().into_iter().flatten() {
                let (old, new) = (lines(&before[key]), lines(after));
                if old == new {
                    text += &format!("{key}: unchanged\n{new}");
                } else {
                    text += &format!("{key}, without the policy:\n{old}{key}, with it:\n{new}");
                }
            }
            text
        }
    };
    for line in &report.log {
        text += &format!("log {:?}: {}\n", line.level, line.text);
    }
    if report.log_lines_dropped > 0 {
        text += &format!(
            "log: {} more lines were dropped\n",
            report.log_lines_dropped
        );
    }
    text += &format!(
        "cost: {} fuel, {:.2} ms, {} KiB of memory\n",
        report.fuel,
        report.elapsed.as_secs_f64() * 1e3,
        report.memory_bytes_max / 1024
    );
    text
}

fn lines(value: &Value) -> String {
    let show = |value: &Value| match value {
        Value::String(text) => text.replace('\n', "\n    "),
        other => other.to_string(),
    };
    match value {
        Value::Array(items) => items.iter().map(|it| format!("  {}\n", show(it))).collect(),
        Value::Object(items) => items
            .iter()
            .map(|(key, it)| format!("  {key}: {}\n", show(it)))
            .collect(),
        other => format!("  {}\n", show(other)),
    }
}
