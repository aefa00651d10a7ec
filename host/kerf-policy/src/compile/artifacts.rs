//! Machine code in a folder of our own, named after the component and the engine that it was made for.

use crate::digest::PolicyDigest;
use crate::error::LoadError;
use sha2::{Digest as _, Sha256};
use std::fs::{self, DirBuilder, File};
use std::hash::{Hash as _, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use wasmtime::component::Component;

/// Some ten policies in Python, or a thousand in Rust. What was used longest ago goes first.
const BYTES_MAX: u64 = 512 << 20;
const EXTENSION: &str = "cwasm";
/// Nobody else may look in, let alone write: what lies here is executed.
const MODE: u32 = 0o700;

/// A folder with machine code.
#[derive(Debug)]
pub struct Artifacts {
    folder: PathBuf,
}

/// The folder cannot be trusted or used.
#[derive(Debug, thiserror::Error)]
pub enum OpenArtifactsError {
    #[error("make the folder {}", .0.display())]
    Make(PathBuf, #[source] io::Error),
    #[error("look at the folder {}", .0.display())]
    Look(PathBuf, #[source] io::Error),
    #[error(
        "{} is no folder that only this user can enter, and what lies in it would be executed; \
         remove it, or name another one",
        .0.display()
    )]
    NotOurs(PathBuf),
}

/// The name of an artifact: a component, and everything about an engine and its machine that machine code depends on.
pub(super) struct Key(String);

impl Key {
    pub(super) fn new(engine: &wasmtime::Engine, component: PolicyDigest) -> Self {
        let mut hasher = Sha(Sha256::new());
        hasher.0.update(component.as_bytes());
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let sum = hasher.0.finalize();
        Self(sum.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Feeds SHA-256 with what implements `Hash`: the same on every start, unlike the hashers of std.
struct Sha(Sha256);

impl Hasher for Sha {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let mut first = [0; 8];
        first.copy_from_slice(&self.0.clone().finalize()[..8]);
        u64::from_le_bytes(first)
    }
}

impl Artifacts {
    /// Opens the folder, and makes it when it is not there. Fails when another user could write to it.
    pub fn open(folder: &Path) -> Result<Self, OpenArtifactsError> {
        let folder = folder.to_owned();
        match DirBuilder::new().mode(MODE).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(OpenArtifactsError::Make(folder, error));
            }
            Ok(()) | Err(_) => {}
        }
        let look = |path: &Path| {
            // Not through a link, which others could turn.
            fs::symlink_metadata(path).map_err(|error| OpenArtifactsError::Look(path.into(), error))
        };
        let (found, us) = (look(&folder)?, look(Path::new("/proc/self/"))?);
        let is_ours = found.is_dir() && found.uid() == us.uid() && found.mode() & 0o077 == 0;
        if !is_ours {
            return Err(OpenArtifactsError::NotOurs(folder));
        }
        let artifacts = Self { folder };
        artifacts.prune();
        Ok(artifacts)
    }

    /// The machine code, when it is there and of this engine.
    pub(super) fn load(&self, engine: &wasmtime::Engine, key: &Key) -> Option<Component> {
        from_file(engine, &self.path(key)).ok()
    }

    /// A file that nobody loads until it is kept.
    pub(super) fn draft(&self, key: &Key) -> Result<Draft<'_>, LoadError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let draft = format!("{}.{}-{nth}.draft", key.0, std::process::id());
        let draft = self.folder.join(draft);
        let file = File::create_new(&draft).map_err(|error| cannot_keep(&error))?;
        Ok(Draft {
            artifacts: self,
            file,
            draft,
            path: self.path(key),
        })
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(&key.0).with_extension(EXTENSION)
    }

    /// Drops drafts of processes that died, and what was used longest ago above [`BYTES_MAX`]. A file that is mapped stays
    /// readable for who has it.
    fn prune(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut kept = Vec::new();
        for path in entries.map(|entry| entry.path()) {
            let metadata = fs::symlink_metadata(&path);
            match metadata.and_then(|it| Ok((it.accessed()?, it.len()))) {
                Ok((used, bytes)) if path.extension().is_some_and(|it| it == EXTENSION) => {
                    kept.push((used, bytes, path));
                }
                Ok(_) if is_being_written(&path) => {}
                Ok(_) | Err(_) => drop(fs::remove_file(&path)),
            }
        }
        kept.sort();
        let mut total: u64 = kept.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in kept {
            if total <= BYTES_MAX {
                break;
            }
            total = total.saturating_sub(bytes);
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether the process that a draft is named after lives.
fn is_being_written(draft: &Path) -> bool {
    let name = draft.file_name().and_then(|name| name.to_str());
    let pid = name.and_then(|name| name.split(['.', '-']).nth(1));
    pid.is_some_and(|pid| Path::new("/proc").join(pid).exists())
}

/// An artifact that is being written; gone when it is dropped before it is kept.
pub(super) struct Draft<'a> {
    artifacts: &'a Artifacts,
    file: File,
    draft: PathBuf,
    path: PathBuf,
}

impl Draft<'_> {
    /// To write to.
    pub(super) fn file(&self) -> Result<File, LoadError> {
        self.file.try_clone().map_err(|error| cannot_keep(&error))
    }

    /// Gives it its name, whole and on disk.
    pub(super) fn keep(self) -> Result<(), LoadError> {
        let keep = || {
            self.file.sync_all()?;
            fs::rename(&self.draft, &self.path)
        };
        keep().map_err(|error| cannot_keep(&error))?;
        self.artifacts.prune();
        Ok(())
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // Not there any more when it was kept.
        let _ = fs::remove_file(&self.draft);
    }
}

fn cannot_keep(error: &io::Error) -> LoadError {
    LoadError::KeepCode(error.to_string())
}

#[expect(
    unsafe_code,
    reason = "the folder is ours alone, and nothing but our own compiler's output is put there"
)]
fn from_file(engine: &wasmtime::Engine, path: &Path) -> wasmtime::Result<Component> {
    // SAFETY: the file was written by `compile` of this engine's configuration into a folder that only this user can
    // enter, got its name after it was whole, and is never written to again.
    unsafe { Component::deserialize_file(engine, path) }
}

#[expect(
    unsafe_code,
    reason = "the bytes come from our own compiler through a pipe of ours"
)]
pub(super) fn from_bytes(engine: &wasmtime::Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the bytes were written by `compile` of this engine's configuration, in a process that we started.
    unsafe { Component::deserialize(engine, code) }
}
