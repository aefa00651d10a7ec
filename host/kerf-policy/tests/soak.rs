//! Level: the host in a process of its own. 1,000 swaps of components under load: no call fails, and memory stays flat.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests: clippy's own exception covers test functions only"
)]

#[path = "it/guest.rs"]
#[allow(dead_code, reason = "what the other binary needs of it")]
mod guest;

use guest::{ENGINE, Guest, question};
use kerf_policy::{CallLimits, FailurePolicy, Hook, Now, PolicySpec, Registry};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

const CLASS: &str = "default";
const SWAPS: u32 = 1_000;
/// Before memory counts: allocators and code caches fill up first.
const WARM_UP: u32 = 200;
/// One component leaks 100 KiB of code or more, so 800 of them would be 80 MiB.
const GROWTH_MAX_KIB: u64 = 24 << 10;

fn resident_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|it| it.split_whitespace().next());
    kib.unwrap().parse().unwrap()
}

#[test]
fn a_thousand_swaps_under_load_lose_no_call_and_keep_no_memory() {
    let registry = Registry::new(ENGINE.clone());
    let versions: Vec<Vec<u8>> = (0..7)
        .map(|version| {
            let data = format!(r#"(data (i32.const 2048) "version {version}")"#);
            let guest = Guest {
                data: &data,
                ..Guest::default()
            };
            guest.component()
        })
        .collect();
    // A call that fails stops the decision, and so is seen.
    let spec = || PolicySpec {
        failure_policy: FailurePolicy::Fail,
        limits: CallLimits::MAX,
        ..PolicySpec::new("policy", Hook::InstanceSelection)
    };
    registry.update(CLASS, spec(), &versions[0]).unwrap();
    let (is_done, stalls) = (AtomicBool::new(false), AtomicU64::new(0));
    let (calls, price) = (AtomicU64::new(0), AtomicU32::new(1));

    let (before, after) = std::thread::scope(|scope| {
        let reader = || {
            while !is_done.load(Ordering::Relaxed) {
                // Each question is new, so that no answer comes from memory.
                let price = price.fetch_add(1, Ordering::Relaxed);
                let input = question(&[("ecs.g7.large", "amd64", price)]);
                let now = Now {
                    instant: Instant::now(),
                    unix_secs: 0,
                };
                match registry.chain(CLASS).select(&input, now) {
                    Ok(_) => calls.fetch_add(1, Ordering::Relaxed),
                    // A machine that stands still for half a second is none of the swap's doing.
                    Err(error) if error.class == "timeout" => {
                        stalls.fetch_add(1, Ordering::Relaxed)
                    }
                    Err(error) => panic!("{error}"),
                };
            }
        };
        scope.spawn(reader);
        scope.spawn(reader);
        let mut before = 0;
        for swap in 0..SWAPS {
            if swap == WARM_UP {
                before = resident_kib();
            }
            let version = &versions[usize::try_from(swap + 1).unwrap() % versions.len()];
            let loaded = registry.update(CLASS, spec(), version).unwrap();
            assert!(loaded.is_new, "swap {swap}");
        }
        let after = resident_kib();
        is_done.store(true, Ordering::Relaxed);
        (before, after)
    });

    let calls = calls.load(Ordering::Relaxed);
    println!("{SWAPS} swaps, {calls} calls, {before} KiB after {WARM_UP}, {after} KiB at the end");
    let stalls = stalls.load(Ordering::Relaxed);
    assert!(stalls * 1_000 < calls, "{stalls} of {calls} calls stalled");
    assert!(calls > u64::from(SWAPS), "there was load: {calls}");
    assert!(
        after < before + GROWTH_MAX_KIB,
        "{before} KiB after {WARM_UP} swaps, {after} KiB after {SWAPS}"
    );
}
