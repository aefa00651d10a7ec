//! The example policies do what their READMEs say, through the real host.

use crate::guest::{CHEAPEST_ARM, ENGINE, FAMILY_DISCOUNT, NODE_TUNING, PREFER_FAMILY, question};
use expect_test::expect;
use kerf_policy::{CallLimits, Hook, Policy, PolicyDigest, SelectionInput};

fn load(bytes: &[u8]) -> Policy {
    Policy::load(&ENGINE, bytes, Hook::InstanceSelection, None).unwrap()
}

/// The order in which the policy puts the types, and what it excludes.
fn order(policy: &Policy, config: &str, input: &SelectionInput) -> (Vec<String>, Vec<String>) {
    let selection = policy
        .select(config, &CallLimits::default(), input)
        .result
        .unwrap();
    let name = |i: usize| input.candidates[i].instance_type.clone();
    let excluded = selection
        .exclusions
        .iter()
        .map(|it| format!("{}: {}", name(it.candidate), it.reason));
    (
        selection.order().into_iter().map(name).collect(),
        excluded.collect(),
    )
}

fn types() -> SelectionInput {
    question(&[
        ("ecs.t6.large", "amd64", 10),
        ("ecs.c8y.large", "arm64", 22),
        ("ecs.c7.large", "amd64", 30),
        ("ecs.g7.large", "amd64", 40),
        ("ecs.g7.xlarge", "amd64", 80),
    ])
}

#[test]
fn preferred_families_come_first_and_excluded_ones_not_at_all() {
    let policy = load(PREFER_FAMILY);
    let config = r#"{"weights":{"ecs.g7":100,"ecs.c7":50},"exclude":["ecs.t6"]}"#;

    let (order, excluded) = order(&policy, config, &types());

    assert_eq!(
        order,
        [
            "ecs.g7.large",
            "ecs.g7.xlarge",
            "ecs.c7.large",
            "ecs.c8y.large"
        ]
    );
    assert_eq!(excluded, ["ecs.t6.large: family ecs.t6 is excluded"]);
}

#[test]
fn arm_comes_first_while_it_is_cheap_enough() {
    let policy = load(CHEAPEST_ARM);
    let first = |config: &str| order(&policy, config, &types()).0.swap_remove(0);

    assert_eq!(first(r#"{"maxPremiumPercent":120}"#), "ecs.c8y.large");
    assert_eq!(first(r#"{"maxPremiumPercent":119}"#), "ecs.t6.large");
}

#[test]
fn a_policy_describes_itself() {
    let policy = load(PREFER_FAMILY);
    let metadata = policy.metadata();

    assert_eq!(
        (metadata.name.as_str(), metadata.version.as_str()),
        ("prefer-family", "0.1.0")
    );
    assert_eq!(
        metadata.default_config,
        serde_json::json!({"weights": {}, "exclude": []})
    );
    assert!(metadata.config_schema.as_ref().unwrap()["properties"]["weights"].is_object());
}

#[test]
fn a_policy_says_what_is_wrong_with_a_configuration() {
    let policy = load(PREFER_FAMILY);
    let errors = |config: &str| {
        let errors = policy
            .validate_config(config, &CallLimits::default())
            .unwrap();
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };

    assert!(errors("{}").is_empty());
    expect![[r#"
        [
            "/wieghts: is not a key of this policy; it knows weights, exclude",
        ]
    "#]]
    .assert_debug_eq(&errors(r#"{"wieghts":{}}"#));
    expect![[r#"
        [
            "config: \"g7\" is not a family; write it as ecs.g7",
        ]
    "#]]
    .assert_debug_eq(&errors(r#"{"weights":{"g7":1}}"#));
    expect![[r#"
        [
            "/weights/ecs.g7: is excluded too; remove it from one of the two",
        ]
    "#]]
    .assert_debug_eq(&errors(r#"{"weights":{"ecs.g7":1},"exclude":["ecs.g7"]}"#));
    expect![[r#"
        [
            "config: is 300000 bytes long and the limit is 262144",
        ]
    "#]]
    .assert_debug_eq(&errors(&" ".repeat(300_000)));
}

#[test]
fn equal_questions_have_equal_answers() {
    let policy = load(PREFER_FAMILY);
    let ask = || {
        policy.select(
            r#"{"weights":{"ecs.g7":1}}"#,
            &CallLimits::default(),
            &types(),
        )
    };
    let (one, two) = (ask(), ask());

    assert_eq!(one.result, two.result);
    assert_eq!(
        one.fuel, two.fuel,
        "fuel is what makes limits equal on every machine"
    );
}

#[test]
fn committed_components_are_those_that_their_digests_name() {
    for (name, bytes) in [
        ("prefer-family.wasm", PREFER_FAMILY),
        ("cheapest-arm.wasm", CHEAPEST_ARM),
        ("family-discount.wasm", FAMILY_DISCOUNT),
        ("node-tuning.wasm", NODE_TUNING),
    ] {
        let line = format!("{} {name}", PolicyDigest::of(bytes));

        assert!(
            include_str!("../fixtures/DIGESTS")
                .lines()
                .any(|it| it == line),
            "not in DIGESTS: {line}"
        );
    }
}
