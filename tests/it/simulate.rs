//! Level: the `kerf` binary alone, as a user types it. Scripted commands against the answers written down beside them.
//!
//! `UPDATE_EXPECT=1` rewrites the answers. Commands run in the repository's folder; `EMPTY` is an empty folder.

mod catalog;
mod controller;
mod interrupt;
mod page;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::stage::{binary, root};

/// A command and what it answered.
struct Scene {
    command: String,
    answer: String,
}

/// What `$ kerf …` prints, its errors after its output, and how it ends. JSON is laid out for reading.
fn answer(command: &str, empty: &Path) -> String {
    let words = words(command);
    let arguments = words.iter().skip(1).map(|word| match word.as_str() {
        "EMPTY" => empty.display().to_string(),
        word => word.to_owned(),
    });
    let output = Command::new(binary("kerf"))
        .args(arguments)
        .current_dir(root())
        .env_remove("COLUMNS")
        .env_remove("NO_COLOR")
        .env_remove("ALIBABA_CLOUD_REGION")
        .env_remove("LOG_LEVEL")
        .output()
        .expect("run kerf");
    let mut text = String::from_utf8(output.stdout).unwrap();
    if text.starts_with('{') {
        let value: Value = serde_json::from_str(&text).expect("JSON");
        text = serde_json::to_string_pretty(&value).unwrap() + "\n";
    }
    text += &String::from_utf8(output.stderr).unwrap();
    let text = text.replace(&empty.display().to_string(), "EMPTY");
    match output.status.code() {
        Some(0) => text,
        code => format!("{text}[exit code {}]\n", code.unwrap_or(-1)),
    }
}

/// Splits as a shell does, with single quotes only.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in command.chars() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            letter => words.last_mut().unwrap().push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The commands of a script, each with the lines after it; what stands before the first one is its comment.
fn scenes(script: &str) -> (String, Vec<Scene>) {
    let mut comment = String::new();
    let mut scenes: Vec<Scene> = Vec::new();
    for line in script.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            scenes.push(Scene {
                command: command.to_owned(),
                answer: String::new(),
            });
        } else {
            let text = scenes
                .last_mut()
                .map_or(&mut comment, |scene| &mut scene.answer);
            text.push_str(line);
            text.push('\n');
        }
    }
    (comment, scenes)
}

fn check(name: &str) {
    let path = root().join(format!("tests/fixtures/simulate/{name}.transcript"));
    let script = std::fs::read_to_string(&path).expect("the script");
    let folder = tempfile::tempdir().unwrap();
    let (mut played, scenes) = scenes(&script);
    for scene in scenes {
        let found = answer(&scene.command, folder.path());
        played += &format!("$ {}\n{found}\n", scene.command);
    }
    let played = played.trim_end().to_owned() + "\n";
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &played).unwrap();
    }
    let script = std::fs::read_to_string(&path).unwrap();
    assert!(
        played == script,
        "{} says otherwise (UPDATE_EXPECT=1 rewrites it); now:\n{played}",
        path.display()
    );
}

#[test]
fn a_plan_is_shown_as_a_table_and_as_json() {
    check("plan");
}

#[test]
fn every_kind_of_workload_gets_its_pods() {
    check("kinds");
}

#[test]
fn what_is_wrong_is_told_with_file_and_line() {
    check("wrong");
}

#[test]
fn what_ifs_change_the_plan() {
    check("what-if");
}

/// By hand, from tests/fixtures/simulate/spot: three pods that each need a node of their own. Without the policy the
/// cheapest node is ecs.s1.large on demand at 0.30, three times 0.90. With it on-demand counts 50 % dearer, 0.45, so
/// that ecs.b1.xlarge on spot at 0.40 comes first: three times 1.20, which is 0.30 more or a third.
#[test]
fn a_policy_that_prefers_spot_shows_what_it_costs() {
    check("diff");
}

/// By hand, from tests/fixtures/simulate/disrupt: the idle node goes, which saves 0.30. The pod of the big node asks for
/// 1,000m and fits beside one of 500m on a small node of 1,930m; so the big node goes without a replacement, which saves
/// 0.90. All three pods, 2,000m, do not fit on one small node, and one of them forbids disruption: two small nodes stay.
#[test]
fn disruption_says_what_goes_what_it_saves_and_why_the_rest_stays() {
    check("disrupt");
}

#[test]
fn pods_nodes_and_pools_of_manifests_are_explained() {
    check("explain");
}

#[test]
fn overlays_change_the_order_and_not_the_price() {
    check("overlay");
}

#[test]
fn static_pools_get_their_replicas_and_pods_go_there_first() {
    check("static");
}

/// By hand, from tests/fixtures/simulate/buffers: two pods of 500m and three more that do not exist yet ask for 2,500m, so that
/// there are two small nodes in place of one. A pod of the other buffer asks for more than any type has.
#[test]
fn capacity_buffers_keep_room_and_are_not_waited_for() {
    check("buffers");
}

#[test]
fn default_spread_constraints_of_kube_scheduler_are_planned() {
    check("spread");
}

/// By hand, from tests/fixtures/simulate/trace/pods.csv: a and b come at 0 and do not fit on one small node, so that there are
/// two for 0.60. c comes after half an hour and needs a third: 0.90. b leaves after an hour; its node goes when nodes are
/// looked at next, after an hour and a half: 0.60. a leaves after two hours, its node goes half an hour later: 0.30 is left.
/// In half hours that is 0.30 + 0.45 + 0.45 + 0.30 + 0.30 = 1.80 in 2.5 hours, 0.72 per hour.
#[test]
fn a_trace_is_planned_at_once_and_played() {
    check("replay");
}

/// The first thing that a newcomer runs is what the README shows, and its answer is the real one.
#[test]
fn the_readme_shows_the_real_output_of_its_first_command() {
    let folder = tempfile::tempdir().unwrap();
    for readme in ["README.md", "README.zh-CN.md"] {
        let text = std::fs::read_to_string(root().join(readme)).unwrap();
        let block = text
            .split("```console\n")
            .nth(1)
            .and_then(|rest| rest.split("```").next())
            .unwrap_or_else(|| panic!("{readme} has no console block"));
        let (_, scenes) = scenes(block);
        let scene = scenes
            .iter()
            .find(|scene| scene.command == "target/release/kerf simulate -f examples/quickstart");
        let scene = scene.unwrap_or_else(|| panic!("{readme} does not show the first command"));
        let command = scene.command.replace("target/release/", "");
        assert_eq!(scene.answer, answer(&command, folder.path()), "{readme}");
    }
}

#[test]
fn the_json_is_what_its_schema_says() {
    let folder = tempfile::tempdir().unwrap();
    let plan = schema("kerf simulate --print-schema", "simulate", folder.path());
    let fixtures = "tests/fixtures/simulate";
    for path in [
        "examples/quickstart".to_owned(),
        format!("{fixtures}/kinds"),
        format!("{fixtures}/lost"),
        format!("{fixtures}/disrupt --disrupt --set nodepool.default.spec.replicas=3"),
    ] {
        is_as_said(&plan, &path, folder.path());
    }
    let replay = schema(
        "kerf simulate --replay --print-schema",
        "replay",
        folder.path(),
    );
    for trace in ["pods", "brief", "sets"] {
        let trace = format!("{fixtures}/trace/{trace}.csv");
        let arguments = format!("{fixtures}/trace/pool.yaml --replay --trace {trace}");
        is_as_said(&replay, &arguments, folder.path());
    }
}

/// The schema that a command prints, which docs/reference has too.
fn schema(command: &str, name: &str, folder: &Path) -> Value {
    let schema = answer(command, folder);
    let written: PathBuf = root().join(format!("docs/reference/{name}.schema.json"));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&written, &schema).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(&written).unwrap(),
        schema,
        "docs/reference/{name}.schema.json is old: UPDATE_EXPECT=1 rewrites it"
    );
    serde_json::from_str(&schema).unwrap()
}

fn is_as_said(schema: &Value, arguments: &str, folder: &Path) {
    let json = answer(&format!("kerf simulate -o json -f {arguments}"), folder);
    let json = json.split("\n[exit code").next().unwrap();
    let report: Value = serde_json::from_str(json).unwrap();
    let mut wrong = Vec::new();
    conforms(schema, schema, &report, "", &mut wrong);
    assert!(wrong.is_empty(), "{arguments}: {wrong:?}");
}

/// The keywords that our schema uses; a property that the schema does not name is wrong too.
fn conforms(root: &Value, schema: &Value, value: &Value, path: &str, wrong: &mut Vec<String>) {
    if let Some(target) = schema["$ref"].as_str() {
        let target = root.pointer(target.trim_start_matches('#'));
        return conforms(root, target.expect("a definition"), value, path, wrong);
    }
    if let Some(alternatives) = schema["anyOf"].as_array() {
        let faults = alternatives.iter().map(|alternative| {
            let mut wrong = Vec::new();
            conforms(root, alternative, value, path, &mut wrong);
            wrong
        });
        let least = faults.min_by_key(Vec::len);
        return wrong.extend(least.expect("an alternative"));
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(some) => some.iter().filter_map(Value::as_str).collect(),
        _ => return wrong.push(format!("{path}: the schema gives no type")),
    };
    let is_of = |name: &&str| match *name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    };
    if !types.iter().any(is_of) {
        return wrong.push(format!("{path}: {value} is no {types:?}"));
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        if value.get(name.as_str().unwrap()).is_none() {
            wrong.push(format!("{path}: {name} is missing"));
        }
    }
    for (name, inner) in value.as_object().into_iter().flatten() {
        let below = format!("{path}/{name}");
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (Value::Null, Value::Null) => wrong.push(format!("{below}: not in the schema")),
            (Value::Null, every) => conforms(root, every, inner, &below, wrong),
            (property, _) => conforms(root, property, inner, &below, wrong),
        }
    }
    for (index, inner) in value.as_array().into_iter().flatten().enumerate() {
        conforms(
            root,
            &schema["items"],
            inner,
            &format!("{path}/{index}"),
            wrong,
        );
    }
}
