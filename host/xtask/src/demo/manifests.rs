//! Applies the repository's own manifests: crds/ and examples/quickstart/.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::api_server::ApiServer;
use crate::workspace;

/// A new kind is served some 100 ms after its definition was accepted.
const ESTABLISHED_MAX: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Definitions, the controller's namespace, then what makes nodes possible.
pub(crate) fn apply_set_up(api: &ApiServer, namespace: &str) -> Result<()> {
    for path in yaml_files(&workspace::root().join("crds"))? {
        apply_file(api, &path)?;
    }
    apply(
        api,
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
    )?;
    for name in ["ecsnodeclass.yaml", "nodepool.yaml"] {
        apply_file(api, &quick_start(name))?;
    }
    Ok(())
}

/// Pods that find no room yet.
pub(crate) fn apply_workload(api: &ApiServer) -> Result<()> {
    apply_file(api, &quick_start("deployment.yaml"))
}

fn quick_start(name: &str) -> PathBuf {
    workspace::root().join("examples/quickstart").join(name)
}

fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.retain(|path| path.extension().is_some_and(|found| found == "yaml"));
    files.sort();
    Ok(files)
}

pub(crate) fn apply_file(api: &ApiServer, path: &Path) -> Result<()> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text)
        .with_context(|| format!("{} is no YAML", path.display()))?;
    for object in objects {
        apply(api, &object).with_context(|| format!("cannot apply {}", path.display()))?;
    }
    Ok(())
}

/// Tries again while the object's kind is not served yet.
pub(crate) fn apply(api: &ApiServer, object: &Value) -> Result<()> {
    let path = path_of(object)?;
    let deadline = Instant::now() + ESTABLISHED_MAX;
    loop {
        match api.apply(&path, object) {
            Err(error) if error.to_string().contains("404") && Instant::now() < deadline => {
                std::thread::sleep(LOOK_EVERY);
            }
            result => return result,
        }
    }
}

/// Where an object of one of the kinds in those manifests lives.
fn path_of(object: &Value) -> Result<String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let (version, kind) = (
        text("/apiVersion").unwrap_or_default(),
        text("/kind").unwrap_or_default(),
    );
    let name = text("/metadata/name").context("an object without a name")?;
    let (plural, is_namespaced) = match kind {
        "CustomResourceDefinition" => ("customresourcedefinitions", false),
        "Namespace" => ("namespaces", false),
        "ECSNodeClass" => ("ecsnodeclasses", false),
        "NodePool" => ("nodepools", false),
        "Deployment" => ("deployments", true),
        "ReplicaSet" => ("replicasets", true),
        "ConfigMap" => ("configmaps", true),
        "PodDisruptionBudget" => ("poddisruptionbudgets", true),
        "ServiceAccount" => ("serviceaccounts", true),
        "Service" => ("services", true),
        "ClusterRole" => ("clusterroles", false),
        "ClusterRoleBinding" => ("clusterrolebindings", false),
        "Role" => ("roles", true),
        "RoleBinding" => ("rolebindings", true),
        other => anyhow::bail!("a {other} cannot be applied from here"),
    };
    let api = if version.contains('/') {
        format!("/apis/{version}")
    } else {
        format!("/api/{version}")
    };
    let namespace = text("/metadata/namespace").unwrap_or("default");
    Ok(if is_namespaced {
        format!("{api}/namespaces/{namespace}/{plural}/{name}")
    } else {
        format!("{api}/{plural}/{name}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_namespace_where_the_kind_has_one() {
        let object = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}});

        assert_eq!(
            path_of(&object("v1", "ConfigMap")).unwrap(),
            "/api/v1/namespaces/default/configmaps/a"
        );
        assert_eq!(
            path_of(&object("karpenter.sh/v1", "NodePool")).unwrap(),
            "/apis/karpenter.sh/v1/nodepools/a"
        );
        assert!(path_of(&object("v1", "Secret")).is_err());
    }
}
