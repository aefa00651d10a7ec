//! Policies that loop, hoard, crash, lie or talk too much: each ends in its own class, in time, and harms nobody.

use crate::guest::{Guest, question};
use expect_test::{Expect, expect};
use kerf_policy::{CallError, CallLimits, CallReport, Selection};
use std::time::Duration;

fn call(guest: &Guest<'_>, limits: &CallLimits) -> CallReport<Selection> {
    guest.load().select(
        "{}",
        limits,
        &question(&[("ecs.g7.large", "amd64", 1), ("ecs.c7.large", "amd64", 1)]),
    )
}

fn check(select: &str, class: &str, message: Expect) {
    check_guest(
        &Guest {
            select,
            ..Guest::default()
        },
        class,
        message,
    );
}

fn check_guest(guest: &Guest<'_>, class: &str, message: Expect) {
    // What is tested here must not depend on how busy the machine is.
    let limits = CallLimits {
        timeout: Duration::from_secs(60),
        ..CallLimits::default()
    };
    let error = call(guest, &limits).result.unwrap_err();

    assert_eq!(error.class(), class, "{error}");
    message.assert_eq(&error.to_string());
}

#[test]
fn no_opinion_is_fine() {
    let selection = call(&Guest::default(), &CallLimits::default())
        .result
        .unwrap();

    assert!(!selection.changes_anything());
    assert_eq!(selection.order(), [0, 1]);
}

#[test]
fn an_endless_loop_runs_out_of_fuel() {
    check(
        "(loop $l (br $l)) unreachable",
        "fuel",
        expect![
            "used up its 50400000 units of fuel; do less work per candidate or raise limits.fuel"
        ],
    );
}

#[test]
fn an_endless_loop_with_endless_fuel_is_killed_at_its_timeout() {
    let timeout = Duration::from_millis(50);
    let limits = CallLimits {
        timeout,
        fuel_base: u64::MAX / 2,
        ..CallLimits::default()
    };
    let guest = Guest {
        select: "(loop $l (br $l)) unreachable",
        ..Guest::default()
    };
    let policy = guest.load();
    let input = question(&[("ecs.g7.large", "amd64", 1)]);

    // Other processes may hold the core for longer than a tick, so one call in time is the proof; a host that is
    // always late has none.
    let is_in_time = (0..100).any(|_| {
        let report = policy.select("{}", &limits, &input);
        let error = report.result.unwrap_err();
        assert_eq!(error, CallError::Deadline { limit: timeout });
        expect!["did not answer within 50 ms; do less work or raise limits.timeout"]
            .assert_eq(&error.to_string());
        assert!(
            report.elapsed >= timeout,
            "killed too early: {:?}",
            report.elapsed
        );
        report.elapsed <= timeout + Duration::from_millis(10)
    });

    assert!(
        is_in_time,
        "always killed later than 10 ms after its timeout"
    );
}

#[test]
fn memory_without_end_is_refused() {
    // 64 MiB are 1,024 pages.
    check(
        "(drop (memory.grow (i32.const 2000))) unreachable",
        "memory",
        expect!["needed more than 65536 KiB of memory; use less or raise limits.memoryMib"],
    );
}

#[test]
fn growing_in_small_steps_meets_the_same_limit() {
    check(
        "(loop $l (br_if $l (i32.ne (i32.const -1) (memory.grow (i32.const 16))))) unreachable",
        "memory",
        expect!["needed more than 65536 KiB of memory; use less or raise limits.memoryMib"],
    );
}

#[test]
fn deep_recursion_ends_the_call_only() {
    check(
        "(call $select (local.get 0))",
        "trap",
        expect![
            "crashed: wasm trap: call stack exhausted (in select < select < select < select < select < select)"
        ],
    );
}

#[test]
fn a_crash_shows_what_the_guest_said_last() {
    let guest = Guest {
        select: "(call $emit (i32.const 4) (i32.const 1024) (i32.const 8) (i32.const 0) (i32.const 0)) unreachable",
        data: r#"(data (i32.const 1024) "no quota")"#,
        ..Guest::default()
    };
    check_guest(&guest, "trap", expect!["crashed: no quota (in select)"]);
}

#[test]
fn a_result_that_is_too_large_is_not_copied() {
    // One million entries of 8 bytes: 8 MB against the limit of 4.
    let guest = Guest {
        select: "(drop (memory.grow (i32.const 200))) (i32.const 1024)",
        data: r#"(data (i32.const 1028) "\00\10\00\00\40\42\0f\00")"#,
        ..Guest::default()
    };
    check_guest(
        &guest,
        "bad_output",
        expect!["returned more than 4194304 bytes; return fewer or shorter reasons"],
    );
}

#[test]
fn a_result_outside_of_its_memory() {
    let guest = Guest {
        select: "(i32.const 1024)",
        data: r#"(data (i32.const 1028) "\00\ff\ff\ff\01\00\00\00")"#,
        ..Guest::default()
    };
    check_guest(
        &guest,
        "bad_output",
        expect!["returned data that cannot be read: list pointer/length out of bounds of memory"],
    );
}

#[test]
fn a_candidate_that_does_not_exist() {
    // ranked = [{candidate: 2, score: 1}]
    check_guest(
        &ranked(r"\02\00\00\00\01\00\00\00", 1),
        "bad_output",
        expect!["returned candidate 2, but there are only 2; results are indexes into the input"],
    );
}

#[test]
fn a_candidate_that_is_ranked_twice() {
    check_guest(
        &ranked(r"\01\00\00\00\01\00\00\00\01\00\00\00\02\00\00\00", 2),
        "bad_output",
        expect!["returned candidate 1 twice; rank or exclude each one once"],
    );
}

#[test]
fn an_offering_that_does_not_exist() {
    // excluded = [{candidate: 0, offering: some(4), reason: ""}]
    let guest = Guest {
        select: "(i32.const 1024)",
        data: r#"(data (i32.const 1036) "\40\04\00\00\01\00\00\00")
                 (data (i32.const 1088) "\00\00\00\00\01\00\00\00\04\00\00\00")"#,
        ..Guest::default()
    };
    check_guest(
        &guest,
        "bad_output",
        expect!["returned offering 4, but there are only 4; results are indexes into the input"],
    );
}

fn ranked(entries: &'static str, count: u8) -> Guest<'static> {
    let data = format!(
        r#"(data (i32.const 1028) "\40\04\00\00\{count:02x}\00\00\00") (data (i32.const 1088) "{entries}")"#
    );
    Guest {
        select: "(i32.const 1024)",
        data: Box::leak(data.into_boxed_str()),
        ..Guest::default()
    }
}

#[test]
fn an_error_of_the_policy_itself() {
    // err(internal("no quota"))
    let guest = Guest {
        select: "(i32.const 1024)",
        data: r#"(data (i32.const 1024) "\01\00\00\00\02\00\00\00\40\04\00\00\08\00\00\00")
                 (data (i32.const 1088) "no quota")"#,
        ..Guest::default()
    };
    check_guest(&guest, "guest_error", expect!["reports an error: no quota"]);
}

#[test]
fn a_flood_of_log_lines_is_cut_and_counted() {
    let guest = Guest {
        select: "(local $i i32)
            (loop $l
                (call $emit (i32.const 2) (i32.const 512) (i32.const 12) (i32.const 0) (i32.const 0))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $l (i32.lt_u (local.get $i) (i32.const 1000))))
            (i32.const 128)",
        ..Guest::default()
    };

    let report = call(&guest, &CallLimits::default());

    assert!(report.result.is_ok());
    assert_eq!((report.log.len(), report.log_lines_dropped), (64, 936));
    assert_eq!(report.log[0].text, "hand-written");
}

#[test]
fn nothing_is_kept_from_one_call_to_the_next() {
    // Crashes when an earlier call of the same instance left a mark.
    let policy = Guest {
        select: "(if (i32.load (i32.const 2048)) (then unreachable)) (i32.store (i32.const 2048) (i32.const 1)) (i32.const 128)",
        ..Guest::default()
    }
    .load();
    let input = question(&[("ecs.g7.large", "amd64", 1)]);

    for _ in 0..3 {
        assert!(
            policy
                .select("{}", &CallLimits::default(), &input)
                .result
                .is_ok()
        );
    }
}

#[test]
fn more_candidates_than_there_are_types_are_not_asked_about() {
    let mut input = question(&[("ecs.g7.large", "amd64", 1)]);
    input.candidates = vec![input.candidates[0].clone(); 5_001];

    let error = Guest::default()
        .load()
        .select("{}", &CallLimits::default(), &input)
        .result
        .unwrap_err();

    assert_eq!(
        error,
        CallError::InputTooLarge {
            len: 5_001,
            max: 5_000
        }
    );
}
