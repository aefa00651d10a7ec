//! What no compiler checks: sizes, orphans, first lines, links, forbidden words, frozen contracts, decision numbers.
//!
//! Each rule is a module that takes the [`Tree`] and returns [`Finding`]s. A finding that has to stay is listed in
//! `tidy-allow.txt` with its reason; a line there that allows nothing is itself a finding.

mod allow;
mod decisions;
mod orphans;
mod pages;
mod released;
mod size;
mod words;

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::workspace;

/// One thing to mend: the rule's name, the file, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: PathBuf,
    line: usize,
    rule: &'static str,
    text: String,
}

/// Every text file of the repository.
#[derive(Debug, Default)]
struct Tree {
    files: Vec<(PathBuf, String)>,
}

impl Tree {
    fn read() -> Result<Self> {
        let mut files = Vec::new();
        for path in workspace::files()? {
            if let Some(text) = workspace::text(&path)? {
                files.push((path, text));
            }
        }
        Ok(Self { files })
    }

    fn rust(&self) -> impl Iterator<Item = &(PathBuf, String)> {
        self.files
            .iter()
            .filter(|(path, _)| path.extension().is_some_and(|found| found == "rs"))
    }
}

pub(crate) fn run() -> Result<()> {
    let tree = Tree::read()?;
    let allowed = allow::parse(&tree)?;
    let mut findings: Vec<Finding> = [
        size::check(&tree),
        orphans::check(&tree),
        pages::check(&tree),
        words::check(&tree),
        released::check(&tree),
        decisions::check(&tree),
    ]
    .concat();
    findings.sort();

    let left = allowed.subtract(findings);
    for finding in &left {
        let Finding {
            path,
            line,
            rule,
            text,
        } = finding;
        println!("{}:{line}: {text} [{rule}]", path.display());
    }
    if !left.is_empty() {
        bail!(
            "tidy: {} findings; what has to stay goes into tidy-allow.txt with its reason",
            left.len()
        );
    }
    println!("tidy: {} files", tree.files.len());
    Ok(())
}
