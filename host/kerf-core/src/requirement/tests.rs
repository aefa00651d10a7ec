//! The algebra on examples that a person can check; upstream's answers are in tests/requirement_vectors.rs.

use super::*;

fn requirement(operator: Operator, values: &[&str]) -> Requirement {
    Requirement::parse("tier", operator, values.iter().copied()).unwrap()
}

fn check(left: &Requirement, right: &Requirement, expected: &str) {
    assert_eq!(left.intersection(right).to_string(), expected);
    assert_eq!(right.intersection(left).to_string(), expected);
}

#[test]
fn intersections_are_exact() {
    use Operator::*;
    check(
        &requirement(In, &["a", "b"]),
        &requirement(In, &["b", "c"]),
        "tier In [b]",
    );
    check(
        &requirement(In, &["a", "b"]),
        &requirement(NotIn, &["b"]),
        "tier In [a]",
    );
    check(
        &requirement(NotIn, &["a"]),
        &requirement(NotIn, &["b"]),
        "tier NotIn [a, b]",
    );
    check(
        &requirement(Exists, &[]),
        &requirement(DoesNotExist, &[]),
        "tier DoesNotExist",
    );
    check(
        &requirement(Gt, &["2"]),
        &requirement(Lt, &["5"]),
        "tier Gte [3] and tier Lte [4]",
    );
    check(
        &requirement(Gt, &["5"]),
        &requirement(Lt, &["5"]),
        "tier DoesNotExist",
    );
    check(
        &requirement(Gte, &["2"]),
        &requirement(In, &["1", "2", "x"]),
        "tier In [2]",
    );
}

#[test]
fn a_bound_must_be_one_integer() {
    for values in [&["a"][..], &[], &["1", "2"], &["2.5"]] {
        assert!(
            Requirement::parse("tier", Operator::Gt, values.iter().copied()).is_err(),
            "{values:?}"
        );
    }
    assert!(requirement(Operator::Gt, &["9223372036854775807"]).is_empty());
}

#[test]
fn any_value_is_the_least_that_is_allowed() {
    use Operator::*;
    assert_eq!(
        requirement(In, &["b", "a"]).any_value().as_deref(),
        Some("a")
    );
    assert_eq!(
        requirement(NotIn, &["0", "1"]).any_value().as_deref(),
        Some("2")
    );
    assert_eq!(requirement(Lt, &["-5"]).any_value().as_deref(), Some("-6"));
    assert_eq!(requirement(Gt, &["7"]).any_value().as_deref(), Some("8"));
    assert_eq!(requirement(DoesNotExist, &[]).any_value(), None);
}

#[test]
fn long_lists_are_shortened() {
    let values: Vec<String> = (0..9).map(|n| n.to_string()).collect();
    assert_eq!(
        Requirement::in_values("tier", values).to_string(),
        "tier In [0, 1, 2, 3, 4 and 4 more]"
    );
}

#[test]
fn the_opposite_allows_what_the_requirement_forbids_and_a_bound_has_none() {
    let written = |operator, values: &[&str]| {
        let values = values.iter().copied();
        Requirement::parse("example.com/size", operator, values).unwrap()
    };
    for requirement in [
        written(Operator::In, &["a", "b"]),
        written(Operator::NotIn, &["a"]),
        written(Operator::Exists, &[]),
    ] {
        let opposite = requirement.opposite().unwrap();

        assert!(!requirement.intersects(&opposite) || requirement.tolerates_absence());
        for value in ["a", "b", "c"] {
            assert_ne!(requirement.has(value), opposite.has(value), "{value}");
        }
        assert_eq!(opposite.opposite(), Some(requirement));
    }
    assert_eq!(written(Operator::Gt, &["3"]).opposite(), None);
}
