//! What a scrape of the running controller shows, on the real control plane.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::TcpStream;

use kerf_api::nodeclaim::NodeClaim;
use kube::ResourceExt;

use crate::scenarios::{ECSNODECLASS, deployment, pool};
use crate::stage::Stage;

/// Where the controller that was started last serves its metrics, once it does.
pub(crate) fn address(stage: &Stage) -> Option<String> {
    let log = stage.log();
    let line = log
        .lines()
        .rev()
        .find(|it| it.contains("serving metrics"))?;
    let at = line.find("127.0.0.1:")?;
    let is_address = |it: char| it.is_ascii_digit() || it == '.' || it == ':';
    let address = line[at..].split(|it| !is_address(it)).next();
    address.map(str::to_owned)
}

/// The text of `/metrics`.
fn scrape(stage: &Stage) -> String {
    let mut stream = TcpStream::connect(address(stage).unwrap()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// The sum of the series of that name whose labels contain all of these.
fn value(text: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let is_meant = |line: &&str| {
        let series = line.split(['{', ' ']).next().unwrap_or_default();
        series == name && labels.iter().all(|label| line.contains(label))
    };
    let values: Vec<f64> = text
        .lines()
        .filter(is_meant)
        .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

/// A series, what its labels contain, and the least and the most that it may be.
type Row = (
    &'static str,
    &'static [&'static str],
    std::ops::RangeInclusive<f64>,
);

const CPU: &str = "resource_type=\"cpu\"";
const PROVISIONER: &str = "controller=\"provisioner\"";
const MANY: f64 = 1e15;

/// Of a cluster with three pods of half a core.
const FULL: &[Row] = &[
    (
        "karpenter_nodes_allocatable",
        &[CPU, "zone=\"cn-hangzhou-"],
        1.5..=MANY,
    ),
    (
        "karpenter_nodes_total_pod_requests",
        &[CPU, "nodepool=\"default\""],
        1.5..=1.5,
    ),
    ("karpenter_nodes_total_pod_limits", &[CPU], 3.0..=3.0),
    ("karpenter_nodes_system_overhead", &[CPU], 0.001..=1.0),
    (
        "karpenter_pods_state",
        &[
            "/replicasets/web",
            "scheduled=\"true\"",
            "nodepool=\"default\"",
            "phase=\"Running\",ready=\"true\",managed=\"true\"",
        ],
        3.0..=3.0,
    ),
    (
        "karpenter_nodes_current_lifetime_seconds",
        &["managed=\"true\""],
        0.0..=MANY,
    ),
    (
        "karpenter_cluster_utilization_percent",
        &[CPU],
        10.0..=100.0,
    ),
    ("karpenter_cluster_state_node_count", &[], 1.0..=3.0),
    ("karpenter_cluster_state_synced", &[], 1.0..=1.0),
    (
        "karpenter_cluster_state_unsynced_time_seconds",
        &[],
        0.0..=0.0,
    ),
    (
        "karpenter_build_info",
        &["version=\"", "goarch=\""],
        1.0..=1.0,
    ),
    ("karpenter_nodepools_usage", &[CPU], 2.0..=MANY),
    ("karpenter_nodepools_cost_total", &[], 0.001..=MANY),
    (
        "karpenter_nodepools_allowed_disruptions",
        &["reason=\"empty\""],
        0.0..=3.0,
    ),
    (
        "karpenter_nodeclaims_created_total",
        &["reason=\"provisioned\"", "min_values_relaxed=\"false\""],
        1.0..=3.0,
    ),
    (
        "karpenter_nodes_created_total",
        &["zone=\"cn-hangzhou-"],
        1.0..=3.0,
    ),
    (
        "karpenter_pods_bound_duration_seconds_count",
        &[],
        3.0..=3.0,
    ),
    (
        "karpenter_pods_startup_duration_seconds_count",
        &[],
        3.0..=3.0,
    ),
    (
        "karpenter_pods_startup_duration_seconds",
        &["quantile=\"0.99\""],
        0.001..=MANY,
    ),
    (
        "karpenter_pods_scheduling_decision_duration_seconds_count",
        &[],
        3.0..=3.0,
    ),
    (
        "karpenter_pods_provisioning_bound_duration_seconds_count",
        &[],
        3.0..=3.0,
    ),
    (
        "karpenter_pods_provisioning_startup_duration_seconds_count",
        &[],
        3.0..=3.0,
    ),
    (
        "karpenter_cloudprovider_duration_seconds_count",
        &[
            "controller=\"nodeclaim.lifecycle\",method=\"Create\"",
            "provider=\"alibabacloud\"",
        ],
        1.0..=3.0,
    ),
    (
        "karpenter_voluntary_disruption_eligible_nodes",
        &["reason=\"underutilized\""],
        0.0..=0.0,
    ),
    (
        "karpenter_voluntary_disruption_decision_evaluation_duration_seconds_count",
        &["reason=\"underutilized\",consolidation_type=\"multi\""],
        1.0..=MANY,
    ),
    (
        "karpenter_voluntary_disruption_consolidation_timeouts_total",
        &["consolidation_type=\"single\""],
        0.0..=0.0,
    ),
    (
        "karpenter_scheduler_scheduling_duration_seconds_count",
        &[PROVISIONER],
        1.0..=MANY,
    ),
    (
        "karpenter_scheduler_unschedulable_pods_count",
        &[PROVISIONER],
        0.0..=0.0,
    ),
];

/// What objects of the same cluster say of themselves.
const CONDITIONS: &[Row] = &[
    (
        "operator_nodeclaim_status_condition_count",
        &[
            "type=\"Ready\",status=\"True\"",
            "nodepool=\"default\",nodeclass=\"default\"",
        ],
        1.0..=3.0,
    ),
    (
        "operator_nodeclaim_status_condition_current_status_seconds",
        &["type=\"Launched\",status=\"True\""],
        0.001..=MANY,
    ),
    (
        "operator_nodeclaim_status_condition_transitions_total",
        &["type=\"Launched\",status=\"True\""],
        1.0..=3.0,
    ),
    (
        "operator_nodeclaim_status_condition_transition_seconds_count",
        &["type=\"Registered\",status=\"Unknown\""],
        1.0..=3.0,
    ),
    (
        "operator_node_status_condition_count",
        &["type=\"Ready\",status=\"True\"", "initialized=\"true\""],
        1.0..=3.0,
    ),
    (
        "operator_nodepool_status_condition_count",
        &["name=\"default\",type=\"Ready\",status=\"True\""],
        1.0..=1.0,
    ),
    (
        "operator_ecsnodeclass_status_condition_count",
        &["name=\"default\",type=\"Ready\",status=\"True\""],
        1.0..=1.0,
    ),
];

/// After one of its NodeClaims was deleted with its pods.
const DRAINED: &[Row] = &[
    (
        "karpenter_pods_drained_total",
        &["reason=\"Forceful Termination\""],
        1.0..=3.0,
    ),
    (
        "karpenter_pods_eviction_requests_total",
        &["code=\"200\""],
        1.0..=3.0,
    ),
    (
        "karpenter_nodes_termination_duration_seconds_count",
        &["nodepool=\"default\""],
        1.0..=1.0,
    ),
    (
        "karpenter_nodes_termination_duration_seconds",
        &["nodepool=\"default\"", "quantile=\"1\""],
        0.001..=MANY,
    ),
    (
        "karpenter_nodeclaims_instance_termination_duration_seconds_count",
        &["nodepool=\"default\""],
        1.0..=1.0,
    ),
    (
        "karpenter_cloudprovider_errors_total",
        &["method=\"Delete\"", "error=\"NodeClaimNotFoundError\""],
        1.0..=MANY,
    ),
    (
        "operator_nodeclaim_termination_duration_seconds_count",
        &["nodepool=\"default\""],
        1.0..=1.0,
    ),
    (
        "operator_node_termination_duration_seconds_count",
        &["nodepool=\"default\""],
        1.0..=1.0,
    ),
];

/// Of the same cluster when the pods are gone.
const EMPTY: &[Row] = &[
    ("karpenter_nodepools_cost_total", &[], 0.0..=0.0),
    (
        "karpenter_nodeclaims_terminated_total",
        &["capacity_type=\"", "zone=\"cn-hangzhou-"],
        1.0..=6.0,
    ),
    (
        "karpenter_nodeclaims_termination_duration_seconds_count",
        &["nodepool=\"default\""],
        1.0..=6.0,
    ),
    (
        "karpenter_nodeclaims_disrupted_total",
        &[
            "reason=\"empty\"",
            "consolidation_policy=\"when_empty\"",
            "termination_mode=\"graceful\"",
        ],
        1.0..=6.0,
    ),
    (
        "karpenter_nodes_terminated_total",
        &["zone=\"cn-hangzhou-"],
        1.0..=6.0,
    ),
    ("karpenter_nodes_drained_total", &[], 1.0..=6.0),
    (
        "karpenter_nodes_lifetime_duration_seconds_count",
        &[],
        1.0..=6.0,
    ),
    (
        "karpenter_voluntary_disruption_decisions_total",
        &["decision=\"delete\"", "reason=\"empty\""],
        1.0..=6.0,
    ),
    (
        "karpenter_voluntary_disruption_decisions_by_nodepool_total",
        &["nodepool=\"default\"", "reason=\"empty\""],
        1.0..=6.0,
    ),
    (
        "karpenter_pods_disruption_initiated_total",
        &["reason=\"empty\""],
        0.0..=0.0,
    ),
];

/// Waits until a scrape is as the rows say: kerf sees a change after the API server showed it to the test.
#[track_caller]
fn until_rows(stage: &Stage, rows: &[Row]) -> String {
    let last = RefCell::new(String::new());
    let seen = stage.until_or_none(|| async {
        let text = scrape(stage);
        let wrong = first_wrong(&text, rows);
        let is_met = wrong.is_none();
        last.replace(wrong.unwrap_or_default());
        is_met.then_some(text)
    });
    seen.unwrap_or_else(|| panic!("{}", last.borrow()))
}

/// The first row that the text does not meet, with the text.
fn first_wrong(text: &str, rows: &[Row]) -> Option<String> {
    rows.iter().find_map(|(name, labels, range)| {
        let found = value(text, name, labels);
        let is_met = found.is_some_and(|it| range.contains(&it));
        (!is_met).then(|| format!("{name}{labels:?} is {found:?} in {text}"))
    })
}

#[test]
fn every_series_of_a_cluster_that_grows_and_shrinks_moves() {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("1s", ""));
    stage.start_kerf(&["--pod-metrics"]);
    let web = |replicas| {
        let web = deployment("web", replicas, "500m", "512Mi", "");
        web.replace("resources: {", "resources: {limits: {cpu: \"1\"}, ")
    };
    stage.apply(&web(3));
    stage.until_bound(3);
    until_rows(&stage, FULL);
    until_rows(&stage, CONDITIONS);

    let claims: Vec<NodeClaim> = stage.list();
    stage.delete::<NodeClaim>(&claims[0].name_any());
    until_rows(&stage, DRAINED);
    stage.until_bound(3);

    stage.apply(&web(0));
    stage.until_empty();

    until_rows(&stage, EMPTY);
    stage.until("no series of a node", || async {
        let text = scrape(&stage);
        value(&text, "karpenter_nodes_allocatable", &[])
            .is_none()
            .then_some(())
    });
}

#[test]
fn a_price_that_the_account_is_told_makes_the_dearer_type_of_the_list_the_first_choice() {
    let mut stage = Stage::set_with(|world| {
        let prices = &mut world.account_prices;
        prices.insert("ecs.g7.xlarge".to_owned(), 0.2);
    });
    let two_types = r#"        - {key: node.kubernetes.io/instance-type, operator: In, values: ["ecs.g7.large", "ecs.g7.xlarge"]}"#;
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("720h", two_types));
    stage.start_kerf(&["--price-poll-duration", "1s"]);
    stage.until("the prices are in use", async || {
        let log = stage.log();
        log.contains("prices are now as the account is told")
            .then_some(())
    });

    stage.apply(&deployment("web", 1, "500m", "1Gi", ""));
    stage.until_bound(1);

    let claim = stage.list::<NodeClaim>().remove(0);
    assert_eq!(
        claim.labels()["node.kubernetes.io/instance-type"],
        "ecs.g7.xlarge"
    );
    // Two types in four zones.
    stage.until("the source of each price", async || {
        let text = scrape(&stage);
        let live = value(&text, "kerf_cloud_prices", &["source=\"live\""])?;
        let age = value(&text, "kerf_cloud_price_age_seconds", &[])?;
        let prices = "karpenter_cloudprovider_instance_type_offering_price_estimate";
        let told = value(&text, prices, &["instance_type=\"ecs.g7.xlarge\""])?;
        let available = "karpenter_cloudprovider_instance_type_offering_available";
        let for_sale = value(&text, available, &["capacity_type=\"on-demand\""])?;
        let is_near = |value: f64, expected: f64| (value - expected).abs() < 1e-6;
        let is_told = is_near(live, 8.0) && is_near(told, 4.0 * 0.2) && is_near(for_sale, 8.0);
        (is_told && age > 0.0).then_some(())
    });
    let calls = stage.sim.calls();
    assert_eq!(
        calls["DescribePrice"].total, 2,
        "each is good for hours: {calls:?}"
    );
    assert!(
        !calls.contains_key("DescribeSpotPriceHistory"),
        "no pool wants spot"
    );
}
