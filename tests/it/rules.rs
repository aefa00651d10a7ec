//! Level: pure. The rules of our definitions, and the table that shows each of them at work.
//!
//! `tests/fixtures/validation.yaml` holds whole objects of each kind and one row per rule: where it is, what it
//! accepts and what it refuses. A row's values are merged into the object at the place of the rule.

use std::collections::BTreeSet;

use kerf_api::crds;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::stage::root;

/// Keywords that refuse a value.
const KEYWORDS: &[&str] = &[
    "pattern",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
];

/// One rule of one definition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rule {
    /// The kind and the path, such as `NodePool.spec.limits{}`.
    pub(crate) site: String,
    /// The keyword, or `cel: ` and the message.
    pub(crate) name: String,
    /// Whether it compares with the object before.
    pub(crate) is_transition: bool,
}

/// What a rule accepts and refuses, as whole objects.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) rule: Rule,
    pub(crate) before: Value,
    pub(crate) accepted: Value,
    pub(crate) refused: Value,
}

#[derive(Deserialize)]
struct Table {
    objects: Vec<Value>,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Ends of sites.
    at: Vec<String>,
    /// A keyword, or `cel: ` and a part of the message.
    rule: String,
    yes: Value,
    no: Value,
}

/// Every rule of crds::definitions().
pub(crate) fn walk() -> Vec<Rule> {
    let mut rules = Vec::new();
    for (_, definition) in crds::definitions().expect("definitions") {
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        walk_schema(schema, kind, &mut rules);
    }
    rules
}

fn walk_schema(schema: &Value, site: &str, rules: &mut Vec<Rule>) {
    let mut push = |name: &str, is_transition| {
        rules.push(Rule {
            site: site.to_owned(),
            name: name.to_owned(),
            is_transition,
        });
    };
    for keyword in KEYWORDS {
        if schema.get(keyword).is_some() {
            push(keyword, false);
        }
    }
    let list = schema.get("x-kubernetes-list-type");
    if list.is_some_and(|list| list == "map" || list == "set") {
        push("unique", false);
    }
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let message = rule["message"].as_str().expect("every rule has a message");
        let is_transition = rule["rule"].as_str().unwrap().contains("oldSelf");
        push(&format!("cel: {message}"), is_transition);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk_schema(property, &format!("{site}.{name}"), rules);
    }
    if let Some(items) = schema.get("items") {
        walk_schema(items, &format!("{site}[]"), rules);
    }
    if let Some(values) = schema.get("additionalProperties").filter(|v| v.is_object()) {
        walk_schema(values, &format!("{site}{{}}"), rules);
    }
}

/// The cases of the table, one or more per rule; the second part says what is wrong with the table.
pub(crate) fn cases() -> (Vec<Case>, Vec<String>) {
    let text = std::fs::read_to_string(root().join("tests/fixtures/validation.yaml")).unwrap();
    let table: Table = serde_saphyr::from_str(&text).expect("the table");
    let rules = walk();
    let mut cases = Vec::new();
    let mut wrong = Vec::new();
    let mut covered = BTreeSet::new();
    for row in &table.rows {
        let mut is_used = false;
        for rule in rules.iter().filter(|rule| row.is_about(rule)) {
            is_used = true;
            match case(&table.objects, row, rule) {
                Some(case) => {
                    covered.insert(rule.clone());
                    cases.push(case);
                }
                None => wrong.push(format!("no object of the table has {}", rule.site)),
            }
        }
        if !is_used {
            wrong.push(format!("no rule for the row {:?} {}", row.at, row.rule));
        }
    }
    for rule in rules.iter().filter(|rule| !covered.contains(*rule)) {
        wrong.push(format!("no row for {} {}", rule.site, rule.name));
    }
    (cases, wrong)
}

impl Row {
    fn is_about(&self, rule: &Rule) -> bool {
        let is_named = match self.rule.strip_prefix("cel: ") {
            Some(part) => rule.name.starts_with("cel: ") && rule.name.contains(part),
            None => rule.name == self.rule,
        };
        is_named && self.at.iter().any(|end| rule.site.ends_with(end.as_str()))
    }
}

fn case(objects: &[Value], row: &Row, rule: &Rule) -> Option<Case> {
    let (kind, path) = rule.site.split_once('.').unwrap_or((&rule.site, ""));
    let steps = steps(path);
    objects
        .iter()
        .filter(|object| object["kind"] == kind)
        .find_map(|object| {
            let pointer = locate(object, &steps)?;
            Some(Case {
                rule: rule.clone(),
                before: object.clone(),
                accepted: with(object, &pointer, &row.yes),
                refused: with(object, &pointer, &row.no),
            })
        })
}

/// `spec.a[].b{}` as `spec`, `a`, `[]`, `b`, `{}`.
fn steps(path: &str) -> Vec<String> {
    path.replace("[]", ".[]")
        .replace("{}", ".{}")
        .split('.')
        .filter(|step| !step.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The JSON pointer of the first place that the steps lead to.
fn locate(value: &Value, steps: &[String]) -> Option<String> {
    let Some((step, rest)) = steps.split_first() else {
        return Some(String::new());
    };
    let below = |name: &str, inner: &Value| {
        let name = name.replace('~', "~0").replace('/', "~1");
        locate(inner, rest).map(|pointer| format!("/{name}{pointer}"))
    };
    match step.as_str() {
        "[]" => value
            .as_array()?
            .iter()
            .enumerate()
            .find_map(|(idx, item)| below(&idx.to_string(), item)),
        "{}" => value
            .as_object()?
            .iter()
            .find_map(|(key, item)| below(key, item)),
        name => below(name, value.get(name)?),
    }
}

fn with(object: &Value, pointer: &str, change: &Value) -> Value {
    let mut object = object.clone();
    if let Some(place) = object.pointer_mut(pointer) {
        merge(place, change);
    }
    object
}

/// A JSON merge patch; `$text`, `$list` and `$map` stand for values of that size.
fn merge(place: &mut Value, change: &Value) {
    if let Some(value) = sized(change) {
        *place = value;
        return;
    }
    match (place, change) {
        (Value::Object(object), Value::Object(change)) => {
            for (key, value) in change {
                if value.is_null() {
                    object.remove(key);
                } else {
                    merge(object.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (place, change) => *place = change.clone(),
    }
}

fn sized(change: &Value) -> Option<Value> {
    let count = |name: &str| change.get(name)?.as_u64()?.try_into().ok();
    let begin = change["begin"].as_str().unwrap_or("");
    if let Some(length) = count("$text") {
        let text: String = begin
            .chars()
            .chain(std::iter::repeat('a'))
            .take(length)
            .collect();
        return Some(text.into());
    }
    if let Some(length) = count("$list") {
        let item = change["of"].to_string();
        let numbered =
            |idx: usize| serde_json::from_str::<Value>(&item.replace('#', &idx.to_string()));
        return Some((0..length).map(|idx| numbered(idx).unwrap()).collect());
    }
    let entries: Map<String, Value> = (0..count("$map")?)
        .map(|idx: usize| (format!("{begin}{idx}"), change["of"].clone()))
        .collect();
    Some(entries.into())
}
