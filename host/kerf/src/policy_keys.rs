//! The public keys whose signatures of policies count.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use kerf_policy::PolicyKey;

/// The endings of files that hold a key. Others, such as the links of a mounted volume, are passed over.
const ENDINGS: [&str; 2] = ["pem", "pub"];

/// All keys of a folder.
///
/// # Errors
/// When a file holds no key, or there is none: whoever names a folder wants signatures to count.
pub(crate) fn read(folder: &Path) -> Result<Vec<PolicyKey>> {
    let about = || format!("cannot read the folder of keys {}", folder.display());
    let mut keys = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(about)? {
        let path = entry.with_context(about)?.path();
        let ending = path.extension().and_then(|it| it.to_str());
        if ending.is_some_and(|it| ENDINGS.contains(&it)) && path.is_file() {
            keys.push(read_one(&path)?);
        }
    }
    if keys.is_empty() {
        bail!(
            "{} has no key: put files into it that end in .pem or .pub",
            folder.display()
        );
    }
    Ok(keys)
}

/// The key in a file.
pub(crate) fn read_one(path: &Path) -> Result<PolicyKey> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the key {}", path.display()))?;
    PolicyKey::from_pem(&text).with_context(|| path.display().to_string())
}
