//! Level: the `kerf` binary against the real control plane. `kerf explain` tells what the controller wrote down.

use std::path::Path;
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

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cluster.json");
    snapshot_plans_as_the_cluster(&stage, &file, &node);

    let missing = explain(&stage, &["pod", "ghost"]);
    assert_eq!(missing.status.code(), Some(2));
    let message = String::from_utf8(missing.stderr).unwrap();
    assert!(message.contains("there is no Pod ghost"), "{message}");
}

/// What is written of the cluster is enough to decide again, and tells nothing else.
fn snapshot_plans_as_the_cluster(stage: &Stage, file: &Path, node: &str) {
    let run = |arguments: &[&str]| {
        let kubeconfig = stage.control_plane.kubeconfig_path();
        let mut command = Command::new(binary("kerf"));
        command.args(arguments).env("KUBECONFIG", kubeconfig);
        let output = command.current_dir(root()).output().expect("run kerf");
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let path = file.to_str().unwrap();
    assert_eq!(run(&["snapshot", "-o", path]).0, Some(0));
    let written = std::fs::read_to_string(file).unwrap();
    assert!(!written.contains("registry.invalid"), "{written}");

    // The one pod that fits nowhere makes it 1.
    let (code, report) = run(&["simulate", "--disrupt", "-o", "json", "-f", path]);
    assert_eq!(code, Some(1), "{report}");
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        report["unschedulable"][0]["pods"][0]["name"],
        "default/huge"
    );
    assert_eq!(report["disruption"]["kept"][0]["node"], node, "{report}");
    // Packed it is the same cluster.
    let packed = file.with_extension("json.zst");
    let packed = packed.to_str().unwrap();
    assert_eq!(run(&["snapshot", "-o", packed]).0, Some(0));
    assert!(std::fs::metadata(packed).unwrap().len() < std::fs::metadata(file).unwrap().len());
    let (code, of_packed) = run(&["simulate", "-o", "json", "-f", packed]);
    assert_eq!(code, Some(1), "{of_packed}");
    let of_packed: Value = serde_json::from_str(&of_packed).unwrap();
    assert_eq!(of_packed["unschedulable"], report["unschedulable"]);
    let (_, small) = run(&["explain", "pod", "small", "-f", path]);
    assert!(
        small.starts_with(&format!("Pod default/small: is on node {node}\n")),
        "{small}"
    );
}
