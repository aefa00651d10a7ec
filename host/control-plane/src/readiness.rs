//! Asks the servers whether they are ready.

use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::credentials::Credentials;
use crate::port::Ports;
use crate::{Component, Error, Options};

/// A server on this machine answers in milliseconds; one that is busy starting must not hold up the next try.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// What a test finds in every cluster. Without the last one no pod can be created.
const NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-node-lease"];
const SERVICE_ACCOUNT: &str = "/api/v1/namespaces/default/serviceaccounts/default";

/// Knows which addresses tell that a server is ready.
#[derive(Debug)]
pub(crate) struct Readiness {
    agent: Agent,
    authorization: String,
    ports: Ports,
}

impl Readiness {
    pub(crate) fn new(ports: Ports, credentials: &Credentials) -> Result<Self, Error> {
        let authority = Certificate::from_pem(credentials.ca_pem.as_bytes())
            .map_err(|source| Error::TrustCertificate(Box::new(source)))?;
        let tls = TlsConfig::builder().root_certs(RootCerts::Specific(Arc::new(vec![authority])));
        let agent = Agent::config_builder()
            .tls_config(tls.build())
            .timeout_global(Some(ANSWER_TIMEOUT))
            // HTTP_PROXY is for the world outside.
            .proxy(None)
            .build()
            .into();
        let authorization = format!("Bearer {}", credentials.admin_token);
        Ok(Self {
            agent,
            authorization,
            ports,
        })
    }

    /// Everything that must answer with 200 before `component` counts as ready.
    pub(crate) fn probes(&self, component: Component) -> Vec<String> {
        let Ports {
            etcd,
            etcd_peer: _,
            api_server,
            scheduler,
            controller_manager,
            kwok,
        } = self.ports;
        match component {
            Component::Etcd => vec![format!("http://127.0.0.1:{etcd}/readyz")],
            Component::ApiServer => {
                let namespaces = NAMESPACES.map(|name| format!("/api/v1/namespaces/{name}"));
                std::iter::once("/readyz".to_owned())
                    .chain(namespaces)
                    .map(|path| format!("https://127.0.0.1:{api_server}{path}"))
                    .collect()
            }
            Component::Scheduler => vec![format!("https://127.0.0.1:{scheduler}/readyz")],
            Component::ControllerManager => vec![
                format!("https://127.0.0.1:{controller_manager}/healthz"),
                format!("https://127.0.0.1:{api_server}{SERVICE_ACCOUNT}"),
            ],
            Component::Kwok => vec![format!("http://127.0.0.1:{kwok}/readyz")],
        }
    }

    /// Asks once; the error says what came instead of 200.
    pub(crate) fn ask(&self, url: &str) -> Result<(), String> {
        self.agent
            .get(url)
            .header("Authorization", &self.authorization)
            .call()
            .map(drop)
            .map_err(|err| format!("{url}: {err}"))
    }
}

/// Which servers wait for each other. The last three only need the API server and start together.
pub(crate) fn start_order(options: &Options) -> Vec<Vec<Component>> {
    let stages: [&[Component]; 3] = [
        &[Component::Etcd],
        &[Component::ApiServer],
        &[
            Component::Scheduler,
            Component::ControllerManager,
            Component::Kwok,
        ],
    ];
    let wanted = |stage: &[Component]| -> Vec<_> {
        stage
            .iter()
            .copied()
            .filter(|component| options.runs(*component))
            .collect()
    };
    stages.into_iter().map(wanted).collect()
}
