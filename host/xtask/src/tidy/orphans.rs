//! Every `.rs` file is reached from a crate root. One without a `mod` line compiles nowhere and tests nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Finding, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut reached: BTreeSet<PathBuf> = BTreeSet::new();
    let mut queue: Vec<PathBuf> = tree
        .rust()
        .map(|(path, _)| path.clone())
        .filter(|path| is_root(path, tree))
        .collect();
    while let Some(path) = queue.pop() {
        let Some((_, text)) = tree.rust().find(|(found, _)| *found == path) else {
            continue;
        };
        if reached.insert(path.clone()) {
            queue.extend(children(&path, text, is_root(&path, tree)));
        }
    }
    let orphans = tree.rust().filter(|(path, _)| !reached.contains(path));
    orphans
        .map(|(path, _)| Finding {
            path: path.clone(),
            line: 1,
            rule: "orphan",
            text: "no `mod` line leads here: add one or delete the file".to_owned(),
        })
        .collect()
}

/// The files that cargo compiles by itself: crate roots, and what stands directly in `src/bin`, `tests`, `benches`
/// and `examples` beside a Cargo.toml.
fn is_root(path: &Path, tree: &Tree) -> bool {
    let is_package = |folder: &Path| {
        let manifest = folder.join("Cargo.toml");
        tree.files.iter().any(|(found, _)| *found == manifest)
    };
    let named = |folder: &Path, name: &str| folder.file_name().is_some_and(|found| found == name);
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return false;
    };
    let Some(above) = folder.parent() else {
        return name == "build.rs";
    };
    let is_main = name == "main.rs" || name == "lib.rs";
    let in_targets = |folder: &Path| {
        ["tests", "benches", "examples"]
            .iter()
            .any(|target| named(folder, target))
    };
    (name == "build.rs" && is_package(folder))
        || (is_main && named(folder, "src") && is_package(above))
        || (named(folder, "bin") && named(above, "src"))
        || (in_targets(folder) && is_package(above))
        // A test binary in a folder of its own; this repository's test crate is itself the package `tests`.
        || (name == "main.rs" && (is_package(above) || (in_targets(above) && above.parent().is_some_and(is_package))))
}

/// The files that the `mod` and `#[path]` lines of one file lead to; those that do not exist do no harm.
fn children(path: &Path, text: &str, is_root: bool) -> Vec<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let stem = path.file_stem().unwrap_or_default();
    let inner = if is_root {
        folder.to_owned()
    } else {
        folder.join(stem)
    };
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(target) = quoted(line, "#[path = \"").or_else(|| quoted(line, "include!(\"")) {
            found.push(normalised(&folder.join(target)));
        }
        if let Some(name) = declared_module(line) {
            found.push(inner.join(format!("{name}.rs")));
            found.push(inner.join(name).join("mod.rs"));
        }
    }
    found
}

fn quoted<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    line.strip_prefix(start)
        .and_then(|rest| rest.split('"').next())
}

/// `name` of `mod name;`, `pub mod name;` and `pub(crate) mod name;`.
fn declared_module(line: &str) -> Option<&str> {
    let line = line.strip_prefix("#[cfg(test)] ").unwrap_or(line);
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => line,
    };
    line.strip_prefix("mod ")?.strip_suffix(';').map(str::trim)
}

/// Resolves `..` by name, since these paths are compared and not opened.
pub(super) fn normalised(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orphans(files: &[(&str, &str)]) -> Vec<String> {
        let files = files
            .iter()
            .map(|(path, text)| (PathBuf::from(path), (*text).to_owned()))
            .collect();
        check(&Tree { files })
            .into_iter()
            .map(|finding| finding.path.display().to_string())
            .collect()
    }

    #[test]
    fn modules_are_followed_from_the_crate_root() {
        let found = orphans(&[
            ("host/x/Cargo.toml", ""),
            (
                "host/x/src/lib.rs",
                "pub(crate) mod a;\n#[path = \"../shared/c.rs\"]\nmod c;",
            ),
            ("host/x/src/a.rs", "mod b;"),
            ("host/x/src/a/b.rs", ""),
            ("host/x/shared/c.rs", ""),
            ("host/x/src/b.rs", ""),
        ]);

        assert_eq!(found, ["host/x/src/b.rs"]);
    }

    #[test]
    fn the_integration_binary_and_build_scripts_are_roots() {
        let found = orphans(&[
            ("tests/Cargo.toml", ""),
            ("tests/it/main.rs", "mod wire;"),
            ("tests/it/wire.rs", ""),
            ("tests/it/dead.rs", ""),
            ("tests/build.rs", ""),
            ("host/x/Cargo.toml", ""),
            ("host/x/tests/it/main.rs", ""),
        ]);

        assert_eq!(found, ["tests/it/dead.rs"]);
    }
}
