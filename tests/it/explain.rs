//! Level: the `kerf` binary against the real control plane. `kerf explain` tells what the controller wrote down.

use std::process::{Command, Output};

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use serde_json::Value;

use crate::scenarios::ready_stage;
use crate::stage::{Stage, binary, root};

fn pod(name: &str, cpu: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default}}
spec:
  containers:
    - name: main
      image: registry.invalid/pause
      resources: {{requests: {{cpu: "{cpu}", memory: 1Gi}}}}
"#
    )
}

fn explain(stage: &Stage, arguments: &[&str]) -> Output {
    Command::new(binary("kerf"))
        .arg("explain")
        .args(arguments)
        .arg("--kubeconfig")
        .arg(stage.control_plane.kubeconfig_path())
        .current_dir(root())
        .env("COLUMNS", "1000")
        .output()
        .expect("run kerf")
}

fn text(stage: &Stage, arguments: &[&str]) -> String {
    let output = explain(stage, arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_the_controller_said_of_pods_nodes_and_pools_is_told() {
    let stage = ready_stage("720h", "");
    stage.apply(&pod("huge", "9000"));
    stage.apply(&pod("small", "500m"));

    // Before the pool is ready, that is the reason. Then its own, with the type that comes nearest; and what kube-scheduler thinks.
    let huge = stage.until("the reason of the pod that fits nowhere", || async {
        let told = text(&stage, &["pod", "huge"]);
        told.contains("pool default: needs 9000 cpu")
            .then_some(told)
    });
    assert!(
        huge.starts_with("Pod default/huge: waits for a node\n"),
        "{huge}"
    );
    assert!(huge.contains("  kube-scheduler: "), "{huge}");
    assert!(huge.contains("  FailedScheduling ("), "{huge}");
    assert!(huge.contains("ecs."), "{huge}");

    stage.until_bound(1);
    let small = text(&stage, &["pod", "small"]);
    let node = stage.list::<Node>()[0].name_any();
    let wanted = [
        &format!("Pod default/small: is on node {node}\n"),
        "  Nominated (",
        &format!("\nNode {node}: is NodeClaim default-"),
        "\nNodeClaim default-",
        "  Initialized=True (",
    ];
    for part in wanted {
        assert!(small.contains(part), "{part:?} is not in {small}");
    }

    let of_node: Value =
        serde_json::from_str(&text(&stage, &["node", &node, "-o", "json"])).unwrap();
    let claim = of_node["related"][0]["object"].as_str().unwrap();
    assert!(claim.starts_with("NodeClaim default-"), "{of_node}");
    let pool = text(&stage, &["nodepool", "default"]);
    assert!(pool.starts_with("NodePool default: 1 nodes\n"), "{pool}");
    assert!(pool.contains("  Ready=True"), "{pool}");

    let missing = explain(&stage, &["pod", "ghost"]);
    assert_eq!(missing.status.code(), Some(2));
    let message = String::from_utf8(missing.stderr).unwrap();
    assert!(message.contains("there is no Pod ghost"), "{message}");
}
