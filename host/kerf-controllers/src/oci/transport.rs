//! Requests to one registry: over TLS only, with limits on time and size, and logged in as the registry asks.

use std::future::Future;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Certificate, Client, Method, Response, StatusCode, Url, redirect};
use serde::Deserialize;
use tokio::time::timeout;

use super::challenge::Challenge;
use super::{Login, OciError, Reference};

/// A registry that takes longer to shake hands is down.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// For the beginning of an answer, and between two pieces of it.
const READ_TIMEOUT: Duration = Duration::from_secs(20);
/// For sending a blob and the registry's word on it: the largest component at 1 Mbit/s.
const SEND_TIMEOUT: Duration = Duration::from_secs(300);
/// From a registry to its storage are one or two.
const REDIRECTS_MAX: usize = 5;
/// Tokens are some KiB.
const TOKEN_BYTES_MAX: u64 = 1 << 20;

/// The client for all registries.
#[derive(Debug, Clone)]
pub struct Registries {
    http: Client,
}

/// What a request asks for, in messages: "the manifest", "the component".
pub(super) type What = &'static str;

/// A request before it is logged in.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) header: Option<(HeaderName, &'static str)>,
    pub(super) body: Option<Vec<u8>>,
}

/// One registry while one artifact is moved; a login lasts as long.
#[derive(Debug)]
pub(super) struct Session<'a> {
    pub(super) reference: &'a Reference,
    http: &'a Client,
    login: Option<&'a Login>,
    authorization: Option<HeaderValue>,
}

/// Registries call it either.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl Registries {
    /// Trusts the system's CAs, and those of `roots` (PEM) as well. Makes no call. The process has installed what rustls
    /// encrypts with.
    ///
    /// # Errors
    /// When `roots` holds no certificate.
    pub fn new(roots: Option<&[u8]>) -> Result<Self, OciError> {
        let certificates = match roots {
            Some(pem) => Certificate::from_pem_bundle(pem)
                .map_err(|error| OciError::Roots(error.to_string()))?,
            None => Vec::new(),
        };
        if roots.is_some() && certificates.is_empty() {
            return Err(OciError::Roots("it has no BEGIN CERTIFICATE".to_owned()));
        }
        let http = Client::builder()
            .user_agent(concat!("kerf/", env!("CARGO_PKG_VERSION")))
            .https_only(true)
            .connect_timeout(CONNECT_TIMEOUT)
            // They are followed here, where it is seen to that a login goes to the registry and to nobody else.
            .redirect(redirect::Policy::none())
            .tls_certs_merge(certificates)
            .build()
            .map_err(OciError::Setup)?;
        Ok(Self { http })
    }

    pub(super) fn session<'a>(
        &'a self,
        reference: &'a Reference,
        login: Option<&'a Login>,
    ) -> Session<'a> {
        Session {
            reference,
            http: &self.http,
            login,
            authorization: None,
        }
    }
}

impl Session<'_> {
    pub(super) fn host(&self) -> String {
        self.reference.host.clone()
    }

    /// The address of something in the repository.
    ///
    /// # Errors
    /// Never for a reference that was parsed.
    pub(super) fn url(&self, rest: &str) -> Result<Url, OciError> {
        let Reference {
            host, repository, ..
        } = self.reference;
        Url::parse(&format!("https://{host}/v2/{repository}/{rest}")).map_err(|error| {
            OciError::Challenge {
                host: host.clone(),
                why: error.to_string(),
            }
        })
    }

    /// Sends a request, logs in where the registry wants it, and sends it again.
    ///
    /// # Errors
    /// For every answer that is none of success.
    pub(super) async fn send(&mut self, what: What, call: Call) -> Result<Response, OciError> {
        let mut answer = self.follow(what, &call).await?;
        // Nobody but the registry itself may say where to log in.
        let asks = answer.status() == StatusCode::UNAUTHORIZED && self.is_registry(answer.url());
        if asks && self.authorization.is_none() {
            self.log_in(what, &answer).await?;
            answer = self.follow(what, &call).await?;
        }
        match answer.status() {
            status if status.is_success() => Ok(answer),
            StatusCode::NOT_FOUND => Err(OciError::NotFound {
                host: self.host(),
                what: what.to_owned(),
            }),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(self.refused(what)),
            status => Err(OciError::Status {
                host: self.host(),
                what: what.to_owned(),
                status: status.as_u16(),
            }),
        }
    }

    /// Sends a request, and goes where a registry sends those who read: to its storage.
    async fn follow(&self, what: What, call: &Call) -> Result<Response, OciError> {
        let mut url = call.url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let answer = self.try_once(what, call, url.clone()).await?;
            if !answer.status().is_redirection() || call.method != Method::GET {
                return Ok(answer);
            }
            let location = answer.headers().get(LOCATION);
            let location = location.and_then(|it| it.to_str().ok());
            let next = location.and_then(|it| answer.url().join(it).ok());
            url = next
                .filter(|url| url.scheme() == "https")
                .ok_or_else(|| self.challenge("it sends to an address that is not https://"))?;
        }
        Err(self.challenge("it sends from one address to the next without an end"))
    }

    /// Whether that is an address of the registry, which may see the login.
    fn is_registry(&self, url: &Url) -> bool {
        let own = Url::parse(&format!("https://{}", self.reference.host));
        own.is_ok_and(|own| own.origin() == url.origin())
    }

    async fn try_once(&self, what: What, call: &Call, url: Url) -> Result<Response, OciError> {
        let is_ours = self.is_registry(&url);
        let mut request = self.http.request(call.method.clone(), url);
        if let Some((name, value)) = &call.header {
            request = request.header(name, *value);
        }
        if let Some(authorization) = self.authorization.as_ref().filter(|_| is_ours) {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        let limit = match &call.body {
            Some(_) => SEND_TIMEOUT,
            None => READ_TIMEOUT,
        };
        if let Some(body) = &call.body {
            request = request.body(body.clone());
        }
        self.within(limit, what, request.send()).await
    }

    /// The answer, if its beginning comes in time. What went wrong is told without the address: one of a storage has a
    /// signature in it.
    async fn within(
        &self,
        limit: Duration,
        what: What,
        answer: impl Future<Output = reqwest::Result<Response>>,
    ) -> Result<Response, OciError> {
        let slow = |_| OciError::Slow {
            host: self.host(),
            what: what.to_owned(),
            limit,
        };
        let answer = timeout(limit, answer).await.map_err(slow)?;
        answer.map_err(|error| OciError::Unreachable {
            host: self.host(),
            source: error.without_url(),
        })
    }

    async fn log_in(&mut self, what: What, answer: &Response) -> Result<(), OciError> {
        let offered = answer.headers().get_all(WWW_AUTHENTICATE).iter();
        let mut offered = offered.filter_map(|it| Challenge::parse(it.to_str().ok()?));
        let value = match offered.next() {
            Some(Challenge::Basic) => {
                let login = self.login.ok_or_else(|| self.refused(what))?;
                format!("Basic {}", login.basic())
            }
            Some(Challenge::Bearer {
                realm,
                service,
                scope,
            }) => {
                let token = self.token(what, &realm, service, scope).await?;
                format!("Bearer {token}")
            }
            None => {
                return Err(
                    self.challenge("it asks for a login, but neither for Basic nor for Bearer")
                );
            }
        };
        self.authorization = Some(self.header(&value)?);
        Ok(())
    }

    /// A header that no log shows.
    fn header(&self, value: &str) -> Result<HeaderValue, OciError> {
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| self.challenge("the login has characters that a header cannot have"))?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// What a refusal means: that there is no login, or that it is not good enough.
    fn refused(&self, what: What) -> OciError {
        let (host, what) = (self.host(), what.to_owned());
        match self.login {
            Some(_) => OciError::LoginRefused { host, what },
            None => OciError::NoLogin { host, what },
        }
    }

    fn challenge(&self, why: &str) -> OciError {
        OciError::Challenge {
            host: self.host(),
            why: why.to_owned(),
        }
    }

    /// Asks the server that the registry names for a token; user and password go there, as the protocol says.
    async fn token(
        &self,
        what: What,
        realm: &str,
        service: Option<String>,
        scope: Option<String>,
    ) -> Result<String, OciError> {
        let mut url = Url::parse(realm)
            .ok()
            .filter(|url| url.scheme() == "https")
            .ok_or_else(|| self.challenge("its token server is no https:// address"))?;
        for (key, value) in [("service", service), ("scope", scope)] {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(key, &value);
            }
        }
        let mut request = self.http.get(url);
        if let Some(login) = self.login {
            let basic = self.header(&format!("Basic {}", login.basic()))?;
            request = request.header(AUTHORIZATION, basic);
        }
        let answer = self.within(READ_TIMEOUT, what, request.send()).await?;
        match answer.status() {
            status if status.is_success() => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(self.refused(what)),
            status => return Err(self.challenge(&format!("its token server answered {status}"))),
        }
        let body = body(answer, &self.reference.host, "the token", TOKEN_BYTES_MAX).await?;
        // What was received may be a secret, so that nothing of it is told.
        let token: Option<Token> = serde_json::from_slice(&body).ok();
        token
            .and_then(|it| it.token.or(it.access_token))
            .ok_or_else(|| self.challenge("its token server sent no token"))
    }
}

/// All of an answer's body, or why not: never more than `max` bytes, and never a part.
pub(super) async fn body(
    mut answer: Response,
    host: &str,
    what: What,
    max: u64,
) -> Result<Vec<u8>, OciError> {
    let expected = answer.content_length();
    let too_large = |bytes| OciError::TooLarge {
        host: host.to_owned(),
        what: what.to_owned(),
        bytes,
        max,
    };
    if let Some(bytes) = expected.filter(|bytes| *bytes > max) {
        return Err(too_large(bytes));
    }
    let mut received = Vec::new();
    loop {
        let chunk = timeout(READ_TIMEOUT, answer.chunk()).await;
        let chunk = chunk.map_err(|_| OciError::Slow {
            host: host.to_owned(),
            what: what.to_owned(),
            limit: READ_TIMEOUT,
        })?;
        let chunk = chunk.map_err(|_| OciError::Cut {
            host: host.to_owned(),
            what: what.to_owned(),
        })?;
        let Some(chunk) = chunk else {
            return Ok(received);
        };
        received.extend_from_slice(&chunk);
        let bytes = u64::try_from(received.len()).unwrap_or(u64::MAX);
        if bytes > max {
            return Err(too_large(bytes));
        }
    }
}
