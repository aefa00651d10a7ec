//! Unit level: what a scrape shows is what Karpenter shows, and docs/metrics.md says so.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use expect_test::expect_file;
use k8s_openapi::api::core::v1::Node;
use kerf_api::capacitybuffer::CapacityBuffer;
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodepool::NodePool;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::conditions::{Observed, render_kind};
use super::*;

/// Of [`KARPENTER`], what kerf does not show, and why.
const EXCLUDED: [(&str, &str); 8] = [
    (
        "client_go_",
        "Go's client of the API server; the API server's own metrics tell who asked for what",
    ),
    (
        "controller_runtime_",
        "Go's controller library; `kerf_reconciles_total` counts reconciles and their errors",
    ),
    (
        "workqueue_",
        "queues of Go's controller library; kerf's hold an object at most once",
    ),
    (
        "leader_election_",
        "Go's leader election; the Lease in the API names the leader",
    ),
    ("go_", "the runtime of Go"),
    (
        "process_",
        "the client library of Go; the kubelet's container metrics show CPU and memory",
    ),
    (
        "operator_status_condition_",
        "given up upstream for those of each kind, which say the same",
    ),
    (
        "operator_termination_",
        "given up upstream for those of each kind, which say the same",
    ),
];

/// The facts of other people's metrics, in our own words.
const KARPENTER: &str = include_str!("../../testdata/karpenter-metrics.txt");

/// A metric of a scrape.
#[derive(Debug, Default)]
struct Shown {
    help: String,
    kind: String,
    labels: BTreeSet<String>,
    buckets: Vec<String>,
}

/// The metrics of a scrape.
fn shown(text: &str) -> BTreeMap<String, Shown> {
    let mut all: BTreeMap<String, Shown> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some((name, help)) = line
            .strip_prefix("# HELP ")
            .and_then(|it| it.split_once(' '))
        {
            name.clone_into(&mut current);
            let it = all.entry(current.clone()).or_default();
            help.trim_end_matches('.').clone_into(&mut it.help);
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let kind = kind.rsplit(' ').next().unwrap_or_default();
            kind.clone_into(&mut all.entry(current.clone()).or_default().kind);
        } else {
            let it = all.get_mut(&current).expect("a series after its head");
            let (series, _) = line.rsplit_once(' ').expect("a value");
            assert!(
                series.starts_with(&current),
                "{line} after the head of {current}"
            );
            read_labels(series, it);
        }
    }
    all
}

/// Touched metrics have no label values with quotes or commas in them.
fn read_labels(series: &str, shown: &mut Shown) {
    let Some((_, labels)) = series.trim_end_matches('}').split_once('{') else {
        return;
    };
    for label in labels.split("\",").filter(|it| !it.is_empty()) {
        let (name, value) = label.split_once("=\"").expect("a label");
        match name {
            "le" => {
                let value = value.trim_end_matches('"').to_owned();
                if value != "+Inf" && !shown.buckets.contains(&value) {
                    shown.buckets.push(value);
                }
            }
            "quantile" => {}
            _ => drop(shown.labels.insert(name.to_owned())),
        }
    }
}

fn object<K: DeserializeOwned>(spec: &Value, status: &str, deleted: bool) -> K {
    let mut object = json!({
        "metadata": {"name": "x", "uid": "x"},
        "spec": spec,
        "status": {"conditions": [
            {"type": "Ready", "status": status, "lastTransitionTime": "1970-01-01T00:00:00Z"},
        ]},
    });
    if deleted {
        object["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
    }
    if let Some(kind) = spec.get("kind").and_then(Value::as_str) {
        object["apiVersion"] = spec["apiVersion"].clone();
        object["kind"] = json!(kind);
    }
    serde_json::from_value(object).expect("an object")
}

/// Moves every series of a kind's conditions.
fn touch<K: Observed>(metrics: &Metrics, spec: &Value, text: &mut String) {
    let now = Timestamp::UNIX_EPOCH;
    let conditions = metrics.conditions.as_ref().expect("state is shown");
    conditions.touch::<K>(
        object(spec, "False", false),
        object(spec, "True", false),
        now,
    );
    let going: K = object(spec, "True", true);
    render_kind([Arc::new(going)], now, &mut |piece| text.write_str(&piece)).expect("text");
}

/// A scrape in which every metric has a series.
fn scrape() -> String {
    let metrics = Metrics::new(Scope {
        has_state: true,
        has_pods: true,
    });
    let created = CreatedLabels {
        reason: String::new(),
        nodepool: String::new(),
        min_values_relaxed: String::new(),
    };
    metrics.nodeclaims_created.get_or_create(&created).inc();
    let zone = ZoneLabels {
        nodepool: String::new(),
        zone: String::new(),
    };
    metrics.nodes_created.get_or_create(&zone).inc();
    let reconcile = ReconcileLabels {
        controller: "",
        result: "",
    };
    metrics.reconciles.get_or_create(&reconcile).inc();
    let policy = PolicyLabels {
        nodeclass: String::new(),
        policy: String::new(),
        result: String::new(),
    };
    metrics.policy_calls.get_or_create(&policy).inc();
    metrics.disruption.touch();
    metrics.termination.touch();
    metrics.draining.touch();
    metrics.cloud.touch();
    metrics.prices.touch();
    metrics.offerings.iter().for_each(OfferingMetrics::touch);
    metrics.pods.touch();
    let _run = metrics.scheduling.touch();
    let mut more = state::example(&metrics);
    more.push_str(&requests::render(&requests::example()));
    metrics.costs.touch();
    metrics.interruptions.touch();
    let class =
        json!({"group": "karpenter.alibabacloud.com", "kind": "ECSNodeClass", "name": "default"});
    let claim = json!({"nodeClassRef": class, "requirements": []});
    touch::<NodeClaim>(&metrics, &claim, &mut more);
    touch::<NodePool>(&metrics, &json!({"template": {"spec": claim}}), &mut more);
    touch::<Node>(&metrics, &json!({}), &mut more);
    touch::<EcsNodeClass>(&metrics, &json!({}), &mut more);
    touch::<CapacityBuffer>(&metrics, &json!({}), &mut more);
    let own = metrics.render(Timestamp::UNIX_EPOCH);
    own.expect("a String takes it") + &more
}

/// What is wrong with a metric, compared with a row of [`KARPENTER`].
fn difference(row: &[&str], shown: Option<&Shown>) -> Option<String> {
    let [name, kind, labels, buckets] =
        [0, 1, 2, 3].map(|idx| row.get(idx).map_or("", |it| it.trim()));
    let Some(shown) = shown else {
        return Some(format!("{name} is missing"));
    };
    if shown.kind != kind {
        return Some(format!("{name} is a {} and should be a {kind}", shown.kind));
    }
    let wanted: BTreeSet<&str> = labels.split_whitespace().filter(|it| *it != "+").collect();
    let found: BTreeSet<&str> = shown.labels.iter().map(String::as_str).collect();
    let is_same = match labels.ends_with('+') {
        true => found.is_superset(&wanted),
        false => found == wanted,
    };
    if !is_same {
        return Some(format!(
            "{name} has the labels {found:?} and should have {wanted:?}"
        ));
    }
    let numbers = |text: &[String]| -> Vec<f64> {
        text.iter().map(|it| it.parse().expect("a bound")).collect()
    };
    let found = numbers(&shown.buckets);
    let wanted = bounds(buckets);
    let is_same =
        found.len() == wanted.len() && found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-9);
    (!is_same).then(|| format!("{name} has the buckets {found:?} and should have {wanted:?}"))
}

fn bounds(text: &str) -> Vec<f64> {
    let number = |it: &str| it.parse::<f64>().expect("a number");
    if text == "dur" {
        return DURATION_BUCKETS.to_vec();
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        ["exp", first, factor, count] => {
            let count = count.parse().expect("a count");
            let next = |it: &f64| Some(it * number(factor));
            std::iter::successors(Some(number(first)), next)
                .take(count)
                .collect()
        }
        words => words.iter().map(|it| number(it)).collect(),
    }
}

fn rows() -> impl Iterator<Item = Vec<&'static str>> {
    let lines = KARPENTER.lines().filter(|it| !it.starts_with('#'));
    lines.map(|line| line.split(';').map(str::trim).collect())
}

/// How many of [`KARPENTER`]'s metrics there are here; a test holds that it is all but the excluded.
fn tally() -> String {
    let all = rows().count();
    let left_out = rows().filter(|row| excluded(row[0]).is_some()).count();
    format!(
        "Parity: {} of Karpenter's {all} metrics are here with their names, types, labels and buckets; {left_out} are left out, by these names:",
        all - left_out
    )
}

fn excluded(name: &str) -> Option<&'static str> {
    let found = EXCLUDED.iter().find(|(prefix, _)| name.starts_with(prefix));
    found.map(|(prefix, _)| *prefix)
}

#[test]
fn every_metric_of_karpenter_is_there_with_its_type_labels_and_buckets_or_excluded_by_name() {
    let shown = shown(&scrape());
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    let mut known = BTreeSet::new();

    for row in rows() {
        known.insert(row[0]);
        match excluded(row[0]) {
            Some(prefix) => {
                used.insert(prefix);
                if shown.contains_key(row[0]) {
                    wrong.push(format!("{} is excluded and shown", row[0]));
                }
            }
            None => wrong.extend(difference(&row, shown.get(row[0]))),
        }
    }
    let borrowed = shown.keys().filter(|name| !name.starts_with("kerf_"));
    let unknown = borrowed.filter(|name| !known.contains(name.as_str()));
    wrong.extend(unknown.map(|name| format!("{name} is not Karpenter's")));
    let unused = EXCLUDED.iter().filter(|(prefix, _)| !used.contains(prefix));
    wrong.extend(unused.map(|(prefix, _)| format!("nothing begins with {prefix}")));

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn without_state_no_series_of_pods_nodes_pools_or_conditions_is_shown() {
    let metrics = Metrics::new(Scope {
        has_state: false,
        has_pods: true,
    });
    metrics.pods.touch();
    metrics.offerings.iter().for_each(OfferingMetrics::touch);

    let shown = shown(&metrics.render(Timestamp::UNIX_EPOCH).expect("text"));

    let of_state = |name: &&String| {
        let prefixes = [
            "operator_",
            "karpenter_nodepools_cost",
            "karpenter_pods_bound",
            "karpenter_pods_startup",
            "karpenter_pods_provisioning",
            "karpenter_cloudprovider_instance_type_",
        ];
        prefixes.iter().any(|prefix| name.starts_with(prefix))
    };
    assert_eq!(
        shown.keys().filter(of_state).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
    assert!(shown.contains_key("karpenter_pods_scheduling_decision_duration_seconds"));
}

#[test]
fn the_reference_lists_every_metric() {
    let mut page = vec![
        "# Metrics".to_owned(),
        String::new(),
        "Generated from `host/kerf-controllers/src/metrics.rs` and its folder: `UPDATE_EXPECT=1 cargo test -p kerf-controllers metrics`.".to_owned(),
        String::new(),
        "`karpenter_*` and `operator_*` have the names, types, labels and buckets of Karpenter. `POD_METRICS=true` shows".to_owned(),
        "`karpenter_pods_state` and the ages of single pods; `DISABLE_CLUSTER_STATE_OBSERVABILITY=true` takes away `operator_*` and".to_owned(),
        "the series of nodes, NodePools, offerings and pods' lives.".to_owned(),
        String::new(),
        "| metric | type | labels | meaning |".to_owned(),
        "|---|---|---|---|".to_owned(),
    ];
    for (name, it) in shown(&scrape()) {
        let labels: Vec<&str> = it.labels.iter().map(String::as_str).collect();
        page.push(format!(
            "| `{name}` | {} | {} | {} |",
            it.kind,
            labels.join(", "),
            it.help
        ));
    }
    page.push(String::new());
    page.push("## What Karpenter shows and kerf does not".to_owned());
    page.push(String::new());
    page.push(tally());
    page.push(String::new());
    page.push("| metrics | why not |".to_owned());
    page.push("|---|---|".to_owned());
    page.extend(EXCLUDED.map(|(prefix, why)| format!("| `{prefix}*` | {why} |")));

    expect_file!["../../../../docs/metrics.md"].assert_eq(&(page.join("\n") + "\n"));
}
