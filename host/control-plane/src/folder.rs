//! The folder of one control plane: state, keys, tokens, configuration and logs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{Component, Error, Options};

#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Removes the folder when dropped.
    _temporary: Option<TempDir>,
}

impl Folder {
    pub(crate) fn create(options: &Options) -> Result<Self, Error> {
        let folder = match &options.folder {
            Some(path) => Self {
                path: path.clone(),
                _temporary: None,
            },
            None => {
                let temporary = tempfile::Builder::new()
                    .prefix("kerf-control-plane-")
                    .tempdir()
                    .map_err(|source| Error::Write {
                        path: std::env::temp_dir(),
                        source,
                    })?;
                Self {
                    path: temporary.path().to_owned(),
                    _temporary: Some(temporary),
                }
            }
        };
        let logs = folder.logs();
        fs::create_dir_all(&logs).map_err(|source| Error::Write { path: logs, source })?;
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    pub(crate) fn log(&self, component: Component) -> PathBuf {
        self.logs().join(format!("{component}.log"))
    }

    /// Writes a file and says where it is.
    pub(crate) fn write(&self, name: &str, content: &str) -> Result<PathBuf, Error> {
        let path = self.path.join(name);
        match fs::write(&path, content) {
            Ok(()) => Ok(path),
            Err(source) => Err(Error::Write { path, source }),
        }
    }

    /// Opens a log so that a restarted server goes on after what it wrote before.
    pub(crate) fn append_log(&self, component: Component) -> io::Result<fs::File> {
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log(component))
    }
}
