//! Level: text. docs/node-class-fields.md says of each field of either public provider, and of each of ours, where it is.

use std::collections::BTreeMap;

use kerf_api::crds;
use serde_json::Value;

use crate::stage::root;

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The cells of each row whose first one is a field.
fn rows(page: &str) -> BTreeMap<String, Vec<String>> {
    let lines = page.lines().filter(|line| line.starts_with("| `"));
    lines
        .map(|line| {
            let cells = line
                .trim_matches('|')
                .split(" | ")
                .map(|it| it.trim().to_owned());
            let mut cells: Vec<String> = cells.collect();
            let field = cells.remove(0).trim_matches('`').to_owned();
            (field, cells)
        })
        .collect()
}

/// Whether the definition of ECSNodeClass has a field.
fn is_ours(schema: &Value, path: &str) -> bool {
    let mut place = schema;
    for name in path.split('.') {
        let name = name.trim_end_matches("[]");
        let inner = place.get("items").unwrap_or(place);
        place = &inner["properties"][name];
    }
    !place.is_null()
}

/// Fields without fields of their own.
fn leaves(schema: &Value, path: &str, found: &mut Vec<String>) {
    let inner = schema.get("items").unwrap_or(schema);
    let list = if schema.get("items").is_some() {
        "[]"
    } else {
        ""
    };
    match inner["properties"].as_object() {
        Some(properties) if path != "spec.policies" && !path.starts_with("status.") => {
            for (name, property) in properties {
                leaves(property, &format!("{path}{list}.{name}"), found);
            }
        }
        _ => found.push(path.to_owned()),
    }
}

#[test]
fn every_field_of_the_two_providers_is_kept_renamed_or_dropped_with_a_reason() {
    let definitions = crds::definitions().unwrap();
    let schema = &definitions[1].1["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let rows = rows(&read("docs/node-class-fields.md"));
    let list = read("tests/fixtures/provider-fields.txt");
    let fields: Vec<(&str, &str)> = list
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once(' ').unwrap())
        .collect();

    let mut wrong = Vec::new();
    for (provider, field) in &fields {
        let Some([of, here, remark]) = rows.get(*field).map(Vec::as_slice) else {
            wrong.push(format!("{field} of {provider} has no row"));
            continue;
        };
        if !of.split(", ").any(|it| it == *provider) {
            wrong.push(format!("{field}: is of {provider} too"));
        }
        let target = match here.as_str() {
            "kept" => Some(*field),
            "dropped" if remark.is_empty() => {
                wrong.push(format!("{field} is dropped without a reason"));
                None
            }
            "dropped" => None,
            renamed => Some(renamed.trim_start_matches("renamed to ").trim_matches('`')),
        };
        match target {
            Some(target) if !is_ours(schema, target) => {
                wrong.push(format!("{field}: there is no {target} here"));
            }
            None if is_ours(schema, field) => wrong.push(format!("{field} is not dropped")),
            _ => {}
        }
    }

    assert!(fields.len() > 100, "{}", fields.len());
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn every_field_of_ours_is_in_the_table_of_fields() {
    let definitions = crds::definitions().unwrap();
    let schema = &definitions[1].1["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let rows = rows(&read("docs/node-class-fields.md"));
    let mut ours = Vec::new();
    for part in ["spec", "status"] {
        for (name, property) in schema["properties"][part]["properties"]
            .as_object()
            .unwrap()
        {
            leaves(property, &format!("{part}.{name}"), &mut ours);
        }
    }

    let named = |field: &&String| {
        let begin = format!("{field}[]");
        !rows
            .keys()
            .any(|it| it == *field || (field.starts_with("status.") && it.starts_with(&begin)))
    };
    let missing: Vec<&String> = ours.iter().filter(named).collect();

    assert_eq!(missing, Vec::<&String>::new());
}
