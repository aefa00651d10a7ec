//! Finds the programs. The first place that has one wins, each program on its own, because `KUBEBUILDER_ASSETS` usually
//! holds etcd and kube-apiserver only.

use std::env;
use std::path::{Path, PathBuf};

use crate::{Component, Error, Options};

/// The folders to search, in this order.
#[derive(Clone, Debug)]
pub(crate) struct SearchPath(Vec<PathBuf>);

impl SearchPath {
    pub(crate) fn new(options: &Options) -> Self {
        // tests/tools/build.sh reads the same two variables.
        let built = env::var_os("KERF_CONTROL_PLANE_DIR").map_or_else(built, PathBuf::from);
        let assets = env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
        let folders = [options.binaries.clone(), assets, Some(built)];
        Self(folders.into_iter().flatten().collect())
    }

    pub(crate) fn find(&self, component: Component) -> Result<PathBuf, Error> {
        let program = component.program();
        let mut candidates = self.0.iter().map(|folder| folder.join(program));
        candidates
            .find(|path| path.is_file())
            .ok_or_else(|| Error::FindProgram {
                program,
                searched: self.0.clone(),
            })
    }
}

/// Where `make control-plane` puts them: in the root of the repository that this crate was compiled in.
fn built() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors()
        .nth(2)
        .unwrap_or(here)
        .join(".control-plane/bin")
}

/// Looks a program up in `PATH`.
pub(crate) fn find_installed(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}
