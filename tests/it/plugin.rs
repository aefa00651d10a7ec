//! Level: the `kerf` binary. `kerf plugin` from nothing to a component in each language, and into a real API server and back.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use kerf_api::ecsnodeclass::EcsNodeClass;
use serde_json::Value;

use crate::metrics::address;
use crate::policies::{MANIFESTS, PREFER_FAMILY, launch_one, put_config_map, until_policy};
use crate::stage::{NAMESPACE, Stage, binary, root};

/// Where `cargo xtask plugins build`, which `make test` runs first, puts tools and components.
fn target(path: &str) -> PathBuf {
    root().join("plugins/target").join(path)
}

/// The toolchain that has the guests' target; rustup's default one may have none.
fn toolchain() -> String {
    let text = std::fs::read_to_string(root().join("rust-toolchain.toml")).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("channel = "));
    line.unwrap().trim_matches('"').to_owned()
}

fn plugin(folder: &Path, args: &[&str]) -> Output {
    command(folder).args(args).output().expect("run kerf")
}

/// `kerf plugin` in this folder, with the tools of all languages.
fn command(folder: &Path) -> Command {
    let tools = ["tools/venv/bin", "tools/npm/node_modules/.bin"].map(target);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = tools.into_iter().chain(std::env::split_paths(&path));
    let mut command = Command::new(binary("kerf"));
    command
        .arg("plugin")
        .current_dir(folder)
        .env("PATH", std::env::join_paths(folders).unwrap())
        .env("ZIG_GLOBAL_CACHE_DIR", target("tools/zig-cache"))
        .env("ZIG_LOCAL_CACHE_DIR", target("tools/zig-cache"))
        .env_remove("CARGO_TARGET_DIR")
        .env("RUSTUP_TOOLCHAIN", toolchain());
    command
}

/// What it printed, when it found all good.
fn good(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// From nothing to a component that passes its first test.
fn check_language(language: &str) {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    good(&plugin(
        here,
        &["new", "mine", "--lang", language, "--json"],
    ));
    let built = good(&plugin(here, &["build", "mine", "--json"]));
    assert!(here.join("mine/build/mine.wasm").is_file(), "{built}");
    let tested = good(&plugin(here, &["test", "mine", "--json"]));
    assert_eq!(tested["failed"], 0, "{tested}");
    assert_eq!(
        tested["cases"].as_array().map(Vec::len),
        Some(5),
        "{tested}"
    );
}

#[test]
fn from_nothing_to_a_tested_policy_in_rust() {
    check_language("rust");
}

#[test]
fn from_nothing_to_a_tested_policy_in_javascript() {
    check_language("js");
}

#[test]
fn from_nothing_to_a_tested_policy_in_python() {
    check_language("python");
}

#[test]
fn from_nothing_to_a_tested_policy_in_go() {
    check_language("go");
}

#[test]
fn from_nothing_to_a_tested_policy_in_c() {
    check_language("c");
}

#[test]
fn a_case_that_fails_ends_with_1_and_a_tool_that_is_missing_with_3() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    good(&plugin(here, &["new", "mine", "--lang", "c", "--json"]));
    let case =
        r#"{"types": [["ecs.g7.large", "amd64", 1]], "answer": {"order": [], "excluded": []}}"#;
    std::fs::write(here.join("mine/tests/wrong.json"), case).unwrap();
    let component = target("components/c/prefer-family.wasm");

    let cases = ["--cases", "mine/tests"];
    let tested = plugin(
        here,
        &[&["test", &component.to_string_lossy()], &cases[..]].concat(),
    );
    assert_eq!(tested.status.code(), Some(1), "{tested:?}");
    let text = String::from_utf8_lossy(&tested.stdout).into_owned();
    assert!(text.contains("FAIL wrong"), "{text}");
    assert!(
        text.contains(r#"answer: {"order":["ecs.g7.large"]"#),
        "{text}"
    );

    let without_tools = Command::new(binary("kerf"))
        .args(["plugin", "build", "mine"])
        .current_dir(here)
        .env("PATH", here)
        .output()
        .expect("run kerf");
    assert_eq!(without_tools.status.code(), Some(3), "{without_tools:?}");
    let error = String::from_utf8_lossy(&without_tools.stderr).into_owned();
    assert!(error.contains("pip install ziglang"), "{error}");
}

/// The digest that serves, once the status says that it is this one.
fn until_digest(stage: &Stage, wanted: &str) {
    stage.until(&format!("{wanted} serves"), || async {
        let classes: Vec<EcsNodeClass> = stage.list_async().await;
        let status = classes.into_iter().next()?.status?;
        let policy = status.policies.into_iter().next()?;
        let is_ready = policy.state.as_str() == "Ready";
        (is_ready && policy.digest.as_deref() == Some(wanted)).then_some(())
    });
}

#[test]
fn a_published_policy_serves_and_a_rollback_brings_the_one_before_back() {
    let mut stage = Stage::set();
    let kubeconfig = stage.control_plane.kubeconfig_path().to_owned();
    let cluster = ["--json", "--namespace", NAMESPACE, "--kubeconfig"];
    let on_cluster = |args: &[&str]| {
        let kubeconfig = kubeconfig.to_string_lossy().into_owned();
        good(&plugin(
            &root(),
            &[args, &cluster[..], &[&kubeconfig]].concat(),
        ))
    };
    let publish = |language: &str, form: &str| {
        let component = target(&format!("components/{language}/prefer-family.wasm"));
        let component = component.to_string_lossy().into_owned();
        on_cluster(&["publish", &component, "--configmap", "family", "--as", form])
    };
    let first = publish("rust", "zst");
    stage.apply(MANIFESTS);
    stage.start_kerf(&[]);
    let first = first["digest"].as_str().unwrap();
    until_digest(&stage, first);

    let second = publish("c", "auto");
    assert!(
        second["entry"]
            .as_str()
            .unwrap()
            .contains("{configMap: {name: family}}")
    );
    until_digest(&stage, second["digest"].as_str().unwrap());

    on_cluster(&["rollback", "family"]);
    until_digest(&stage, first);
    let listed = on_cluster(&["ls"]);
    assert_eq!(listed["policies"][0]["digest"], first);
    assert_eq!(listed["policies"][0]["state"], "Ready");
    // Shards are named by their version, and never change.
    let shards = publish("c", "shards");
    let name = shards["configMaps"][0].as_str().unwrap();
    assert!(
        name.starts_with("family-") && name.ends_with("-0"),
        "{name}"
    );
}

#[test]
fn what_a_controller_was_asked_can_be_replayed_without_what_is_private() {
    let mut stage = Stage::set();
    stage.apply(&MANIFESTS.replace(
        "spec:\n  template:\n",
        "spec:\n  template:\n    metadata: {labels: {team: payments}}\n",
    ));
    put_config_map(&stage, PREFER_FAMILY);
    stage.start_kerf(&["--policy-record-every", "1"]);
    until_policy(&stage, "Ready", "");
    launch_one(&stage, "app");

    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://{}", address(&stage).unwrap());
    let record = [
        "record",
        "questions",
        "--policy",
        "family",
        "--url",
        &url,
        "--json",
    ];
    let recorded = good(&plugin(folder.path(), &record));
    assert!(recorded["questions"].as_u64().unwrap() > 0, "{recorded}");
    for file in std::fs::read_dir(folder.path().join("questions")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains("payments"), "{text}");
    }
    let component = fixture("prefer-family.wasm");
    let config = r#"{"weights": {"ecs.g8i": 100}}"#;
    let replayed = replay(&folder.path().join("questions"), &component, config);
    assert_eq!(replayed["questions"], recorded["questions"]);
    assert!(replayed["changed"].as_u64().unwrap() > 0, "{replayed}");

    // A controller that keeps none says how to make it keep some.
    stage.kill_kerf();
    stage.start_kerf(&[]);
    until_policy(&stage, "Ready", "");
    stage.until("the controller listens", || async {
        (stage.log().matches("serving metrics").count() == 2).then_some(())
    });
    let url = format!("http://{}", address(&stage).unwrap());
    let none = plugin(folder.path(), &["record", "questions", "--url", &url]);
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(said.contains("--policy-record-every"), "{said}");
}

/// What another configuration of the same component changes for these questions.
fn replay(questions: &Path, component: &str, config: &str) -> Value {
    let sides = ["--old", component, "--new", component];
    let args = [
        &["replay", "."],
        &sides[..],
        &["--new-config", config, "--json"],
    ];
    good(&plugin(questions, &args.concat()))
}

fn fixture(name: &str) -> String {
    let path = root().join("host/kerf-policy/tests/fixtures").join(name);
    path.display().to_string()
}

#[test]
fn plugin_config_says_what_is_wrong_with_a_configuration_and_where() {
    let component = fixture("prefer-family.wasm");
    let ask = |config: &str| {
        plugin(
            &root(),
            &["config", &component, "--config", config, "--json"],
        )
    };

    let right = good(&ask(r#"{"weights": {"ecs.g7": 1}}"#));
    assert_eq!(
        right["problems"].as_array().map(Vec::len),
        Some(0),
        "{right}"
    );
    let wrong = ask(r#"{"weights": {"ecs.g7": "much"}}"#);
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
    let wrong: Value = serde_json::from_slice(&wrong.stdout).unwrap();
    assert_eq!(wrong["problems"][0]["path"], "/weights/ecs.g7", "{wrong}");
    // The schema lets this pass; the policy itself does not.
    let wrong = ask(r#"{"weights": {"ecs.g7": 1}, "exclude": ["ecs.g7"]}"#);
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
}

#[test]
fn plugin_verify_tells_the_reviewed_component_from_another() {
    let (component, other) = (fixture("prefer-family.wasm"), fixture("node-tuning.wasm"));
    let inspected = good(&plugin(&root(), &["inspect", &component, "--json"]));
    let digest = inspected["digest"].as_str().unwrap();

    good(&plugin(
        &root(),
        &["verify", &component, "--digest", digest, "--json"],
    ));
    let wrong = plugin(&root(), &["verify", &other, "--digest", digest, "--json"]);
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
    let nothing_to_verify = plugin(&root(), &["verify", &component]);
    assert_eq!(
        nothing_to_verify.status.code(),
        Some(2),
        "{nothing_to_verify:?}"
    );
}

/// A question about two types, the cheap one of which comes first without a policy.
fn question() -> Value {
    let resources = |cpu: u32| serde_json::json!({"cpu_milli": cpu, "memory_mib": 8192, "ephemeral_mib": 0, "pods": 64, "gpus": 0});
    let candidate = |name: &str, family: u32, price: u32| {
        serde_json::json!({
            "instance_type": name, "family": family, "architecture": 0, "generation": 7,
            "capacity": resources(4000), "allocatable": resources(3900), "network_mbps": 0, "local_disk_gib": 0,
            "bare_metal": false, "burstable": false, "gpu_model": null, "extended": [],
            "offerings": [{
                "zone": 0, "capacity_type": 0, "price_micros": price, "list_price_micros": price,
                "interruption_permille": null, "recent_failures": 0, "reservation": null,
            }],
        })
    };
    serde_json::json!({
        "context": {
            "reason": "provision", "node_pool": "default", "node_class": "default", "region": "cn-hangzhou",
            "as_of_unix_s": 0, "requirements": [], "fleet": [], "labels": [],
            "vocabulary": {
                "zones": ["cn-hangzhou-h"], "families": ["ecs.c7", "ecs.g7"], "architectures": ["amd64"],
                "capacity_types": ["on-demand"],
            },
            "demand": {
                "pods": 1, "total": resources(100), "largest_pod": resources(100), "daemon_overhead": resources(0),
            },
        },
        "candidates": [candidate("ecs.c7.large", 0, 300_000), candidate("ecs.g7.large", 1, 500_000)],
    })
}

#[test]
fn plugin_replay_says_what_share_of_decisions_changes_and_what_the_hour_costs_then() {
    let folder = tempfile::tempdir().unwrap();
    let mut other = question();
    other["candidates"].as_array_mut().unwrap().truncate(1);
    for (name, question) in [("a.json", question()), ("b.json", other)] {
        std::fs::write(folder.path().join(name), question.to_string()).unwrap();
    }
    let component = fixture("prefer-family.wasm");
    let ask = |config: &str| replay(folder.path(), &component, config);

    let same = ask(r#"{"weights": {"ecs.c7": 1}}"#);
    assert_eq!(
        (&same["questions"], &same["changed"]),
        (&2.into(), &0.into()),
        "{same}"
    );
    let changed = ask(r#"{"weights": {"ecs.g7": 1}}"#);
    assert_eq!(changed["changed"], 1, "{changed}");
    assert_eq!(changed["oldPriceMicros"], 600_000, "{changed}");
    assert_eq!(changed["newPriceMicros"], 800_000, "{changed}");
}

#[test]
fn plugin_dev_builds_and_tests_again_at_each_save() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    good(&plugin(here, &["new", "mine", "--lang", "c", "--json"]));
    let once = good(&plugin(here, &["dev", "mine", "--json"]));
    assert_eq!(once["test"]["failed"], 0, "{once}");

    let mut child = command(here)
        .args(["dev", "mine", "--watch"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("run kerf");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut round = || {
        let mut text = Vec::new();
        for line in lines.by_ref().map(Result::unwrap) {
            if line == "waiting for a save" {
                break;
            }
            text.push(line);
        }
        text.join("\n")
    };
    let first = round();
    std::fs::write(
        here.join("mine/tests/wrong.json"),
        r#"{"types": [], "answer": {}}"#,
    )
    .unwrap();
    let second = round();
    child.kill().unwrap();
    child.wait().unwrap();

    assert!(first.contains(" 0 failed"), "{first}");
    assert!(second.contains("FAIL wrong"), "{second}");
}
