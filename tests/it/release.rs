//! Level: text. What makes a release and what tells people about one: the workflow is parsed and never run here.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::stage::root;

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn workflow() -> Value {
    serde_saphyr::from_str(&read(".github/workflows/ci.yaml")).unwrap()
}

/// The commands of a job, in their order.
fn commands(job: &Value) -> Vec<String> {
    let steps = job["steps"].as_array().unwrap();
    let commands = steps.iter().filter_map(|it| it["run"].as_str());
    commands.map(str::to_owned).collect()
}

#[test]
fn the_workflow_runs_what_everybody_runs_and_attaches_what_make_dist_makes() {
    let workflow = workflow();
    let test = commands(&workflow["jobs"]["test"]);
    let release = &workflow["jobs"]["release"];
    let steps = commands(release);
    let at = |what: &str| {
        let found = steps.iter().position(|it| it.contains(what));
        found.unwrap_or_else(|| panic!("no step with {what}: {steps:?}"))
    };

    assert!(test.contains(&"bash .ci/run".to_owned()), "{test:?}");
    assert!(at("make dist") < at("gh release create"));
    assert!(steps[at("gh release create")].contains("target/dist/*"));
    assert_eq!(release["needs"], "test");
    assert_eq!(release["if"], "startsWith(github.ref, 'refs/tags/v')");
    assert_eq!(workflow["on"]["push"]["tags"][0], "v*");
    assert!(workflow["on"].get("pull_request").is_some());
}

#[test]
fn a_pull_request_gets_no_right_to_write_and_no_text_of_it_is_run() {
    let workflow = workflow();

    assert_eq!(
        workflow["permissions"],
        serde_json::json!({"contents": "read"})
    );
    assert!(workflow["jobs"]["test"]["permissions"].is_null());
    for job in ["test", "release"] {
        for step in workflow["jobs"][job]["steps"].as_array().unwrap() {
            // What stands in such braces is put into the shell's text before the shell reads it.
            let run = step["run"].as_str().unwrap_or_default();
            assert!(!run.contains("${{"), "{run}");
            let uses = step["uses"].as_str().unwrap_or_default();
            assert!(uses.is_empty() || uses.starts_with("actions/"), "{uses}");
        }
    }
    // The one that can write keeps no credentials in the checkout.
    assert!(workflow["on"].get("pull_request_target").is_none());
}

/// The actions of the policy that the binary prints (it::installers holds the file against it).
fn allowed() -> BTreeSet<String> {
    let policy: Value = serde_json::from_str(&read("examples/terraform/ram-policy.json")).unwrap();
    actions(&policy)
}

fn actions(policy: &Value) -> BTreeSet<String> {
    let list = policy["Statement"][0]["Action"].as_array().unwrap();
    list.iter()
        .map(|it| it.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_page_that_lists_ram_permissions_lists_the_same() {
    for page in ["docs/quick-start-ack.md", "docs/quick-start-ack.zh-CN.md"] {
        let text = read(page);
        let json = text
            .split("```json\n")
            .nth(1)
            .and_then(|it| it.split("```").next());
        let policy: Value = serde_json::from_str(json.unwrap()).unwrap();
        assert_eq!(actions(&policy), allowed(), "{page}");
    }
    let text = read("docs/operations.md");
    let table = text.split("RAM permissions").nth(1).unwrap();
    let rows = table
        .lines()
        .skip_while(|it| !it.starts_with('|'))
        .take_while(|it| it.starts_with('|'));
    let mut listed = BTreeSet::new();
    for row in rows.skip(2) {
        let product = row.split('|').nth(1).unwrap().trim().to_lowercase();
        let names = row.split('`').skip(1).step_by(2);
        listed.extend(names.map(|it| format!("{product}:{it}")));
    }
    assert_eq!(listed, allowed());
}

#[test]
fn the_changelog_has_an_unreleased_part_and_its_versions_fall() {
    let text = read("CHANGELOG.md");
    let heads: Vec<&str> = text
        .lines()
        .filter_map(|it| it.strip_prefix("## ["))
        .collect();

    assert_eq!(heads[0], "Unreleased]");
    let versions: Vec<Vec<u32>> = heads[1..]
        .iter()
        .map(|head| {
            let (version, date) = head
                .split_once("] - ")
                .unwrap_or_else(|| panic!("{head}: no date"));
            assert_eq!(date.split('-').count(), 3, "{head}");
            version.split('.').map(|it| it.parse().unwrap()).collect()
        })
        .collect();
    assert!(versions.is_sorted_by(|a, b| a > b), "{versions:?}");
}
