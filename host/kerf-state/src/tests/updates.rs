//! What a later event changes, and what it does not.

use super::*;

fn claim(name: &str, uid: &str) -> NodeClaim {
    let mut claim = NodeClaim::new(name, kerf_api::nodeclaim::NodeClaimSpec::default());
    claim.metadata.uid = Some(uid.to_owned());
    claim
}

fn node(yaml: &str) -> Node {
    serde_saphyr::from_str(yaml).unwrap()
}

#[test]
fn a_heartbeat_changes_nothing() {
    let mut cluster = Cluster::new();
    let first = node(
        "{metadata: {name: node-1}, status: {conditions: [{type: Ready, status: 'True', lastHeartbeatTime: '2026-01-01T00:00:00Z'}]}}",
    );
    let second = node(
        "{metadata: {name: node-1, resourceVersion: '2'}, status: {conditions: [{type: Ready, status: 'True', lastHeartbeatTime: '2026-01-01T00:05:00Z'}]}}",
    );
    let third =
        node("{metadata: {name: node-1}, status: {conditions: [{type: Ready, status: 'False'}]}}");

    assert!(cluster.apply(&first));
    assert!(!cluster.apply(&second));
    assert!(cluster.apply(&third));
}

#[test]
fn a_pod_that_gets_ready_is_news_only_where_a_budget_lets_those_go_that_are_not() {
    let pod = |ready: &str| -> k8s_openapi::api::core::v1::Pod {
        let yaml = format!(
            "{{metadata: {{name: web-1, namespace: shop}}, spec: {{nodeName: n, containers: []}}, status: {{conditions: [{{type: Ready, status: \"{ready}\"}}]}}}}"
        );
        serde_saphyr::from_str(&yaml).unwrap()
    };
    let mut cluster = Cluster::new();
    assert!(cluster.apply(&pod("False")));
    assert!(!cluster.apply(&pod("True")));
    assert!(cluster.pods.values().all(|it| it.pod.is_ready));

    let budget =
        "{metadata: {name: web, namespace: shop}, spec: {unhealthyPodEvictionPolicy: AlwaysAllow}}";
    let budget: k8s_openapi::api::policy::v1::PodDisruptionBudget =
        serde_saphyr::from_str(budget).unwrap();
    assert!(cluster.apply(&budget));
    assert!(cluster.apply(&pod("False")));
    assert!(cluster.pods.values().all(|it| !it.pod.is_ready));
}

#[test]
fn a_list_replaces_what_was_known() {
    let mut cluster = Cluster::new();
    cluster.apply(&claim("general-1", "a"));
    cluster.apply(&claim("general-2", "b"));

    let changed = cluster.reset([&claim("general-2", "b"), &claim("general-3", "c")]);

    let snapshot = snapshot(&cluster);
    let names: Vec<&str> = snapshot
        .nodes
        .iter()
        .map(|node| node.display_name())
        .collect();
    assert!(changed);
    assert_eq!(names, ["general-2", "general-3"]);
}

#[test]
fn the_index_is_synced_when_every_kind_was_listed() {
    let mut cluster = Cluster::new();
    cluster.reset::<Pod>([]);

    assert!(!cluster.is_synced());
    assert_eq!(cluster.unsynced().next(), Some(Kind::Node));

    cluster.reset::<Node>([]);
    cluster.reset::<NodeClaim>([]);
    cluster.reset::<NodePool>([]);
    cluster.reset::<EcsNodeClass>([]);
    cluster.reset::<DaemonSet>([]);
    cluster.reset::<PersistentVolumeClaim>([]);
    cluster.reset::<PersistentVolume>([]);
    cluster.reset::<StorageClass>([]);
    cluster.reset::<CSINode>([]);
    cluster.reset::<Namespace>([]);
    cluster.reset::<PodDisruptionBudget>([]);
    assert!(cluster.is_synced());
}

#[test]
fn a_claim_that_we_created_counts_before_the_watch_tells_of_it() {
    let mut cluster = Cluster::new();

    assert!(cluster.seed(&claim("general-1", "a")));
    assert_eq!(snapshot(&cluster).nodes.len(), 1);
}

#[test]
fn a_late_seed_neither_revives_a_claim_nor_takes_it_back() {
    let mut cluster = Cluster::new();
    let mut launched = claim("general-1", "a");
    launched.status =
        serde_json::from_value(serde_json::json!({"allocatable": {"cpu": "2"}})).unwrap();
    cluster.apply(&launched);

    assert!(!cluster.seed(&claim("general-1", "a")));
    assert_eq!(snapshot(&cluster).nodes[0].allocatable.cpu_milli(), 2000);

    cluster.delete(&launched);
    assert!(!cluster.seed(&claim("general-1", "a")));
    assert!(snapshot(&cluster).nodes.is_empty());

    assert!(
        cluster.seed(&claim("general-1", "b")),
        "a new claim of the same name is another claim"
    );
}

#[test]
fn nominations_last_as_long_as_they_say() {
    let mut cluster = Cluster::new();
    cluster.apply(&claim("general-1", "a"));
    let target = PlacementTarget::InFlight("general-1".into());

    cluster.nominate(&target, at(20));
    cluster.nominate(&target, at(10));
    assert_eq!(snapshot(&cluster).nodes[0].nominated_until, Some(at(20)));

    cluster.forget_ended(at(20));
    assert_eq!(snapshot(&cluster).nodes[0].nominated_until, None);
}

#[test]
fn a_node_is_kept_for_expected_pods_until_the_last_has_come_or_is_gone() {
    let mut cluster = Cluster::new();
    cluster.apply(&claim("general-1", "a"));
    let target = PlacementTarget::InFlight("general-1".into());
    let kept_until = |cluster: &Cluster| snapshot(cluster).nodes[0].nominated_until;
    let pod = |name: &str, node: Option<&str>| -> k8s_openapi::api::core::v1::Pod {
        serde_json::from_value(serde_json::json!({
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"nodeName": node, "containers": []},
        }))
        .unwrap()
    };
    for name in ["one", "two", "late"] {
        cluster.apply(&pod(name, None));
        cluster.expect(name.into(), &target, at(20));
    }

    cluster.apply(&pod("one", Some("node-1")));
    cluster.delete(&pod("two", None));
    assert_eq!(kept_until(&cluster), Some(at(20)));
    cluster.apply(&pod("late", Some("node-2")));
    assert_eq!(kept_until(&cluster), None);

    cluster.expect("lost".into(), &target, at(20));
    cluster.expect("lost".into(), &target, at(30));
    cluster.forget_ended(at(29));
    assert_eq!(kept_until(&cluster), Some(at(30)));
    cluster.forget_ended(at(30));
    assert_eq!(kept_until(&cluster), None);
}

/// Eleven nodes of fifty were away at once within a budget of six: those whose Node was gone before their claim were forgotten.
#[test]
fn a_claim_that_is_deleted_counts_as_initialized_after_its_node_is_gone() {
    let mut cluster = Cluster::new();
    let mut going = claim("general-1", "a");
    let condition = serde_json::json!({
        "type": "Initialized", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "Initialized", "message": "",
    });
    let status = going.status.get_or_insert_default();
    status
        .conditions
        .push(serde_json::from_value(condition).unwrap());
    cluster.apply(&going);
    assert!(!snapshot(&cluster).nodes[0].is_initialized);

    going.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(1)));
    cluster.apply(&going);
    let node = &snapshot(&cluster).nodes[0];
    assert!(node.is_initialized && node.is_deleting);
}

#[test]
fn a_mark_goes_with_its_claim() {
    let mut cluster = Cluster::new();
    cluster.apply(&claim("general-1", "a"));

    cluster.mark_for_deletion("general-1");
    assert!(snapshot(&cluster).nodes[0].is_marked_for_deletion);

    cluster.delete(&claim("general-1", "a"));
    cluster.apply(&claim("general-1", "b"));
    assert!(!snapshot(&cluster).nodes[0].is_marked_for_deletion);
}

#[test]
fn a_corrected_object_has_no_problem_any_more() {
    let mut cluster = Cluster::new();
    let broken = node("{metadata: {name: node-1}, status: {allocatable: {cpu: much}}}");
    let fixed = node("{metadata: {name: node-1}, status: {allocatable: {cpu: 1}}}");

    cluster.apply(&broken);
    assert_eq!(cluster.problems_of(&broken).len(), 1);

    cluster.apply(&fixed);
    assert_eq!(cluster.problems().count(), 0);
}
