//! Level: text. What the controller says on objects has a paragraph in docs/troubleshooting.md.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::stage::root;

/// All Rust sources below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
    found
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The texts of constants by their names: `NAME = "Text";`.
fn constants(path: &str) -> BTreeMap<String, String> {
    let text = read(path);
    let pairs = text.lines().filter_map(|line| {
        let (name, value) = line.trim().split_once(" = \"")?;
        Some((name.to_owned(), value.strip_suffix("\";")?.to_owned()))
    });
    pairs.collect()
}

/// The words after `module::` in a text.
fn used(text: &str, module: &str) -> BTreeSet<String> {
    let is_part = |it: &char| it.is_ascii_uppercase() || it.is_ascii_digit() || *it == '_';
    text.split(&format!("{module}::"))
        .skip(1)
        .map(|it| it.chars().take_while(is_part).collect::<String>())
        .filter(|it| !it.is_empty())
        .collect()
}

/// What the controllers can write as the reason of a condition or an event.
fn emitted() -> BTreeSet<String> {
    let mut code: String = sources(&root().join("host/kerf-controllers/src"))
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    // Ready is computed there.
    code += &read("host/kerf-api/src/condition.rs");
    let mut found = BTreeSet::new();
    for module in ["reason", "event"] {
        let texts = constants(&format!("host/kerf-api/src/names/{module}.rs"));
        let used = used(&code, module);
        found.extend(used.iter().filter_map(|name| texts.get(name).cloned()));
    }
    // Why a launch cannot be tried at all.
    let launch = read("host/kerf-cloud/src/provider/launch.rs");
    let table = launch
        .split("impl NotReadyReason")
        .nth(1)
        .expect("the reasons of a launch");
    let table = table.split("\n}\n").next().unwrap();
    let words = table
        .lines()
        .filter_map(|it| it.split_once("=> \"")?.1.strip_suffix("\","));
    found.extend(words.map(str::to_owned));
    found
}

/// The paragraphs, by the reasons that they start with: "**`A`**, **`B`** (of what): …".
fn paragraphs(page: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for paragraph in page.split("\n\n").filter(|it| it.starts_with("**`")) {
        let head = paragraph.split(": ").next().unwrap_or_default();
        for name in head
            .split("**`")
            .skip(1)
            .filter_map(|it| it.split("`**").next())
        {
            found.insert(name.to_owned(), paragraph.len() - head.len());
        }
    }
    found
}

#[test]
fn every_reason_that_is_written_on_an_object_has_a_paragraph_and_no_paragraph_is_about_nothing() {
    /// A sentence that says what it means and one that says what to do are not shorter.
    const PARAGRAPH_MIN: usize = 60;
    let emitted = emitted();
    let paragraphs = paragraphs(&read("docs/troubleshooting.md"));

    assert!(emitted.len() > 60, "{emitted:?}");
    let missing: Vec<_> = emitted
        .iter()
        .filter(|it| !paragraphs.contains_key(*it))
        .collect();
    let unknown: Vec<_> = paragraphs
        .keys()
        .filter(|it| !emitted.contains(*it))
        .collect();
    let short: Vec<_> = paragraphs
        .iter()
        .filter(|(_, length)| **length < PARAGRAPH_MIN)
        .collect();
    assert!(
        missing.is_empty(),
        "no paragraph in docs/troubleshooting.md: {missing:?}"
    );
    assert!(
        unknown.is_empty(),
        "a paragraph about what nothing says: {unknown:?}"
    );
    assert!(short.is_empty(), "too short to help: {short:?}");
}

/// Fields below a schema that `kubectl explain` has nothing to say about, and how many there are.
fn unexplained(schema: &serde_json::Value, path: &str, missing: &mut Vec<String>) -> usize {
    let mut count = 0;
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let place = format!("{path}.{name}");
        let text = property["description"].as_str().unwrap_or_default();
        if text.len() < "A word.".len() {
            missing.push(place.clone());
        }
        count += 1 + unexplained(property, &place, missing);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(inner) {
            count += unexplained(inner, path, missing);
        }
    }
    count
}

#[test]
fn kubectl_explain_has_a_text_for_every_field() {
    let mut missing = Vec::new();
    let mut count = 0;
    for (name, definition) in kerf_api::crds::definitions().unwrap() {
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        count += unexplained(schema, name, &mut missing);
    }

    assert!(count > 200, "{count}");
    assert_eq!(missing, Vec::<String>::new());
}
