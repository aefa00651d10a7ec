//! Unit level: what comes out is what went in.

use k8s_openapi::api::core::v1::Node;
use serde_json::json;

use super::*;

fn node(name: &str, cpu: &str) -> Node {
    let value = json!({
        "metadata": {
            "name": name, "labels": {"a": "b"}, "creationTimestamp": "2026-11-29T10:00:00Z",
            "annotations": {"note": "\"quoted\" and \u{fc}mlaut"}, "finalizers": ["karpenter.sh/termination"],
        },
        "spec": {"providerID": format!("cn-hangzhou.{name}"), "taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": cpu}, "capacity": {"cpu": "4"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-29T10:01:00Z"}],
        },
    });
    serde_json::from_value(value).unwrap()
}

fn at(version: &str) -> Node {
    let mut node = node("a", "3");
    node.metadata.resource_version = Some(version.to_owned());
    node
}

fn names(kept: &Kept<Node>) -> Vec<String> {
    kept.iter().map(|it| it.name_any()).collect()
}

#[test]
fn an_object_is_read_as_it_was_told() {
    read_as_told(&[]);
}

#[test]
fn words_that_are_known_before_find_the_same_objects() {
    read_as_told(&[
        "nothing",
        "cn-hangzhou.a",
        "umlaut",
        &pair("providerID", "cn-hangzhou.a"),
    ]);
}

fn read_as_told(words: &[&str]) {
    let (kept, mut writer) = store::<Node>(words);

    writer.take_in(&Event::Apply(node("b", "3")));
    writer.take_in(&Event::Apply(node("a", "3")));
    writer.take_in(&Event::Apply(node("b", "2")));

    assert_eq!(*kept.get("b").unwrap(), node("b", "2"));
    assert_eq!(names(&kept), ["a", "b"]);
    assert_eq!(kept.changes(), 3);
    for (word, expected) in [("cn-hangzhou.a", vec!["a"]), ("umlaut", vec![])] {
        let saying = kept.iter_saying(&["nothing", word]).map(|it| it.name_any());
        assert_eq!(saying.collect::<Vec<_>>(), expected, "{word}");
    }
    for (value, expected) in [
        ("cn-hangzhou.a", vec!["b"]),
        ("cn-hangzhou", vec!["a", "b"]),
    ] {
        let without = kept.iter_without("providerID", value);
        let without: Vec<String> = without.map(|it| it.name_any()).collect();
        assert_eq!(without, expected, "{value}");
    }
}

#[test]
fn only_those_are_read_that_are_wanted_by_name_and_version() {
    let (kept, mut writer) = store::<Node>(&[]);
    writer.take_in(&Event::Apply(at("7")));
    writer.take_in(&Event::Apply(node("b", "3")));

    let of = |name: &str, version| {
        let wanted = kept.iter_of(&|it, of_it| it == name && of_it == version);
        wanted.map(|it| it.name_any()).collect::<Vec<_>>()
    };

    assert_eq!(of("a", Some(7)), ["a"]);
    assert_eq!(of("b", None), ["b"]);
    assert!(of("a", Some(8)).is_empty());
}

#[test]
fn what_was_moved_reads_as_before() {
    let (kept, mut writer) = store::<Node>(&[]);
    for name in ["a", "b"] {
        writer.take_in(&Event::Apply(node(name, "3")));
    }

    kept.repack();

    assert_eq!(names(&kept), ["a", "b"]);
    assert_eq!(*kept.get("b").unwrap(), node("b", "3"));
    writer.take_in(&Event::Apply(node("b", "2")));
    assert_eq!(*kept.get("b").unwrap(), node("b", "2"));
}

#[test]
fn what_is_gone_is_not_kept() {
    let (kept, mut writer) = store::<Node>(&[]);
    for name in ["a", "b", "c"] {
        writer.take_in(&Event::Apply(node(name, "3")));
    }

    writer.take_in(&Event::Delete(node("a", "3")));
    assert_eq!(names(&kept), ["b", "c"]);

    writer.take_in(&Event::Init);
    writer.take_in(&Event::InitApply(node("d", "3")));
    assert_eq!(
        names(&kept),
        ["b", "c"],
        "a list that goes on replaces nothing"
    );
    writer.take_in(&Event::InitDone);
    assert_eq!(names(&kept), ["d"]);
    assert_eq!((kept.get("b"), kept.is_empty()), (None, false));
}

/// Otherwise each step of a claim's life was written two or three times while the watch was late, and refused.
#[test]
fn what_was_written_is_behind_until_the_watch_shows_it() {
    let (kept, mut writer) = store::<Node>(&[]);
    writer.take_in(&Event::Apply(at("7")));
    kept.note_written(&at("7"));
    assert!(!kept.is_behind(&at("6")), "the watch was faster");

    kept.note_written(&at("10"));
    writer.take_in(&Event::Apply(at("9")));
    assert!(kept.is_behind(&at("9")), "10 is more than 9");
    assert!(!kept.is_behind(&at("10")), "what was written itself");
    writer.take_in(&Event::Apply(at("11")));
    assert!(
        !kept.is_behind(&at("9")),
        "the watch has shown more than that"
    );

    kept.note_written(&at("12"));
    writer.take_in(&Event::Delete(at("11")));
    assert!(!kept.is_behind(&at("11")), "it is gone");
    kept.note_written(&at("13"));
    assert!(!kept.is_behind(&at("11")), "and stays so");

    writer.take_in(&Event::Apply(at("opaque")));
    kept.note_written(&at("14"));
    assert!(
        !kept.is_behind(&at("opaque")),
        "a version that is no number"
    );
}

#[test]
fn a_new_list_is_not_behind() {
    let (kept, mut writer) = store::<Node>(&[]);
    writer.take_in(&Event::Apply(at("7")));
    kept.note_written(&at("8"));

    for event in [Event::Init, Event::InitApply(at("7")), Event::InitDone] {
        writer.take_in(&event);
    }

    assert!(!kept.is_behind(&at("7")));
}
