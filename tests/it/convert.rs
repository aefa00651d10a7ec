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
    let made = check(
        "ec2-v1.yaml",
        &["instanceStorePolicy", "amiSelectorTerms", "my-role"],
    );

    let pool = made("NodePool/gpu");
    let gpus = requirement(&pool, "karpenter.alibabacloud.com/instance-gpu-count");
    assert_eq!(gpus["operator"], "Gt");
    assert_eq!(requirement(&pool, CPU)["values"], serde_json::json!(["8"]));
    assert_eq!(made("ECSNodeClass/gpu")["spec"]["kubelet"]["maxPods"], 30);
}

#[test]
fn a_tke_class_and_its_pool_keep_what_has_an_equal() {
    let made = check(
        "tke.yaml",
        &[
            "maxBandwidthOut",
            "chargeType",
            "sshKeySelectorTerms",
            "mountTarget",
            "fileSystem",
            "families of another cloud",
        ],
    );

    let pool = made("NodePool/tke");
    assert_eq!(requirement(&pool, CPU)["operator"], "Gt");
    assert_eq!(pool["spec"]["disruption"]["budgets"][0]["nodes"], "10%");
    let class = made("ECSNodeClass/tke");
    assert_eq!(class["spec"]["formatDataDisk"], true);
    assert_eq!(class["spec"]["dataDisks"][0]["size"], 50);
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
    let made = check("helm-values.yaml", &["my-profile", "serviceAccount"]);

    assert_eq!(
        made("ECSNodeClass/default")["spec"]["clusterName"],
        "my-cluster"
    );
}
