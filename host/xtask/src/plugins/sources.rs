//! What a guest is built from, as a hash: equal sources and tools need no second build.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kerf_guest::Language;
use sha2::{Digest as _, Sha256};

use crate::workspace;

/// What every guest depends on besides its own folder and its SDK.
const SHARED: [&str; 5] = [
    "wit",
    "host/kerf-guest/src/component.rs",
    "host/kerf-guest/src/toolchain.rs",
    "host/kerf-guest/src/wasi.wat",
    "rust-toolchain.toml",
];

/// The hash of all files that the guest in `folder` is built from.
pub(super) fn hash(folder: &Path, language: Language) -> Result<String> {
    let own = folder.strip_prefix(workspace::root()).unwrap_or(folder);
    let sdk = format!("plugins/sdk/{}", language.folder());
    let mut roots: Vec<PathBuf> = vec![own.to_owned(), sdk.into()];
    roots.extend(SHARED.map(PathBuf::from));
    match language {
        Language::Rust => {
            roots.extend(["plugins/Cargo.toml", "plugins/Cargo.lock"].map(PathBuf::from));
        }
        // zig stands in the same list of packages.
        Language::C => roots.push("plugins/sdk/python/requirements.txt".into()),
        Language::JavaScript | Language::Python | Language::Go => {}
    }
    let files: Vec<PathBuf> = workspace::files()?
        .into_iter()
        .filter(|file| roots.iter().any(|root| file.starts_with(root)))
        .collect();
    hash_of(&files)
}

/// The hash of these files of the repository, names and contents.
pub(super) fn hash_of(files: &[PathBuf]) -> Result<String> {
    let mut hash = Sha256::new();
    for file in files {
        let bytes = fs::read(workspace::root().join(file))
            .with_context(|| format!("cannot read {}", file.display()))?;
        hash.update(format!("{} {}\n", file.display(), bytes.len()));
        hash.update(bytes);
    }
    let hex = hash.finalize();
    Ok(hex
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect())
}
