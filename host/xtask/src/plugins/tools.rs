//! Installs what builds the guests, into plugins/target/tools: packages of npm and PyPI in the versions of the SDKs' lists.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context, Result, bail};
use kerf_guest::{Language, Tools};

use super::sources;
use crate::{process, workspace};

const PYTHON_LIST: &str = "plugins/sdk/python/requirements.txt";
const NPM_LISTS: [&str; 2] = [
    "plugins/sdk/js/package.json",
    "plugins/sdk/js/package-lock.json",
];

/// Python and C have their tools in one environment, and are built at the same time.
static PYTHON: Mutex<()> = Mutex::new(());

/// Makes the tools of a language ready. Rust and Go are there: `.ci/tools` has seen to it.
pub(super) fn install(language: Language) -> Result<Tools> {
    let root = workspace::root().join("plugins/target/tools");
    fs::create_dir_all(&root).with_context(|| format!("cannot make {}", root.display()))?;
    let folders = match language {
        Language::Rust | Language::Go => Vec::new(),
        Language::JavaScript => vec![npm(&root.join("npm"))?],
        Language::Python | Language::C => {
            let Ok(_alone) = PYTHON.lock() else {
                bail!("the other installation into the Python environment died");
            };
            vec![venv(&root.join("venv"))?]
        }
    };
    let cache = root.join("zig-cache");
    Ok(Tools {
        folders,
        environment: vec![
            ("ZIG_GLOBAL_CACHE_DIR".to_owned(), cache.clone()),
            ("ZIG_LOCAL_CACHE_DIR".to_owned(), cache),
        ],
    })
}

fn npm(folder: &Path) -> Result<PathBuf> {
    let wanted = sources::hash_of(&NPM_LISTS.map(PathBuf::from))?;
    if !is_installed(folder, &wanted) {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
        for list in NPM_LISTS {
            let list = workspace::root().join(list);
            fs::copy(&list, folder.join(list.file_name().unwrap_or_default()))?;
        }
        let quiet = ["ci", "--no-audit", "--no-fund", "--loglevel=error"];
        process::run(Command::new("npm").current_dir(folder).args(quiet))?;
        note_installed(folder, &wanted)?;
    }
    Ok(folder.join("node_modules/.bin"))
}

fn venv(folder: &Path) -> Result<PathBuf> {
    let wanted = sources::hash_of(&[PathBuf::from(PYTHON_LIST)])?;
    if !is_installed(folder, &wanted) {
        let _ = fs::remove_dir_all(folder);
        process::run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        let quiet = ["install", "--quiet", "--disable-pip-version-check", "-r"];
        process::run(
            Command::new(folder.join("bin/pip"))
                .args(quiet)
                .arg(workspace::root().join(PYTHON_LIST)),
        )?;
        note_installed(folder, &wanted)?;
    }
    Ok(folder.join("bin"))
}

fn is_installed(folder: &Path, wanted: &str) -> bool {
    fs::read_to_string(folder.join("INSTALLED")).is_ok_and(|found| found == wanted)
}

fn note_installed(folder: &Path, wanted: &str) -> Result<()> {
    let path = folder.join("INSTALLED");
    fs::write(&path, wanted).with_context(|| format!("cannot write {}", path.display()))
}
