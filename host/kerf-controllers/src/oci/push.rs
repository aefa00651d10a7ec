//! Pushing a component as an artifact, for `kerf plugin publish --oci`.

use kerf_policy::PolicyDigest;
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Method, Response, Url};
use serde_json::json;

use super::artifact::{CONFIG, Descriptor, LAYER, LAYER_ZSTD, MANIFEST, Manifest};
use super::transport::{Call, Session};
use super::{Login, OciError, Reference, Registries};

impl Registries {
    /// Pushes a component, packed or not, and moves the reference's tag to it, where there is one. The same component gives
    /// the same digest. Returns the digest of the manifest.
    ///
    /// # Errors
    /// When the registry does not take it.
    pub async fn push(
        &self,
        reference: &Reference,
        component: Vec<u8>,
        is_packed: bool,
        login: Option<&Login>,
    ) -> Result<String, OciError> {
        let mut session = self.session(reference, login);
        let media_type = if is_packed { LAYER_ZSTD } else { LAYER };
        let layer = session.push_blob(media_type, component).await?;
        let config =
            json!({"architecture": "wasm", "os": "wasip2", "layerDigests": [layer.digest]});
        let config = session
            .push_blob(CONFIG, config.to_string().into_bytes())
            .await?;
        let manifest = serde_json::to_vec(&Manifest::new(config, layer)).map_err(|error| {
            OciError::Manifest {
                host: reference.host.clone(),
                why: error.to_string(),
            }
        })?;
        let digest = PolicyDigest::of(&manifest).to_string();
        let name = reference.tag.as_deref().unwrap_or(&digest);
        let call = Call {
            method: Method::PUT,
            url: session.url(&format!("manifests/{name}"))?,
            header: Some((CONTENT_TYPE, MANIFEST)),
            body: Some(manifest),
        };
        session.send("the manifest", call).await?;
        Ok(digest)
    }
}

impl Session<'_> {
    /// Sends a blob unless the registry has it.
    async fn push_blob(
        &mut self,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<Descriptor, OciError> {
        let descriptor = Descriptor {
            media_type: media_type.to_owned(),
            digest: PolicyDigest::of(&bytes).to_string(),
            size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        };
        let open = Call {
            method: Method::POST,
            url: self.url("blobs/uploads/")?,
            header: None,
            body: None,
        };
        let opened = self.send("the place for a blob", open).await?;
        let mut upload = self.upload(&opened)?;
        upload
            .query_pairs_mut()
            .append_pair("digest", &descriptor.digest);
        let call = Call {
            method: Method::PUT,
            url: upload,
            header: Some((CONTENT_TYPE, "application/octet-stream")),
            body: Some(bytes),
        };
        self.send("a blob", call).await?;
        Ok(descriptor)
    }

    /// Where the registry wants the blob: absolute, or from the address that answered.
    fn upload(&self, opened: &Response) -> Result<Url, OciError> {
        let location = opened.headers().get(LOCATION);
        let location = location.and_then(|it| it.to_str().ok());
        location
            .and_then(|it| opened.url().join(it).ok())
            .ok_or_else(|| OciError::Challenge {
                host: self.host(),
                why: "it names no place for a blob".to_owned(),
            })
    }
}
