//! Checks a configuration against the JSON Schema that the policy returned.
//!
//! The keywords that configurations use, and no more: type, enum, const, properties, required, additionalProperties,
//! items, minItems, maxItems, minimum, maximum, exclusiveMinimum, exclusiveMaximum, minLength, maxLength, anyOf, allOf,
//! and `$ref` into the same document. Others are left to the policy's own validate-config, which is asked afterwards and
//! has the last word. A whole validator would bring more than twenty packages into the controller.

use crate::policy::ConfigError;
use serde_json::{Map, Value};

/// Deep enough for people; a schema that refers to itself ends here.
const DEPTH_MAX: usize = 32;
/// Schemas applied to values in one check. The largest configuration has some 10,000 values; alternatives that refer to
/// themselves would otherwise take for ever.
const STEPS_MAX: usize = 100_000;
/// Nobody reads more at once.
const ERRORS_MAX: usize = 8;

/// What is wrong with `config`, in the order of the schema; empty when it conforms.
pub(crate) fn check(schema: &Value, config: &Value) -> Vec<ConfigError> {
    let mut checker = Checker {
        root: schema,
        errors: Vec::new(),
        steps_left: STEPS_MAX,
    };
    checker.check(schema, config, "", 0);
    checker.errors.truncate(ERRORS_MAX);
    checker.errors
}

struct Checker<'a> {
    root: &'a Value,
    errors: Vec<ConfigError>,
    steps_left: usize,
}

impl<'a> Checker<'a> {
    fn check(&mut self, schema: &'a Value, value: &Value, path: &str, depth: usize) {
        if depth > DEPTH_MAX || self.errors.len() > ERRORS_MAX || self.steps_left == 0 {
            return;
        }
        self.steps_left -= 1;
        let schema = match schema {
            Value::Bool(false) => return self.refuse(path, "must not be set".into()),
            Value::Object(schema) => schema,
            _ => return,
        };
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let target = target
                .strip_prefix('#')
                .and_then(|pointer| self.root.pointer(pointer));
            if let Some(target) = target {
                self.check(target, value, path, depth + 1);
            }
        }
        if let Some(expected) = schema
            .get("type")
            .filter(|expected| !has_type(value, expected))
        {
            // What follows would only repeat that.
            return self.refuse(
                path,
                format!("must be {}, not {}", type_names(expected), type_name(value)),
            );
        }
        self.check_choice(schema, value, path);
        self.check_size(schema, value, path);
        self.check_alternatives(schema, value, path, depth);
        if let Value::Object(object) = value {
            self.check_object(schema, object, path, depth);
        }
        if let (Value::Array(items), Some(of_items)) = (value, schema.get("items")) {
            for (i, item) in items.iter().enumerate() {
                self.check(of_items, item, &format!("{path}/{i}"), depth + 1);
            }
        }
    }

    fn check_choice(&mut self, schema: &Map<String, Value>, value: &Value, path: &str) {
        if let Some(Value::Array(choices)) = schema.get("enum")
            && !choices.contains(value)
        {
            let choices: Vec<_> = choices.iter().map(ToString::to_string).collect();
            self.refuse(
                path,
                format!("must be one of {}, not {value}", choices.join(", ")),
            );
        }
        if let Some(only) = schema.get("const").filter(|only| *only != value) {
            self.refuse(path, format!("must be {only}, not {value}"));
        }
    }

    fn check_size(&mut self, schema: &Map<String, Value>, value: &Value, path: &str) {
        let (size, least, most, of) = match value {
            Value::Number(number) => (number.as_f64(), "minimum", "maximum", ""),
            Value::String(text) => (
                Some(to_f64(text.chars().count())),
                "minLength",
                "maxLength",
                "characters",
            ),
            Value::Array(items) => (Some(to_f64(items.len())), "minItems", "maxItems", "items"),
            Value::Null | Value::Bool(_) | Value::Object(_) => return,
        };
        let Some(size) = size else { return };
        let mut bound = |keyword: &str, words: &str, is_broken: fn(f64, f64) -> bool| {
            if let Some(bound) = schema
                .get(keyword)
                .and_then(Value::as_f64)
                .filter(|bound| is_broken(size, *bound))
            {
                let message = format!("must be {words} {bound} {of}");
                self.refuse(path, message.trim_end().to_owned());
            }
        };
        bound(least, "at least", |size, bound| size < bound);
        bound(most, "at most", |size, bound| size > bound);
        if value.is_number() {
            bound("exclusiveMinimum", "more than", |size, bound| size <= bound);
            bound("exclusiveMaximum", "less than", |size, bound| size >= bound);
        }
    }

    fn check_alternatives(
        &mut self,
        schema: &'a Map<String, Value>,
        value: &Value,
        path: &str,
        depth: usize,
    ) {
        if let Some(Value::Array(all)) = schema.get("allOf") {
            all.iter()
                .for_each(|part| self.check(part, value, path, depth + 1));
        }
        let Some(Value::Array(any)) = schema.get("anyOf") else {
            return;
        };
        let mut nearest: Option<Vec<ConfigError>> = None;
        for part in any {
            let mut alternative = Checker {
                root: self.root,
                errors: Vec::new(),
                steps_left: self.steps_left,
            };
            alternative.check(part, value, path, depth + 1);
            self.steps_left = alternative.steps_left;
            if nearest
                .as_ref()
                .is_none_or(|errors| alternative.errors.len() <= errors.len())
            {
                nearest = Some(alternative.errors);
            }
        }
        self.errors.extend(nearest.unwrap_or_default());
    }

    fn check_object(
        &mut self,
        schema: &'a Map<String, Value>,
        object: &Map<String, Value>,
        path: &str,
        depth: usize,
    ) {
        let known = schema.get("properties").and_then(Value::as_object);
        for name in schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            if !object.contains_key(name) {
                self.refuse(path, format!("lacks {name:?}"));
            }
        }
        for (name, value) in object {
            let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
            match (
                known.and_then(|known| known.get(name)),
                schema.get("additionalProperties"),
            ) {
                (Some(schema), _) => self.check(schema, value, &path, depth + 1),
                (None, Some(Value::Bool(false))) => self.refuse(&path, unknown_key(known)),
                (None, Some(others)) => self.check(others, value, &path, depth + 1),
                (None, None) => {}
            }
        }
    }

    fn refuse(&mut self, path: &str, message: String) {
        self.errors.push(ConfigError {
            path: path.to_owned(),
            message,
        });
    }
}

fn unknown_key(known: Option<&Map<String, Value>>) -> String {
    let known: Vec<_> = known
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
        .collect();
    format!(
        "is not a key of this policy; it knows {}",
        if known.is_empty() {
            "none".into()
        } else {
            known.join(", ")
        }
    )
}

fn has_type(value: &Value, expected: &Value) -> bool {
    match expected {
        Value::String(name) => is_of(value, name),
        Value::Array(names) => names.iter().any(|name| has_type(value, name)),
        // Not a schema; the policy's author finds out by their own tests.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
    }
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0)
        }
        "number" => value.is_number(),
        name => type_name(value) == name,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn type_names(expected: &Value) -> String {
    match expected {
        Value::Array(names) => names
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" or "),
        Value::String(name) => name.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn to_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: &Value, config: &Value, expected: &[&str]) {
        let errors: Vec<_> = super::check(schema, config)
            .iter()
            .map(ToString::to_string)
            .collect();

        assert_eq!(errors, expected, "{config}");
    }

    #[test]
    fn errors_name_the_place_and_what_would_be_right() {
        let schema = json!({
            "type": "object",
            "required": ["mode"],
            "additionalProperties": false,
            "properties": {
                "mode": {"enum": ["a", "b"]},
                "weights": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
                "names": {"type": "array", "maxItems": 2, "items": {"type": "string", "minLength": 1}},
                "limit": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/percent"}]}
            },
            "$defs": {"percent": {"type": "number", "exclusiveMaximum": 100}}
        });
        check(
            &schema,
            &json!({"mode": "a", "weights": {"x": 1.0}, "names": ["n"], "limit": null}),
            &[],
        );
        check(&schema, &json!([]), &["config: must be object, not array"]);
        check(&schema, &json!({}), &["config: lacks \"mode\""]);
        check(
            &schema,
            &json!({"mode": "c"}),
            &["/mode: must be one of \"a\", \"b\", not \"c\""],
        );
        check(
            &schema,
            &json!({"mode": "a", "wieghts": {}}),
            &["/wieghts: is not a key of this policy; it knows mode, weights, names, limit"],
        );
        check(
            &schema,
            &json!({"mode": "a", "weights": {"x": "1", "y/z": -1}}),
            &[
                "/weights/x: must be integer, not string",
                "/weights/y~1z: must be at least 0",
            ],
        );
        check(
            &schema,
            &json!({"mode": "a", "names": ["", "b", "c"]}),
            &[
                "/names: must be at most 2 items",
                "/names/0: must be at least 1 characters",
            ],
        );
        check(
            &schema,
            &json!({"mode": "a", "limit": 100}),
            &["/limit: must be less than 100"],
        );
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        check(&json!({"$ref": "#"}), &json!({}), &[]);
        check(
            &json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}),
            &json!(1),
            &[],
        );
    }
}
