//! Objects as watches deliver them: one that cannot be read does not stop the others, and nothing is read twice.
//!
//! An object is taken as text first. That costs one copy, where kube's `DeserializeGuard` builds a tree of every object
//! and clones it; and the text can be cut before it is read.

use std::borrow::Cow;
use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Who wrote which field: a third of an object's text, which nobody here asks for. The text has this form at the start
/// of the list only, because a quotation mark within a string is written with a backslash before it.
const MANAGED_FIELDS: &str = "\"managedFields\":[";

/// An object, or why it cannot be read.
#[derive(Debug, Clone)]
pub struct Lenient<K>(pub Result<K, Unreadable>);

/// An object that does not fit its type.
#[derive(Debug, Clone)]
pub struct Unreadable {
    /// What does not fit.
    pub error: String,
    /// Its metadata, as far as that can be read.
    pub metadata: ObjectMeta,
}

#[derive(Deserialize)]
struct OnlyMetadata {
    metadata: ObjectMeta,
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Lenient<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let text = without_managed_fields(text.get());
        Ok(Self(serde_json::from_str(&text).map_err(|error| {
            let known: Option<OnlyMetadata> = serde_json::from_str(&text).ok();
            Unreadable {
                error: error.to_string(),
                metadata: known.map(|it| it.metadata).unwrap_or_default(),
            }
        })))
    }
}

/// The text without the first list of managed fields, which is that of the object's metadata.
fn without_managed_fields(text: &str) -> Cow<'_, str> {
    let cut = || {
        let start = text.find(MANAGED_FIELDS)?;
        let list = text.get(start + MANAGED_FIELDS.len() - 1..)?;
        let after = list.get(list_length(list)?..)?;
        let before = text.get(..start)?;
        // One of the two commas around it goes with it.
        Some(match before.strip_suffix(',') {
            Some(before) => [before, after].concat(),
            None => [before, after.strip_prefix(',').unwrap_or(after)].concat(),
        })
    };
    cut().map_or(Cow::Borrowed(text), Cow::Owned)
}

/// How long the list is with which the text begins.
fn list_length(text: &str) -> Option<usize> {
    let (mut depth, mut is_string, mut is_escaped) = (0_usize, false, false);
    for (idx, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b'[' if !is_string => depth += 1,
            b']' if !is_string => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(idx + 1);
                }
            }
            _ => {}
        }
    }
    None
}

impl<K: Resource> Resource for Lenient<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dynamic)
    }

    fn group(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dynamic)
    }

    fn version(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dynamic)
    }

    fn plural(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.as_ref().map_or_else(|it| &it.metadata, K::meta)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0
            .as_mut()
            .map_or_else(|it| &mut it.metadata, K::meta_mut)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::core::WatchEvent;
    use serde_json::json;

    use super::*;

    fn pod(managed_fields: &serde_json::Value) -> serde_json::Value {
        json!({
            "metadata": {"name": "web", "managedFields": managed_fields, "annotations": {"note": "\"managedFields\":["}},
            "spec": {"containers": [{"name": "main", "args": ["]", "\\\"[", "{"]}]},
        })
    }

    fn read(text: &str) -> Lenient<Pod> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn an_object_is_read_without_the_list_of_who_wrote_what() {
        let managed_fields =
            json!([{"fieldsV1": {"f:x": {"k:{\"a\":\"]\\\\\"}": {}}}}, {"manager": "["}]);
        let mut expected: Pod = serde_json::from_value(pod(&managed_fields)).unwrap();
        expected.metadata.managed_fields = None;

        let found = read(&pod(&managed_fields).to_string()).0.unwrap();

        assert_eq!(found, expected);
    }

    #[test]
    fn the_list_may_stand_first_last_or_alone() {
        for text in [
            r#"{"metadata":{"managedFields":[],"name":"web"}}"#,
            r#"{"metadata":{"name":"web","managedFields":[[1]]}}"#,
            r#"{"metadata":{"managedFields":[{}]}}"#,
            r#"{"metadata":{"name":"web"}}"#,
        ] {
            let found = read(text).0.unwrap();

            assert_eq!(
                found.metadata.name.is_some(),
                text.contains("web"),
                "{text}"
            );
            assert_eq!(found.metadata.managed_fields, None, "{text}");
        }
    }

    #[test]
    fn an_object_that_does_not_fit_keeps_its_name() {
        let text =
            r#"{"type":"ADDED","object":{"metadata":{"name":"web","managedFields":[1]},"spec":7}}"#;

        let event: WatchEvent<Lenient<Pod>> = serde_json::from_str(text).unwrap();

        let WatchEvent::Added(found) = event else {
            panic!("not added");
        };
        assert_eq!(found.meta().name.as_deref(), Some("web"));
        assert!(found.0.unwrap_err().error.contains("invalid type"));
    }
}
