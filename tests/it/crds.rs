//! Level: the real API server alone. What our definitions accept, refuse, fill in and keep.

use serde_json::{Value, json};

use crate::api_server::{self, Server};
use crate::stage::root;

impl Server {
    #[track_caller]
    fn check_refused(&self, yaml: &str, reason: &str) {
        match self.apply(&document(yaml)) {
            Ok(object) => panic!("accepted, but should say {reason:?}: {object}"),
            Err(message) => assert!(message.contains(reason), "says {message:?}, not {reason:?}"),
        }
    }

    #[track_caller]
    fn check_accepted(&self, yaml: &str) -> Value {
        self.apply(&document(yaml))
            .unwrap_or_else(|message| panic!("refused: {message}\n{yaml}"))
    }
}

fn document(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).unwrap()
}

fn node_pool(template_spec: &str, spec: &str) -> String {
    format!(
        "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: general}}
spec:
  template:
    spec:
      nodeClassRef: {{group: karpenter.alibabacloud.com, kind: ECSNodeClass, name: default}}
      {template_spec}
  {spec}
"
    )
}

fn node_class(spec: &str) -> String {
    format!(
        "
apiVersion: karpenter.alibabacloud.com/v1alpha1
kind: ECSNodeClass
metadata: {{name: default}}
spec:
  vSwitchSelectorTerms: [{{id: vsw-1}}]
  securityGroupSelectorTerms: [{{id: sg-1}}]
  imageSelectorTerms: [{{alias: AlibabaCloudLinux3@latest}}]
  {spec}
"
    )
}

/// Everything of the manifest is in what the API server made of it.
#[track_caller]
fn assert_kept(written: &Value, stored: &Value, path: &str) {
    match (written, stored) {
        (Value::Object(written), Value::Object(stored)) => {
            for (key, value) in written {
                assert_kept(value, &stored[key], &format!("{path}.{key}"));
            }
        }
        (Value::Array(written), Value::Array(stored)) => {
            assert_eq!(written.len(), stored.len(), "{path}");
            for (idx, (written, stored)) in written.iter().zip(stored).enumerate() {
                assert_kept(written, stored, &format!("{path}[{idx}]"));
            }
        }
        (written, stored) => assert_eq!(written, stored, "{path}"),
    }
}

#[test]
fn manifests_of_the_other_provider_and_our_examples_are_accepted_unchanged() {
    let server = api_server::shared();

    for file in [
        "tests/fixtures/manifests/alibabacloud-provider-readme.yaml",
        "tests/fixtures/manifests/upstream-style.yaml",
        "examples/quickstart/ecsnodeclass.yaml",
        "examples/quickstart/nodepool.yaml",
    ] {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        for written in documents {
            let stored = server
                .apply(&written)
                .unwrap_or_else(|message| panic!("{file}: {message}"));
            assert_kept(&written["spec"], &stored["spec"], "spec");
            let again = through_our_types(&stored);
            assert_eq!(
                in_words(&again["spec"]),
                in_words(&stored["spec"]),
                "{file}"
            );
        }
    }
}

/// With numbers as texts: a quantity is the same in both forms.
fn in_words(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.to_string().into(),
        Value::Array(items) => items.iter().map(in_words).collect(),
        Value::Object(object) => {
            let fields = object.iter();
            let fields = fields.map(|(name, inner)| (name.clone(), in_words(inner)));
            fields.collect::<serde_json::Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

/// What the controller would write if it wrote an object as it read it.
fn through_our_types(object: &Value) -> Value {
    use kerf_api::{capacitybuffer, ecsnodeclass, nodeclaim, nodeoverlay, nodepool};

    fn through<K: serde::de::DeserializeOwned + serde::Serialize>(object: &Value) -> Value {
        let typed: K = serde_json::from_value(object.clone()).unwrap();
        serde_json::to_value(typed).unwrap()
    }
    match object["kind"].as_str().unwrap() {
        "NodePool" => through::<nodepool::NodePool>(object),
        "NodeClaim" => through::<nodeclaim::NodeClaim>(object),
        "NodeOverlay" => through::<nodeoverlay::NodeOverlay>(object),
        "CapacityBuffer" => through::<capacitybuffer::CapacityBuffer>(object),
        "ECSNodeClass" => through::<ecsnodeclass::EcsNodeClass>(object),
        other => unreachable!("{other} is not ours"),
    }
}

/// Every manifest below a folder.
fn manifests(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(manifests(&path));
        } else if path
            .extension()
            .is_some_and(|it| it == "yaml" || it == "yml" || it == "json")
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// With a word in place of each `${NAME}`, as the scripts of the example fill templates.
fn filled(text: &str) -> String {
    let mut parts = text.split("${");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (_, rest) = part.split_once('}').expect("a place ends");
        filled.push_str("example");
        filled.push_str(rest);
    }
    filled
}

// What `kubectl apply --server-side --dry-run=server` sends.
#[test]
fn every_manifest_of_the_examples_would_be_applied() {
    let server = api_server::shared();
    let mut count = 0;
    for file in manifests(&root().join("examples")) {
        let text = filled(&std::fs::read_to_string(&file).unwrap());
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        for document in documents.iter().filter(|it| it["kind"].is_string()) {
            let answer = server.try_apply(document);
            assert!(answer.is_ok(), "{}: {answer:?}", file.display());
            count += 1;
        }
    }

    assert!(count >= 3, "{count}");
}

#[test]
fn defaults_are_written_by_the_server() {
    let server = api_server::shared();

    let pool = server.check_accepted(&node_pool("requirements: []", ""));
    let class = server.check_accepted(&node_class(
        "policies: [{name: cheap, hook: InstanceSelection, source: {configMap: {name: cheap}}, config: {any: [1, {b: null}]}}]",
    ));

    assert_eq!(pool["spec"]["template"]["spec"]["expireAfter"], "720h");
    assert_eq!(
        pool["spec"]["disruption"],
        json!({
            "consolidateAfter": "0s",
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "budgets": [{"nodes": "10%"}],
        })
    );
    assert_eq!(class["spec"]["vSwitchSelectionPolicy"], "cheapest");
    let policy = &class["spec"]["policies"][0];
    assert_eq!(
        (&policy["mode"], &policy["wasi"], &policy["order"]),
        (&json!("Enforce"), &json!("None"), &json!(0))
    );
    assert_eq!(policy["config"]["any"][0], 1);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table, one row per rule")]
fn mistakes_in_a_node_pool_are_refused_with_what_to_do() {
    let server = api_server::shared();
    let requirement = |text: &str| node_pool(&format!("requirements: [{text}]"), "");

    server.check_accepted(&requirement(
        "{key: karpenter.alibabacloud.com/instance-cpu, operator: Gt, values: ['3']}",
    ));
    server.check_accepted(&requirement(
        "{key: topology.kubernetes.io/zone, operator: In, values: [a, b], minValues: 2}",
    ));
    for (pool, reason) in [
        (
            requirement("{key: a, operator: In}"),
            "operator In needs at least one value",
        ),
        (
            requirement("{key: a, operator: Gt, values: [x]}"),
            "a whole number",
        ),
        (
            requirement("{key: a, operator: Gt, values: ['1', '2']}"),
            "exactly one value",
        ),
        (
            requirement("{key: a, operator: In, values: [b], minValues: 2}"),
            "list more values or lower it",
        ),
        (
            requirement("{key: a, operator: In, values: [b c]}"),
            "should match",
        ),
        (requirement("{key: a, operator: Near}"), "Unsupported value"),
        (
            requirement("{key: karpenter.sh/registered, operator: Exists}"),
            "set by the controller",
        ),
        (
            requirement("{key: karpenter.sh/nodepool, operator: Exists}"),
            "set by the controller",
        ),
        (
            requirement("{key: x.karpenter.alibabacloud.com/a, operator: Exists}"),
            "set by the controller",
        ),
        (
            requirement("{key: kubernetes.io/hostname, operator: Exists}"),
            "names one node",
        ),
        (
            requirement("{key: a, operator: Exists, value: [b]}"),
            "field not declared in schema",
        ),
        (
            node_pool("{requirements: [], expireAfter: 30d}", "")
                .replace("{requirements: [], ", "requirements: []\n      ")
                .replace("30d}", "30d"),
            "should match",
        ),
        (
            node_pool("requirements: []", "weight: 101"),
            "should be less than or equal to 100",
        ),
        (
            node_pool(
                "requirements: []",
                "disruption: {budgets: [{nodes: '101%'}]}",
            ),
            "should match",
        ),
        (
            node_pool(
                "requirements: []",
                "disruption: {budgets: [{nodes: '1', schedule: '@daily'}]}",
            ),
            "both schedule and duration",
        ),
        (
            node_pool(
                "requirements: []",
                "disruption: {budgets: [{nodes: '1', schedule: 'x @daily', duration: 1h}]}",
            ),
            "should match",
        ),
        (
            node_pool("requirements: []", "{replicas: 1, weight: 1}")
                .replace("{replicas: 1, weight: 1}", "replicas: 1\n  weight: 1"),
            "weight may not be set",
        ),
        (
            node_pool("requirements: []", "limits: {cpu: many}"),
            "should match",
        ),
        (node_pool("", ""), "requirements: Required value"),
    ] {
        let pool = pool.replace("name: general", "name: refused");
        server.check_refused(&pool, reason);
    }
}

#[test]
fn what_must_not_change_cannot() {
    let server = api_server::shared();
    let claim = |key: &str| {
        format!(
            "
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {{name: general-1}}
spec:
  nodeClassRef: {{group: karpenter.alibabacloud.com, kind: ECSNodeClass, name: default}}
  requirements: [{{key: {key}, operator: Exists}}]
"
        )
    };
    server.check_accepted(&claim("a"));
    server.check_accepted(&node_pool("requirements: []", ""));

    server.check_refused(&claim("b"), "the spec of a NodeClaim cannot change");
    server.check_refused(
        &node_pool("requirements: []", "").replace("ECSNodeClass", "Other"),
        "nodeClassRef.kind cannot change",
    );
    server.check_refused(
        &node_pool("requirements: []", "replicas: 1"),
        "can neither be added nor taken away",
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table, one row per rule")]
fn mistakes_in_a_node_class_are_refused_with_what_to_do() {
    let server = api_server::shared();
    let policy = |text: &str| {
        node_class(&format!(
            "policies: [{{name: p, hook: InstanceSelection, {text}}}]"
        ))
    };

    server.check_accepted(&node_class(
        "dataDisks: [{size: 40}, {volumeSize: 100Gi, device: /dev/xvdc}]",
    ));
    server.check_accepted(&node_class(
        "kubelet: {maxPods: 30, evictionHard: {memory.available: 5%}, systemReserved: {cpu: 100m}}",
    ));
    for (class, reason) in [
        (
            node_class("dataDisks: [{category: cloud_essd}]"),
            "needs size, volumeSize or snapshotID",
        ),
        (
            node_class("systemDisk: {size: 40, volumeSize: 40Gi}"),
            "not both",
        ),
        (
            node_class("systemDisk: {category: floppy}"),
            "Unsupported value",
        ),
        (node_class("spotPriceLimit: 1.5"), "needs spotStrategy"),
        (
            node_class("spotStrategy: SpotWithPriceLimit"),
            "needs spotPriceLimit",
        ),
        (
            node_class("tags: {karpenter.sh/nodepool: a}"),
            "set by the controller",
        ),
        (node_class("tags: {'acs:a': b}"), "reserved"),
        (
            node_class("password: hunter2"),
            "field not declared in schema",
        ),
        (
            node_class("kubelet: {systemReserved: {gpu: 1}}"),
            "keys allowed here",
        ),
        (
            node_class("kubelet: {systemReserved: {cpu: -1}}"),
            "may not be negative",
        ),
        (
            node_class("kubelet: {evictionSoft: {memory.available: 5%}}"),
            "needs an entry in evictionSoftGracePeriod",
        ),
        (
            node_class("").replace("[{id: vsw-1}]", "[]"),
            "should have at least 1 items",
        ),
        (
            node_class("").replace("{id: vsw-1}", "{id: vsw-1}, {}"),
            "a term needs id or tags",
        ),
        (
            node_class("").replace("{id: sg-1}", "{id: sg-1, name: a}"),
            "id stands alone",
        ),
        (
            node_class("").replace("@latest}", "@latest}, {id: m-1}"),
            "must be the only one",
        ),
        (policy("source: {}"), "exactly one of"),
        (
            policy("source: {configMap: {name: a}, path: /a}"),
            "exactly one of",
        ),
        (
            policy("source: {configMap: {key: a}}"),
            "set name (with key) or shards",
        ),
        (
            policy("source: {path: /a}, digest: 'md5:0'"),
            "should match",
        ),
        (
            policy("source: {path: /a}, mode: Maybe"),
            "Unsupported value",
        ),
        (
            policy("source: {path: /a}}, {name: p, hook: InstanceSelection, source: {path: /b}"),
            "duplicate entries",
        ),
    ] {
        server.check_refused(&class.replace("name: default}", "name: refused}"), reason);
    }
}

#[test]
fn overlays_and_buffers_are_checked_too() {
    let server = api_server::shared();
    let overlay = |spec: &str| {
        format!(
            "{{apiVersion: karpenter.sh/v1alpha1, kind: NodeOverlay, metadata: {{name: a}}, spec: {{requirements: [], {spec}}}}}"
        )
    };
    let buffer = |spec: &str| {
        format!(
            "{{apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {{name: a}}, spec: {{{spec}}}}}"
        )
    };

    server.check_accepted(&overlay(
        "priceAdjustment: '-10%', capacity: {example.com/fpga: 1}",
    ));
    server.check_accepted(&buffer("podTemplateRef: {name: a}, replicas: 3"));
    server.check_refused(&overlay("price: '1', priceAdjustment: '+1'"), "not both");
    server.check_refused(&overlay("priceAdjustment: '-101%'"), "should match");
    server.check_refused(&overlay("capacity: {cpu: 1}"), "cannot be overlaid");
    server.check_refused(
        &buffer("podTemplateRef: {name: a}, scalableRef: {kind: Deployment, name: b}"),
        "not both",
    );
    server.check_refused(
        &buffer("podTemplateRef: {name: a}"),
        "needs replicas or limits",
    );
}
