//! `kerf validate`: what the API server would refuse, and what it cannot see, found without a cluster.
//!
//! Each finding is one line: file, line, path, reason. The rules are those of the definitions in this binary
//! ([`schema`] and [`cel`]); [`cross`] compares objects with each other, with the instance types and with the calendar.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::args::Validate;
use crate::exit::Findings;

mod cel;
mod cross;
mod document;
mod schema;

use document::Document;

/// Something that is wrong, where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    /// The place in the object, such as `spec.template.spec.requirements[0].key`.
    path: String,
    /// What is wrong and what to write instead.
    reason: String,
}

impl Finding {
    fn new(path: &str, reason: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}

/// Checks the files and prints what is wrong with them.
pub(crate) fn run(args: &Validate) -> Result<()> {
    let documents = read_all(&args.files)?;
    let before: BTreeMap<String, Value> = read_all(&args.old)?
        .into_iter()
        .map(|document| (document.identity(), document.value))
        .collect();
    let definitions = schema::Definitions::load()?;

    let mut findings = Vec::new();
    for (idx, document) in documents.iter().enumerate() {
        let old = before.get(&document.identity());
        for finding in definitions.check(&document.value, old) {
            findings.push((idx, finding));
        }
    }
    if !args.schema_only {
        findings.extend(cross::check(&documents, &args.region)?);
    }
    findings.sort();

    let mut out = std::io::stdout().lock();
    for (idx, finding) in &findings {
        let document = &documents[*idx];
        let line = document.line_of(&finding.path);
        let file = document.file.display();
        writeln!(out, "{file}:{line}: {}: {}", finding.path, finding.reason)?;
    }
    if findings.is_empty() {
        Ok(())
    } else {
        Err(Findings(findings.len()).into())
    }
}

fn read_all(paths: &[PathBuf]) -> Result<Vec<Document>> {
    let mut documents = Vec::new();
    for path in paths {
        for file in files_of(path)? {
            let text = std::fs::read_to_string(&file)
                .with_context(|| format!("read {}", file.display()))?;
            let read = document::read(&file, &text)
                .with_context(|| format!("read {} as YAML", file.display()))?;
            documents.extend(read);
        }
    }
    Ok(documents)
}

/// The file itself, or the manifests of a folder and the folders in it, by name.
fn files_of(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let entries = std::fs::read_dir(path).with_context(|| format!("read {}", path.display()))?;
    for entry in entries {
        let path = entry?.path();
        let is_manifest = path
            .extension()
            .is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|known| ending == *known));
        if path.is_dir() {
            files.extend(files_of(&path)?);
        } else if is_manifest {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
