//! `kerf plugin publish --oci`: a component as an artifact of a registry.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use kerf_controllers::oci::{Login, Reference, Registries};
use kerf_policy::Hook;
use serde_json::json;

use crate::plugin::Outcome;
use crate::plugin::args::{Form, Publish};
use crate::plugin::cluster::runtime;
use crate::plugin::component::Component;

pub(super) fn run(
    args: &Publish,
    reference: &str,
    component: &Component,
    policy: &str,
    hook: Hook,
) -> Result<Outcome> {
    let reference: Reference = reference.parse()?;
    let is_packed = match args.form {
        Form::Auto | Form::Zst => true,
        Form::Raw => false,
        Form::Shards => bail!("--as shards: a registry takes a component in one piece"),
    };
    let bytes = if is_packed {
        component.packed()
    } else {
        component.bytes.clone()
    };
    let login = login(args.docker_config.as_deref(), &reference)?;
    let roots = args.registry_ca_bundle.as_ref();
    let roots = roots.map(|file| {
        std::fs::read(file).with_context(|| format!("--registry-ca-bundle {}", file.display()))
    });
    let runtime = runtime()?;
    let registries = Registries::new(roots.transpose()?.as_deref())?;
    let digest = runtime.block_on(registries.push(&reference, bytes, is_packed, login.as_ref()))?;
    let entry = format!(
        "  - name: {policy}\n    hook: {hook}\n    source:\n      oci:\n        ref: {reference}\n        digest: {digest}\n"
    );
    let text = format!(
        "pushed {reference}\nthe entry for spec.policies of an ECSNodeClass (add pullSecret where the registry wants a login):\n\n{entry}"
    );
    Ok(Outcome {
        text,
        json: json!({
            "ref": reference.to_string(), "manifestDigest": digest, "digest": component.digest().to_string(),
            "isPacked": is_packed, "entry": entry,
        }),
        is_good: true,
    })
}

/// The login for the host: an explicit file must be readable, the usual one may be missing.
fn login(file: Option<&Path>, reference: &Reference) -> Result<Option<Login>> {
    let (file, must_be) = match file {
        Some(file) => (file.to_owned(), true),
        None => (usual_docker_config(), false),
    };
    let text = match std::fs::read(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_be => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    };
    Login::in_docker_config(&text, reference).with_context(|| file.display().to_string())
}

fn usual_docker_config() -> PathBuf {
    let folder = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".docker"));
    folder.or_else(home).unwrap_or_default().join("config.json")
}
