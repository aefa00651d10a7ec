//! A released policy contract never changes: `wit/released/SHA256SUMS` has the hash of each of its files.
//!
//! Plugins in the field were built against those files. A new version is a new folder and new lines.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Finding, Tree};

const FOLDER: &str = "wit/released";
const SUMS: &str = "wit/released/SHA256SUMS";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let sums = tree
        .files
        .iter()
        .find(|(path, _)| path.as_path() == Path::new(SUMS));
    let mut recorded: BTreeMap<PathBuf, &str> = sums
        .map_or("", |(_, text)| text)
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(hash, path)| (Path::new(FOLDER).join(path), hash))
        .collect();
    let mut findings = Vec::new();
    let mut find = |path: &Path, text: String| {
        findings.push(Finding {
            path: path.to_owned(),
            line: 1,
            rule: "released",
            text,
        });
    };
    let released = tree
        .files
        .iter()
        .filter(|(path, _)| path.starts_with(FOLDER) && path != Path::new(SUMS));
    for (path, text) in released {
        match recorded.remove(path) {
            None => find(
                path,
                format!(
                    "a released file without a line in {SUMS}: {}",
                    hash_of(text)
                ),
            ),
            Some(hash) if hash != hash_of(text) => {
                find(
                    path,
                    "this version is released and frozen: undo the edit, add a version".to_owned(),
                );
            }
            Some(_) => {}
        }
    }
    for path in recorded.keys() {
        find(
            path,
            "this version is released: its file must stay".to_owned(),
        );
    }
    findings
}

fn hash_of(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .fold(String::new(), |mut hex, byte| {
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(released: &str, recorded: &str) -> Vec<String> {
        let tree = Tree {
            files: vec![
                (
                    PathBuf::from("wit/released/0.1.0/host.wit"),
                    released.to_owned(),
                ),
                (
                    PathBuf::from(SUMS),
                    format!("{}  0.1.0/host.wit\n", hash_of(recorded)),
                ),
            ],
        };
        check(&tree)
            .into_iter()
            .map(|finding| finding.text)
            .collect()
    }

    #[test]
    fn an_edit_of_a_released_contract_is_found() {
        assert_eq!(texts("world a {}", "world a {}"), [""; 0]);
        assert_eq!(
            texts("world b {}", "world a {}"),
            ["this version is released and frozen: undo the edit, add a version"]
        );
    }
}
