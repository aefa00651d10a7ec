//! Policies that load and then never answer, on the real control plane: what their failure policy makes of them.

use std::time::Duration;

use kerf_api::condition::{Condition, ConditionStatus};
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::nodeclaim::NodeClaim;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::events::note;
use crate::policies::{MANIFESTS, put_config_map, until_policy};
use crate::stage::{Stage, root};

/// Instructions for `select`, where the pool is not the one of the trial call.
fn component(in_production: &str) -> Vec<u8> {
    // The length of the pool's name lies at 20; `trial` has 5 letters.
    let select = format!(
        "(if (i32.ne (i32.const 5) (i32.load offset=20 (local.get 0))) (then {in_production})) (i32.const 128)"
    );
    let holes = [
        ("{imports}", ""),
        ("{data}", ""),
        ("{describe}", "(i32.const 16)"),
        ("{validate}", "(i32.const 160)"),
        ("{select}", &select),
    ];
    let guest = include_str!("../../host/kerf-policy/tests/guest.wat");
    let (_, text) = guest.split_once("\n(module").expect("its head");
    let text = holes
        .iter()
        .fold(format!("(module{text}"), |text, (hole, body)| {
            text.replace(hole, body)
        });
    let mut module = wat::parse_str(text).expect("the text of the guest");
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(root().join("wit")).expect("wit/");
    let world = resolve
        .select_world(&[package], Some("selection-plugin"))
        .expect("the world");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("embed");
    let encoder = ComponentEncoder::default()
        .module(&module)
        .expect("a module");
    encoder.validate(true).encode().expect("a component")
}

fn manifests(failure_policy: &str, more: &str) -> String {
    let entry = "      config: {weights: {ecs.g8i: 100}}";
    assert!(MANIFESTS.contains(entry));
    let changed = format!("      failurePolicy: {failure_policy}\n{more}");
    MANIFESTS.replace(entry, &changed)
}

fn policies_ready(stage: &Stage, is_meant: impl Fn(&Condition) -> bool) -> Condition {
    stage.until("PoliciesReady says how the policy fares", || async {
        let classes: Vec<EcsNodeClass> = stage.list_async().await;
        let conditions = classes.into_iter().next()?.status?.conditions;
        conditions
            .into_iter()
            .find(|it| it.type_ == "PoliciesReady" && is_meant(it))
    })
}

#[test]
fn a_policy_that_always_traps_stops_no_pod_under_ignore_and_every_one_under_fail() {
    let mut stage = Stage::set();
    stage.apply(&manifests("Ignore", ""));
    put_config_map(&stage, &component("unreachable"));
    stage.start_kerf(&[]);
    until_policy(&stage, "Ready", "");

    stage.apply(&crate::scenarios::deployment(
        "ignored", 1, "1100m", "1Gi", "",
    ));
    stage.until_bound(1);

    let condition = policies_ready(&stage, |it| it.status == ConditionStatus::False);
    assert_eq!(condition.reason, "PolicyCallFailed");
    println!("under Ignore: {}", condition.message);
    assert!(condition.message.contains("crashed"), "{condition:?}");
    assert!(
        condition.message.contains("goes on without it"),
        "{condition:?}"
    );
    let note = note(&stage, "ECSNodeClass", "default", "PolicyCallFailed");
    assert!(note.contains("policy family gave no answer"), "{note}");

    stage.apply(&manifests("Fail", ""));
    stage.apply(&crate::scenarios::deployment(
        "stopped", 1, "1200m", "1Gi", "",
    ));
    let condition = policies_ready(&stage, |it| it.message.contains("failurePolicy is Fail"));
    println!("under Fail: {}", condition.message);
    assert_eq!(condition.reason, "PolicyCallFailed");
    assert_eq!(stage.list::<NodeClaim>().len(), 1, "nothing is launched");

    // What stops the pods can be taken out, and they go on.
    stage.apply(&manifests("Ignore", ""));
    stage.until_bound(2);
}

#[test]
fn a_policy_that_never_ends_is_killed_in_time_and_pods_go_on() {
    let mut stage = Stage::set();
    let limits = "      limits: {timeout: 50ms, fuel: 2000000000}";
    stage.apply(&manifests("Ignore", limits));
    put_config_map(&stage, &component("(loop $l (br $l))"));
    stage.start_kerf(&[]);
    until_policy(&stage, "Ready", "");

    stage.apply(&crate::scenarios::deployment(
        "patient", 1, "1100m", "1Gi", "",
    ));
    stage.until_bound(1);

    let condition = policies_ready(&stage, |it| it.status == ConditionStatus::False);
    assert!(
        condition.message.contains("did not answer within 50 ms"),
        "{condition:?}"
    );
    let killed: Vec<Duration> = stage.log().lines().filter_map(killed_after).collect();
    println!("killed after {killed:?}");
    // A machine that others use too may stall one; a host that is always late has none in time.
    let limit = Duration::from_millis(60);
    assert!(killed.iter().any(|it| *it <= limit), "{killed:?}");
}

/// How long the call had run that a line of the log tells of.
fn killed_after(line: &str) -> Option<Duration> {
    let rest = line.split_once("policy call failed")?.1;
    let (_, rest) = rest.split_once("elapsed_ms=")?;
    let digits: String = rest
        .chars()
        .take_while(|it| it.is_ascii_digit() || *it == '.')
        .collect();
    Duration::try_from_secs_f64(digits.parse::<f64>().ok()? / 1e3).ok()
}
