//! The CEL rules of a definition.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use cel::objects::{Key, Map};
use cel::{Context, Env, Program, Value as Cel};
use serde_json::Value;

use super::Finding;
use crate::document::join;

/// The rules that were met so far, parsed: reading one takes longer than trying it.
pub(super) struct Rules {
    env: Arc<Env>,
    programs: RefCell<HashMap<String, Rc<Program>>>,
}

impl Rules {
    pub(super) fn new() -> Self {
        Self {
            env: Arc::new(Env::stdlib()),
            programs: RefCell::default(),
        }
    }

    /// Tries every rule of a schema and of what is in it. A rule about a change is skipped without an older object.
    pub(super) fn check(
        &self,
        schema: &Value,
        value: &Value,
        old: Option<&Value>,
        path: &str,
        findings: &mut Vec<Finding>,
    ) {
        for rule in schema["x-kubernetes-validations"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let text = rule["rule"].as_str().unwrap_or_default();
            if text.contains("oldSelf") && old.is_none() {
                continue;
            }
            let message = rule["message"].as_str().unwrap_or(text);
            match self.holds(text, schema, value, old) {
                Ok(true) => {}
                Ok(false) => findings.push(Finding::new(path, message)),
                Err(error) => findings.push(Finding::new(path, format!("{message} ({error})"))),
            }
        }
        match value {
            Value::Object(object) => {
                for (key, inner) in object {
                    let old = old.and_then(|old| old.get(key));
                    self.check(
                        property(schema, key),
                        inner,
                        old,
                        &join(path, key),
                        findings,
                    );
                }
            }
            Value::Array(list) => {
                for (idx, item) in list.iter().enumerate() {
                    self.check(
                        &schema["items"],
                        item,
                        None,
                        &format!("{path}[{idx}]"),
                        findings,
                    );
                }
            }
            _ => {}
        }
    }

    fn holds(
        &self,
        rule: &str,
        schema: &Value,
        value: &Value,
        old: Option<&Value>,
    ) -> Result<bool, String> {
        let program = self.program(rule)?;
        let mut context = Context::with_env(Arc::clone(&self.env));
        context.add_variable_from_value("self", to_cel(schema, value));
        if let Some(old) = old {
            context.add_variable_from_value("oldSelf", to_cel(schema, old));
        }
        match program.execute(&context) {
            Ok(Cel::Bool(holds)) => Ok(holds),
            Ok(other) => Err(format!("the rule gives {other:?}")),
            Err(error) => Err(error.to_string()),
        }
    }

    fn program(&self, rule: &str) -> Result<Rc<Program>, String> {
        if let Some(known) = self.programs.borrow().get(rule) {
            return Ok(Rc::clone(known));
        }
        let program = self.env.compile(rule).map_err(|error| error.to_string())?;
        let program = Rc::new(program);
        let mut programs = self.programs.borrow_mut();
        programs.insert(rule.to_owned(), Rc::clone(&program));
        Ok(program)
    }
}

/// The schema of a field or of a value of a map.
fn property<'a>(schema: &'a Value, key: &str) -> &'a Value {
    let property = &schema["properties"][key];
    if property.is_null() {
        &schema["additionalProperties"]
    } else {
        property
    }
}

/// The value as CEL sees it: a number of the schema's type `number` is a double even when it is written as 2.
fn to_cel(schema: &Value, value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(it) => Cel::Bool(*it),
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Number(number) => match number.as_i64() {
            Some(whole) if schema["type"] != "number" => Cel::Int(whole),
            _ => Cel::Float(number.as_f64().unwrap_or_default()),
        },
        Value::Array(list) => {
            let items = list.iter().map(|item| to_cel(&schema["items"], item));
            Cel::List(Arc::new(items.collect()))
        }
        Value::Object(object) => {
            let map: HashMap<Key, Cel> = object
                .iter()
                .map(|(key, inner)| {
                    let name = Key::String(Arc::new(key.clone()));
                    (name, to_cel(property(schema, key), inner))
                })
                .collect();
            Cel::Map(Map { map: Arc::new(map) })
        }
    }
}
