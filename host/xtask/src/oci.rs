//! An OCI image layout: blobs by their digest, a manifest for what they make, an index in front.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::archive::{self, Entry};

pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// A layout in memory: names and contents of its files.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    files: Vec<(String, Vec<u8>)>,
    manifests: Vec<Value>,
}

impl Layout {
    /// Adds a blob; its descriptor.
    pub(crate) fn blob(&mut self, media_type: &str, content: Vec<u8>) -> Value {
        let hex = hex_digest(&content);
        let size = content.len();
        let path = format!("blobs/sha256/{hex}");
        if !self.files.iter().any(|(known, _)| *known == path) {
            self.files.push((path, content));
        }
        json!({"mediaType": media_type, "digest": format!("sha256:{hex}"), "size": size})
    }

    /// Adds a manifest and names it in the index, with what else the index says of it.
    pub(crate) fn manifest(&mut self, manifest: &Value, more: Value) {
        let mut descriptor = self.blob(MANIFEST, manifest.to_string().into_bytes());
        if let (Some(descriptor), Value::Object(more)) = (descriptor.as_object_mut(), more) {
            descriptor.extend(more);
        }
        self.manifests.push(descriptor);
    }

    fn all(&self) -> Vec<(String, Vec<u8>)> {
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": self.manifests});
        let own = [
            (
                "oci-layout".to_owned(),
                br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec(),
            ),
            ("index.json".to_owned(), index.to_string().into_bytes()),
        ];
        self.files.iter().cloned().chain(own).collect()
    }

    /// Writes the folder anew.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        if folder.exists() {
            std::fs::remove_dir_all(folder)
                .with_context(|| format!("cannot replace {}", folder.display()))?;
        }
        for (path, content) in self.all() {
            let path: PathBuf = folder.join(path);
            let parent = path.parent().unwrap_or(folder);
            std::fs::create_dir_all(parent)
                .and_then(|()| std::fs::write(&path, content))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// The folder as one file.
    pub(crate) fn tar(&self, time: i64) -> Result<Vec<u8>> {
        let entries = self.all().into_iter();
        archive::tar(
            entries
                .map(|(path, content)| Entry::file(&path, content))
                .collect(),
            time,
        )
    }
}

/// SHA-256 in hexadecimal.
pub(crate) fn hex_digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
