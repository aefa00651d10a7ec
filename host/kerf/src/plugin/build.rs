//! `kerf plugin new`, `build` and `doctor`: what happens before there is a component.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use kerf_guest::{BuildError, Language, Manifest, NewProject, Tools};
use serde_json::json;

use crate::plugin::args::{Build, Doctor, New, One};
use crate::plugin::component::Component;
use crate::plugin::{Environment, Outcome};

pub(super) fn create(args: &New) -> Result<Outcome> {
    let project = NewProject {
        name: args.name.clone(),
        language: args.lang.into(),
        hook: args.hook.into(),
    };
    let folder = Path::new(&args.name);
    let files = kerf_guest::create(&project, folder)?;
    let missing = missing(project.language, folder);
    let mut text = format!("made {} with {} files\nnext:\n", args.name, files.len());
    text += &format!("  cd {}\n", args.name);
    for hint in &missing {
        text += &format!("  {hint}\n");
    }
    text += "  kerf plugin build\n  kerf plugin test\n";
    let files: Vec<String> = files.iter().map(|it| it.display().to_string()).collect();
    Ok(Outcome {
        text,
        json: json!({"folder": args.name, "files": files, "missing": missing}),
        is_good: true,
    })
}

pub(super) fn build(args: &Build) -> Result<Outcome> {
    let manifest = Manifest::read(&args.folder)?;
    let scratch = args.folder.join("build/scratch");
    let bytes = kerf_guest::build(&args.folder, &scratch, &Tools::default())
        .map_err(environment)
        .with_context(|| format!("{} was not built", args.folder.display()))?;
    let path = match &args.output {
        Some(path) => path.clone(),
        None => built(&args.folder, &manifest),
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
    }
    std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    let component = Component::read(&One {
        component: path.clone(),
    })?;
    let packed = component.packed();
    let delivery = component.delivery(&packed).words();
    let digest = component.digest().to_string();
    Ok(Outcome {
        text: format!(
            "{}\n  {} KiB, packed {} KiB: {delivery}\n  {digest}\n",
            path.display(),
            component.bytes.len().div_ceil(1024),
            packed.len().div_ceil(1024)
        ),
        json: json!({
            "component": path.display().to_string(), "bytes": component.bytes.len(), "packedBytes": packed.len(),
            "digest": digest, "delivery": delivery, "language": manifest.language, "hook": manifest.hook,
        }),
        is_good: true,
    })
}

pub(super) fn doctor(args: &Doctor) -> Result<Outcome> {
    let rows: Vec<_> = Language::ALL
        .into_iter()
        .map(|language| {
            let missing = missing(language, &args.folder);
            (language.as_str(), missing)
        })
        .collect();
    let mut text = String::new();
    for (language, missing) in &rows {
        let state = if missing.is_empty() {
            "ready".to_owned()
        } else {
            missing.join("; ")
        };
        text += &format!("{language:<12} {state}\n");
    }
    let json: Vec<_> = rows
        .iter()
        .map(|(language, missing)| {
            json!({"language": language, "isReady": missing.is_empty(), "nextSteps": missing})
        })
        .collect();
    Ok(Outcome {
        text,
        json: json!({ "languages": json }),
        is_good: true,
    })
}

/// How to get what a language lacks here.
fn missing(language: Language, folder: &Path) -> Vec<&'static str> {
    kerf_guest::requirements(language)
        .iter()
        .filter(|tool| !Tools::default().has(tool, folder))
        .map(|tool| tool.hint)
        .collect()
}

fn built(folder: &Path, manifest: &Manifest) -> PathBuf {
    folder.join("build").join(format!("{}.wasm", manifest.name))
}

/// A program that is missing is a matter of the machine, not of the policy.
fn environment(error: BuildError) -> anyhow::Error {
    match error {
        BuildError::ToolMissing { .. } => Environment(error.to_string()).into(),
        BuildError::File { .. }
        | BuildError::Manifest { .. }
        | BuildError::ToolFailed { .. }
        | BuildError::Wasi { .. }
        | BuildError::Encode(_) => error.into(),
    }
}
