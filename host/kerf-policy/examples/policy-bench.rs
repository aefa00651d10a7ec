//! Measures the policy host with a component: `cargo run --release -p kerf-policy --example policy-bench [-- --json]`.
//!
//! Each call has an instance of its own, as in the product, and the memo is not in the way.
#![allow(
    clippy::print_stdout,
    reason = "this program talks to a person at a terminal"
)]

use kerf_policy::{
    CallLimits, Candidate, Context, Demand, Engine, Hook, Offering, Policy, Resources,
    SelectionInput, Vocabulary,
};
use std::error::Error;
use std::time::{Duration, Instant};

const COMPONENT: &[u8] = include_bytes!("../tests/fixtures/prefer-family.wasm");
const CONFIG: &str = r#"{"weights":{"ecs.f3":7,"ecs.f5":9},"exclude":["ecs.f8"]}"#;
const CANDIDATES: [u16; 4] = [1, 100, 300, 1_000];
/// Zones × capacity types.
const OFFERINGS: u16 = 6;
const FAMILIES: u16 = 40;
const CALLS: usize = 1_000;

struct Row {
    candidates: u16,
    p50: Duration,
    p99: Duration,
    fuel: u64,
    memory_kib: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::new()?;
    let started = Instant::now();
    let policy = Policy::load(&engine, COMPONENT, Hook::InstanceSelection, None)?;
    let compile = started.elapsed();
    let rows = CANDIDATES
        .map(|candidates| measure(&policy, candidates))
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    if std::env::args().any(|arg| arg == "--json") {
        print_json(&rows, compile);
    } else {
        print_table(&rows, compile);
    }
    Ok(())
}

fn measure(policy: &Policy, candidates: u16) -> Result<Row, Box<dyn Error>> {
    let input = question(candidates);
    let limits = CallLimits {
        timeout: CallLimits::MAX.timeout,
        ..CallLimits::default()
    };
    let mut times = Vec::with_capacity(CALLS);
    let (mut fuel, mut memory_bytes) = (0, 0);
    for _ in 0..CALLS {
        let report = policy.select(CONFIG, &limits, &input);
        report.result?;
        times.push(report.elapsed);
        (fuel, memory_bytes) = (report.fuel, report.memory_bytes_max);
    }
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
    Ok(Row {
        candidates,
        p50: at(50),
        p99: at(99),
        fuel,
        memory_kib: memory_bytes / 1024,
    })
}

fn print_json(rows: &[Row], compile: Duration) {
    // The call with one candidate is all but the instance.
    let instantiate = rows.first().map_or(Duration::ZERO, |row| row.p50);
    let results: Vec<_> = rows
        .iter()
        .map(|row| {
            serde_json::json!({
                "language": "rust",
                "candidates": row.candidates,
                "p50Millis": row.p50.as_secs_f64() * 1e3,
                "p99Millis": row.p99.as_secs_f64() * 1e3,
                "instantiateMicros": instantiate.as_secs_f64() * 1e6,
                "compileMillis": compile.as_secs_f64() * 1e3,
                "peakMemoryKiB": row.memory_kib,
                "fuel": row.fuel,
            })
        })
        .collect();
    println!("{}", serde_json::json!({ "results": results }));
}

fn print_table(rows: &[Row], compile: Duration) {
    println!("load {compile:.1?} (check, compile, describe); {CALLS} calls each");
    println!(
        "{:>10} {:>10} {:>10} {:>12} {:>8}",
        "candidates", "p50", "p99", "fuel", "KiB"
    );
    for Row {
        candidates,
        p50,
        p99,
        fuel,
        memory_kib,
    } in rows
    {
        let (p50, p99) = (format!("{p50:.1?}"), format!("{p99:.1?}"));
        println!("{candidates:>10} {p50:>10} {p99:>10} {fuel:>12} {memory_kib:>8}");
    }
}

fn question(candidates: u16) -> SelectionInput {
    let resources = Resources {
        cpu_milli: 4_000,
        memory_mib: 16_384,
        ephemeral_mib: 40_960,
        pods: 64,
        gpus: 0,
    };
    let words = |count: u16, prefix: &str| (0..count).map(|i| format!("{prefix}{i}")).collect();
    let offering = |i: u16| Offering {
        zone: i / 2,
        capacity_type: i % 2,
        price_micros: 100_000 + u32::from(i),
        list_price_micros: 120_000,
        interruption_permille: Some(3),
        recent_failures: 0,
        reservation: None,
    };
    let candidate = |i: u16| Candidate {
        instance_type: format!("ecs.f{}.{i}xlarge", i % FAMILIES),
        family: i % FAMILIES,
        architecture: i % 2,
        generation: 7,
        capacity: resources,
        allocatable: resources,
        network_mbps: 10_000,
        local_disk_gib: 0,
        bare_metal: false,
        burstable: false,
        gpu_model: None,
        extended: vec![],
        offerings: (0..OFFERINGS).map(offering).collect(),
    };
    let context = Context {
        reason: "test".into(),
        node_pool: "default".into(),
        node_class: "default".into(),
        region: "cn-hangzhou".into(),
        as_of_unix_s: 0,
        vocabulary: Vocabulary {
            zones: words(OFFERINGS / 2, "cn-hangzhou-"),
            families: words(FAMILIES, "ecs.f"),
            architectures: words(2, "arch-"),
            capacity_types: words(2, "type-"),
        },
        demand: Demand {
            pods: 8,
            total: resources,
            largest_pod: resources,
            daemon_overhead: resources,
        },
        requirements: vec![],
        fleet: vec![],
        labels: vec![],
    };
    SelectionInput {
        context,
        candidates: (0..candidates).map(candidate).collect(),
    }
}
