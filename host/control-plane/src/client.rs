//! A few plain requests to the servers, as the admin.

use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::Error;
use crate::credentials::Credentials;

/// A server on this machine answers in milliseconds; one that is busy starting must not hold up the next try.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Client {
    agent: Agent,
    authorization: String,
}

impl Client {
    pub(crate) fn new(credentials: &Credentials) -> Result<Self, Error> {
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
        })
    }

    /// Whether the answer is a success; the error says what came instead.
    pub(crate) fn check(&self, url: &str) -> Result<(), String> {
        let request = self
            .agent
            .get(url)
            .header("Authorization", &self.authorization);
        request
            .call()
            .map(drop)
            .map_err(|err| format!("{url}: {err}"))
    }

    pub(crate) fn delete(&self, url: &str) -> Result<(), ureq::Error> {
        self.agent
            .delete(url)
            .header("Authorization", &self.authorization)
            .call()
            .map(drop)
    }
}
