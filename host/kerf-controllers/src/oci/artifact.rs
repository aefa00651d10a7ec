//! The manifest of an artifact that holds a component, as the CNCF's guide for WebAssembly artifacts lays it out.

use serde::{Deserialize, Serialize};

/// OCI image specification, "Image Manifest".
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Of the configuration of WebAssembly artifacts.
pub(super) const CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// Of a layer that is a component.
pub(super) const LAYER: &str = "application/wasm";
/// Of a component that is packed with zstd, as `kerf plugin publish` pushes one.
pub(super) const LAYER_ZSTD: &str = "application/wasm+zstd";
const SCHEMA_VERSION: u32 = 2;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    schema_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<Descriptor>,
    #[serde(default)]
    layers: Vec<Descriptor>,
    /// Only an index has these.
    #[serde(default, skip_serializing)]
    manifests: Vec<serde_json::Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub(super) media_type: String,
    pub(super) digest: String,
    pub(super) size: u64,
}

impl Manifest {
    pub(super) fn new(config: Descriptor, layer: Descriptor) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            media_type: Some(MANIFEST.to_owned()),
            artifact_type: Some(LAYER.to_owned()),
            config: Some(config),
            layers: vec![layer],
            manifests: Vec::new(),
        }
    }

    /// The layer that is the component: the one of a WebAssembly type, or the only one.
    ///
    /// # Errors
    /// Why there is no such layer.
    pub(super) fn component(&self) -> Result<&Descriptor, String> {
        if !self.manifests.is_empty() {
            return Err(
                "the digest is of an index; name the digest of one of its manifests".to_owned(),
            );
        }
        let is_wasm = |layer: &&Descriptor| layer.media_type.contains("wasm");
        let wasm: Vec<&Descriptor> = self.layers.iter().filter(is_wasm).collect();
        let layer = match (wasm.as_slice(), self.layers.as_slice()) {
            ([layer], _) => *layer,
            ([], [layer]) => layer,
            (_, layers) => {
                return Err(format!(
                    "it has {} layers of which {} are of a WebAssembly type; push it with one",
                    layers.len(),
                    wasm.len()
                ));
            }
        };
        if super::reference::is_digest(&layer.digest) {
            Ok(layer)
        } else {
            Err("its layer has no sha256 digest".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layers(kinds: &[&str]) -> Manifest {
        let digest = format!("sha256:{}", "0".repeat(64));
        let layers: Vec<_> = kinds
            .iter()
            .map(|kind| serde_json::json!({"mediaType": kind, "digest": digest, "size": 1}))
            .collect();
        serde_json::from_value(serde_json::json!({"schemaVersion": 2, "layers": layers})).unwrap()
    }

    #[test]
    fn the_component_is_the_layer_of_its_type_or_the_only_one() {
        let oras = "application/vnd.oci.image.layer.v1.tar";

        assert_eq!(
            layers(&[oras, LAYER]).component().unwrap().media_type,
            LAYER
        );
        assert_eq!(layers(&[oras]).component().unwrap().media_type, oras);
        for kinds in [&[][..], &[oras, oras], &[LAYER, LAYER_ZSTD]] {
            assert!(layers(kinds).component().unwrap_err().contains("layers"));
        }
    }

    #[test]
    fn an_index_is_told_from_a_manifest() {
        let index = serde_json::json!({"schemaVersion": 2, "manifests": [{"digest": "sha256:x"}]});
        let index: Manifest = serde_json::from_value(index).unwrap();

        assert!(index.component().unwrap_err().contains("index"));
    }
}
