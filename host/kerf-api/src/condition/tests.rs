//! Sequences of changes and the conditions that they leave.

use super::*;
use expect_test::{Expect, expect};

const SET: ConditionSet = ConditionSet {
    dependents: &["Launched", "Registered"],
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn open(current: &[Condition], generation: i64, now: i64) -> Conditions {
    Conditions::open(SET, current, generation, at(100), at(now))
}

#[track_caller]
fn check(conditions: Conditions, expect: &Expect) {
    let lines: Vec<String> = conditions
        .finish()
        .iter()
        .map(|c| {
            format!(
                "{} {} {} {:?} since={} generation={}",
                c.type_,
                c.status,
                c.reason,
                c.message,
                c.last_transition_time.as_second(),
                c.observed_generation.unwrap_or(-1)
            )
        })
        .collect();
    expect.assert_eq(&lines.join("\n"));
}

#[test]
fn untouched_objects_await_reconciliation_since_their_creation() {
    let conditions = open(&[], 1, 200);

    check(
        conditions,
        &expect![[r#"
            Launched Unknown AwaitingReconciliation "" since=100 generation=1
            Registered Unknown AwaitingReconciliation "" since=100 generation=1
            Ready Unknown ReconcilingDependents "Launched=Unknown, Registered=Unknown" since=100 generation=1"#]],
    );
}

#[test]
fn ready_is_true_when_all_dependents_are() {
    let mut conditions = open(&[], 1, 200);

    conditions.set_true("Registered");
    conditions.set_true("Launched");

    check(
        conditions,
        &expect![[r#"
            Launched True Launched "" since=200 generation=1
            Registered True Registered "" since=200 generation=1
            Ready True Ready "" since=200 generation=1"#]],
    );
}

#[test]
fn ready_is_false_when_one_dependent_is() {
    let mut conditions = open(&[], 1, 200);

    conditions.set_false("Launched", "LaunchFailed", "no stock");

    check(
        conditions,
        &expect![[r#"
            Registered Unknown AwaitingReconciliation "" since=100 generation=1
            Launched False LaunchFailed "no stock" since=200 generation=1
            Ready False UnhealthyDependents "Launched=False" since=200 generation=1"#]],
    );
}

#[test]
fn dependents_of_an_older_generation_make_ready_unknown() {
    let mut first = open(&[], 1, 200);
    first.set_true("Registered");
    first.set_true("Launched");

    let mut second = open(&first.finish(), 2, 300);
    second.set_true("Launched");

    check(
        second,
        &expect![[r#"
            Launched True Launched "" since=200 generation=2
            Registered True Registered "" since=200 generation=1
            Ready Unknown ReconcilingDependents "Registered=True" since=300 generation=2"#]],
    );
}

#[test]
fn transition_time_moves_only_with_the_status() {
    let mut first = open(&[], 1, 200);
    first.set_unknown("Launched", "Waiting", "one");

    let mut second = open(&first.finish(), 1, 300);
    second.set_unknown("Launched", "Waiting", "two");
    second.set_true_because("Drifted", "NodePoolDrifted", "");

    check(
        second,
        &expect![[r#"
            Launched Unknown Waiting "two" since=100 generation=1
            Registered Unknown AwaitingReconciliation "" since=100 generation=1
            Drifted True NodePoolDrifted "" since=300 generation=1
            Ready Unknown ReconcilingDependents "Launched=Unknown, Registered=Unknown" since=100 generation=1"#]],
    );
}

#[test]
fn only_other_conditions_can_be_cleared() {
    let mut conditions = open(&[], 1, 200);
    conditions.set_true("Drifted");

    conditions.clear("Drifted");
    conditions.clear("Launched");
    conditions.clear("Ready");

    assert!(conditions.find("Drifted").is_none());
    assert!(conditions.find("Launched").is_some());
    assert!(conditions.find("Ready").is_some());
}

#[test]
fn writing_the_same_again_changes_nothing() {
    let mut first = open(&[], 1, 200);
    first.set_true("Launched");
    let first = first.finish();

    let mut second = open(&first, 1, 300);
    second.set_true("Launched");

    assert_eq!(second.finish(), first);
}
