//! Credentials that end: of a service account (RRSA), and of the machine's own RAM role. They are fetched again well
//! before their end, and what is still good serves while a fetch fails.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::Credentials;
use crate::error::CloudError;
use crate::rpc::config::Clock;
use crate::rpc::encode::canonical_query;
use crate::rpc::reply::{Reply, decode};
use crate::rpc::unique;

const ASSUME_ROLE: &str = "AssumeRoleWithOIDC";
const MACHINE_ROLE: &str = "security-credentials";
/// The metadata service of every ECS instance.
pub const METADATA_URL: &str = "http://100.100.100.200";
/// The official SDK: same. New credentials of a machine appear half an hour before the end of the old ones.
const REFRESH_AHEAD: SignedDuration = SignedDuration::from_mins(15);
/// What a role allows without being changed.
const SESSION_SECONDS: &str = "3600";
/// The official SDK: same.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// A role that a service account assumes.
#[derive(Debug, Clone)]
pub struct OidcRole {
    pub role_arn: String,
    pub provider_arn: String,
    /// Read anew for each fetch: the kubelet renews it.
    pub token_file: PathBuf,
    /// 2 to 64 of `[A-Za-z0-9@._-]`; shows in ActionTrail.
    pub session_name: String,
    /// Base URL of STS.
    pub sts_url: String,
}

/// The RAM role of the machine that this process runs on.
#[derive(Debug, Clone)]
pub struct MachineRole {
    pub name: String,
    pub metadata_url: String,
}

#[derive(Debug)]
pub(super) enum Origin {
    Oidc(OidcRole),
    Machine(MachineRole),
}

/// Credentials with their end.
#[derive(Debug, Clone)]
struct Held {
    credentials: Credentials,
    ends_at: Timestamp,
}

/// Fetches, keeps and renews.
pub struct Temporary {
    origin: Origin,
    http: reqwest::Client,
    clock: Clock,
    held: Mutex<Option<Held>>,
    /// Whoever holds it fetches. Only callers without any credentials wait for it, and each fetch has a time limit.
    turn: tokio::sync::Mutex<()>,
}

impl fmt::Debug for Temporary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Temporary")
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

impl Temporary {
    pub(super) fn new(origin: Origin, clock: Clock) -> Result<Self, CloudError> {
        // Fails when it was installed before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(READ_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| CloudError::Config {
                detail: error.to_string(),
            })?;
        Ok(Self {
            origin,
            http,
            clock,
            held: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        })
    }

    pub(super) async fn load(&self) -> Result<Credentials, CloudError> {
        if let Some(held) = self.good_for(REFRESH_AHEAD) {
            return Ok(held);
        }
        let Some(old) = self.good_for(SignedDuration::ZERO) else {
            let _turn = self.turn.lock().await;
            // Another caller may have fetched while we waited.
            return match self.good_for(SignedDuration::ZERO) {
                Some(held) => Ok(held),
                None => self.fetch().await,
            };
        };
        let Ok(_turn) = self.turn.try_lock() else {
            return Ok(old);
        };
        match self.fetch().await {
            Ok(fresh) => Ok(fresh),
            Err(error) => {
                tracing::warn!(%error, "credentials not renewed; the old ones are still good");
                Ok(old)
            }
        }
    }

    fn good_for(&self, time: SignedDuration) -> Option<Credentials> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let held = held.as_ref()?;
        let until = self.clock.now().checked_add(time).ok()?;
        (held.ends_at > until).then(|| held.credentials.clone())
    }

    async fn fetch(&self) -> Result<Credentials, CloudError> {
        let held = match &self.origin {
            Origin::Oidc(role) => self.assume(role).await,
            Origin::Machine(role) => self.ask_machine(role).await,
        }?;
        let credentials = held.credentials.clone();
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
        Ok(credentials)
    }

    /// In a form and not in the query, as the official SDK has it, so that no proxy logs the token.
    async fn assume(&self, role: &OidcRole) -> Result<Held, CloudError> {
        let token =
            std::fs::read_to_string(&role.token_file).map_err(|error| CloudError::Config {
                detail: format!("token of RRSA {}: {error}", role.token_file.display()),
            })?;
        let now = self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let nonce = unique::nonce();
        let form = [
            ("Action", ASSUME_ROLE),
            ("Version", "2015-04-01"),
            ("Format", "JSON"),
            ("Timestamp", &now),
            ("SignatureNonce", &nonce),
            ("RoleArn", &role.role_arn),
            ("OIDCProviderArn", &role.provider_arn),
            ("OIDCToken", token.trim()),
            ("RoleSessionName", &role.session_name),
            ("DurationSeconds", SESSION_SECONDS),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let request = self
            .http
            .post(&role.sts_url)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(canonical_query(&form));
        let reply: Assumed = self
            .send(ASSUME_ROLE, request)
            .await?
            .into_json(ASSUME_ROLE)?;
        reply.credentials.held(ASSUME_ROLE)
    }

    /// Hardened mode first; a machine without it does not know the token's path.
    async fn ask_machine(&self, role: &MachineRole) -> Result<Held, CloudError> {
        let MachineRole { name, metadata_url } = role;
        let ask = self
            .http
            .put(format!("{metadata_url}/latest/api/token"))
            .header("x-aliyun-ecs-metadata-token-ttl-seconds", "21600");
        let token = self.send(MACHINE_ROLE, ask).await?.into_text(MACHINE_ROLE);
        let mut request = self.http.get(format!(
            "{metadata_url}/latest/meta-data/ram/security-credentials/{name}"
        ));
        if let Ok(token) = token {
            request = request.header("x-aliyun-ecs-metadata-token", token);
        }
        let text = self
            .send(MACHINE_ROLE, request)
            .await?
            .into_text(MACHINE_ROLE)?;
        decode::<Issued>(MACHINE_ROLE, &text)?.held(MACHINE_ROLE)
    }

    async fn send(
        &self,
        action: &'static str,
        request: reqwest::RequestBuilder,
    ) -> Result<Reply, CloudError> {
        let fail = |error: reqwest::Error| CloudError::Transport {
            action,
            host: error
                .url()
                .and_then(|url| url.host_str())
                .unwrap_or_default()
                .to_owned(),
            detail: error.without_url().to_string(),
        };
        let response = request.send().await.map_err(fail)?;
        Ok(Reply {
            status: response.status().as_u16(),
            retry_after: None,
            body: response.text().await.map_err(fail)?,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Assumed {
    credentials: Issued,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Issued {
    access_key_id: String,
    access_key_secret: String,
    security_token: String,
    expiration: String,
}

impl Issued {
    fn held(self, action: &'static str) -> Result<Held, CloudError> {
        let ends_at = self
            .expiration
            .parse()
            .map_err(|error| CloudError::Decode {
                action,
                detail: format!("Expiration {:?}: {error}", self.expiration),
            })?;
        Ok(Held {
            credentials: Credentials::sts(
                self.access_key_id,
                self.access_key_secret,
                self.security_token,
            ),
            ends_at,
        })
    }
}
