//! Files stay small enough to read in one go, and each Rust file says first what it is for.

use super::{Finding, Tree};

/// Code lines, without blank lines, comments and inline tests. Aim for 80 to 250; past this a file has two ideas.
const CODE_LINES_MAX: usize = 600;
/// Test files are tables of cases, which read well at some more length.
const TEST_LINES_MAX: usize = 1000;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust() {
        let is_test =
            path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs");
        let limit = if is_test {
            TEST_LINES_MAX
        } else {
            CODE_LINES_MAX
        };
        let lines = code_lines(text);
        if lines > limit {
            let text = format!("{lines} code lines, limit {limit}: split the file by idea");
            findings.push(Finding {
                path: path.clone(),
                line: 1,
                rule: "size",
                text,
            });
        }
        // The file that a module's unit tests were moved to says in its name what it is for.
        let is_moved_tests = is_test && path.components().any(|part| part.as_os_str() == "src");
        if !is_moved_tests && !text.trim_start().starts_with("//!") {
            let text = "the first line must be `//!`: what is this file for?".to_owned();
            findings.push(Finding {
                path: path.clone(),
                line: 1,
                rule: "module-doc",
                text,
            });
        }
    }
    findings
}

fn code_lines(text: &str) -> usize {
    super::words::without_inline_tests(text)
        .map(|(_, line)| line.trim())
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .count()
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
    fn comments_blank_lines_and_inline_tests_do_not_count() {
        let text = "//! Doc.\n\n// why\nfn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";

        assert_eq!(code_lines(text), 1);
    }

    #[test]
    fn a_file_over_the_limit_is_found() {
        let text = format!("//! Doc.\n{}", "fn a() {}\n".repeat(CODE_LINES_MAX + 1));

        assert_eq!(rules("host/x/src/a.rs", &text), ["size"]);
        assert_eq!(rules("tests/it/a.rs", &text), [""; 0]);
    }

    #[test]
    fn a_file_that_does_not_say_what_it_is_for_is_found() {
        assert_eq!(rules("a.rs", "use std::fs;\n//! late\n"), ["module-doc"]);
        assert_eq!(rules("host/x/src/a/tests.rs", "use super::*;\n"), [""; 0]);
    }
}
