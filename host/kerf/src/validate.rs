//! `kerf validate`: what the API server would refuse, and what it cannot see, found without a cluster.
//!
//! Each finding is one line: file, line, path, reason. The rules are those of the definitions in this binary
//! ([`schema`] and [`cel`]); [`cross`] compares objects with each other, with the instance types and with the calendar,
//! and [`policies`] asks each policy that the manifests bring about its configuration.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use serde_json::Value;

use crate::args::Validate;
use crate::document;
use crate::exit::Findings;

mod cel;
mod cross;
mod policies;
mod schema;

pub(crate) use schema::Definitions;

/// Something that is wrong, where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// The place in the object, such as `spec.template.spec.requirements[0].key`.
    pub(crate) path: String,
    /// What is wrong and what to write instead.
    pub(crate) reason: String,
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
    let documents = document::read_all(&args.files)?;
    let before: BTreeMap<String, Value> = document::read_all(&args.old)?
        .into_iter()
        .map(|document| (document.identity(), document.value))
        .collect();
    let definitions = Definitions::load()?;

    let mut findings = Vec::new();
    for (idx, document) in documents.iter().enumerate() {
        let old = before.get(&document.identity());
        for finding in definitions.check(&document.value, old) {
            findings.push((idx, finding));
        }
    }
    if !args.schema_only {
        findings.extend(cross::check(&documents, &args.region)?);
        findings.extend(policies::check(&documents)?);
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
