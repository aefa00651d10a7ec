//! The CustomResourceDefinitions, as they are committed under crds/ and installed by the chart.
//!
//! kube derives them from the types; [`definition`] then takes out what a Kubernetes schema does not need: `nullable`,
//! number formats that the API server does not know, and the titles of Rust types.

use crate::capacitybuffer::CapacityBuffer;
use crate::ecsnodeclass::EcsNodeClass;
use crate::nodeclaim::NodeClaim;
use crate::nodeoverlay::NodeOverlay;
use crate::nodepool::NodePool;
use kube::CustomResourceExt;
use serde_json::{Map, Value};

/// Formats of numbers that OpenAPI knows; the API server warns about others.
const NUMBER_FORMATS: &[&str] = &["int32", "int64", "float", "double"];

/// A definition that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("write the definition of {name}")]
pub struct CrdError {
    name: &'static str,
    source: serde_json::Error,
}

/// All definitions as JSON, with the file name (without extension) of each, in the order of the file names.
///
/// # Errors
/// When a schema cannot be written as JSON, which would be a bug of this crate.
pub fn definitions() -> Result<Vec<(&'static str, Value)>, CrdError> {
    Ok(vec![
        (
            "autoscaling.x-k8s.io_capacitybuffers",
            definition::<CapacityBuffer>()?,
        ),
        (
            "karpenter.alibabacloud.com_ecsnodeclasses",
            definition::<EcsNodeClass>()?,
        ),
        ("karpenter.sh_nodeclaims", definition::<NodeClaim>()?),
        (
            "karpenter.sh_nodeoverlays",
            without_min_values(definition::<NodeOverlay>()?),
        ),
        ("karpenter.sh_nodepools", definition::<NodePool>()?),
    ])
}

fn definition<K: CustomResourceExt>() -> Result<Value, CrdError> {
    let mut crd = serde_json::to_value(K::crd()).map_err(|source| CrdError {
        name: K::crd_name(),
        source,
    })?;
    if let Some(versions) = crd
        .pointer_mut("/spec/versions")
        .and_then(Value::as_array_mut)
    {
        for version in versions {
            if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
                make_plain(schema);
            }
        }
    }
    Ok(crd)
}

/// An overlay says which offerings it changes and chooses none, so that its requirements have no minValues. The type is
/// shared with kinds that choose.
fn without_min_values(mut definition: Value) -> Value {
    const ITEM: &str =
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/requirements/items";
    let item = definition.pointer_mut(ITEM).and_then(Value::as_object_mut);
    let Some(item) = item else {
        return definition;
    };
    if let Some(properties) = item.get_mut("properties").and_then(Value::as_object_mut) {
        properties.shift_remove("minValues");
    }
    if let Some(rules) = item
        .get_mut("x-kubernetes-validations")
        .and_then(Value::as_array_mut)
    {
        let speaks = |rule: &Value| rule.to_string().contains("minValues");
        rules.retain(|rule| !speaks(rule));
    }
    definition
}

/// Walks one schema. Names of properties are the user's words, not keywords, so they are never looked at.
fn make_plain(schema: &mut Value) {
    let Some(keywords) = schema.as_object_mut() else {
        return;
    };
    keywords.shift_remove("nullable");
    keywords.shift_remove("title");
    for bound in ["minimum", "maximum"] {
        if let Some(whole) = keywords.get(bound).and_then(whole_number) {
            keywords.insert(bound.to_owned(), whole.into());
        }
    }
    let is_number = keywords
        .get("type")
        .is_some_and(|kind| kind == "integer" || kind == "number");
    let has_unknown_format = keywords
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(|format| !NUMBER_FORMATS.contains(&format));
    if is_number && has_unknown_format {
        keywords.shift_remove("format");
    }

    // An optional field is absent, never null.
    if let Some(values) = keywords.get_mut("enum").and_then(Value::as_array_mut) {
        values.retain(|value| !value.is_null());
    }
    require_lists(keywords);
    if let Some(properties) = keywords
        .get_mut("properties")
        .and_then(Value::as_object_mut)
    {
        properties.values_mut().for_each(make_plain);
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = keywords.get_mut(keyword) {
            make_plain(inner);
        }
    }
}

/// A list that reads as empty when it is absent, but is written always, is one that users must write: our types read
/// everything, the API server accepts only what is whole.
fn require_lists(keywords: &mut Map<String, Value>) {
    let Some(properties) = keywords
        .get_mut("properties")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    let mut names = Vec::new();
    for (name, property) in properties {
        let Some(property) = property.as_object_mut() else {
            continue;
        };
        if property
            .get("default")
            .and_then(Value::as_array)
            .is_some_and(Vec::is_empty)
        {
            property.shift_remove("default");
            names.push(Value::from(name.as_str()));
        }
    }
    if !names.is_empty() {
        let required = keywords
            .entry("required")
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Some(required) = required.as_array_mut() {
            required.append(&mut names);
        }
    }
}

/// Bounds of integers are written without a fraction.
fn whole_number(bound: &Value) -> Option<i64> {
    let number = bound.as_f64()?;
    let text = format!("{number:.0}");
    let whole: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(whole)
}
