//! The error table against every row of the official error tables.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, which the lint takes for product code"
)]

use kerf_cloud::ErrorClass;
use kerf_cloud::error::codes::{TABLE, classify};

/// Rows of the CSV: action, HTTP status, code, what the reference files it under.
fn rows() -> Vec<(u16, String, String)> {
    let text = include_str!("fixtures/error-codes.csv");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows = reader.records().map(|row| {
        let row = row.unwrap();
        (
            row[1].parse().unwrap(),
            row[2].to_owned(),
            row[3].to_owned(),
        )
    });
    rows.collect()
}

#[test]
fn every_row_that_calls_for_a_reaction_gets_its_class() {
    let mut checked = 0;
    for (status, code, category) in rows() {
        let class = classify(&code, status);
        let is_right = match category.as_str() {
            "capacity" => matches!(class, ErrorClass::NoCapacity(_)),
            "quota" => matches!(class, ErrorClass::Quota(_) | ErrorClass::Invalid),
            "throttle" => class == ErrorClass::Throttled,
            "server" if status >= 500 => class == ErrorClass::Transient,
            // The reference files by the first word; what is not a reaction of its own stays "invalid".
            _ => continue,
        };
        assert!(is_right, "{code} ({category}) is {class:?}");
        checked += 1;
    }
    assert!(checked >= 40, "{checked}");
}

#[test]
fn only_one_code_means_that_the_instance_is_gone() {
    let gone = ErrorClass::NotFound(kerf_cloud::error::Missing::Instance);

    let codes: Vec<_> = TABLE
        .iter()
        .filter(|(_, class)| *class == gone)
        .map(|(code, _)| *code)
        .collect();

    assert_eq!(codes, ["InvalidInstanceId.NotFound"]);
    assert_ne!(classify("InvalidVSwitchId.NotFound", 404), gone);
    assert_ne!(classify("SomethingNew.NotFound", 404), gone);
}

#[test]
fn no_code_is_listed_twice() {
    let mut codes: Vec<_> = TABLE.iter().map(|(code, _)| code).collect();
    let count = codes.len();

    codes.sort();
    codes.dedup();

    assert_eq!(codes.len(), count);
}

#[test]
fn throttling_is_known_by_its_prefix_under_any_status() {
    for (code, status) in [
        ("Throttling", 400),
        ("Throttling.User", 403),
        ("Throttling.Api", 429),
        ("Throttling.New", 503),
    ] {
        assert_eq!(classify(code, status), ErrorClass::Throttled, "{code}");
    }
    assert_eq!(classify("ThrottlingIsNot", 400), ErrorClass::Invalid);
}
