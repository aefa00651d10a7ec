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

fn names(kept: &Kept<Node>) -> Vec<String> {
    kept.iter().map(|it| it.name_any()).collect()
}

#[test]
fn an_object_is_read_as_it_was_told() {
    let (kept, mut writer) = store::<Node>();

    writer.take_in(&Event::Apply(node("b", "3")));
    writer.take_in(&Event::Apply(node("a", "3")));
    writer.take_in(&Event::Apply(node("b", "2")));

    assert_eq!(*kept.get("b").unwrap(), node("b", "2"));
    assert_eq!(names(&kept), ["a", "b"]);
    assert_eq!((kept.changes(), kept.names().len()), (3, 2));
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
fn what_is_gone_is_not_kept() {
    let (kept, mut writer) = store::<Node>();
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
    assert_eq!(kept.names().len(), 1);
}
