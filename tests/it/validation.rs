//! Level: the real API server alone. Every rule of our definitions accepts what it should and refuses the rest.

use std::fmt::Write;

use kube::Client;
use serde_json::Value;

use crate::api_server::{self, Server};
use crate::rules::{self, Case, Rule};

/// What becomes of a request.
type Answer = Result<Value, String>;

#[test]
fn every_rule_has_an_object_that_it_accepts_and_one_that_it_refuses() {
    let server = api_server::shared();
    let (cases, mut wrong) = rules::cases();

    for (idx, case) in cases.iter().enumerate() {
        let accepted = server.try_case(case, &case.accepted, &format!("yes-{idx}"));
        let refused = server.try_case(case, &case.refused, &format!("no-{idx}"));
        let rule = format!("{} {}", case.rule.site, case.rule.name);
        if let Err(message) = accepted {
            wrong.push(format!("{rule}: refuses what it should accept: {message}"));
        }
        match refused {
            Ok(_) => wrong.push(format!("{rule}: accepts what it should refuse")),
            Err(message) if !says(&message, &case.rule) => {
                wrong.push(format!("{rule}: refuses for another reason: {message}"));
            }
            Err(_) => {}
        }
    }

    let mut report = String::new();
    for line in &wrong {
        let _ = writeln!(report, "{line}");
    }
    assert!(wrong.is_empty(), "{} wrong:\n{report}", wrong.len());
}

/// Whether the server's words are about this rule.
fn says(message: &str, rule: &Rule) -> bool {
    let expected = match rule.name.as_str() {
        "pattern" => "should match",
        "enum" => "Unsupported value",
        "minimum" => "greater than or equal to",
        "maximum" => "less than or equal to",
        "minLength" => "chars long",
        "maxLength" => "may not be more than",
        "minItems" | "minProperties" => "at least",
        "maxItems" | "maxProperties" => "must have at most",
        "required" => "Required value",
        "unique" => "uplicate",
        cel => cel.trim_start_matches("cel: "),
    };
    message.contains(expected)
}

impl Server {
    fn try_case(&self, case: &Case, object: &Value, name: &str) -> Answer {
        let named = |object: &Value| {
            let mut object = object.clone();
            object["metadata"]["name"] = name.into();
            object
        };
        let request = Request::new(&self.client, object);
        let is_status = case.rule.site.contains(".status.");
        self.runtime.block_on(async {
            if !is_status && !case.rule.is_transition {
                return request.send("POST", "", true, &named(object)).await;
            }
            let before = request.send("POST", "", false, &named(&case.before)).await;
            let before = before.expect("the object of the table is accepted");
            let mut object = named(object);
            object["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
            let part = if is_status { "/status" } else { "" };
            request
                .send("PUT", &format!("/{name}{part}"), true, &object)
                .await
        })
    }
}

/// Where requests about an object's kind go.
struct Request<'a> {
    client: &'a Client,
    collection: String,
}

impl<'a> Request<'a> {
    fn new(client: &'a Client, object: &Value) -> Self {
        let kind = object["kind"].as_str().unwrap();
        let version = object["apiVersion"].as_str().unwrap();
        let namespace = if kind == "CapacityBuffer" {
            "namespaces/default/"
        } else {
            ""
        };
        let plural = match kind {
            "ECSNodeClass" => "ecsnodeclasses".to_owned(),
            kind => format!("{}s", kind.to_lowercase()),
        };
        Self {
            client,
            collection: format!("/apis/{version}/{namespace}{plural}"),
        }
    }

    async fn send(&self, method: &str, below: &str, is_dry: bool, body: &Value) -> Answer {
        let dry = if is_dry { "&dryRun=All" } else { "" };
        let uri = format!("{}{below}?fieldValidation=Strict{dry}", self.collection);
        let request = http::Request::builder()
            .method(method)
            .uri(uri)
            .header("Content-Type", "application/json")
            .body(serde_json::to_vec(body).unwrap())
            .unwrap();
        let answer = self.client.request::<Value>(request).await;
        answer.map_err(|error| error.to_string())
    }
}

/// A NodePool with these settings of its template, and the server's answer about it.
fn pool(template: &Value) -> Answer {
    let server = api_server::shared();
    let mut template = template.clone();
    template["spec"]["nodeClassRef"] = serde_json::json!({
        "group": "karpenter.alibabacloud.com", "kind": "ECSNodeClass", "name": "c",
    });
    let object = serde_json::json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"},
        "spec": {"template": template},
    });
    let request = Request::new(&server.client, &object);
    server
        .runtime
        .block_on(request.send("POST", "", true, &object))
}

#[track_caller]
fn check_refused(answer: Answer, reason: &str) {
    let message = answer.expect_err("refused");
    assert!(message.contains(reason), "{message}");
}

// user-reports.md, F21.
#[test]
fn labels_that_a_kubelet_refuses_are_refused_before_a_node_starts_with_them() {
    let labelled = |labels: Value| {
        pool(&serde_json::json!({"metadata": {"labels": labels}, "spec": {"requirements": []}}))
    };

    check_refused(
        labelled(serde_json::json!({"team/a/b": "x"})),
        "label keys are [prefix/]name",
    );
    check_refused(labelled(serde_json::json!({"ok": "x y"})), "should match");
    assert!(labelled(serde_json::json!({"ok": "1"})).is_ok());
}

// user-reports.md, F50.
#[test]
fn our_own_label_domain_is_known_and_a_misspelt_key_is_answered_with_the_list() {
    let required = |key: &str| {
        pool(&serde_json::json!({"spec": {"requirements": [
            {"key": key, "operator": "In", "values": ["ecs.g7"]},
        ]}}))
    };

    assert!(required("karpenter.alibabacloud.com/instance-family").is_ok());
    check_refused(
        required("karpenter.alibabacloud.com/instance-famly"),
        "karpenter.alibabacloud.com/instance-family",
    );
}

// user-reports.md, F51.
#[test]
fn an_unknown_capacity_type_architecture_or_system_is_refused_rather_than_tried_for_ever() {
    let required = |key: &str, value: &str| {
        pool(&serde_json::json!({"spec": {"requirements": [
            {"key": key, "operator": "In", "values": [value]},
        ]}}))
    };

    check_refused(
        required("karpenter.sh/capacity-type", "xspot"),
        "values of karpenter.sh/capacity-type: spot, on-demand, reserved",
    );
    check_refused(
        required("kubernetes.io/arch", "x86_64"),
        "values of kubernetes.io/arch: amd64, arm64",
    );
    check_refused(
        required("kubernetes.io/os", "Linux"),
        "values of kubernetes.io/os: linux",
    );
}

/// The findings of `kerf validate` per file name, for the objects of the table.
fn findings_offline(cases: &[Case]) -> std::collections::BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let (new, old) = (folder.path().join("new"), folder.path().join("old"));
    std::fs::create_dir(&new).unwrap();
    std::fs::create_dir(&old).unwrap();
    let write = |folder: &std::path::Path, name: &str, object: &Value| {
        let mut object = object.clone();
        object["metadata"]["name"] = name.into();
        std::fs::write(folder.join(format!("{name}.json")), object.to_string()).unwrap();
    };
    for (idx, case) in cases.iter().enumerate() {
        for (name, object) in [("yes", &case.accepted), ("no", &case.refused)] {
            let name = format!("{name}-{idx}");
            write(&new, &name, object);
            if case.rule.is_transition {
                write(&old, &name, &case.before);
            }
        }
    }
    let output = std::process::Command::new(crate::stage::binary("kerf"))
        .args(["validate", "--schema-only", "-f"])
        .arg(&new)
        .arg("--old")
        .arg(&old)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let mut findings = std::collections::BTreeMap::<String, String>::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let (file, finding) = line.split_once(".json:").expect("file, line, path, reason");
        let name = file.rsplit('/').next().unwrap();
        let of_file = findings.entry(name.to_owned()).or_default();
        of_file.push_str(finding);
        of_file.push('\n');
    }
    findings
}

#[test]
fn kerf_validate_agrees_with_the_server_on_every_row() {
    let (cases, _) = rules::cases();

    let findings = findings_offline(&cases);

    let mut wrong = Vec::new();
    for (idx, case) in cases.iter().enumerate() {
        let rule = format!("{} {}", case.rule.site, case.rule.name);
        if let Some(finding) = findings.get(&format!("yes-{idx}")) {
            wrong.push(format!("{rule}: refuses what it should accept: {finding}"));
        }
        let refusal = findings.get(&format!("no-{idx}"));
        match (refusal, case.rule.name.strip_prefix("cel: ")) {
            (None, _) => wrong.push(format!("{rule}: accepts what it should refuse")),
            (Some(finding), Some(message)) if !finding.contains(message) => {
                wrong.push(format!("{rule}: refuses for another reason: {finding}"));
            }
            _ => {}
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn kerf_validate_names_file_line_path_and_reason_of_what_only_several_objects_show() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.yaml");
    let text = r#"apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: p}
spec:
  limits: {cpu: "1"}
  disruption:
    budgets:
      - nodes: "0"
      - {nodes: "1", schedule: "0 0 30 2 *", duration: 1h}
  template:
    spec:
      requirements:
        - {key: karpenter.alibabacloud.com/instance-cpu, operator: Gt, values: ["3"]}
        - {key: a, operator: In, value: [b]}
      nodeClassRef: {group: karpenter.alibabacloud.com, kind: ECSNodeClass, name: c}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: q}
spec:
  template:
    spec:
      requirements:
        - {key: karpenter.alibabacloud.com/instance-cpu, operator: Gt, values: ["30000"]}
      nodeClassRef: {group: karpenter.alibabacloud.com, kind: ECSNodeClass, name: c}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  template:
    spec:
      topologySpreadConstraints:
        - {maxSkew: 1, topologyKey: example.com/rack, whenUnsatisfiable: DoNotSchedule}
"#;
    std::fs::write(&file, text).unwrap();

    let output = std::process::Command::new(crate::stage::binary("kerf"))
        .args(["validate", "-f"])
        .arg(&file)
        .output()
        .unwrap();

    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8(output.stdout).unwrap();
    for (line, path, reason) in [
        (5, "spec.limits.cpu", "below the smallest node"),
        (8, "spec.disruption.budgets[0].nodes", "always closed"),
        (9, "spec.disruption.budgets[1].schedule", "names no day"),
        (
            14,
            "spec.template.spec.requirements[1].value",
            "unknown field",
        ),
        (24, "spec.template.spec.requirements[0]", "no instance type"),
        (
            34,
            "spec.template.spec.topologySpreadConstraints[0].topologyKey",
            "no domain",
        ),
    ] {
        let start = format!("{}:{line}: {path}: ", file.display());
        let is_there = printed
            .lines()
            .any(|printed| printed.starts_with(&start) && printed.contains(reason));
        assert!(is_there, "{start}{reason} is not in\n{printed}");
    }
    assert_eq!(printed.lines().count(), 6, "{printed}");
}

#[test]
fn kerf_validate_asks_a_policy_of_the_manifests_about_its_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let config_map = k8s_openapi::api::core::v1::ConfigMap {
        metadata: kube::core::ObjectMeta {
            name: Some("family".to_owned()),
            ..Default::default()
        },
        binary_data: Some(std::collections::BTreeMap::from([(
            "policy.wasm".to_owned(),
            k8s_openapi::ByteString(crate::policies::PREFER_FAMILY.to_vec()),
        )])),
        ..Default::default()
    };
    let config_map = serde_json::to_string(&config_map).unwrap();
    std::fs::write(folder.path().join("policy.json"), config_map).unwrap();
    let class = r"apiVersion: karpenter.alibabacloud.com/v1alpha1
kind: ECSNodeClass
metadata: {name: c}
spec:
  vSwitchSelectorTerms: [{id: vsw-1}]
  securityGroupSelectorTerms: [{id: sg-1}]
  imageSelectorTerms: [{alias: ContainerOS}]
  policies:
    - name: fine
      hook: InstanceSelection
      source: {configMap: {name: family}}
      config: {weights: {ecs.g8i: 100}}
    - name: wrong
      hook: InstanceSelection
      source: {configMap: {name: family}}
      config: {weights: {ecs.g8i: much}}
    - name: elsewhere
      hook: InstanceSelection
      source: {configMap: {name: another}}
      config: {any: thing}
";
    let file = folder.path().join("class.yaml");
    std::fs::write(&file, class).unwrap();

    let output = std::process::Command::new(crate::stage::binary("kerf"))
        .args(["validate", "-f"])
        .arg(folder.path())
        .output()
        .unwrap();

    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let start = format!("{}:16: spec.policies[1].config: ", file.display());
    assert!(
        printed.starts_with(&start) && printed.contains("ecs.g8i"),
        "{printed}"
    );
    assert_eq!(printed.lines().count(), 1, "{printed}");
}

// user-reports.md, F05.
#[test]
fn an_image_alias_that_the_definition_takes_is_one_that_finds_images() {
    let server = api_server::shared();
    let with_alias = |alias: &str| {
        let object = serde_json::json!({
            "apiVersion": "karpenter.alibabacloud.com/v1alpha1", "kind": "ECSNodeClass", "metadata": {"name": "c"},
            "spec": {
                "vSwitchSelectorTerms": [{"id": "vsw-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}],
                "imageSelectorTerms": [{"alias": alias}],
            },
        });
        let request = Request::new(&server.client, &object);
        server
            .runtime
            .block_on(request.send("POST", "", true, &object))
    };

    // tests/simulated of kerf-cloud resolves the same ones.
    for alias in [
        "AlibabaCloudLinux3",
        "AlibabaCloudLinux3@latest",
        "ContainerOS",
        "ContainerOS@latest",
    ] {
        assert!(with_alias(alias).is_ok(), "{alias}");
    }
    for alias in ["AlibabaCloudLinux3@v1.32", "Ubuntu", "ContainerOS@"] {
        check_refused(
            with_alias(alias),
            "families: AlibabaCloudLinux3, ContainerOS",
        );
    }
}
