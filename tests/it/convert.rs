//! Level: the real API server alone. What `kerf convert` makes of other autoscalers' manifests is accepted, and says what
//! it left out.

use serde_json::Value;

use crate::api_server;
use crate::stage::{binary, root};

/// What the command prints for a fixture: objects and warnings.
fn convert(fixture: &str) -> (Vec<Value>, String) {
    let file = root().join("tests/fixtures/convert").join(fixture);
    let output = std::process::Command::new(binary("kerf"))
        .args(["convert", "-f"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    (objects, String::from_utf8(output.stderr).unwrap())
}

/// Converts, has the API server accept every object, and looks for the warnings. Returns the objects by kind and name.
#[track_caller]
fn check(fixture: &str, warnings: &[&str]) -> impl Fn(&str) -> Value {
    let (objects, said) = convert(fixture);
    let server = api_server::shared();
    for object in &objects {
        if let Err(message) = server.apply(object) {
            panic!("{fixture}: refused: {message}\n{object}");
        }
    }
    for warning in warnings {
        assert!(said.contains(warning), "{warning:?} is not said:\n{said}");
    }
    move |name: &str| {
        let is_it = |it: &&Value| {
            format!(
                "{}/{}",
                it["kind"].as_str().unwrap(),
                it["metadata"]["name"].as_str().unwrap()
            ) == name
        };
        objects
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("{name}: {objects:?}"))
            .clone()
    }
}

fn requirement(pool: &Value, key: &str) -> Value {
    let list = pool["spec"]["template"]["spec"]["requirements"]
        .as_array()
        .unwrap();
    list.iter()
        .find(|item| item["key"] == key)
        .cloned()
        .unwrap_or_default()
}

const CPU: &str = "karpenter.alibabacloud.com/instance-cpu";
const MEMORY: &str = "karpenter.alibabacloud.com/instance-memory";

#[test]
fn a_provisioner_keeps_its_lifetimes_limits_and_selectors() {
    let made = check(
        "provisioner.yaml",
        &["us-west-2a", "zones and regions of another cloud"],
    );

    let pool = made("NodePool/default");
    assert_eq!(
        pool["spec"]["disruption"]["consolidationPolicy"],
        "WhenEmpty"
    );
    assert_eq!(pool["spec"]["disruption"]["consolidateAfter"], "30s");
    assert_eq!(pool["spec"]["template"]["spec"]["expireAfter"], "2592000s");
    assert_eq!(pool["spec"]["limits"]["cpu"], 1000);
    let class = made("ECSNodeClass/default");
    assert_eq!(
        class["spec"]["vSwitchSelectorTerms"][0]["tags"]["karpenter.sh/discovery"],
        "my-cluster"
    );
    assert_eq!(
        made("Pod/driver")["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"],
        "true"
    );
}

#[test]
fn a_provisioner_with_its_cluster_keeps_the_cluster_and_the_size_of_its_types() {
    let made = check(
        "provisioner-with-cluster.yaml",
        &["instanceProfile", "became the CPUs and memory"],
    );

    let pool = made("NodePool/older");
    assert_eq!(
        requirement(&pool, CPU)["values"],
        serde_json::json!(["2", "4"])
    );
    assert_eq!(
        requirement(&pool, MEMORY)["values"],
        serde_json::json!(["8192", "16384"])
    );
    assert_eq!(pool["spec"]["template"]["spec"]["expireAfter"], "Never");
    assert_eq!(
        made("ECSNodeClass/older")["spec"]["clusterName"],
        "my-cluster"
    );
}

#[test]
fn an_aws_node_template_keeps_disks_and_tags_and_names_the_rest() {
    let made = check(
        "aws-node-template.yaml",
        &[
            "detailedMonitoring",
            "iops",
            "httpProtocolIPv6",
            "sg-0123",
            "kubernetes.io/cluster/my-cluster",
            "Bottlerocket became ContainerOS",
        ],
    );

    let class = made("ECSNodeClass/template");
    assert_eq!(class["spec"]["systemDisk"]["volumeSize"], "50Gi");
    assert_eq!(class["spec"]["dataDisks"][0]["deleteWithInstance"], false);
    assert_eq!(class["spec"]["tags"], serde_json::json!({"team": "a"}));
}

#[test]
fn a_v1beta1_pool_moves_its_expiry_and_its_kubelet() {
    let made = check(
        "ec2-v1beta1.yaml",
        &["instance-category", "my-role", "sg-0123"],
    );

    let pool = made("NodePool/beta");
    assert_eq!(pool["spec"]["template"]["spec"]["expireAfter"], "Never");
    assert_eq!(
        pool["spec"]["disruption"]["consolidationPolicy"],
        "WhenEmptyOrUnderutilized"
    );
    assert_eq!(
        pool["spec"]["disruption"]["budgets"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    assert_eq!(requirement(&pool, CPU)["operator"], "Gt");
    assert_eq!(made("ECSNodeClass/beta")["spec"]["kubelet"]["maxPods"], 50);
}

#[test]
fn a_v1_pool_of_gpu_types_asks_for_gpus() {
    let made = check("ec2-v1.yaml", &["amiSelectorTerms", "my-role"]);

    let pool = made("NodePool/gpu");
    let gpus = requirement(&pool, "karpenter.alibabacloud.com/instance-gpu-count");
    assert_eq!(gpus["operator"], "Gt");
    assert_eq!(requirement(&pool, CPU)["values"], serde_json::json!(["8"]));
    assert_eq!(made("ECSNodeClass/gpu")["spec"]["kubelet"]["maxPods"], 30);
}

#[test]
fn a_tke_class_and_its_pool_keep_what_has_an_equal() {
    let made = check("tke.yaml", &["CloudPremium", "families of another cloud"]);

    let pool = made("NodePool/tke");
    assert_eq!(requirement(&pool, CPU)["operator"], "Gt");
    assert_eq!(pool["spec"]["disruption"]["budgets"][0]["nodes"], "10%");
    let class = made("ECSNodeClass/tke");
    assert_eq!(
        class["spec"]["internetAccessible"],
        serde_json::json!({"chargeType": "PayByTraffic", "maxBandwidthOut": 2})
    );
    let disk = &class["spec"]["dataDisks"][0];
    assert_eq!(
        (&disk["size"], &disk["fileSystem"]),
        (&50.into(), &"ext4".into())
    );
    assert_eq!(disk["mountTarget"], "/var/lib/containerd");
    assert_eq!(
        class["spec"]["sshKeySelectorTerms"][0]["tags"]["karpenter.sh/discovery"],
        "cls-1"
    );
}

#[test]
fn the_other_alibaba_class_keeps_everything_but_its_password() {
    let made = check("other-alibaba.yaml", &["password", "instance-hypervisor"]);

    let class = made("ECSNodeClass/other");
    assert_eq!(
        class["spec"]["imageSelectorTerms"][0]["alias"],
        "AlibabaCloudLinux3@latest"
    );
    assert_eq!(class["spec"]["systemDisk"]["volumeSize"], "60Gi");
    assert_eq!(class["spec"]["dataDisks"][0]["categories"][0], "cloud_essd");
    assert_eq!(class["spec"]["kubelet"]["maxPods"], 60);
    let family = requirement(
        &made("NodePool/other"),
        "karpenter.alibabacloud.com/instance-family",
    );
    assert_eq!(family["values"][0], "ecs.g7");
}

#[test]
fn an_ack_node_pool_becomes_a_pool_and_a_class() {
    let made = check(
        "ack.json",
        &[
            "min_instances",
            "login_password",
            "auto_snapshot_policy_id",
            "multi_az_policy",
            "cpu_policy",
            "image_id",
        ],
    );

    let pool = made("NodePool/web-pool");
    assert_eq!(
        requirement(&pool, "node.kubernetes.io/instance-type")["values"][1],
        "ecs.g7.2xlarge"
    );
    assert_eq!(
        requirement(&pool, "karpenter.sh/capacity-type")["values"][0],
        "spot"
    );
    assert_eq!(pool["spec"]["limits"]["nodes"], "10");
    let class = made("ECSNodeClass/web-pool");
    assert_eq!(class["spec"]["spotPriceLimit"], 1.0);
    assert_eq!(class["spec"]["systemDisk"]["size"], 120);
}

#[test]
fn a_group_of_cluster_autoscaler_keeps_size_labels_and_taints() {
    let made = check(
        "cluster-autoscaler.yaml",
        &["min-size", "clusterName", "safe-to-evict"],
    );

    let pool = made("NodePool/workers");
    assert_eq!(pool["spec"]["limits"]["nodes"], "5");
    assert_eq!(requirement(&pool, CPU)["values"][0], "4");
    assert_eq!(requirement(&pool, MEMORY)["values"][0], "16384");
    assert_eq!(
        pool["spec"]["template"]["spec"]["taints"][0]["effect"],
        "NoSchedule"
    );
    assert_eq!(
        made("Pod/cache")["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"],
        "true"
    );
}

#[test]
fn helm_values_become_the_class_that_they_stood_for() {
    let made = check(
        "helm-values.yaml",
        &[
            "KarpenterNodeInstanceProfile",
            "serviceAccount.create",
            "role-arn",
        ],
    );

    assert_eq!(
        made("ECSNodeClass/default")["spec"]["clusterName"],
        "my-cluster"
    );
}

/// All fixtures, by their paths below tests/fixtures/convert.
fn fixtures() -> Vec<String> {
    let mut names = Vec::new();
    for folder in ["", "all-fields/"] {
        let path = root().join("tests/fixtures/convert").join(folder);
        for entry in std::fs::read_dir(path).unwrap().map(Result::unwrap) {
            if entry.path().is_file() {
                names.push(format!("{folder}{}", entry.file_name().display()));
            }
        }
    }
    names.sort();
    names
}

fn documents(fixture: &str) -> Vec<Value> {
    let file = root().join("tests/fixtures/convert").join(fixture);
    serde_saphyr::from_multiple(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// JSON pointers of everything that has nothing in it.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object {
                let key = key.replace('~', "~0").replace('/', "~1");
                leaves(inner, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(list) => {
            for (idx, inner) in list.iter().enumerate() {
                leaves(inner, &format!("{at}/{idx}"), found);
            }
        }
        _ => found.push(at.to_owned()),
    }
}

/// Everything that the command says about these documents.
fn said_of(documents: &[Value], folder: &std::path::Path, name: &str) -> String {
    let file = folder.join(format!("{name}.json"));
    let texts: Vec<String> = documents.iter().map(Value::to_string).collect();
    std::fs::write(&file, texts.join("\n---\n")).unwrap();
    let output = std::process::Command::new(binary("kerf"))
        .args(["convert", "-f"])
        .arg(&file)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    String::from_utf8(said).unwrap()
}

/// Says nothing about what a user wants: which of the things of another name is meant.
const IDENTITY: [&str; 6] = [
    "/apiVersion",
    "/kind",
    "/spec/template/spec/nodeClassRef/group",
    "/spec/template/spec/nodeClassRef/kind",
    "/spec/template/spec/nodeClassRef/apiVersion",
    "/spec/providerRef/apiVersion",
];

/// A document without the value, and one with another value.
fn mutants(document: &Value, pointer: &str) -> [Value; 2] {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let (mut without, mut other) = (document.clone(), document.clone());
    match without.pointer_mut(parent).unwrap() {
        Value::Object(object) => {
            object.shift_remove(&name.replace("~1", "/").replace("~0", "~"));
        }
        Value::Array(list) => {
            list.remove(name.parse().unwrap());
        }
        _ => unreachable!("a leaf is in something"),
    }
    let place = other.pointer_mut(pointer).unwrap();
    *place = match place.take() {
        Value::String(text) => format!("{text}x").into(),
        Value::Number(number) => (number.as_i64().unwrap() + 1).into(),
        Value::Bool(it) => (!it).into(),
        other => other,
    };
    [without, other]
}

#[test]
fn no_field_is_dropped_without_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let mut silent = Vec::new();
    let mut count = 0;
    for fixture in fixtures() {
        let documents = documents(&fixture);
        let before = said_of(&documents, folder.path(), "whole");
        for (idx, document) in documents.iter().enumerate() {
            let mut found = Vec::new();
            leaves(document, "", &mut found);
            found.retain(|pointer| {
                !IDENTITY.contains(&pointer.as_str()) && !pointer.ends_with("providerRef/kind")
            });
            count += found.len();
            let is_silent = |pointer: &String| {
                mutants(document, pointer).into_iter().all(|mutant| {
                    let mut all = documents.clone();
                    all[idx] = mutant;
                    said_of(&all, folder.path(), "mutant") == before
                })
            };
            silent.extend(
                found
                    .iter()
                    .filter(|pointer| is_silent(pointer))
                    .map(|pointer| format!("{fixture} {pointer}")),
            );
        }
    }

    assert!(count > 400, "{count}");
    assert_eq!(silent, Vec::<String>::new());
}

/// Pods that go onto any node, and a pool for fixtures that have only a class.
const WORKLOAD: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: any}
spec:
  replicas: 3
  selector: {matchLabels: {app: any}}
  template:
    metadata: {labels: {app: any}}
    spec:
      tolerations: [{operator: Exists}]
      containers: [{name: any, image: any, resources: {requests: {cpu: 500m, memory: 512Mi}}}]
"#;

/// Converts, has the server accept the objects, and plans pods for them.
fn is_planned(fixture: &str) -> Result<(), String> {
    let (mut objects, _) = convert(fixture);
    let server = api_server::shared();
    for object in &objects {
        server
            .apply(object)
            .map_err(|message| format!("refused: {message}"))?;
    }
    if objects.iter().all(|it| it["kind"] != "NodePool") {
        let class = objects
            .iter()
            .find(|it| it["kind"] == "ECSNodeClass")
            .unwrap();
        let pool = serde_json::json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "added"},
            "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": {
                "group": "karpenter.alibabacloud.com", "kind": "ECSNodeClass", "name": class["metadata"]["name"],
            }}}},
        });
        objects.push(pool);
    }
    let folder = tempfile::tempdir().unwrap();
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    std::fs::write(folder.path().join("made.json"), texts.join("\n---\n")).unwrap();
    std::fs::write(folder.path().join("pods.yaml"), WORKLOAD).unwrap();
    let output = std::process::Command::new(binary("kerf"))
        .args(["simulate", "-o", "json", "-f"])
        .arg(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Value = serde_json::from_slice(&output.stdout).map_err(|_| said.clone())?;
    let summary = &report["summary"];
    // A pod of the fixture itself need not fit.
    let pods = objects.iter().filter(|it| it["kind"] == "Pod").count() as u64;
    let is_whole = summary["unschedulable"].as_u64() <= Some(pods);
    if is_whole && summary["onNewNodes"].as_u64() >= Some(3) {
        Ok(())
    } else {
        Err(format!("{summary}\n{}\n{said}", report["unplaced"]))
    }
}

#[test]
fn what_is_made_of_each_of_the_seven_kinds_is_accepted_and_planned() {
    let wrong: Vec<String> = fixtures()
        .into_iter()
        .filter_map(|fixture| {
            is_planned(&fixture)
                .err()
                .map(|why| format!("{fixture}: {why}"))
        })
        .collect();

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
