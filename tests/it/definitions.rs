//! Our CRDs on an API server, served in full before a test uses them.

use std::time::{Duration, Instant};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt};

use crate::stage::root;

/// The API server serves a new kind within a second; the rest is for loaded machines.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Applies every definition of crds/ and waits until the kinds can be used.
pub(crate) async fn install(client: &Client) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut definitions = Vec::new();
    for entry in std::fs::read_dir(root().join("crds")).expect("crds/") {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let definition: serde_json::Value = serde_saphyr::from_str(&text).expect("a CRD");
        let name = definition["metadata"]["name"].as_str().unwrap();
        let params = PatchParams::apply("test").validation_strict();
        let stored = api.patch(name, &params, &Patch::Apply(&definition)).await;
        definitions.push(stored.expect("apply a definition"));
    }
    let deadline = Instant::now() + PATIENCE;
    for definition in definitions {
        while !is_served(client, &definition).await {
            let name = definition.name_any();
            assert!(Instant::now() < deadline, "{name} is not served");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Established is not enough: the server sets it before its discovery lists the kind.
async fn is_served(client: &Client, definition: &CustomResourceDefinition) -> bool {
    let spec = &definition.spec;
    for version in spec.versions.iter().filter(|version| version.served) {
        let kind = GroupVersionKind::gvk(&spec.group, &version.name, &spec.names.kind);
        let Ok((resource, _)) = kube::discovery::pinned_kind(client, &kind).await else {
            return false;
        };
        let objects: Api<kube::core::DynamicObject> = Api::all_with(client.clone(), &resource);
        if objects.list(&Default::default()).await.is_err() {
            return false;
        }
    }
    true
}
