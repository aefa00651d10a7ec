//! A case of a policy's tests: a configuration, a question, and what the policy shall answer or refuse.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use kerf_policy::Hook;
use serde::Deserialize;
use serde_json::Value;

use crate::plugin::question::{Question, types, usual_types};

/// A file of tests/.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    /// What is shown; the name of the file when there is none.
    #[serde(default)]
    pub(super) name: String,
    #[serde(default = "nothing")]
    pub(super) config: Value,
    /// Instance types of a small question: `[["ecs.g7.large", "amd64", 400000]]`.
    #[serde(default)]
    types: Option<Value>,
    /// A whole question, as `kerf plugin run --input` takes it.
    #[serde(default)]
    input: Option<Value>,
    /// The answer: `order` and `excluded`, `prices`, or `scripts`.
    #[serde(default)]
    pub(super) answer: Option<Value>,
    /// What the policy says of the configuration.
    #[serde(default)]
    pub(super) errors: Option<Vec<String>>,
}

fn nothing() -> Value {
    Value::Object(serde_json::Map::new())
}

impl Case {
    /// Reads one.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let about = || path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(about)?;
        let mut case: Self = serde_json::from_str(&text).with_context(|| {
            format!(
                "{} is no case: it has name, config, types or input, and answer or errors",
                path.display()
            )
        })?;
        if case.name.is_empty() {
            case.name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
        }
        Ok(case)
    }

    /// All of a folder, by name of the file.
    pub(super) fn read_all(folder: &Path) -> Result<Vec<Self>> {
        let entries = std::fs::read_dir(folder)
            .with_context(|| format!("cannot read the cases in {}", folder.display()))?;
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|it| it == "json"))
            .collect();
        paths.sort();
        if paths.is_empty() {
            bail!(
                "there is no case in {}: write one such as {{\"config\": {{}}, \"types\": [[\"ecs.g7.large\", \"amd64\", \
                 400000]], \"answer\": {{\"order\": [\"ecs.g7.large\"], \"excluded\": []}}}}",
                folder.display()
            );
        }
        paths.iter().map(|path| Self::read(path)).collect()
    }

    /// What is asked.
    pub(super) fn question(&self, hook: Hook) -> Result<Question> {
        match (&self.input, &self.types) {
            (Some(input), _) => Question::parse(hook, input.clone())
                .with_context(|| format!("{}: input", self.name)),
            (None, Some(rows)) => Ok(Question::small(hook, &types(rows)?)),
            (None, None) => Ok(Question::small(hook, &usual_types())),
        }
    }
}
