//! `kerf plugin bench`: what calls cost by the number of candidates, and with -f what policies add to planning.

mod planning;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use kerf_policy::{CallLimits, Engine, Hook, Policy};
use serde_json::{Value, json};

use crate::plugin::Outcome;
use crate::plugin::args::Bench;
use crate::plugin::component::{Component, config};
use crate::plugin::question::{Question, Type};

/// Families of the catalog that is made up; Alibaba has some 100, and a pool lets some dozens through.
const FAMILIES: u16 = 40;
/// Calls before those that count: the first ones fault the code in.
const WARM_UP: usize = 20;
/// How often only an instance is made.
const INSTANCES: usize = 200;

struct Row {
    candidates: u16,
    p50: Duration,
    p99: Duration,
    fuel: u64,
    memory_kib: usize,
}

pub(super) fn run(args: &Bench) -> Result<Outcome> {
    if !args.files.is_empty() {
        return planning::run(args);
    }
    let component = Component::read(&args.what.one)?;
    let hook = component.hook(args.what.hook.map(Hook::from))?;
    let engine = Engine::new()?;
    let started = Instant::now();
    let policy = component.load(&engine, hook)?;
    let compile = started.elapsed();
    let config = config(&args.what)?
        .unwrap_or_else(|| policy.metadata().default_config.clone())
        .to_string();
    // What is measured is how long it takes, not whether a busy machine lets it finish.
    let limits = CallLimits {
        timeout: CallLimits::MAX.timeout,
        ..CallLimits::default()
    };
    let mut instances = Vec::new();
    for _ in 0..INSTANCES {
        let report = policy.instantiate(&limits);
        report.result?;
        instances.push(report.elapsed);
    }
    let instantiate = at(&mut instances, 50);
    let rows = args
        .candidates
        .iter()
        .map(|candidates| measure(&policy, &config, &limits, *candidates, args.calls))
        .collect::<Result<Vec<_>>>()?;
    let mut text = format!(
        "loaded in {:.1} ms (check, compile, describe), an instance takes {:.1} us\n{:>10} {:>10} {:>10} {:>12} {:>10}\n",
        millis(compile),
        micros(instantiate),
        "candidates",
        "p50 ms",
        "p99 ms",
        "fuel",
        "KiB"
    );
    for row in &rows {
        text += &format!(
            "{:>10} {:>10.3} {:>10.3} {:>12} {:>10}\n",
            row.candidates,
            millis(row.p50),
            millis(row.p99),
            row.fuel,
            row.memory_kib
        );
    }
    let results: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "candidates": row.candidates, "p50Millis": millis(row.p50), "p99Millis": millis(row.p99),
                "instantiateMicros": micros(instantiate), "compileMillis": millis(compile),
                "peakMemoryKiB": row.memory_kib, "fuel": row.fuel,
            })
        })
        .collect();
    Ok(Outcome {
        text,
        json: json!({"component": component.path.display().to_string(), "hook": hook, "calls": args.calls, "results": results}),
        is_good: true,
    })
}

fn measure(
    policy: &Policy,
    config: &str,
    limits: &CallLimits,
    candidates: u16,
    calls: usize,
) -> Result<Row> {
    let types: Vec<Type> = (0..candidates)
        .map(|i| {
            let architecture = if i % 2 == 0 { "amd64" } else { "arm64" };
            let name = format!("ecs.f{}.{i}xlarge", i % FAMILIES);
            (name, architecture.to_owned(), 100_000 + u32::from(i))
        })
        .collect();
    let question = Question::small(policy.hook(), &types);
    let mut times = Vec::with_capacity(calls);
    let (mut fuel, mut memory_kib) = (0, 0);
    for call in 0..WARM_UP + calls.max(1) {
        let report = question.ask(policy, config, limits);
        report
            .result
            .with_context(|| format!("with {candidates} candidates"))?;
        (fuel, memory_kib) = (report.fuel, report.memory_bytes_max / 1024);
        if call >= WARM_UP {
            times.push(report.elapsed);
        }
    }
    Ok(Row {
        candidates,
        p50: at(&mut times, 50),
        p99: at(&mut times, 99),
        fuel,
        memory_kib,
    })
}

/// The value below which this part of all are, in percent.
fn at(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    let index = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(index).copied().unwrap_or_default()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
