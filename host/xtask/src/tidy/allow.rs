//! `tidy-allow.txt`: the findings that stay, each with a reason.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Finding, Tree};

const FILE: &str = "tidy-allow.txt";

#[derive(Debug)]
pub(super) struct Allowed {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    line: usize,
    rule: String,
    path: PathBuf,
}

/// Each line is `rule path reason…`; `#` starts a comment.
pub(super) fn parse(tree: &Tree) -> Result<Allowed> {
    let text = tree.files.iter().find(|(path, _)| path.as_os_str() == FILE);
    let mut entries = Vec::new();
    for (index, line) in text.map_or("", |(_, text)| text).lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.splitn(3, char::is_whitespace);
        let mut next = |what: &str| {
            let word = words.next().map(str::trim).filter(|word| !word.is_empty());
            word.with_context(|| {
                format!(
                    "{FILE}:{}: no {what}; a line is `rule path reason`",
                    index + 1
                )
            })
        };
        let (rule, path) = (next("rule")?, next("path")?);
        next("reason")?;
        entries.push(Entry {
            line: index + 1,
            rule: rule.to_owned(),
            path: PathBuf::from(path),
        });
    }
    Ok(Allowed { entries })
}

impl Allowed {
    /// What is left of the findings, and the entries that allowed nothing.
    pub(super) fn subtract(&self, findings: Vec<Finding>) -> Vec<Finding> {
        let mut used = vec![false; self.entries.len()];
        let mut left = Vec::new();
        for finding in findings {
            let entry = self
                .entries
                .iter()
                .position(|entry| entry.rule == finding.rule && entry.path == finding.path);
            match entry {
                Some(index) => used[index] = true,
                None => left.push(finding),
            }
        }
        let unused = self.entries.iter().zip(used).filter(|(_, used)| !used);
        left.extend(unused.map(|(entry, _)| Finding {
            path: PathBuf::from(FILE),
            line: entry.line,
            rule: "allow",
            text: format!(
                "{} has no {} finding any more: delete this line",
                entry.path.display(),
                entry.rule
            ),
        }));
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(path: &str) -> Finding {
        Finding {
            path: PathBuf::from(path),
            line: 1,
            rule: "size",
            text: String::new(),
        }
    }

    fn allow(text: &str) -> Result<Allowed> {
        parse(&Tree {
            files: vec![(PathBuf::from(FILE), text.to_owned())],
        })
    }

    #[test]
    fn a_listed_finding_is_dropped_and_others_stay() {
        let allowed = allow("# tables\nsize a.rs is a table\n").unwrap();

        let left = allowed.subtract(vec![finding("a.rs"), finding("b.rs")]);

        assert_eq!(left, [finding("b.rs")]);
    }

    #[test]
    fn an_entry_that_allows_nothing_is_a_finding() {
        let left = allow("size a.rs is a table\n")
            .unwrap()
            .subtract(Vec::new());

        assert_eq!(left.len(), 1);
        assert_eq!(left[0].rule, "allow");
    }

    #[test]
    fn an_entry_without_a_reason_is_refused() {
        let error = allow("size a.rs\n").unwrap_err();

        assert_eq!(
            error.to_string(),
            "tidy-allow.txt:1: no reason; a line is `rule path reason`"
        );
    }
}
