//! `wasi: Inert`: a runtime finds a clock that stands and random numbers that are the same for the same question, and nothing
//! else.

use crate::guest::{ENGINE, Guest, PREFER_FAMILY, question};
use crate::guests::for_wasi;
use kerf_policy::{
    CallLimits, CallReport, Hook, LoadError, Policy, PolicySpec, Registry, Selection, Wasi,
};

const WIT: &str = r#"
package test:inert;

world more {
    include kerf:policy/selection-plugin@0.1.0;
    import wasi:clocks/wall-clock@0.2.6;
    import wasi:clocks/monotonic-clock@0.2.6;
    import wasi:random/random@0.2.6;
    import wasi:cli/environment@0.2.6;
    import wasi:cli/stderr@0.2.6;
    import wasi:filesystem/preopens@0.2.6;
    import wasi:sockets/instance-network@0.2.6;
}

package wasi:clocks@0.2.6 {
    interface wall-clock {
        record datetime { seconds: u64, nanoseconds: u32 }
        now: func() -> datetime;
    }
    interface monotonic-clock {
        use wasi:io/poll@0.2.6.{pollable};
        now: func() -> u64;
        subscribe-duration: func(when: u64) -> pollable;
    }
}

package wasi:io@0.2.6 {
    interface error { resource error; }
    interface poll {
        resource pollable { block: func(); }
    }
    interface streams {
        use error.{error};
        variant stream-error { last-operation-failed(error), closed }
        resource output-stream {
            blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>;
        }
    }
}

package wasi:random@0.2.6 {
    interface random { get-random-u64: func() -> u64; }
}

package wasi:cli@0.2.6 {
    interface environment { get-environment: func() -> list<tuple<string, string>>; }
    interface stderr {
        use wasi:io/streams@0.2.6.{output-stream};
        get-stderr: func() -> output-stream;
    }
}

package wasi:filesystem@0.2.6 {
    interface types { resource descriptor; }
    interface preopens {
        use types.{descriptor};
        get-directories: func() -> list<tuple<descriptor, string>>;
    }
}

package wasi:sockets@0.2.6 {
    interface network { resource network; }
    interface instance-network {
        use network.{network};
        instance-network: func() -> network;
    }
}
"#;

const IMPORTS: &str = r#"
    (import "wasi:clocks/wall-clock@0.2.6" "now" (func $wall (param i32)))
    (import "wasi:clocks/monotonic-clock@0.2.6" "now" (func $mono (result i64)))
    (import "wasi:clocks/monotonic-clock@0.2.6" "subscribe-duration" (func $wait (param i64) (result i32)))
    (import "wasi:io/poll@0.2.6" "[method]pollable.block" (func $block (param i32)))
    (import "wasi:random/random@0.2.6" "get-random-u64" (func $random (result i64)))
    (import "wasi:cli/environment@0.2.6" "get-environment" (func $environment (param i32)))
    (import "wasi:cli/stderr@0.2.6" "get-stderr" (func $stderr (result i32)))
    (import "wasi:io/streams@0.2.6" "[method]output-stream.blocking-write-and-flush"
        (func $write (param i32 i32 i32 i32)))
    (import "wasi:filesystem/preopens@0.2.6" "get-directories" (func $folders (param i32)))
    (import "wasi:sockets/instance-network@0.2.6" "instance-network" (func $network (result i32)))
"#;

/// Ranks the first candidate by a random number, and the second by the number at `$seen`.
const ANSWER: &str = r#"
    (i32.store (i32.const 1044) (i32.wrap_i64 (call $random)))
    (i32.store (i32.const 1028) (i32.const 1040))
    (i32.store (i32.const 1032) (i32.const 2))
    (i32.store (i32.const 1048) (i32.const 1))
    (i32.const 1024)"#;

fn guest(select: &str) -> Vec<u8> {
    let select = format!("{select}{ANSWER}");
    Guest {
        select: &select,
        imports: IMPORTS,
        wit: Some(WIT),
        data: r#"(data (i32.const 1200) "last words\n")"#,
        ..Guest::default()
    }
    .component()
}

fn ask_at(select: &str, config: &str, unix_secs: u32) -> CallReport<Selection> {
    let bytes = guest(select);
    let hook = Hook::InstanceSelection;
    let policy = Policy::load_with(&ENGINE, &bytes, hook, None, Wasi::Inert).unwrap();
    let mut input = question(&[("ecs.g7.large", "amd64", 1), ("ecs.c7.large", "amd64", 1)]);
    input.context.as_of_unix_s = unix_secs;
    policy.select(config, &CallLimits::default(), &input)
}

fn scores(select: &str, config: &str) -> Vec<Option<i32>> {
    ask_at(select, config, 0).result.unwrap().scores
}

#[test]
fn equal_questions_have_equal_random_numbers_and_other_questions_do_not() {
    let one = scores("", "{}");

    assert_eq!(one, scores("", "{}"));
    assert_ne!(one, scores("", r#"{"other": 1}"#));
}

#[test]
fn the_clock_stands_at_the_time_of_the_question() {
    let seconds =
        "(call $wall (i32.const 1104)) (i32.store (i32.const 1052) (i32.load (i32.const 1104)))";

    let scores = ask_at(seconds, "{}", 1_800_000_000).result.unwrap().scores;

    assert_eq!(scores[1], Some(1_800_000_000));
}

#[test]
fn waiting_is_over_at_once_and_moves_the_clock() {
    let wait = "(call $block (call $wait (i64.const 5000000000)))
        (call $wall (i32.const 1104)) (i32.store (i32.const 1052) (i32.load (i32.const 1104)))";
    let report = ask_at(wait, "{}", 0);

    assert_eq!(report.result.unwrap().scores[1], Some(5));
    assert!(report.elapsed < CallLimits::default().timeout);
}

#[test]
fn there_is_no_environment_and_no_folder() {
    let count = "(call $environment (i32.const 1104)) (call $folders (i32.const 1112))
        (i32.store (i32.const 1052)
            (i32.add (i32.load (i32.const 1108)) (i32.load (i32.const 1116))))";

    assert_eq!(scores(count, "{}")[1], Some(0));
}

#[test]
fn what_is_written_to_standard_error_is_in_the_log() {
    let write = "(call $write (call $stderr) (i32.const 1200) (i32.const 11) (i32.const 1104))";

    let log = ask_at(write, "{}", 0).log;

    assert_eq!(log.len(), 1);
    assert_eq!(log[0].text, "last words");
}

#[test]
fn a_call_for_the_network_ends_the_call_and_says_which() {
    let error = ask_at("(drop (call $network))", "{}", 0)
        .result
        .unwrap_err();

    assert_eq!(error.class(), "trap");
    let message = error.to_string();
    assert!(
        message.contains("wasi:sockets/instance-network@0.2.6#instance-network"),
        "{message}"
    );
}

#[test]
fn without_it_the_same_component_is_refused_and_told_of_it() {
    // The trial call has no candidates to rank.
    let bytes = Guest {
        imports: IMPORTS,
        wit: Some(WIT),
        ..Guest::default()
    }
    .component();
    let registry = Registry::new(ENGINE.clone());
    let spec = |wasi| PolicySpec {
        wasi,
        ..PolicySpec::new("clocked", Hook::InstanceSelection)
    };

    let error = registry
        .update("default", spec(Wasi::None), &bytes)
        .unwrap_err();

    assert!(matches!(error, LoadError::ForbiddenImports { .. }));
    assert!(
        error.to_string().contains("spec.policies[].wasi to Inert"),
        "{error}"
    );
    registry
        .update("default", spec(Wasi::Inert), &bytes)
        .unwrap();
}

#[test]
fn a_rust_policy_that_was_built_for_wasip2_answers_as_the_one_without_wasi() {
    let (plain, with_wasi) = (PREFER_FAMILY, for_wasi());
    let hook = Hook::InstanceSelection;
    let refused = Policy::load(&ENGINE, &with_wasi, hook, None);
    assert!(
        matches!(refused, Err(LoadError::ForbiddenImports { .. })),
        "{refused:?}"
    );
    let ask = |bytes: &[u8], wasi| {
        let policy = Policy::load_with(&ENGINE, bytes, hook, None, wasi).unwrap();
        let input = question(&[("ecs.g7.large", "amd64", 1), ("ecs.c7.large", "amd64", 1)]);
        let config = r#"{"weights": {"ecs.c7": 7}, "exclude": ["ecs.g7"]}"#;
        let report = policy.select(config, &CallLimits::default(), &input);
        report.result.unwrap()
    };

    assert_eq!(ask(&with_wasi, Wasi::Inert), ask(plain, Wasi::None));
}
