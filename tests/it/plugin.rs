//! Level: the `kerf` binary. `kerf plugin` from nothing to a component in each language, and into a real API server and back.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kerf_api::ecsnodeclass::EcsNodeClass;
use serde_json::Value;

use crate::policies::MANIFESTS;
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
    let tools = ["tools/venv/bin", "tools/npm/node_modules/.bin"].map(target);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = tools.into_iter().chain(std::env::split_paths(&path));
    Command::new(binary("kerf"))
        .arg("plugin")
        .args(args)
        .current_dir(folder)
        .env("PATH", std::env::join_paths(folders).unwrap())
        .env("ZIG_GLOBAL_CACHE_DIR", target("tools/zig-cache"))
        .env("ZIG_LOCAL_CACHE_DIR", target("tools/zig-cache"))
        .env_remove("CARGO_TARGET_DIR")
        .env("RUSTUP_TOOLCHAIN", toolchain())
        .output()
        .expect("run kerf")
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
