//! The structural part of a definition: types, bounds, patterns, unknown fields and defaults, as the API server has them.

use std::collections::BTreeMap;

use anyhow::Result;
use kerf_api::crds;
use regex::Regex;
use serde_json::{Map, Value};

use super::Finding;
use super::cel::Rules;
use crate::document::join;

/// The definitions of this binary.
pub(crate) struct Definitions {
    /// By apiVersion and kind.
    schemas: BTreeMap<(String, String), Value>,
    rules: Rules,
}

impl Definitions {
    pub(crate) fn load() -> Result<Self> {
        let mut schemas = BTreeMap::new();
        for (_, definition) in crds::definitions()? {
            let spec = &definition["spec"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            for version in spec["versions"].as_array().into_iter().flatten() {
                let api_version = format!("{}/{}", text(&spec["group"]), text(&version["name"]));
                let schema = version["schema"]["openAPIV3Schema"].clone();
                schemas.insert((api_version, text(&spec["names"]["kind"])), schema);
            }
        }
        Ok(Self {
            schemas,
            rules: Rules::new(),
        })
    }

    /// What the API server would refuse in an object; objects of other kinds are not looked at.
    pub(crate) fn check(&self, object: &Value, old: Option<&Value>) -> Vec<Finding> {
        let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let Some(schema) = self.schemas.get(&(api_version.clone(), kind.clone())) else {
            return self.unknown_version(&api_version, &kind);
        };
        let mut findings = Vec::new();
        let with_defaults = |object: &Value| {
            let mut object = object.clone();
            prepare(schema, &mut object);
            object
        };
        let object = with_defaults(object);
        let old = old.map(with_defaults);
        let name = object.pointer("/metadata/name").and_then(Value::as_str);
        if name.is_none_or(str::is_empty) {
            findings.push(Finding::new("metadata.name", "required"));
        }
        check_object(schema, &object, "", true, &mut findings);
        if findings.is_empty() {
            self.rules
                .check(schema, &object, old.as_ref(), "", &mut findings);
        }
        findings
    }

    /// A kind of ours in a version that we do not have.
    fn unknown_version(&self, api_version: &str, kind: &str) -> Vec<Finding> {
        let group = api_version.split('/').next().unwrap_or_default();
        let known = self
            .schemas
            .keys()
            .find(|(known, of)| of == kind && known.split('/').next() == Some(group));
        known
            .map(|(version, _)| {
                let reason = format!("{kind} is not served in {api_version}: write {version}");
                Finding::new("apiVersion", reason)
            })
            .into_iter()
            .collect()
    }
}

/// What the server does before it looks: nulls go, defaults come.
fn prepare(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(object) => {
            if let Some(properties) = schema["properties"].as_object() {
                for (name, property) in properties {
                    if object.get(name).is_some_and(Value::is_null) {
                        object.shift_remove(name);
                    }
                    if let Some(default) = property.get("default") {
                        let is_missing = !object.contains_key(name);
                        if is_missing {
                            object.insert(name.clone(), default.clone());
                        }
                    }
                    if let Some(inner) = object.get_mut(name) {
                        prepare(property, inner);
                    }
                }
            } else if let Some(values) = schema.get("additionalProperties") {
                object.values_mut().for_each(|inner| prepare(values, inner));
            }
        }
        Value::Array(list) => list
            .iter_mut()
            .for_each(|item| prepare(&schema["items"], item)),
        _ => {}
    }
}

fn check_value(schema: &Value, value: &Value, path: &str, findings: &mut Vec<Finding>) {
    if schema["x-kubernetes-int-or-string"] == true {
        if !(value.is_string() || value.is_i64()) {
            findings.push(Finding::new(path, "must be a whole number or a text"));
            return;
        }
    } else if let Some(expected) = schema["type"].as_str()
        && !is_a(value, expected)
    {
        findings.push(Finding::new(path, format!("must be of type {expected}")));
        return;
    }
    match value {
        Value::Object(object) => {
            check_count(
                schema,
                "Properties",
                object.len(),
                "entries",
                path,
                findings,
            );
            check_object(schema, value, path, false, findings);
        }
        Value::Array(list) => check_list(schema, list, path, findings),
        Value::String(text) => check_text(schema, text, path, findings),
        Value::Number(number) => check_number(schema, number.as_f64(), path, findings),
        Value::Bool(_) | Value::Null => {}
    }
    if let Some(known) = schema["enum"].as_array()
        && !known.contains(value)
    {
        let known: Vec<_> = known.iter().filter_map(Value::as_str).collect();
        let reason = format!(
            "unsupported value {value}: write one of {}",
            known.join(", ")
        );
        findings.push(Finding::new(path, reason));
    }
}

fn is_a(value: &Value, expected: &str) -> bool {
    match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.as_f64().is_some_and(|it| it.fract() == 0.0),
        "number" => value.is_number(),
        _ => true,
    }
}

fn check_object(
    schema: &Value,
    value: &Value,
    path: &str,
    is_root: bool,
    findings: &mut Vec<Finding>,
) {
    let Some(object) = value.as_object() else {
        return;
    };
    for name in schema["required"].as_array().into_iter().flatten() {
        if let Some(name) = name.as_str()
            && !object.contains_key(name)
        {
            findings.push(Finding::new(&join(path, name), "required"));
        }
    }
    let properties = schema["properties"].as_object();
    let additional = schema
        .get("additionalProperties")
        .filter(|it| it.is_object());
    let keeps_all = schema["x-kubernetes-preserve-unknown-fields"] == true;
    for (key, inner) in object {
        let place = join(path, key);
        if let Some(property) = properties.and_then(|properties| properties.get(key)) {
            check_value(property, inner, &place, findings);
        } else if let Some(values) = additional {
            check_value(values, inner, &place, findings);
        } else if !(keeps_all
            || is_root && ["apiVersion", "kind", "metadata"].contains(&key.as_str()))
        {
            findings.push(Finding::new(&place, unknown_field(key, properties)));
        }
    }
}

fn unknown_field(key: &str, properties: Option<&Map<String, Value>>) -> String {
    let known: Vec<&str> = properties
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
        .collect();
    format!("unknown field {key:?}; fields here: {}", known.join(", "))
}

fn check_list(schema: &Value, list: &[Value], path: &str, findings: &mut Vec<Finding>) {
    check_count(schema, "Items", list.len(), "items", path, findings);
    let keys: Vec<&str> = schema["x-kubernetes-list-map-keys"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let identity = |item: &Value| match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => Some(item.to_string()),
        Some("map") => Some(keys.iter().map(|key| item[*key].to_string()).collect()),
        _ => None,
    };
    let mut seen = std::collections::BTreeSet::new();
    for (idx, item) in list.iter().enumerate() {
        let place = format!("{path}[{idx}]");
        if identity(item).is_some_and(|identity| !seen.insert(identity)) {
            findings.push(Finding::new(&place, "is there twice"));
        }
        check_value(&schema["items"], item, &place, findings);
    }
}

fn check_count(
    schema: &Value,
    of: &str,
    count: usize,
    what: &str,
    path: &str,
    findings: &mut Vec<Finding>,
) {
    let bound = |name: String| schema[name.as_str()].as_u64();
    let count = count as u64;
    if let Some(most) = bound(format!("max{of}")).filter(|most| count > *most) {
        let reason = format!("has {count} {what}, at most {most} are allowed");
        findings.push(Finding::new(path, reason));
    }
    if let Some(least) = bound(format!("min{of}")).filter(|least| count < *least) {
        let reason = format!("has {count} {what}, at least {least} are needed");
        findings.push(Finding::new(path, reason));
    }
}

fn check_text(schema: &Value, text: &str, path: &str, findings: &mut Vec<Finding>) {
    check_count(
        schema,
        "Length",
        text.chars().count(),
        "characters",
        path,
        findings,
    );
    if let Some(pattern) = schema["pattern"].as_str() {
        match Regex::new(pattern) {
            Ok(regex) if regex.is_match(text) => {}
            Ok(_) => {
                let reason = format!("{text:?} does not match {pattern}");
                findings.push(Finding::new(path, reason));
            }
            Err(error) => findings.push(Finding::new(path, format!("{pattern}: {error}"))),
        }
    }
}

fn check_number(schema: &Value, number: Option<f64>, path: &str, findings: &mut Vec<Finding>) {
    let Some(number) = number else {
        return;
    };
    if let Some(least) = schema["minimum"].as_f64().filter(|least| number < *least) {
        let reason = format!("{number} is too small: at least {least}");
        findings.push(Finding::new(path, reason));
    }
    if let Some(most) = schema["maximum"].as_f64().filter(|most| number > *most) {
        let reason = format!("{number} is too large: at most {most}");
        findings.push(Finding::new(path, reason));
    }
}

#[cfg(test)]
#[path = "claims.rs"]
mod claims;
