//! Our requirement algebra against what upstream Karpenter answers.
//!
//! The fixture is the first 500 cases of `upstream requirements --seed 1 --count 2000`.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use kerf_core::requirement::{Operator, Requirement};
use kerf_core::requirements::{Requirements, Undefined};
use serde_json::Value;

const VECTORS: &str = include_str!("fixtures/requirement-vectors.json");

fn texts(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .map(|text| text.as_str().unwrap())
        .collect()
}

fn expression(value: &Value) -> Requirement {
    let operator = Operator::parse(value["op"].as_str().unwrap()).unwrap();
    Requirement::parse(
        value["key"].as_str().unwrap(),
        operator,
        texts(&value["values"]),
    )
    .unwrap()
}

fn set(value: &Value) -> Requirements {
    value.as_array().unwrap().iter().map(expression).collect()
}

fn check_outcome(ours: &Requirement, expected: &Value, probes: &[&str]) {
    assert_eq!(ours.key(), expected["key"]);
    assert_eq!(ours.operator().as_str(), expected["op"]);
    assert_eq!(
        ours.values().collect::<Vec<_>>(),
        texts(&expected["values"])
    );
    assert_eq!(
        ours.bounds(),
        (expected["gte"].as_i64(), expected["lte"].as_i64())
    );
    let has: Vec<&str> = probes
        .iter()
        .copied()
        .filter(|probe| ours.has(probe))
        .collect();
    assert_eq!(has, texts(&expected["has"]));
}

#[test]
fn the_algebra_answers_as_upstream_does() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let probes = texts(&vectors["probes"]);
    for case in vectors["cases"].as_array().unwrap() {
        let (a, b) = (expression(&case["a"]), expression(&case["b"]));
        check_outcome(&a.intersection(&b), &case["intersection"], &probes);
        assert_eq!(a.intersects(&b), case["intersects"], "{case}");

        let (left, right) = (set(&case["left"]), set(&case["right"]));
        assert_eq!(
            left.iter().len(),
            case["leftCombined"].as_array().unwrap().len()
        );
        for (ours, expected) in left.iter().zip(case["leftCombined"].as_array().unwrap()) {
            check_outcome(ours, expected, &probes);
        }
        assert_eq!(left.intersects(&right), case["setsIntersect"], "{case}");
        assert_eq!(
            left.is_compatible(&right, Undefined::Denied),
            case["compatible"],
            "{case}"
        );
        let allowed = left.is_compatible(&right, Undefined::WellKnownAllowed);
        assert_eq!(allowed, case["compatibleAllowUndefined"], "{case}");
    }
}
