//! Decision records are numbered without gaps in each block of a hundred, and their title repeats the number.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Finding, Tree};

const FOLDER: &str = "docs/decisions";
/// One block per area: 00xx the project, 01xx the scheduling core.
const BLOCK: u32 = 100;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut numbers: BTreeMap<u32, PathBuf> = BTreeMap::new();
    let mut find = |path: &PathBuf, text: String| {
        findings.push(Finding {
            path: path.clone(),
            line: 1,
            rule: "decisions",
            text,
        });
    };
    for (path, text) in tree
        .files
        .iter()
        .filter(|(path, _)| path.starts_with(FOLDER))
    {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let Some(number) = number_of(&name) else {
            find(path, "name it `NNNN-title-in-kebab-case.md`".to_owned());
            continue;
        };
        if !text.starts_with(&format!("# {number:04}. ")) {
            find(
                path,
                format!("the first line must be `# {number:04}. Title`"),
            );
        }
        if let Some(other) = numbers.insert(number, path.clone()) {
            find(path, format!("has the number of {}", other.display()));
        }
    }
    for (number, path) in &numbers {
        let starts_block = number % BLOCK <= 1;
        if !starts_block && !numbers.contains_key(&(number - 1)) {
            find(path, format!("there is no {:04} before it", number - 1));
        }
    }
    findings
}

fn number_of(name: &str) -> Option<u32> {
    let (number, title) = name.strip_suffix(".md")?.split_once('-')?;
    let is_kebab = title
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    (number.len() == 4 && is_kebab)
        .then(|| number.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree {
            files: files
                .iter()
                .map(|(name, text)| (PathBuf::from(FOLDER).join(name), (*text).to_owned()))
                .collect(),
        };
        check(&tree)
            .into_iter()
            .map(|finding| finding.text)
            .collect()
    }

    #[test]
    fn numbers_run_without_gaps_in_each_block() {
        let found = texts(&[
            ("0001-a.md", "# 0001. A"),
            ("0003-c.md", "# 0003. C"),
            ("0101-d.md", "# 0101. D"),
        ]);

        assert_eq!(found, ["there is no 0002 before it"]);
    }

    #[test]
    fn the_title_repeats_the_number_and_the_name_is_kebab_case() {
        let found = texts(&[("0001-a.md", "# 0002. A"), ("B.md", "# B")]);

        assert_eq!(
            found,
            [
                "the first line must be `# 0001. Title`",
                "name it `NNNN-title-in-kebab-case.md`"
            ]
        );
    }
}
