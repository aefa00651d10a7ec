//! The API server over plain HTTP.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use control_plane::ControlPlane;
use serde_json::Value;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::manifest;

/// A local server answers in milliseconds; this is for a machine on which others compile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Api {
    agent: Agent,
    url: String,
    authorization: String,
}

impl Api {
    /// Connects, and makes what all cases share.
    pub(super) fn new(control_plane: &ControlPlane) -> Result<Self> {
        let authority = Certificate::from_pem(control_plane.ca_pem().as_bytes())?;
        let tls = TlsConfig::builder().root_certs(RootCerts::Specific(Arc::new(vec![authority])));
        let agent = Agent::config_builder()
            .tls_config(tls.build())
            .timeout_global(Some(ANSWER_TIMEOUT))
            .http_status_as_error(false)
            .proxy(None)
            .build();
        let api = Self {
            agent: agent.into(),
            url: control_plane.server_url(),
            authorization: format!("Bearer {}", control_plane.token()),
        };
        for class in manifest::priority_classes() {
            api.create(&class)?;
        }
        api.create(&manifest::runtime_class())?;
        Ok(api)
    }

    /// Changes an object, or a part of it, by a merge patch.
    pub(super) fn patch(&self, path: &str, change: &Value) -> Result<()> {
        let request = self.agent.patch(format!("{}{path}", self.url));
        let answer = request
            .header("Authorization", &self.authorization)
            .header("Content-Type", "application/merge-patch+json")
            .send(change.to_string())
            .with_context(|| format!("PATCH {path}"))?;
        read(answer, &format!("PATCH {path} with {change}")).map(drop)
    }

    /// Creates an object where its kind lives.
    pub(super) fn create(&self, object: &Value) -> Result<()> {
        let path = collection(object)?;
        let request = self.agent.post(format!("{}{path}", self.url));
        let answer = request
            .header("Authorization", &self.authorization)
            .send_json(object)
            .with_context(|| format!("POST {path}"))?;
        // Namespaces stay when their case is over, and the same case may be tried again.
        if answer.status().as_u16() == 409 && object["kind"] == "Namespace" {
            return Ok(());
        }
        read(answer, &format!("POST {path} of {object}")).map(drop)
    }

    pub(super) fn list(&self, path: &str) -> Result<Vec<Value>> {
        let request = self.agent.get(format!("{}{path}", self.url));
        let answer = request
            .header("Authorization", &self.authorization)
            .call()
            .with_context(|| format!("GET {path}"))?;
        let mut list = read(answer, &format!("GET {path}"))?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            other => bail!("GET {path}: items is {other}"),
        }
    }

    /// Deletes one object or every object of a collection. What is gone already is fine.
    pub(super) fn delete(&self, path: &str) -> Result<()> {
        let request = self.agent.delete(format!("{}{path}", self.url));
        let answer = request
            .header("Authorization", &self.authorization)
            .call()
            .with_context(|| format!("DELETE {path}"))?;
        match answer.status().as_u16() {
            404 => Ok(()),
            _ => read(answer, &format!("DELETE {path}")).map(drop),
        }
    }
}

fn collection(object: &Value) -> Result<String> {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    Ok(match object["kind"].as_str() {
        Some("Namespace") => "/api/v1/namespaces".to_owned(),
        Some("RuntimeClass") => "/apis/node.k8s.io/v1/runtimeclasses".to_owned(),
        Some("StorageClass") => "/apis/storage.k8s.io/v1/storageclasses".to_owned(),
        Some("CSINode") => "/apis/storage.k8s.io/v1/csinodes".to_owned(),
        Some("Node") => "/api/v1/nodes".to_owned(),
        Some("PriorityClass") => "/apis/scheduling.k8s.io/v1/priorityclasses".to_owned(),
        Some("PersistentVolume") => "/api/v1/persistentvolumes".to_owned(),
        Some("PersistentVolumeClaim") => {
            format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims")
        }
        Some("Pod") => format!("/api/v1/namespaces/{namespace}/pods"),
        Some("DaemonSet") => format!("/apis/apps/v1/namespaces/{namespace}/daemonsets"),
        kind => bail!("no path is known for kind {kind:?}"),
    })
}

fn read(mut answer: ureq::http::Response<ureq::Body>, what: &str) -> Result<Value> {
    let status = answer.status();
    let body: Value = answer
        .body_mut()
        .read_json()
        .with_context(|| format!("{what}: the answer is no JSON"))?;
    if !status.is_success() {
        bail!("{what}: {status}: {}", body["message"]);
    }
    Ok(body)
}
