//! Words that do not belong: ignored tests, sleeps in tests, TODOs without an issue, paths of a machine.

use std::path::Path;

use super::{Finding, Tree};

/// The body of a loop that polls.
const DEADLINE_WITHIN_LINES: usize = 8;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in &tree.files {
        let is_rust = path.extension().is_some_and(|found| found == "rs");
        for (index, line) in text.lines().enumerate() {
            let mut find = |rule, text: &str| {
                findings.push(Finding {
                    path: path.clone(),
                    line: index + 1,
                    rule,
                    text: text.to_owned(),
                });
            };
            if has_machine_path(line) {
                find("machine-path", "a path of one machine");
            }
            if is_source(path) && is_bare_todo(line) {
                find("todo", "say which issue: `TODO(#12): …`");
            }
            if is_rust && line.trim_start().starts_with(&ignored()) {
                find(
                    "ignored",
                    "assert what is true today instead of ignoring the test",
                );
            }
        }
        if is_rust {
            findings.extend(sleeps(path, text));
        }
    }
    findings
}

/// The lines of a Rust file with their numbers from 1, up to its inline tests.
pub(super) fn without_inline_tests(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = inline_tests_at(text).unwrap_or(usize::MAX);
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .take_while(move |(line, _)| *line < end)
}

/// The line at which `#[cfg(test)] mod name {` starts.
fn inline_tests_at(text: &str) -> Option<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.windows(2).position(|pair| {
        pair[0].starts_with("#[cfg(test)]") && pair[1].starts_with("mod ") && pair[1].ends_with('{')
    })?;
    Some(start + 1)
}

/// Waiting for a time instead of for a condition makes a test slow on a good day and wrong on a bad one. The pause
/// between two looks at a condition is fine where the lines before it watch a deadline.
fn sleeps(path: &Path, text: &str) -> Vec<Finding> {
    let whole =
        path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs");
    let first = if whole {
        0
    } else {
        inline_tests_at(text).map_or(usize::MAX, |line| line - 1)
    };
    let words = [["thread", "::sleep"].concat(), ["time", "::sleep"].concat()];
    let lines: Vec<&str> = text.lines().collect();
    let sleeps = |line: &str| words.iter().any(|word| line.contains(word.as_str()));
    let watches = |line: &&str| {
        ["deadline", "elapsed()"]
            .iter()
            .any(|word| line.to_lowercase().contains(word))
    };
    let found = (first..lines.len()).filter(|index| {
        let before = &lines[index.saturating_sub(DEADLINE_WITHIN_LINES)..*index];
        sleeps(lines[*index]) && !before.iter().any(watches)
    });
    found
        .map(|index| Finding {
            path: path.to_owned(),
            line: index + 1,
            rule: "sleep",
            text: "wait for the condition, with a deadline".to_owned(),
        })
        .collect()
}

/// Code and scripts, where a mark is a promise; prose may speak about TODOs.
fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(|found| found.to_str());
    matches!(
        extension,
        Some("rs" | "sh" | "go" | "py" | "js" | "ts" | "c" | "wit" | "toml" | "yaml")
    )
}

fn is_bare_todo(line: &str) -> bool {
    let marks = [["TO", "DO"].concat(), ["FIX", "ME"].concat()];
    marks.iter().any(|mark| {
        line.match_indices(mark.as_str()).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = &line[at + mark.len()..];
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            !before.is_some_and(is_word) && !after.starts_with(is_word) && !after.starts_with("(#")
        })
    })
}

/// A path that only exists where somebody worked. Part of a longer path or of a URL does not count.
fn has_machine_path(line: &str) -> bool {
    let folders = ["work", "root", "farm", "tmp/bash_jobs"].map(|folder| format!("/{folder}/"));
    folders.iter().any(|folder| {
        line.match_indices(folder.as_str()).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            !before.is_some_and(|c| c.is_alphanumeric() || "._-/}*~$".contains(c))
        })
    })
}

fn ignored() -> String {
    ["#[", "ignore"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        let tree = Tree {
            files: vec![(PathBuf::from(path), text.to_owned())],
        };
        check(&tree)
            .into_iter()
            .map(|finding| finding.rule)
            .collect()
    }

    #[test]
    fn a_path_of_a_machine_is_found_and_a_part_of_a_url_is_not() {
        assert_eq!(
            rules("a.md", &["see /", "work/main/x"].concat()),
            ["machine-path"]
        );
        assert_eq!(
            rules("a.md", &["cd \"/", "root/x\""].concat()),
            ["machine-path"]
        );
        assert_eq!(
            rules(
                "a.md",
                &["https://host/", "work/main and $dir/", "root/x"].concat()
            ),
            [""; 0]
        );
    }

    #[test]
    fn a_todo_needs_an_issue() {
        assert_eq!(rules("a.rs", &["// TO", "DO: later"].concat()), ["todo"]);
        assert_eq!(
            rules("a.rs", &["// TO", "DO(#12): later"].concat()),
            [""; 0]
        );
    }

    #[test]
    fn an_ignored_test_is_found() {
        assert_eq!(rules("a.rs", &format!("    {}]\n", ignored())), ["ignored"]);
    }

    #[test]
    fn a_sleep_is_found_in_tests_only() {
        let product = format!("fn a() {{ std::{}(d) }}\n", ["thread", "::sleep"].concat());
        let inline = format!("#[cfg(test)]\nmod tests {{\n    {product}}}\n");

        assert_eq!(rules("host/x/src/a.rs", &product), [""; 0]);
        assert_eq!(rules("host/x/src/a.rs", &inline), ["sleep"]);
        assert_eq!(rules("tests/it/a.rs", &product), ["sleep"]);
    }

    #[test]
    fn a_pause_between_looks_with_a_deadline_is_fine() {
        let pause = ["std::thread", "::sleep(d);"].concat();
        let poll = format!("loop {{\n    assert!(Instant::now() < deadline);\n    {pause}\n}}\n");

        assert_eq!(rules("tests/it/a.rs", &poll), [""; 0]);
    }
}
