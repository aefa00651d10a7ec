//! The chart by itself (real helm, no cluster), and the whole run in its quick form (real servers).

mod foreign;

use std::process::Output;

use super::*;

const NEEDED: [&str; 2] = ["settings.clusterID=c1", "settings.region=cn-hangzhou"];

fn helm(action: &[&str], sets: &[&str]) -> Output {
    let mut command = helm::command().unwrap();
    command.args(action).arg(helm::path("kerf"));
    for set in NEEDED.iter().chain(sets) {
        command.args(["--set-json", &json_set(set)]);
    }
    command.output().unwrap()
}

/// `a.b=text` as helm's JSON form; what is JSON already stays.
fn json_set(set: &str) -> String {
    let (path, value) = set.split_once('=').unwrap();
    let is_json = serde_json::from_str::<Value>(value).is_ok();
    if is_json {
        set.to_owned()
    } else {
        format!("{path}={}", Value::from(value))
    }
}

fn render(sets: &[&str]) -> Vec<Value> {
    let output = helm(&["template", "kerf", "--namespace", "kerf-system"], sets);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    objects.into_iter().filter(|it| !it.is_null()).collect()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    objects.iter().find(|it| it["kind"] == kind).unwrap()
}

fn pod(objects: &[Value]) -> &Value {
    &of_kind(objects, "Deployment")["spec"]["template"]["spec"]
}

#[test]
fn the_chart_passes_the_strict_lint() {
    let output = helm(&["lint", "--strict"], &[]);

    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

#[test]
fn wrong_values_are_refused_with_a_message_that_says_where() {
    let cases = [
        (
            r"serviceAccount\.annotations={}",
            "a dotted key does nothing here; nest it",
        ),
        (
            r#"settings.aws\.clusterName="x""#,
            "a dotted key does nothing here; nest it",
        ),
        (
            "settings.clusterId=c1",
            "at '/settings': additional properties 'clusterId' not allowed",
        ),
        ("replica=3", "additional properties 'replica' not allowed"),
        (
            r#"replicas="two""#,
            "at '/replicas': got string, want integer",
        ),
        (
            "settings.batchIdleDuration=soon",
            "at '/settings/batchIdleDuration'",
        ),
        (
            "hotSettings.batchMaxDuration=20",
            "at '/hotSettings/batchMaxDuration': got number, want string",
        ),
        (
            "settings.preferencePolicy=Maybe",
            "at '/settings/preferencePolicy': value must be one of 'Respect', 'Ignore'",
        ),
        (
            "settings.ignoreDRARequests=false",
            "at '/settings/ignoreDRARequests': value must be true",
        ),
        (
            "settings.featureGates.noSuchGate=true",
            "at '/settings/featureGates': additional properties 'noSuchGate' not allowed",
        ),
        (
            "controller.metrics.port=70000",
            "at '/controller/metrics/port': maximum: got 70,000, want 65,535",
        ),
        (
            "credentials.rrsa.roleARN=kerf",
            "at '/credentials/rrsa/roleARN'",
        ),
        (
            "credentials.rrsa.roleARN=acs:ram::1:role/kerf",
            "credentials.rrsa.oidcProviderARN is needed",
        ),
        (r#"settings.clusterID="""#, "settings.clusterID is needed"),
    ];
    for (set, message) in cases {
        let output = helm(&["template", "kerf"], &[set]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();

        assert!(!output.status.success(), "{set} was taken");
        assert!(error.contains(message), "{set}: {error}");
    }
}

#[test]
fn only_the_secrets_that_are_listed_can_be_read_and_a_private_ca_reaches_the_controller() {
    let secrets = |objects: &[Value]| {
        let rules = objects.iter().filter_map(|it| it["rules"].as_array());
        let rules = rules
            .flatten()
            .filter(|it| it["resources"] == json!(["secrets"]));
        rules.cloned().collect::<Vec<_>>()
    };
    assert!(secrets(&render(&[])).is_empty());

    let objects = render(&[
        r#"policies.pullSecrets=["registry"]"#,
        "policies.registryCAConfigMap=ca",
    ]);

    let rule = json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["registry"], "verbs": ["get"]});
    assert_eq!(secrets(&objects), [rule]);
    let spec = pod(&objects);
    let volume = json!({"name": "registry-ca", "configMap": {"name": "ca"}});
    assert!(spec["volumes"].as_array().unwrap().contains(&volume));
    let file = json!({"name": "KERF_REGISTRY_CA_BUNDLE", "value": "/etc/kerf/registry-ca/ca.crt"});
    assert!(
        spec["containers"][0]["env"]
            .as_array()
            .unwrap()
            .contains(&file)
    );
}

/// user-reports.md, F19.
#[test]
fn the_controller_is_not_left_pending_on_a_plain_ack_cluster_nor_put_on_its_own_nodes() {
    let objects = render(&[]);
    let spec = pod(&objects);

    assert_eq!(spec["nodeSelector"], json!({"kubernetes.io/os": "linux"}));
    let terms = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let expected = json!([{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]);
    assert_eq!(terms["nodeSelectorTerms"][0]["matchExpressions"], expected);

    let emptied = render(&[
        "nodeSelector=null",
        "affinity=null",
        "tolerations=[]",
        "topologySpreadConstraints=[]",
        r#"priorityClassName="""#,
    ]);
    for field in [
        "nodeSelector",
        "affinity",
        "tolerations",
        "topologySpreadConstraints",
        "priorityClassName",
    ] {
        assert!(pod(&emptied)[field].is_null(), "{field}");
    }
}

#[test]
fn the_service_account_may_read_no_secret_and_update_nothing() {
    let objects = render(&[]);

    for kind in ["ClusterRole", "Role"] {
        for rule in of_kind(&objects, kind)["rules"].as_array().unwrap() {
            let text = rule.to_string();
            for word in [
                "\"*\"",
                "secrets",
                "\"update\"",
                "deletecollection",
                "escalate",
                "impersonate",
            ] {
                assert!(!text.contains(word), "{kind}: {text}");
            }
            assert!(kind == "Role" || !text.contains("configmaps"), "{text}");
        }
    }
}

#[test]
fn variables_as_the_other_providers_chart_takes_them_win_and_bring_the_token() {
    let env = json!([
        {"name": "ALIBABA_CLOUD_ROLE_ARN", "value": "acs:ram::1:role/r"},
        {"name": "ALIBABA_CLOUD_OIDC_PROVIDER_ARN", "value": "acs:ram::1:oidc-provider/p"},
        {"name": "ALIBABA_CLOUD_OIDC_TOKEN_FILE", "value": "/var/run/secrets/ack.alibabacloud.com/rrsa-tokens/token"},
        {"name": "LOG_LEVEL", "value": "debug"},
    ]);
    let objects = render(&[&format!("controller.env={env}")]);
    let spec = pod(&objects);

    let found = spec["containers"][0]["env"].as_array().unwrap();
    let levels: Vec<_> = found
        .iter()
        .filter(|it| it["name"] == "LOG_LEVEL")
        .collect();
    assert_eq!(levels, [&json!({"name": "LOG_LEVEL", "value": "debug"})]);
    let tokens = spec["volumes"].as_array().unwrap().iter();
    let audiences: Vec<_> = tokens
        .filter_map(|it| it.pointer("/projected/sources/0/serviceAccountToken/audience"))
        .collect();
    assert_eq!(audiences, ["sts.aliyuncs.com"]);
}

#[test]
fn the_container_is_locked_down() {
    let objects = render(&[]);
    let spec = pod(&objects);
    let container = &spec["containers"][0]["securityContext"];

    assert_eq!(spec["securityContext"]["runAsNonRoot"], true);
    assert_eq!(
        spec["securityContext"]["seccompProfile"]["type"],
        "RuntimeDefault"
    );
    assert_eq!(container["readOnlyRootFilesystem"], true);
    assert_eq!(container["allowPrivilegeEscalation"], false);
    assert_eq!(container["capabilities"]["drop"], json!(["ALL"]));
}

#[test]
fn the_dashboard_and_the_alerts_come_only_when_asked_for_and_whole() {
    let plain = render(&[]);
    let objects = render(&[
        "dashboards.enabled=true",
        "prometheusRule.enabled=true",
        "prometheusRule.runbookURL=https://runbooks.example.com/kerf/",
        r#"prometheusRule.disabled=["KerfDown"]"#,
    ]);

    assert!(plain.iter().all(|it| it["kind"] != "PrometheusRule"));
    let is_dashboard = |it: &&Value| it["metadata"]["labels"]["grafana_dashboard"] == "1";
    assert_eq!(plain.iter().filter(is_dashboard).count(), 0);
    let dashboard = objects.iter().find(is_dashboard).unwrap()["data"]["kerf.json"].as_str();
    let dashboard: Value = serde_json::from_str(dashboard.unwrap()).unwrap();
    assert_eq!(dashboard["title"], "kerf");
    let rules = &of_kind(&objects, "PrometheusRule")["spec"]["groups"][0]["rules"];
    let rules = rules.as_array().unwrap();
    assert!(rules.len() > 5 && rules.iter().all(|it| it["alert"] != "KerfDown"));
    for rule in rules {
        let name = rule["alert"].as_str().unwrap();
        let page = format!("https://runbooks.example.com/kerf/{name}.md");
        assert_eq!(rule["annotations"]["runbook_url"], page);
        assert!(rule["expr"].is_string(), "{rule}");
    }
}

#[test]
fn hot_settings_are_a_config_map_that_makes_no_new_pods() {
    let (plain, hot) = (
        render(&[]),
        render(&[
            "hotSettings.logLevel=debug",
            "hotSettings.batchMaxDuration=20s",
        ]),
    );
    let settings = |objects: &[Value]| {
        let found = objects
            .iter()
            .find(|it| it["metadata"]["name"] == "kerf-hot-settings");
        found.map(|it| it["data"].clone())
    };

    assert_eq!(settings(&plain), None);
    let data = json!({"LOG_LEVEL": "debug", "BATCH_MAX_DURATION": "20s"});
    assert_eq!(settings(&hot), Some(data));
    assert_eq!(pod(&plain), pod(&hot));
}

/// Variables of the controller that are no values: of the process's place, of secrets, of tests.
const NO_VALUES: [&str; 20] = [
    "ALIBABA_CLOUD_ROLE_SESSION_NAME",
    "ALIBABA_CLOUD_SECURITY_TOKEN",
    "CS_ENDPOINT",
    "DISABLE_CONTROLLER_WARMUP",
    "DISABLE_LEADER_ELECTION",
    "ECS_ENDPOINT",
    "KARPENTER_SERVICE",
    "KERF_FAILPOINT",
    "KERF_POLICY_CACHE_DIR",
    "KERF_POLICY_FOLDER",
    "KERF_POLICY_KEY_DIR",
    "KERF_SABOTAGE",
    "KERF_SIGNATURE",
    "KUBECONFIG",
    "LEADER_ELECTION_NAMESPACE",
    "MEMORY_LIMIT",
    "METRICS_ADDRESS",
    "RAM_ENDPOINT",
    "STS_ENDPOINT",
    "VPC_ENDPOINT",
];

#[test]
fn every_flag_of_the_controller_is_a_value_or_named_as_none() {
    let help = Command::new(crate::rig::binary("kerf"))
        .args(["controller", "--help"])
        .output()
        .expect("kerf is built beside xtask");
    let help = String::from_utf8(help.stdout).unwrap();
    let folder = workspace::root().join("charts/kerf/templates");
    let chart = ["_helpers.tpl", "deployment.yaml"]
        .map(|file| std::fs::read_to_string(folder.join(file)).unwrap())
        .concat();

    let variables = help
        .split("[env: ")
        .skip(1)
        .filter_map(|it| it.split(['=', ']']).next());
    let missing: Vec<&str> = variables
        .filter(|it| {
            !chart.contains(&format!("\"{it}\"")) && !chart.contains(&format!("name: {it}\n"))
        })
        .filter(|it| !NO_VALUES.contains(it))
        .collect();

    assert!(help.contains("[env: CLUSTER_ID="), "{help}");
    assert!(missing.is_empty(), "{missing:?}");
}

/// user-reports.md, F20.
#[test]
fn the_release_has_no_right_too_few_and_none_too_many() {
    let args = Args {
        quick: true,
        release: false,
        no_build: true,
        dist: None,
    };

    run(&args).unwrap();
}
