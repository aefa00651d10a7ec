//! The few calls to the API server that the demo needs, as plain HTTP.

use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use control_plane::ControlPlane;
use serde_json::Value;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// A local API server answers in milliseconds; one that is being compiled against answers in seconds.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Thousands of objects on two busy cores.
const LIST_MAX: Duration = Duration::from_secs(60);
/// A watch ends after this, if the server lives so long; whoever wants more asks again.
const WATCH_SECONDS: u64 = 300;
/// A collection is deleted object by object before the answer comes.
const COLLECTION_MAX: Duration = Duration::from_secs(120);
/// Who owns the fields that the demo applies.
const FIELD_MANAGER: &str = "quick-start";

#[derive(Debug)]
pub(crate) struct ApiServer {
    agent: Agent,
    url: String,
    authorization: String,
}

impl ApiServer {
    pub(crate) fn new(control_plane: &ControlPlane) -> Result<Self> {
        let authority = Certificate::from_pem(control_plane.ca_pem().as_bytes())
            .context("cannot read the cluster's certificate")?;
        let tls = TlsConfig::builder().root_certs(RootCerts::Specific(Arc::new(vec![authority])));
        let agent = Agent::config_builder()
            .tls_config(tls.build())
            .timeout_global(Some(ANSWER_MAX))
            .http_status_as_error(false)
            .proxy(None)
            .build()
            .into();
        let authorization = format!("Bearer {}", control_plane.token());
        Ok(Self {
            agent,
            url: control_plane.server_url(),
            authorization,
        })
    }

    /// The items of a list.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<Value>> {
        let list = self.get(path)?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// One object.
    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        let request = self
            .agent
            .get(format!("{}{path}", self.url))
            .header("Authorization", &self.authorization)
            .config()
            .timeout_global(Some(LIST_MAX))
            .build();
        answer(request.call(), path)
    }

    /// The lines of a watch, until it ends. `path` has the version to watch from.
    pub(crate) fn watch(&self, path: &str) -> Result<impl BufRead + use<>> {
        let url = format!(
            "{}{path}&watch=true&timeoutSeconds={WATCH_SECONDS}",
            self.url
        );
        let request = self
            .agent
            .get(url)
            .header("Authorization", &self.authorization)
            .config()
            .timeout_global(Some(Duration::from_secs(WATCH_SECONDS) + ANSWER_MAX))
            .build();
        let response = request
            .call()
            .with_context(|| format!("no answer to {path}"))?;
        let status = response.status();
        if !status.is_success() {
            bail!("{path}: {status}");
        }
        Ok(BufReader::new(response.into_body().into_reader()))
    }

    /// Creates an object in a collection, or asks a subresource for something.
    pub(crate) fn post(&self, path: &str, object: &Value) -> Result<Value> {
        let request = self
            .agent
            .post(format!("{}{path}", self.url))
            .header("Authorization", &self.authorization);
        answer(request.send_json(object), path)
    }

    /// Deletes an object, or all of a collection.
    pub(crate) fn delete(&self, path: &str) -> Result<()> {
        let request = self
            .agent
            .delete(format!("{}{path}", self.url))
            .header("Authorization", &self.authorization)
            .config()
            .timeout_global(Some(COLLECTION_MAX))
            .build();
        answer(request.call(), path).map(drop)
    }

    /// A merge patch.
    pub(crate) fn merge(&self, path: &str, patch: &Value) -> Result<()> {
        let request = self
            .agent
            .patch(format!("{}{path}", self.url))
            .header("Authorization", &self.authorization);
        let request = request.content_type("application/merge-patch+json");
        answer(request.send(patch.to_string()), path).map(drop)
    }

    /// Server-side apply.
    pub(crate) fn apply(&self, path: &str, object: &Value) -> Result<()> {
        self.applied(path, object).map(drop)
    }

    /// As `apply`; the object as it is then.
    pub(crate) fn applied(&self, path: &str, object: &Value) -> Result<Value> {
        let url = format!("{}{path}?fieldManager={FIELD_MANAGER}&force=true", self.url);
        let request = self
            .agent
            .patch(url)
            .header("Authorization", &self.authorization);
        // JSON is YAML, and the API server takes only this name for an apply.
        let request = request.content_type("application/apply-patch+yaml");
        answer(request.send(object.to_string()), path)
    }
}

/// The Pods of the largest cluster that is measured are 60 MB; the client's own limit is 10.
const BODY_MAX_BYTES: u64 = 1 << 30;

/// The body of a good answer; of a bad one the reason that the server gave.
pub(crate) fn answer(
    result: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    path: &str,
) -> Result<Value> {
    let mut response = result.with_context(|| format!("no answer to {path}"))?;
    let status = response.status();
    let body: Value = response
        .body_mut()
        .with_config()
        .limit(BODY_MAX_BYTES)
        .read_json()
        .with_context(|| format!("no JSON from {path} ({status})"))?;
    if !status.is_success() {
        let reason = body["message"].as_str().unwrap_or("no reason given");
        bail!("{path}: {status}: {reason}");
    }
    Ok(body)
}
