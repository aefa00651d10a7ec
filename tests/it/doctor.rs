//! Level: the `kerf` binary against the real control plane and ecs-sim. `kerf doctor` names what is wrong, and only that.

use std::process::{Command, Output};

use ecs_sim::{Effect, Fault};
use kerf_api::nodepool::NodePool;
use serde_json::Value;

use crate::scenarios::{ECSNODECLASS, pool};
use crate::stage::{CLUSTER_ID, NAMESPACE, Stage, binary, root, tool};

/// Whom the chart's rights are for.
const CONTROLLER: &str = "system:serviceaccount:kerf-system:kerf";

/// The chart's rights, by real helm.
fn rights() -> String {
    let output = Command::new(tool("helm"))
        .args(["template", "kerf", "charts/kerf", "--namespace", NAMESPACE])
        .args(["--set", "settings.clusterID=c1,settings.region=cn-hangzhou"])
        .args(["--show-only", "templates/rbac.yaml"])
        .current_dir(root())
        .output()
        .expect("run helm (tests/tools/build.sh helm)");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn doctor(stage: &Stage, output: &str, secret: &str) -> Output {
    let products = ["ecs", "vpc", "cs", "ram", "sts"];
    let endpoints = products.map(|product| format!("--{product}-endpoint={}", stage.sim.url()));
    Command::new(binary("kerf"))
        .args(["doctor", "--as", CONTROLLER, "--output", output])
        .args([
            "--cluster-id",
            CLUSTER_ID,
            "--region",
            "cn-hangzhou",
            "--namespace",
            NAMESPACE,
        ])
        .args(endpoints)
        .arg("--kubeconfig")
        .arg(stage.control_plane.kubeconfig_path())
        .env("ALIBABA_CLOUD_ACCESS_KEY_ID", "LTAIsim")
        .env("ALIBABA_CLOUD_ACCESS_KEY_SECRET", secret)
        .output()
        .expect("run kerf")
}

/// What it found of this level: check, object and field.
fn found(output: &Output, level: &str) -> Vec<String> {
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let findings = report["findings"].as_array().expect("findings").iter();
    let text = |it: &Value, name: &str| it[name].as_str().unwrap_or_default().to_owned();
    let shown = findings.filter(|it| it["level"] == level).map(|it| {
        ["check", "object", "field"]
            .map(|name| text(it, name))
            .join(" | ")
    });
    shown.collect()
}

#[test]
fn a_cluster_that_is_as_it_should_be_has_nothing_to_fix() {
    let mut stage = Stage::set();
    stage.apply(&rights());
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("720h", ""));
    stage.start_kerf(&[]);
    stage.until("the pool ready", || async {
        let pools: Vec<NodePool> = stage.list_async().await;
        kerf_api::condition::is_true(pools.first()?.conditions(), "Ready").then_some(())
    });

    let output = doctor(&stage, "json", "simulated");

    assert_eq!(found(&output, "problem"), Vec::<String>::new());
    assert_eq!(found(&output, "warning"), Vec::<String>::new());
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("a dry run of ecs."), "{said}");
    assert!(stage.instances().is_empty());
}

#[test]
fn a_missing_right_a_full_vswitch_a_forbidden_call_and_a_policy_without_its_label_are_named() {
    let stage = Stage::set_with(|world| world.vswitches[0].available_ips = Some(0));
    let nodes = "resources: [nodes]\n    verbs: [list, watch, patch, delete]";
    let rights = rights();
    assert!(rights.contains(nodes), "{rights}");
    stage.apply(&rights.replace(
        nodes,
        "resources: [nodes]\n    verbs: [list, watch, delete]",
    ));
    stage.apply(&format!(
        "{}\n  policies:\n    - {{name: spot, hook: InstanceSelection, source: {{configMap: {{name: spot, key: policy.wasm}}}}}}\n",
        ECSNODECLASS.trim_end()
    ));
    stage.apply(&pool("720h", ""));
    stage.apply(&format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: spot, namespace: {NAMESPACE}}}"
    ));
    stage.sim.add_fault(Fault {
        action: "RunInstances".to_owned(),
        when: Default::default(),
        skip: 0,
        times: 100,
        after: false,
        effect: Effect::Error {
            status: 403,
            code: "Forbidden.RAM".to_owned(),
        },
    });

    let output = doctor(&stage, "json", "simulated");

    let expected = [
        "rights | ClusterRole of the controller | rules: {apiGroups: [\"\"], resources: [nodes], verbs: [patch]}",
        "policies | ECSNodeClass default | spec.policies[spot].source.configMap.name",
        "permissions | the RAM policy of the controller | Statement[].Action: ecs:RunInstances",
        "vswitches | ECSNodeClass default | spec.vSwitchSelectorTerms",
        "launch | ECSNodeClass default | ",
    ];
    assert_eq!(found(&output, "problem"), expected);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(doctor(&stage, "text", "simulated").stdout).unwrap();
    assert!(text.starts_with("FIX      rights: ClusterRole"), "{text}");
    assert!(
        text.contains("kubectl label configmap spot karpenter.alibabacloud.com/policy=true"),
        "{text}"
    );
    assert!(text.contains("has 0 free addresses"), "{text}");
}

#[test]
fn a_wrong_key_is_told_as_such_and_not_as_a_missing_permission() {
    let stage = Stage::set();
    stage.apply(&rights());

    let output = doctor(&stage, "json", "wrong");

    assert_eq!(
        found(&output, "problem"),
        ["credentials | the controller's environment | "]
    );
    assert!(!String::from_utf8_lossy(&output.stdout).contains("\"wrong\""));
}
