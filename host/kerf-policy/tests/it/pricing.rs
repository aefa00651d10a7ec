//! The PricingPreference hook through the real host.

use crate::guest::{ENGINE, FAMILY_DISCOUNT, question};
use kerf_policy::{
    CallLimits, Chain, Hook, Now, Policy, PolicySpec, PriceVerdict, PricingContext, PricingInput,
    Registry,
};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

fn input() -> PricingInput {
    let question = question(&[
        ("ecs.c7.large", "amd64", 1_000),
        ("ecs.g7.large", "amd64", 2_000),
    ]);
    let context = PricingContext {
        node_class: "default".into(),
        region: "cn-hangzhou".into(),
        as_of_unix_s: 0,
        vocabulary: question.context.vocabulary,
    };
    PricingInput {
        context,
        candidates: question.candidates,
    }
}

fn chain(configs: &[serde_json::Value]) -> Arc<Chain> {
    let registry = Registry::new(ENGINE.clone());
    for (i, config) in configs.iter().enumerate() {
        let name = format!("discount-{i}");
        let spec = PolicySpec {
            config: Some(config.clone()),
            ..PolicySpec::new(&name, Hook::PricingPreference)
        };
        registry.update("default", spec, FAMILY_DISCOUNT).unwrap();
    }
    registry.chain("default")
}

fn adjust(configs: &[serde_json::Value]) -> PriceVerdict {
    let now = Now {
        instant: Instant::now(),
        unix_secs: 0,
    };
    chain(configs).adjust("default", &input(), now).unwrap()
}

#[test]
fn a_discount_changes_the_price_of_its_family_only() {
    let verdict = adjust(&[json!({"percentOff": {"ecs.g7": 60}})]);

    assert_eq!(verdict.prices_micros.len(), 4, "one per offering of g7");
    assert!(
        verdict
            .prices_micros
            .iter()
            .all(|(key, price)| key.0 == 1 && *price == 800)
    );
}

#[test]
fn later_policies_see_the_prices_of_earlier_ones() {
    let verdict = adjust(&[
        json!({"percentOff": {"ecs.g7": 50}}),
        json!({"percentOff": {"ecs.g7": 50}}),
    ]);

    assert_eq!(verdict.prices_micros[&(1, 0)], 500);
}

#[test]
fn equal_questions_of_two_pools_are_asked_once() {
    let chain = chain(&[json!({"percentOff": {"ecs.g7": 60}})]);
    let now = Now {
        instant: Instant::now(),
        unix_secs: 0,
    };
    let one = chain.adjust("one", &input(), now).unwrap();
    let two = chain.adjust("two", &input(), now).unwrap();

    assert_eq!(one.prices_micros, two.prices_micros);
    assert!(!one.runs[0].is_from_memo && two.runs[0].is_from_memo);
}

#[test]
fn absurd_prices_are_kept_within_a_factor_of_the_list_price() {
    let policy = Policy::load(&ENGINE, FAMILY_DISCOUNT, Hook::PricingPreference, None).unwrap();

    // Past the schema, as a policy that computes nonsense would.
    let prices = |percent: i32| {
        let config = json!({"percentOff": {"ecs.g7": percent}}).to_string();
        let answer = policy
            .adjust(&config, &CallLimits::default(), &input())
            .result
            .unwrap();
        answer.iter().map(|it| it.price_micros).collect::<Vec<_>>()
    };

    assert_eq!(prices(100), [20; 4]);
    assert_eq!(prices(-1_000_000), [200_000; 4]);
}
