//! A document that is taken apart: what nobody took is what has no equal.

use serde_json::{Map, Value};

/// Fields that say nothing about what a user wants.
const OF_THE_SERVER: &[&str] = &[
    "/apiVersion",
    "/kind",
    "/status",
    "/metadata/creationTimestamp",
    "/metadata/uid",
    "/metadata/generation",
    "/metadata/resourceVersion",
    "/metadata/managedFields",
    "/metadata/finalizers",
    "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration",
];

/// A value, and what was said about its fields.
#[derive(Debug)]
pub(super) struct Source {
    value: Value,
    at: String,
    warnings: Vec<String>,
}

impl Source {
    pub(super) fn new(value: Value) -> Self {
        let mut source = Self::part(value, "");
        for pointer in OF_THE_SERVER {
            source.take(pointer);
        }
        source
    }

    /// A part of a document, for items of lists.
    pub(super) fn part(value: Value, at: &str) -> Self {
        Self {
            value,
            at: at.to_owned(),
            warnings: Vec::new(),
        }
    }

    /// Takes a field out, by its JSON pointer.
    pub(super) fn take(&mut self, pointer: &str) -> Option<Value> {
        let (parent, name) = pointer.rsplit_once('/')?;
        let name = name.replace("~1", "/").replace("~0", "~");
        let parent = self.value.pointer_mut(parent)?.as_object_mut()?;
        parent.shift_remove(&name).filter(|value| !value.is_null())
    }

    pub(super) fn text(&mut self, pointer: &str) -> Option<String> {
        match self.take(pointer)? {
            Value::String(text) => Some(text).filter(|text| !text.is_empty()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(it) => Some(it.to_string()),
            _ => None,
        }
    }

    pub(super) fn list(&mut self, pointer: &str) -> Vec<Value> {
        match self.take(pointer) {
            Some(Value::Array(list)) => list,
            Some(other) => vec![other],
            None => Vec::new(),
        }
    }

    pub(super) fn map(&mut self, pointer: &str) -> Map<String, Value> {
        match self.take(pointer) {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        }
    }

    /// Takes a field out that has no equal, for a known reason.
    pub(super) fn refuse(&mut self, pointer: &str, reason: &str) {
        if let Some(value) = self.take(pointer) {
            let path = pointer.trim_start_matches('/').replace('/', ".");
            self.warn(&format!("{path} ({value})"), reason);
        }
    }

    pub(super) fn warn(&mut self, path: &str, reason: &str) {
        self.warnings.push(format!("{}{path}: {reason}", self.at));
    }

    pub(super) fn absorb(&mut self, part: Self) {
        self.warnings.extend(part.finish());
    }

    /// What was said, and every field that nobody took.
    pub(super) fn finish(mut self) -> Vec<String> {
        let value = std::mem::take(&mut self.value);
        self.leftovers(&value, "");
        self.warnings
    }

    fn leftovers(&mut self, value: &Value, path: &str) {
        match value {
            Value::Object(object) => {
                for (key, inner) in object {
                    let place = if path.is_empty() {
                        key.clone()
                    } else {
                        format!("{path}.{key}")
                    };
                    self.leftovers(inner, &place);
                }
            }
            Value::Null => {}
            Value::Array(list) if list.is_empty() => {}
            other => self.warn(
                &format!("{path} ({other})"),
                "has no equal here and is left out",
            ),
        }
    }
}
