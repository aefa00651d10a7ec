//! Default spread constraints in snapshots: unit tests over small clusters.

use kerf_core::pod::TopologySpread;
use kerf_core::selector::LabelSelector;

use super::*;

/// The constraints that the only pending pod has, as `key: selected labels`, in a cluster where zone is a default.
fn spread_of(yaml: &str) -> Vec<String> {
    let constraint = TopologySpread {
        selector: None,
        ..TopologySpread::new("zone", 1, LabelSelector::default())
    };
    let mut cluster = Cluster::with_default_spread(vec![constraint]);
    for object in documents(yaml) {
        apply(&mut cluster, &object);
    }
    let pending = snapshot(&cluster).pending_pods.clone();
    assert_eq!(pending.len(), 1);
    let constraints = pending[0].spec.topology_spread.iter();
    constraints
        .map(|it| {
            let selector = it.selector.as_ref().unwrap();
            let labels: Vec<String> = selector
                .match_labels
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .chain(
                    selector
                        .match_expressions
                        .iter()
                        .map(|it| format!("{} {:?} {:?}", it.key, it.operator, it.values)),
                )
                .collect();
            format!("{}: {}", it.topology_key, labels.join(" "))
        })
        .collect()
}

fn pod(owner: &str, spec: &str) -> String {
    format!(
        r#"---
apiVersion: v1
kind: Pod
metadata:
  name: web-1
  namespace: shop
  uid: u1
  labels: {{app: web, tier: front}}
  ownerReferences: [{owner}]
spec: {{containers: [], {spec}}}
status: {{phase: Pending, conditions: [{{type: PodScheduled, status: "False", reason: Unschedulable}}]}}
"#
    )
}

fn owner(api_version: &str, kind: &str) -> String {
    format!("{{apiVersion: {api_version}, kind: {kind}, name: web, uid: o, controller: true}}")
}

const SERVICE: &str = "---\napiVersion: v1\nkind: Service\nmetadata: {name: front, namespace: shop}\nspec: {selector: {tier: front}}\n";

#[test]
fn a_pod_of_a_service_is_spread_over_what_the_service_selects() {
    let others = "---\napiVersion: v1\nkind: Service\nmetadata: {name: back, namespace: shop}\nspec: {selector: {tier: back}}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: bare, namespace: shop}\nspec: {}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: front, namespace: other}\nspec: {selector: {app: web}}\n";

    let found = spread_of(&format!("{SERVICE}{others}{}", pod("", "")));

    assert_eq!(found, ["zone: tier=front"]);
}

#[test]
fn the_selector_of_the_workload_narrows_that_of_the_services() {
    let set = "---\napiVersion: apps/v1\nkind: KIND\nmetadata: {name: web, namespace: shop}\nspec: {selector: {matchLabels: {app: web, tier: all}, matchExpressions: [{key: app, operator: Exists}]}}\n";
    for kind in ["ReplicaSet", "StatefulSet"] {
        let set = set
            .replace("KIND", kind)
            .replace("spec: {", "spec: {serviceName: web, template: {}, ");
        let pod = pod(&owner("apps/v1", kind), "");

        assert_eq!(
            spread_of(&format!("{set}{pod}")),
            ["zone: app=web tier=all app Exists []"],
            "{kind}"
        );
        // Both must hold, so that a contradiction selects nothing rather than half of it.
        assert_eq!(
            spread_of(&format!("{SERVICE}{set}{pod}")),
            ["zone: app=web tier=front tier In [\"all\"] app Exists []"],
            "{kind}"
        );
    }
}

#[test]
fn the_labels_of_a_replication_controller_go_over_those_of_services() {
    let controller = "---\napiVersion: v1\nkind: ReplicationController\nmetadata: {name: web, namespace: shop}\nspec: {selector: {app: web, tier: rc}}\n";
    let pod = pod(&owner("v1", "ReplicationController"), "");

    let found = spread_of(&format!("{SERVICE}{controller}{pod}"));

    assert_eq!(found, ["zone: app=web tier=rc"]);
}

#[test]
fn a_pod_with_constraints_or_that_nothing_selects_keeps_what_it_has() {
    let own = "topologySpreadConstraints: [{maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {a: b}}}]";

    assert_eq!(spread_of(&pod("", "")), [] as [&str; 0]);
    // The workload that it names is not known, or not yet.
    let orphan = pod(&owner("apps/v1", "ReplicaSet"), "");
    assert_eq!(spread_of(&orphan), [] as [&str; 0]);
    assert_eq!(
        spread_of(&format!("{SERVICE}{}", pod("", own))),
        ["rack: a=b"]
    );
}

#[test]
fn siblings_share_one_spec_so_that_they_are_planned_as_one_class() {
    let constraint = TopologySpread {
        selector: None,
        ..TopologySpread::new("zone", 1, LabelSelector::default())
    };
    let mut cluster = Cluster::with_default_spread(vec![constraint]);
    let second = pod("", "").replace("web-1", "web-2").replace("u1", "u2");
    for object in documents(&format!("{SERVICE}{}{second}", pod("", ""))) {
        apply(&mut cluster, &object);
    }

    let pods = snapshot(&cluster).pending_pods.clone();

    assert_eq!(pods.len(), 2);
    assert!(Arc::ptr_eq(&pods[0].spec, &pods[1].spec));
}

#[test]
fn what_selects_pods_is_waited_for_only_where_there_are_default_constraints() {
    let is_missing = |cluster: &Cluster| cluster.unsynced().any(|it| it == Kind::ReplicaSet);
    let constraint = TopologySpread::new("zone", 1, LabelSelector::default());

    assert!(!is_missing(&Cluster::new()));
    assert!(is_missing(&Cluster::with_default_spread(vec![constraint])));
}
