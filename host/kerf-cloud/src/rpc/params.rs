//! The flat parameters of an RPC call.
//!
//! Lists are `Name.1`, `Name.2`; objects are dotted; what is not given is left out. The few parameters that want JSON
//! inside a text use [`Params::put_json_list`].

use std::fmt::Display;

/// Parameters in the order in which they were put.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Params(Vec<(String, String)>);

impl Params {
    /// No parameters.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a value, also an empty text.
    pub fn put(&mut self, name: impl Into<String>, value: impl Display) -> &mut Self {
        self.0.push((name.into(), value.to_string()));
        self
    }

    /// Puts a value if there is one.
    pub fn put_some(&mut self, name: impl Into<String>, value: Option<impl Display>) -> &mut Self {
        if let Some(value) = value {
            self.put(name, value);
        }
        self
    }

    /// Puts a text unless it is empty, which in our structs means "not given".
    pub fn put_text(&mut self, name: impl Into<String>, value: &str) -> &mut Self {
        if !value.is_empty() {
            self.put(name, value);
        }
        self
    }

    /// Puts `name.1`, `name.2` …
    pub fn put_list<T: Display>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = T>,
    ) -> &mut Self {
        for (index, value) in values.into_iter().enumerate() {
            self.put(format!("{name}.{}", index + 1), value);
        }
        self
    }

    /// Puts `Tag.1.Key`, `Tag.1.Value` …
    pub fn put_tags(&mut self, tags: &[(String, String)]) -> &mut Self {
        for (index, (key, value)) in tags.iter().enumerate() {
            self.put(format!("Tag.{}.Key", index + 1), key);
            self.put(format!("Tag.{}.Value", index + 1), value);
        }
        self
    }

    /// Puts a JSON array of texts as one text, unless it is empty.
    pub fn put_json_list(&mut self, name: &str, values: &[String]) -> &mut Self {
        if !values.is_empty() {
            self.put(name, serde_json::Value::from(values.to_vec()));
        }
        self
    }

    /// The pairs.
    #[must_use]
    pub fn into_pairs(self) -> Vec<(String, String)> {
        self.0
    }

    /// The pairs, borrowed.
    #[must_use]
    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }
}
