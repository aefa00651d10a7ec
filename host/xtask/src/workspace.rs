//! Where things are in this repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// The folder of the workspace's Cargo.toml.
pub(crate) fn root() -> &'static Path {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    host.and_then(Path::parent).unwrap_or(Path::new("."))
}

/// Every file that is committed or would be, relative to the root and sorted.
pub(crate) fn files() -> Result<Vec<PathBuf>> {
    let listed = process::output(
        Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(root()),
    )?;
    let mut files: Vec<PathBuf> = listed
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .filter(|path| root().join(path).is_file())
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// The text of a file, or `None` where it is not UTF-8.
pub(crate) fn text(path: &Path) -> Result<Option<String>> {
    let bytes = std::fs::read(root().join(path))
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(String::from_utf8(bytes).ok())
}
