//! `kerf plugin test`: the cases of tests/, and what every policy has to stand: the same question twice, and hostile input.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use kerf_policy::{CallLimits, Engine, Policy};
use serde_json::{Value, json};

use crate::plugin::Outcome;
use crate::plugin::args::Test;
use crate::plugin::case::Case;
use crate::plugin::component::Component;
use crate::plugin::question::Question;

/// What each case cost when it was written down.
const LOCK: &str = "fuel.lock";
/// A case may cost this much more, in percent, before it counts as a mistake.
const MORE_PERCENT_MAX: u64 = 10;

/// What became of one case.
struct Row {
    name: String,
    /// What is wrong; none when it passed.
    problem: Option<String>,
    fuel: u64,
}

pub(super) fn run(args: &Test) -> Result<Outcome> {
    let component = Component::read(&args.one)?;
    let hook = component.hook(None)?;
    let policy = component.load(&Engine::new()?, hook)?;
    let folder = folder(args);
    let lock_path = folder.join(LOCK);
    let lock = read_lock(&lock_path)?;
    let mut rows = Vec::new();
    for case in Case::read_all(&folder)? {
        rows.push(judge(&policy, &case, &lock)?);
    }
    let config = policy.metadata().default_config.to_string();
    for (name, question) in Question::hostile(hook) {
        rows.push(twice(
            &policy,
            &format!("stands {name}"),
            &config,
            &question,
            None,
        ));
    }
    if args.lock_fuel {
        let costs: BTreeMap<&str, u64> = rows.iter().map(|row| (&*row.name, row.fuel)).collect();
        let text = serde_json::to_string_pretty(&costs)?;
        std::fs::write(&lock_path, text + "\n")
            .with_context(|| format!("cannot write {}", lock_path.display()))?;
    }
    let failed = rows.iter().filter(|row| row.problem.is_some()).count();
    let mut text = String::new();
    for row in &rows {
        let state = if row.problem.is_none() {
            "ok  "
        } else {
            "FAIL"
        };
        text += &format!("{state} {} ({} fuel)\n", row.name, row.fuel);
        if let Some(problem) = &row.problem {
            text += &format!("     {}\n", problem.replace('\n', "\n     "));
        }
    }
    text += &format!("{} passed, {failed} failed\n", rows.len() - failed);
    let cases: Vec<Value> = rows
        .iter()
        .map(|row| json!({"name": row.name, "problem": row.problem, "fuel": row.fuel}))
        .collect();
    Ok(Outcome {
        text,
        json: json!({"cases": cases, "failed": failed}),
        is_good: failed == 0,
    })
}

fn judge(policy: &Policy, case: &Case, lock: &BTreeMap<String, u64>) -> Result<Row> {
    let config = case.config.to_string();
    let errors = policy.validate_config(&config, &CallLimits::default());
    let errors: Vec<String> = match errors {
        Ok(errors) => errors.iter().map(ToString::to_string).collect(),
        Err(error) => vec![format!("its validate-config function {error}")],
    };
    let wanted = case.errors.clone().unwrap_or_default();
    if errors != wanted {
        return Ok(Row {
            name: case.name.clone(),
            problem: Some(format!(
                "it says of the configuration: {errors:?}\nwanted: {wanted:?}"
            )),
            fuel: 0,
        });
    }
    if case.errors.is_some() && case.answer.is_none() {
        return Ok(Row {
            name: case.name.clone(),
            problem: None,
            fuel: 0,
        });
    }
    let question = case.question(policy.hook())?;
    let mut row = twice(policy, &case.name, &config, &question, case.answer.as_ref());
    let before = lock.get(&case.name).copied().unwrap_or(u64::MAX);
    if row.problem.is_none() && row.fuel > before.saturating_add(before / 100 * MORE_PERCENT_MAX) {
        row.problem = Some(format!(
            "it cost {before} fuel when {LOCK} was written: make it cheaper, or run with --lock-fuel"
        ));
    }
    Ok(row)
}

fn twice(
    policy: &Policy,
    name: &str,
    config: &str,
    question: &Question,
    wanted: Option<&Value>,
) -> Row {
    let limits = CallLimits::default();
    let (one, two) = (
        question.ask(policy, config, &limits),
        question.ask(policy, config, &limits),
    );
    let problem = match (&one.result, wanted) {
        (Err(error), _) => Some(format!("no answer: it {error}")),
        (Ok(answer), Some(wanted)) if answer != wanted => {
            Some(format!("answer: {answer}\nwanted: {wanted}"))
        }
        (Ok(_), _) if one.result != two.result => Some(
            "the same question had two answers: a policy has no memory and no chance".to_owned(),
        ),
        (Ok(_), _) => None,
    };
    Row {
        name: name.to_owned(),
        problem,
        fuel: one.fuel,
    }
}

/// tests/ in the folder of the policy, wherever its component lies.
fn folder(args: &Test) -> PathBuf {
    if let Some(folder) = &args.cases {
        return folder.clone();
    }
    let component = &args.one.component;
    let own = if component.is_dir() {
        component.as_path()
    } else {
        component.parent().unwrap_or(Path::new("."))
    };
    own.join("tests")
}

fn read_lock(path: &Path) -> Result<BTreeMap<String, u64>> {
    match std::fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).with_context(|| {
            format!(
                "{} cannot be read: write it anew with --lock-fuel",
                path.display()
            )
        }),
        Err(_) => Ok(BTreeMap::new()),
    }
}
