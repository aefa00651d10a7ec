//! Pages for people: the ones that everybody reads stay short, and links inside the repository lead somewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Finding, Tree};

/// What somebody reads in one sitting.
const LINES_MAX: &[(&str, usize)] = &[
    ("README.md", 150),
    ("README.zh-CN.md", 150),
    ("CONTRIBUTING.md", 80),
    ("docs/architecture.md", 300),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let places = places(tree);
    let mut findings = Vec::new();
    for (path, text) in tree
        .files
        .iter()
        .filter(|(path, _)| path.extension().is_some_and(|found| found == "md"))
    {
        let mut find = |line, rule, text| {
            findings.push(Finding {
                path: path.clone(),
                line,
                rule,
                text,
            });
        };
        let limit = LINES_MAX.iter().find(|(name, _)| path.as_os_str() == *name);
        if let Some((_, limit)) = limit.filter(|(_, limit)| text.lines().count() > *limit) {
            find(
                1,
                "page-size",
                format!("{} lines, limit {limit}", text.lines().count()),
            );
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        for (index, line) in text.lines().enumerate() {
            let line = without_code(line);
            for target in links(&line).filter(|target| !places.contains(&resolve(folder, target))) {
                find(index + 1, "link", format!("leads nowhere: {target}"));
            }
        }
    }
    findings
}

/// Every file and every folder.
fn places(tree: &Tree) -> BTreeSet<PathBuf> {
    tree.files
        .iter()
        .flat_map(|(path, _)| path.ancestors())
        .map(Path::to_owned)
        .collect()
}

/// A line without what stands between backticks, where brackets are only brackets.
fn without_code(line: &str) -> String {
    let outside = line.split('`').step_by(2);
    outside.collect::<Vec<_>>().join("code")
}

/// The targets of `[text](target)` that are paths, without what follows a `#`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    targets
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .filter_map(|target| target.split('#').next())
        .filter(|target| !target.is_empty())
}

fn resolve(folder: &Path, target: &str) -> PathBuf {
    super::orphans::normalised(&folder.join(target.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(files: &[(&str, &str)]) -> Vec<String> {
        let files = files
            .iter()
            .map(|(path, text)| (PathBuf::from(path), (*text).to_owned()))
            .collect();
        check(&Tree { files })
            .into_iter()
            .map(|finding| finding.text)
            .collect()
    }

    #[test]
    fn a_link_to_a_file_that_is_not_there_is_found() {
        let page = "[a](../b.md) [c](d/) [e](https://e) [f](#f) `[x](y)`\n[`g`](g.md#h)";

        assert_eq!(
            texts(&[("docs/a.md", page), ("b.md", ""), ("docs/d/x.rs", "")]),
            ["leads nowhere: g.md"]
        );
    }

    #[test]
    fn a_readme_stays_short() {
        assert_eq!(
            texts(&[("README.md", &"a\n".repeat(151))]),
            ["151 lines, limit 150"]
        );
    }
}
