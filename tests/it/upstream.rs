//! Level: text. Where our definitions differ from upstream Karpenter's, tests/fixtures/upstream-differences.yaml says why.
//!
//! Upstream's are those of the Go module in tests/tools/karpenter, read here and nowhere else. Each row of the list has
//! a mark of what upstream says there, so that a new version of the module shows what is to be looked at again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use kerf_api::crds;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::stage::root;

/// By site (`NodePool.spec.limits{}`) and keyword, what a definition says. CEL rules are one list per site.
type Facts = BTreeMap<(String, String), BTreeSet<String>>;

/// Why we say something else in some places.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Ends of sites.
    at: Vec<String>,
    keyword: String,
    /// Of what upstream says in all these places; see [`mark`].
    upstream: String,
    why: String,
}

/// The folder of upstream's definitions.
fn folder() -> PathBuf {
    let output = Command::new("go")
        .args(["list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/karpenter"])
        .current_dir(root().join("tests/tools/karpenter"))
        .env("GOWORK", "off")
        .env("GOFLAGS", "-mod=readonly")
        .env("GOPROXY", "off")
        .output()
        .expect("go is installed");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        !text.trim().is_empty(),
        "upstream's module is not there; run tests/tools/build.sh\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    PathBuf::from(text.trim()).join("pkg/apis/crds")
}

/// Everything that a definition says to users and clients.
fn facts(definition: &Value) -> Facts {
    let spec = &definition["spec"];
    let kind = spec["names"]["kind"].as_str().unwrap();
    let mut facts = Facts::new();
    let mut put = |keyword: &str, value: &Value| {
        let key = (kind.to_owned(), keyword.to_owned());
        facts.entry(key).or_default().insert(value.to_string());
    };
    put("group", &spec["group"]);
    put("scope", &spec["scope"]);
    for name in ["kind", "plural", "singular", "shortNames", "categories"] {
        put(name, &spec["names"][name]);
    }
    let versions = spec["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 1, "{kind}");
    for name in ["name", "served", "storage", "subresources"] {
        put(name, &versions[0][name]);
    }
    for column in versions[0]["additionalPrinterColumns"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let mut column = column.as_object().unwrap().clone();
        column.shift_remove("description");
        put("column", &sorted(&column.into()));
    }
    schema_facts(&versions[0]["schema"]["openAPIV3Schema"], kind, &mut facts);
    facts
}

fn schema_facts(schema: &Value, site: &str, facts: &mut Facts) {
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        match keyword.as_str() {
            "description" => {}
            "properties" => {
                for (name, property) in value.as_object().into_iter().flatten() {
                    put(facts, site, "property", name.clone());
                    schema_facts(property, &format!("{site}.{name}"), facts);
                }
            }
            "items" => schema_facts(value, &format!("{site}[]"), facts),
            "additionalProperties" if value.is_object() => {
                schema_facts(value, &format!("{site}{{}}"), facts);
            }
            "x-kubernetes-validations" => {
                for rule in value.as_array().into_iter().flatten() {
                    put(
                        facts,
                        site,
                        "cel",
                        rule["rule"].as_str().unwrap().to_owned(),
                    );
                }
            }
            "required" | "enum" => {
                for item in value.as_array().into_iter().flatten() {
                    put(facts, site, keyword, item.to_string());
                }
            }
            _ => put(facts, site, keyword, sorted(value).to_string()),
        }
    }
}

fn put(facts: &mut Facts, site: &str, keyword: &str, text: String) {
    let key = (site.to_owned(), keyword.to_owned());
    facts.entry(key).or_default().insert(text);
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let fields: BTreeMap<&String, &Value> = object.iter().collect();
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name.clone(), sorted(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// A difference: site, keyword, what upstream says and what we say.
type Difference = (String, String, BTreeSet<String>, BTreeSet<String>);

fn differences() -> Vec<Difference> {
    let ours = crds::definitions().unwrap();
    let folder = folder();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("upstream's definitions") {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let theirs: Value = serde_saphyr::from_str(&text).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let ours = ours.iter().find(|(of, _)| *of == name);
        let (theirs, ours) = (
            facts(&theirs),
            facts(&ours.unwrap_or_else(|| panic!("{name}")).1),
        );
        let keys: BTreeSet<_> = theirs.keys().chain(ours.keys()).collect();
        for (site, keyword) in keys {
            let key = (site.clone(), keyword.clone());
            let said = |facts: &Facts| facts.get(&key).cloned().unwrap_or_default();
            if said(&theirs) != said(&ours) {
                found.push((site.clone(), keyword.clone(), said(&theirs), said(&ours)));
            }
        }
    }
    found.sort();
    found
}

/// A mark of texts: FNV-1a, in hexadecimal.
fn mark<'a>(texts: impl Iterator<Item = &'a String>) -> String {
    let hash = texts
        .flat_map(|text| text.bytes().chain([0]))
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    format!("{hash:016x}")
}

#[test]
fn every_difference_from_upstreams_definitions_is_explained_and_looked_at() {
    let text = std::fs::read_to_string(root().join("tests/fixtures/upstream-differences.yaml"));
    let rows: Vec<Row> = serde_saphyr::from_str(&text.unwrap()).expect("the list");
    let differences = differences();

    let mut wrong = Vec::new();
    let mut explained = vec![Vec::new(); rows.len()];
    for (site, keyword, theirs, ours) in &differences {
        let is_about = |row: &&Row| {
            row.keyword == *keyword && row.at.iter().any(|end| site.ends_with(end.as_str()))
        };
        match rows.iter().position(|row| is_about(&row)) {
            Some(row) => explained[row].extend(theirs),
            None => wrong.push(format!(
                "{site} {keyword}\n  upstream: {theirs:?}\n  ours:     {ours:?}"
            )),
        }
    }
    for (row, texts) in rows.iter().zip(&explained) {
        let is_used = differences.iter().any(|(site, keyword, _, _)| {
            row.keyword == *keyword && row.at.iter().any(|end| site.ends_with(end.as_str()))
        });
        let found = mark(texts.iter().copied());
        if !is_used {
            wrong.push(format!(
                "{:?} {}: there is no such difference",
                row.at, row.keyword
            ));
        } else if found != row.upstream {
            wrong.push(format!(
                "{:?} {}: upstream has changed; look at it again and write upstream: {found}",
                row.at, row.keyword
            ));
        }
        assert!(row.why.len() > 20, "{:?}: say why", row.at);
    }

    assert!(
        wrong.is_empty(),
        "{} to be explained:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
