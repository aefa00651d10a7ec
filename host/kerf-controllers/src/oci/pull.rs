//! Pulling: the manifest by its digest, and the component by the digest in the manifest.

use std::time::Duration;

use kerf_policy::PolicyDigest;
use kerf_policy::limits::COMPONENT_BYTES_MAX;
use reqwest::Method;
use reqwest::header::ACCEPT;
use tokio::time::{sleep, timeout};

use super::artifact::Manifest;
use super::transport::{Call, Session, What, body};
use super::{Login, OciError, Reference, Registries};

/// OCI distribution specification, "Pushing manifests": registries take at least 4 MiB.
const MANIFEST_BYTES_MAX: u64 = 4 << 20;
/// An index is of no use, and is told from an artifact that is not there.
const KINDS: &str =
    "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, */*";
/// For everything together; the largest component takes this long at 0.5 MiB/s.
const PULL_TIMEOUT: Duration = Duration::from_secs(120);
/// Between tries of one pull. The caller tries the whole again later.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// What a digest named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// As pushed, packed or not.
    pub bytes: Vec<u8>,
    /// Of `bytes`.
    pub digest: PolicyDigest,
}

impl Registries {
    /// The component of the artifact whose manifest has this digest. Every byte of it follows from `digest`.
    ///
    /// # Errors
    /// When it is not there, not allowed, damaged, too large or too slow.
    pub async fn pull(
        &self,
        reference: &Reference,
        digest: &str,
        login: Option<&Login>,
    ) -> Result<Pulled, OciError> {
        let mut session = self.session(reference, login);
        let pulled = timeout(PULL_TIMEOUT, session.pull(digest)).await;
        pulled.unwrap_or_else(|_| {
            Err(OciError::Slow {
                host: reference.host.clone(),
                what: "the artifact".to_owned(),
                limit: PULL_TIMEOUT,
            })
        })
    }
}

impl Session<'_> {
    async fn pull(&mut self, digest: &str) -> Result<Pulled, OciError> {
        let manifest = self
            .get(
                "the manifest",
                &format!("manifests/{digest}"),
                MANIFEST_BYTES_MAX,
            )
            .await?;
        self.check("a manifest", &manifest, digest)?;
        let refuse = |why: String| OciError::Manifest {
            host: self.host(),
            why,
        };
        let manifest: Manifest = serde_json::from_slice(&manifest)
            .map_err(|error| refuse(format!("its manifest cannot be read: {error}")))?;
        let layer = manifest.component().map_err(refuse)?;
        let max = u64::try_from(COMPONENT_BYTES_MAX).unwrap_or(u64::MAX);
        if layer.size > max {
            return Err(OciError::TooLarge {
                host: self.host(),
                what: "the component".to_owned(),
                bytes: layer.size,
                max,
            });
        }
        let bytes = self
            .get(
                "the component",
                &format!("blobs/{}", layer.digest),
                layer.size,
            )
            .await?;
        let digest = self.check("a component", &bytes, &layer.digest)?;
        Ok(Pulled { bytes, digest })
    }

    async fn get(&mut self, what: What, path: &str, max: u64) -> Result<Vec<u8>, OciError> {
        for pause in PAUSES {
            match self.get_once(what, path, max).await {
                Err(error) if error.is_transient() => sleep(pause).await,
                done => return done,
            }
        }
        self.get_once(what, path, max).await
    }

    async fn get_once(&mut self, what: What, path: &str, max: u64) -> Result<Vec<u8>, OciError> {
        let call = Call {
            method: Method::GET,
            url: self.url(path)?,
            header: Some((ACCEPT, KINDS)),
            body: None,
        };
        let answer = self.send(what, call).await?;
        body(answer, &self.reference.host, what, max).await
    }

    fn check(&self, what: What, bytes: &[u8], expected: &str) -> Result<PolicyDigest, OciError> {
        let found = PolicyDigest::of(bytes);
        if found.to_string() == expected {
            return Ok(found);
        }
        Err(OciError::Digest {
            host: self.host(),
            what: what.to_owned(),
            found: found.to_string(),
        })
    }
}
