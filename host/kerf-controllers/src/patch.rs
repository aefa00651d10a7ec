//! Writing an object back: only what differs, and only if nobody changed the object since it was read.
//!
//! Both patches carry the resourceVersion, so a decision made on a stale object is refused by the API server (409)
//! instead of undoing someone else's change. A note that is right whatever else changed carries the uid only.

use std::fmt::Debug;

use kube::Resource;
use kube::api::{Api, Patch, PatchParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::api_call::bounded;
use crate::error::Error;

/// Our name in `managedFields` and in requests.
pub const FIELD_MANAGER: &str = "kerf";

/// What a kind must be to be written back.
pub trait Writable:
    Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned
{
}
impl<K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned> Writable for K {}

/// Brings the object on the API server from `before` to `after`: metadata and spec first, then status.
/// Returns the object as it is now; when nothing differs there is no call and `after` is returned.
///
/// # Errors
/// [`Error::Kube`]; a conflict when the object changed after `before` was read.
pub async fn write<K: Writable>(api: &Api<K>, before: &K, after: &K) -> Result<K, Error> {
    let name = before.meta().name.clone().unwrap_or_default();
    let Changes { main, status } = changes(before, after)?;
    let params = PatchParams::apply(FIELD_MANAGER);
    let params = PatchParams {
        force: false,
        ..params
    };
    let mut version = before.meta().resource_version.clone();
    let mut written = None;
    if let Some(change) = main {
        let patch = Patch::Merge(locked(change, version.as_deref()));
        let now = bounded(api.patch(&name, &params, &patch))
            .await
            .map_err(|source| Error::kube("patch", before, source))?;
        version.clone_from(&now.meta().resource_version);
        written = Some(now);
    }
    if let Some(change) = status {
        let patch = Patch::Merge(locked(json!({ "status": change }), version.as_deref()));
        let now = bounded(api.patch_status(&name, &params, &patch))
            .await
            .map_err(|source| Error::kube("patch the status of", before, source))?;
        written = Some(now);
    }
    Ok(written.unwrap_or_else(|| after.clone()))
}

/// Sets an annotation that only we write and takes another away, whatever else was changed since the object was read.
///
/// # Errors
/// [`Error::Kube`]; a conflict when another object has that name by now.
pub async fn annotate<K: Writable>(
    api: &Api<K>,
    object: &K,
    (key, value): (&str, &str),
    obsolete: &str,
) -> Result<K, Error> {
    let name = object.meta().name.clone().unwrap_or_default();
    let annotations = json!({key: value, obsolete: null});
    let patch = Patch::Merge(of_uid(object.meta().uid.as_deref(), &annotations));
    bounded(api.patch(&name, &PatchParams::apply(FIELD_MANAGER), &patch))
        .await
        .map_err(|source| Error::kube("annotate", object, source))
}

fn of_uid(uid: Option<&str>, annotations: &Value) -> Value {
    json!({"metadata": {"uid": uid, "annotations": annotations}})
}

/// What is to be written; none where nothing differs.
struct Changes {
    main: Option<Value>,
    status: Option<Value>,
}

/// The objects as values are gone before anybody waits for an answer: of a burst, hundreds wait at a time.
fn changes<K: Writable>(before: &K, after: &K) -> Result<Changes, Error> {
    let (before_main, before_status) = split(encode(before)?);
    let (after_main, after_status) = split(encode(after)?);
    Ok(Changes {
        main: difference(&before_main, &after_main),
        status: difference(&before_status, &after_status),
    })
}

fn encode<K: Writable>(object: &K) -> Result<Value, Error> {
    serde_json::to_value(object).map_err(|source| Error::Encode {
        object: crate::error::describe(object),
        source,
    })
}

/// The object without its status, and the status.
fn split(mut object: Value) -> (Value, Value) {
    let status = object
        .as_object_mut()
        .and_then(|fields| fields.remove("status"));
    (object, status.unwrap_or_else(|| json!({})))
}

/// The merge patch (RFC 7386) that turns `before` into `after`; none when they are equal.
fn difference(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return Some(after.clone());
    };
    let mut patch = Map::new();
    for (key, value) in after {
        let change = match before.get(key) {
            Some(old) => difference(old, value),
            None => Some(value.clone()),
        };
        patch.extend(change.map(|change| (key.clone(), change)));
    }
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Some(Value::Object(patch))
}

fn locked(mut change: Value, resource_version: Option<&str>) -> Value {
    if let (Some(fields), Some(version)) = (change.as_object_mut(), resource_version) {
        let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
        metadata["resourceVersion"] = json!(version);
    }
    change
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_objects_need_no_patch() {
        assert_eq!(difference(&json!({"a": [1]}), &json!({"a": [1]})), None);
    }

    #[test]
    fn a_patch_names_only_what_differs() {
        let before = json!({"metadata": {"name": "x", "labels": {"keep": "1", "gone": "2"}}, "list": [1, 2]});
        let after =
            json!({"metadata": {"name": "x", "labels": {"keep": "1", "new": "3"}}, "list": [1]});

        let patch = difference(&before, &after).unwrap();

        assert_eq!(
            patch,
            json!({"metadata": {"labels": {"new": "3", "gone": null}}, "list": [1]})
        );
    }

    #[test]
    fn a_note_holds_for_the_object_of_that_uid_only() {
        assert_eq!(
            of_uid(Some("u-1"), &json!({"tagged": "true"})),
            json!({"metadata": {"uid": "u-1", "annotations": {"tagged": "true"}}})
        );
    }

    #[test]
    fn every_patch_carries_the_version_that_was_read() {
        let patch = locked(json!({"status": {}}), Some("7"));

        assert_eq!(
            patch,
            json!({"status": {}, "metadata": {"resourceVersion": "7"}})
        );
    }
}
