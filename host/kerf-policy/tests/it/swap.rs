//! From one version to the next: nothing is lost, and a bad version changes nothing.

use crate::guest::{CHEAPEST_ARM, ENGINE, Guest, PREFER_FAMILY, question};
use kerf_policy::{
    CircuitState, FailurePolicy, Hook, Mode, Now, PolicyDigest, PolicySpec, PolicyState, Registry,
    RunResult, SelectionInput, Verdict,
};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const CLASS: &str = "default";

fn registry() -> Registry {
    Registry::new(ENGINE.clone())
}

fn now() -> Now {
    Now {
        instant: Instant::now(),
        unix_secs: 1_800_000_000,
    }
}

fn spec(name: &str) -> PolicySpec {
    PolicySpec::new(name, Hook::InstanceSelection)
}

fn prefers(family: &str) -> PolicySpec {
    PolicySpec {
        config: Some(json!({"weights": {family: 100}})),
        ..spec("family")
    }
}

fn types() -> SelectionInput {
    question(&[
        ("ecs.c7.large", "amd64", 30),
        ("ecs.g7.large", "amd64", 40),
        ("ecs.c8y.large", "arm64", 50),
    ])
}

fn best(verdict: &Verdict) -> Option<usize> {
    let scored = verdict
        .scores
        .iter()
        .enumerate()
        .filter_map(|(i, score)| Some(((*score)?, i)));
    scored.max().map(|(_, i)| i)
}

fn ask(registry: &Registry) -> Verdict {
    registry.chain(CLASS).select(&types(), now()).unwrap()
}

#[test]
fn a_new_configuration_changes_the_next_decision() {
    let registry = registry();
    registry
        .update(CLASS, prefers("ecs.g7"), PREFER_FAMILY)
        .unwrap();
    assert_eq!(best(&ask(&registry)), Some(1));

    registry
        .update(CLASS, prefers("ecs.c8y"), PREFER_FAMILY)
        .unwrap();

    assert_eq!(best(&ask(&registry)), Some(2));
}

#[test]
fn a_new_component_changes_the_next_decision() {
    let registry = registry();
    let policy = |config| PolicySpec {
        config: Some(config),
        ..spec("policy")
    };
    registry
        .update(
            CLASS,
            policy(json!({"weights": {"ecs.g7": 1}})),
            PREFER_FAMILY,
        )
        .unwrap();
    assert_eq!(best(&ask(&registry)), Some(1));

    let loaded = registry
        .update(
            CLASS,
            policy(json!({"maxPremiumPercent": 100})),
            CHEAPEST_ARM,
        )
        .unwrap();

    assert_eq!(best(&ask(&registry)), Some(2));
    assert_eq!(loaded.digest, PolicyDigest::of(CHEAPEST_ARM));
    assert!(loaded.is_new);
}

#[test]
fn the_same_again_is_no_swap() {
    let registry = registry();
    registry
        .update(CLASS, prefers("ecs.g7"), PREFER_FAMILY)
        .unwrap();
    ask(&registry);

    let again = registry
        .update(CLASS, prefers("ecs.g7"), PREFER_FAMILY)
        .unwrap();

    assert!(!again.is_new);
    assert_eq!(
        registry.statuses(CLASS, Instant::now())[0].counts.calls,
        1,
        "its record goes on"
    );
}

#[test]
fn a_bad_version_leaves_the_old_one_serving() {
    let registry = registry();
    registry
        .update(CLASS, prefers("ecs.g7"), PREFER_FAMILY)
        .unwrap();
    let traps = Guest {
        select: "unreachable",
        ..Guest::default()
    }
    .component();
    for bytes in [&b"not wasm"[..], &PREFER_FAMILY[..1000], &traps] {
        let error = registry
            .update(CLASS, prefers("ecs.g7"), bytes)
            .unwrap_err();

        assert_eq!(best(&ask(&registry)), Some(1), "after {error}");
        let status = &registry.statuses(CLASS, Instant::now())[0];
        assert_eq!(status.state, PolicyState::Stale);
        assert_eq!(status.digest, Some(PolicyDigest::of(PREFER_FAMILY)));
        assert_eq!(status.last_error.as_ref(), Some(&error.to_string()));
    }
}

#[test]
fn a_bad_configuration_leaves_the_old_one_in_force() {
    let registry = registry();
    registry
        .update(CLASS, prefers("ecs.g7"), PREFER_FAMILY)
        .unwrap();

    let error = registry
        .update(CLASS, prefers("g7"), PREFER_FAMILY)
        .unwrap_err()
        .to_string();

    assert!(error.contains("write it as ecs.g7"), "{error}");
    assert_eq!(best(&ask(&registry)), Some(1));
}

#[test]
fn a_source_that_cannot_be_had_leaves_the_old_version_serving() {
    let registry = registry();
    registry
        .update(CLASS, prefers("ecs.g7"), PREFER_FAMILY)
        .unwrap();

    registry.fail(
        CLASS,
        prefers("ecs.g7"),
        "ConfigMap kerf/family does not exist",
    );

    assert_eq!(best(&ask(&registry)), Some(1));
    let status = &registry.statuses(CLASS, Instant::now())[0];
    assert_eq!(
        status.last_error.as_deref(),
        Some("ConfigMap kerf/family does not exist")
    );
}

#[test]
fn a_policy_that_never_loaded_is_skipped_or_stops_the_decision() {
    let registry = registry();
    registry.fail(
        CLASS,
        spec("absent"),
        "ConfigMap kerf/absent does not exist",
    );
    let verdict = ask(&registry);
    assert_eq!(best(&verdict), None);
    assert!(matches!(
        &verdict.runs[0].result,
        RunResult::NotLoaded { .. }
    ));

    let fail = PolicySpec {
        failure_policy: FailurePolicy::Fail,
        ..spec("absent")
    };
    registry.fail(CLASS, fail, "ConfigMap kerf/absent does not exist");

    let error = registry.chain(CLASS).select(&types(), now()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "policy \"absent\" is not loaded: ConfigMap kerf/absent does not exist; nothing is launched because its \
         failurePolicy is Fail"
    );
}

/// Answers the trial call, which has the reason `test` and its pool `trial`, and crashes later.
fn crashes_in_production() -> Vec<u8> {
    // The length of the node pool's name is at 20: config, reason, node pool are three (pointer, length) pairs.
    let select = "(if (i32.ne (i32.const 5) (i32.load offset=20 (local.get 0))) (then unreachable)) (i32.const 128)";
    Guest {
        select,
        ..Guest::default()
    }
    .component()
}

#[test]
fn a_policy_that_always_crashes_is_left_alone_after_five_times() {
    let registry = registry();
    registry
        .update(CLASS, spec("crash"), &crashes_in_production())
        .unwrap();
    let start = now();
    for _ in 0..5 {
        let verdict = registry.chain(CLASS).select(&types(), start).unwrap();
        assert!(
            matches!(&verdict.runs[0].result, RunResult::Failed(_)),
            "{verdict:?}"
        );
    }

    let verdict = registry.chain(CLASS).select(&types(), start).unwrap();

    assert_eq!(verdict.runs[0].result, RunResult::CircuitOpen);
    let status = &registry.statuses(CLASS, start.instant)[0];
    assert_eq!(
        (
            status.circuit,
            status.counts.failures,
            status.counts.skipped
        ),
        (CircuitState::Open, 5, 1)
    );
    assert!(
        status.last_error.as_ref().unwrap().contains("crashed"),
        "{status:?}"
    );
    let later = Now {
        instant: start.instant + Duration::from_secs(1),
        ..start
    };
    let verdict = registry.chain(CLASS).select(&types(), later).unwrap();
    assert!(
        matches!(&verdict.runs[0].result, RunResult::Failed(_)),
        "it is tried again after a pause"
    );
}

#[test]
fn a_new_version_starts_with_a_closed_circuit() {
    let registry = registry();
    registry
        .update(CLASS, spec("family"), &crashes_in_production())
        .unwrap();
    let start = now();
    for _ in 0..6 {
        registry.chain(CLASS).select(&types(), start).unwrap();
    }

    registry
        .update(CLASS, prefers("ecs.g7"), PREFER_FAMILY)
        .unwrap();

    assert_eq!(
        best(&registry.chain(CLASS).select(&types(), start).unwrap()),
        Some(1)
    );
}

#[test]
fn monitor_counts_and_changes_nothing() {
    let registry = registry();
    registry
        .update(
            CLASS,
            PolicySpec {
                mode: Mode::Monitor,
                ..prefers("ecs.g7")
            },
            PREFER_FAMILY,
        )
        .unwrap();

    let verdict = ask(&registry);

    assert_eq!(best(&verdict), None);
    assert_eq!(
        verdict.runs[0].result,
        RunResult::Monitored { would_change: true }
    );
    assert_eq!(
        registry.statuses(CLASS, Instant::now())[0]
            .counts
            .would_change,
        1
    );
}

#[test]
fn a_canary_is_asked_for_its_pool_only() {
    let registry = registry();
    let canary = PolicySpec {
        node_pools: ["canary".to_owned()].into(),
        ..prefers("ecs.g7")
    };
    registry.update(CLASS, canary, PREFER_FAMILY).unwrap();

    assert!(ask(&registry).runs.is_empty());
    let mut input = types();
    input.context.node_pool = "canary".into();
    assert_eq!(
        best(&registry.chain(CLASS).select(&input, now()).unwrap()),
        Some(1)
    );
}

#[test]
fn each_policy_sees_what_the_earlier_ones_left() {
    let registry = registry();
    let exclude = PolicySpec {
        order: 1,
        config: Some(json!({"exclude": ["ecs.c7"]})),
        ..spec("exclude")
    };
    let arm = PolicySpec {
        order: 2,
        config: Some(json!({"maxPremiumPercent": 30})),
        ..spec("arm")
    };
    registry.update(CLASS, arm, CHEAPEST_ARM).unwrap();
    assert_eq!(best(&ask(&registry)), None, "50 is more than 30 % above 30");

    registry.update(CLASS, exclude, PREFER_FAMILY).unwrap();

    let verdict = ask(&registry);
    assert_eq!(
        best(&verdict),
        Some(2),
        "without c7 the cheapest other costs 40"
    );
    assert_eq!(
        (
            verdict.exclusions[0].0.as_str(),
            verdict.exclusions[0].1.candidate
        ),
        ("exclude", 0)
    );
}

#[test]
fn an_equal_question_is_answered_from_memory() {
    let registry = registry();
    registry
        .update(CLASS, prefers("ecs.g7"), PREFER_FAMILY)
        .unwrap();
    let first = ask(&registry);

    let second = ask(&registry);

    assert!(!first.runs[0].is_from_memo && second.runs[0].is_from_memo);
    assert_eq!(first.scores, second.scores);
    let counts = registry.statuses(CLASS, Instant::now())[0].counts;
    assert_eq!((counts.calls, counts.memo_hits), (1, 1));
}

#[test]
fn policies_that_left_the_nodeclass_are_forgotten() {
    let registry = registry();
    registry
        .update(CLASS, prefers("ecs.g7"), PREFER_FAMILY)
        .unwrap();
    registry.update(CLASS, spec("other"), CHEAPEST_ARM).unwrap();

    registry.retain(CLASS, &["other"]);

    let names: Vec<_> = registry
        .statuses(CLASS, Instant::now())
        .into_iter()
        .map(|it| it.name)
        .collect();
    assert_eq!(names, ["other"]);
}

#[test]
fn no_decision_fails_or_waits_while_versions_change() {
    let registry = registry();
    let fail = |family| PolicySpec {
        failure_policy: FailurePolicy::Fail,
        ..prefers(family)
    };
    registry
        .update(CLASS, fail("ecs.g7"), PREFER_FAMILY)
        .unwrap();
    let is_done = AtomicBool::new(false);

    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = [0_u32; 3];
            while !is_done.load(Ordering::Relaxed) {
                seen[best(&ask(&registry)).unwrap()] += 1;
            }
            seen
        });
        for i in 0..200 {
            registry
                .update(CLASS, fail(["ecs.c7", "ecs.g7"][i % 2]), PREFER_FAMILY)
                .unwrap();
        }
        is_done.store(true, Ordering::Relaxed);

        let seen = reader.join().unwrap();
        assert!(seen[0] > 0 && seen[1] > 0 && seen[2] == 0, "{seen:?}");
    });
}

#[test]
fn a_refused_version_is_not_tried_again_until_something_changes() {
    let registry = registry();
    let bad = Guest {
        select: "unreachable",
        ..Guest::default()
    }
    .component();
    let first = registry.update(CLASS, spec("policy"), &bad).unwrap_err();
    let started = Instant::now();
    for _ in 0..1000 {
        assert_eq!(
            registry.update(CLASS, spec("policy"), &bad),
            Err(first.clone())
        );
    }
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "it compiles each time"
    );

    let monitor = PolicySpec {
        mode: Mode::Monitor,
        failure_policy: FailurePolicy::Fail,
        ..spec("policy")
    };
    registry.update(CLASS, monitor, &bad).unwrap_err();

    assert!(
        registry.chain(CLASS).select(&types(), now()).is_ok(),
        "what concerns only the host is in force"
    );
    registry
        .update(CLASS, prefers("ecs.g7"), PREFER_FAMILY)
        .unwrap();
}
