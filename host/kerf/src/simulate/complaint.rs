//! What is wrong with an input: file, line, object, field, and the next step.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::document::{Document, ReadError};

/// The next step where there is nothing to plan.
pub(crate) const WHAT_TO_GIVE: &str =
    "give NodePools, ECSNodeClasses and workloads, such as `-f examples/quickstart`";

/// One thing to mend or to know. Empty parts are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub(crate) struct Complaint {
    /// The file, or the argument.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) file: String,
    /// Counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u32>,
    /// Kind, namespace and name, such as Deployment shop/web.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) object: String,
    /// The field's path, such as spec.replicas.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) field: String,
    /// What is wrong or was assumed.
    pub(crate) message: String,
    /// The next step.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub(crate) hint: Box<str>,
}

impl Complaint {
    /// About a file or an argument as a whole.
    pub(crate) fn of(file: &str, message: &str) -> Self {
        Self {
            file: file.to_owned(),
            message: message.to_owned(),
            ..Self::default()
        }
    }

    /// About the whole.
    pub(crate) fn note(message: &str) -> Self {
        Self::of("", message)
    }

    /// About a field of an object.
    pub(crate) fn at(item: &Document, field: &str, message: &str) -> Self {
        Self {
            file: item.file.display().to_string(),
            line: u32::try_from(item.line_of(field)).ok(),
            object: item.title(),
            field: field.to_owned(),
            message: message.to_owned(),
            hint: Box::default(),
        }
    }

    /// The same with a next step.
    pub(crate) fn hint(mut self, hint: &str) -> Self {
        self.hint = hint.into();
        self
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.line {
            Some(line) => format!("{}:{line}", self.file),
            None => self.file.clone(),
        };
        let parts = [&place, &self.object, &self.field, &self.message];
        let said: Vec<&str> = parts
            .into_iter()
            .map(String::as_str)
            .filter(|part| !part.is_empty())
            .collect();
        f.write_str(&said.join(": "))?;
        if !self.hint.is_empty() {
            write!(f, "\n  hint: {}", self.hint)?;
        }
        Ok(())
    }
}

impl From<ReadError> for Complaint {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unreadable { file, source } => {
                let complaint = Self::of(
                    &file.display().to_string(),
                    &format!("cannot be read: {source}"),
                );
                complaint.hint("give an existing file or folder, or - for standard input")
            }
            ReadError::Malformed {
                file,
                line,
                message,
            } => Self {
                line: u32::try_from(line).ok(),
                ..Self::of(
                    &file.display().to_string(),
                    &format!("is no YAML: {message}"),
                )
            }
            .hint("check the indentation and the quotes around this line"),
            ReadError::Empty { folder } => {
                let message = "the folder has no .yaml, .yml or .json file";
                let complaint = Self::of(&folder.display().to_string(), message);
                complaint
                    .hint("give a folder with manifests, or - and a pipe from `kustomize build`")
            }
        }
    }
}
