//! `kerf plugin new`: a folder with a policy that builds, its SDK and a first test.

mod files;

use std::path::{Path, PathBuf};

use crate::contract;
use crate::error::BuildError;
use crate::manifest::{Hook, Language, MANIFEST, Manifest, is_name};
use files::{SDK_FOLDER, example, sdk};

/// What to make.
#[derive(Debug, Clone)]
pub struct NewProject {
    /// The name of the policy.
    pub name: String,
    /// What it is written in.
    pub language: Language,
    /// What it is asked.
    pub hook: Hook,
}

/// Makes `folder` with the reference policy of the hook in it, under the new name, and returns the files.
///
/// # Errors
/// When the name cannot be one, or the folder is there already.
pub fn create(project: &NewProject, folder: &Path) -> Result<Vec<PathBuf>, BuildError> {
    if !is_name(&project.name) {
        return Err(BuildError::Manifest {
            path: folder.join(MANIFEST),
            problem: format!(
                "the name {:?} cannot name a file and a ConfigMap: use small letters, digits and -",
                project.name
            ),
        });
    }
    if folder.exists() {
        return Err(BuildError::Manifest {
            path: folder.to_owned(),
            problem: "is there already: choose another name or folder".to_owned(),
        });
    }
    let manifest = Manifest {
        name: project.name.clone(),
        language: project.language,
        hook: project.hook,
        sdk: SDK_FOLDER.into(),
    };
    let mut made = Vec::new();
    let mut put = |name: &str, text: &str| -> Result<(), BuildError> {
        let path = folder.join(name);
        write(&path, text)?;
        made.push(path);
        Ok(())
    };
    let text = serde_json::to_string_pretty(&manifest).unwrap_or_default();
    put(MANIFEST, &format!("{text}\n"))?;
    put("tests/first.json", files::test(project.hook))?;
    put(".gitignore", "build/\nnode_modules/\n.venv/\ntarget/\n")?;
    for (name, text) in example(project.language, project.hook) {
        put(name, &adapt(text, project))?;
    }
    if let Some((name, text)) = files::project(project.language, project.hook) {
        put(name, &adapt(&text, project))?;
    }
    for (name, text) in sdk(project.language, project.hook) {
        // Rust's bindings read the contract at build time.
        let text = text.replace("../../../../../wit", "../../wit");
        put(&format!("{SDK_FOLDER}/{name}"), &text)?;
    }
    let wit = folder.join(SDK_FOLDER).join("wit");
    contract::write(&wit)?;
    made.push(wit);
    made.sort();
    Ok(made)
}

/// The example under the new name, with the SDK beside it.
fn adapt(text: &str, project: &NewProject) -> String {
    let old = files::example_name(project.hook);
    let lower = project.language.folder();
    text.replace(&format!("../../../sdk/{lower}"), &format!("./{SDK_FOLDER}"))
        .replace(old, &project.name)
}

fn write(path: &Path, text: &str) -> Result<(), BuildError> {
    let failed = |source| BuildError::File {
        doing: "write",
        path: path.to_owned(),
        source,
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::write(path, text).map_err(failed)
}
