//! Values that people bring from elsewhere work under their names, or the schema says what to write instead.

use super::{helm, of_kind, pod, render};

/// As a CDK program for Karpenter 0.19 sets them.
const CDK: [&str; 3] = [
    "serviceAccount.create=false",
    "serviceAccount.name=karpenter",
    r#"settings.aws={"clusterEndpoint":"https://1.2.3.4","clusterName":"prod","defaultInstanceProfile":"NodeRole"}"#,
];

#[track_caller]
fn check_told(set: &str, message: &str) {
    let output = helm(&["template", "kerf"], &[set]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();

    assert!(!output.status.success(), "{set} was taken");
    assert!(error.contains(message), "{set}: {error}");
}

#[test]
fn values_of_karpenters_chart_are_answered_with_what_to_write() {
    check_told(
        CDK[2],
        "write settings.clusterName, settings.clusterEndpoint",
    );
    check_told(
        r#"serviceAccount.annotations={"eks.amazonaws.com/role-arn":7}"#,
        "at '/serviceAccount/annotations/eks.amazonaws.com~1role-arn': got number, want string",
    );
    let told = [
        ("settings.interruptionQueue=q", "interruptions are polled"),
        ("settings.isolatedVPC=true", "write settings.network: vpc"),
        ("settings.reservedENIs=1", "leave it out"),
        ("settings.eksControlPlane=true", "write settings.clusterID"),
        ("settings.clusterCABundle=x", "leave it out"),
        ("fullnameOverride=karpenter", "write nameOverride"),
        ("logLevel=debug", "write logging.level"),
        ("controller.image.repository=x", "write image.repository"),
        ("hostNetwork=true", "leave it out"),
        ("clusterID=c1", "write settings.clusterID"),
    ];
    for (set, message) in told {
        check_told(set, message);
    }
}

#[test]
fn the_same_values_work_once_they_are_written_so() {
    let objects = render(&[
        CDK[0],
        CDK[1],
        "settings.clusterName=prod",
        "settings.clusterEndpoint=https://1.2.3.4",
        "settings.defaultNodeRole=NodeRole",
    ]);

    assert!(objects.iter().all(|it| it["kind"] != "ServiceAccount"));
    let spec = pod(&objects);
    assert_eq!(spec["serviceAccountName"], "karpenter");
    let bound = &of_kind(&objects, "ClusterRoleBinding")["subjects"][0]["name"];
    assert_eq!(bound, "karpenter");
    let environment = spec["containers"][0]["env"].as_array().unwrap();
    for (name, value) in [
        ("CLUSTER_NAME", "prod"),
        ("CLUSTER_ENDPOINT", "https://1.2.3.4"),
        ("DEFAULT_NODE_ROLE", "NodeRole"),
    ] {
        let found = environment.iter().find(|it| it["name"] == name);
        assert_eq!(found.unwrap()["value"], value, "{name}");
    }
}
