//! Sending: one call is a few attempts within one deadline. Dropping the future stops it at any point.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::debug;

use crate::error::{CloudError, ErrorClass};
use crate::rpc::action::Action;
use crate::rpc::config::ClientConfig;
use crate::rpc::endpoint::{self, Product};
use crate::rpc::limiter::Limiter;
use crate::rpc::reply::{Reply, parse_retry_after};
use crate::rpc::request::Request;
use crate::rpc::retry::{Decision, deadline, decide};
use crate::rpc::sign::{Signed, Stamp, sign};
use crate::rpc::stats::{ActionStats, Stats};
use crate::rpc::unique;

/// Actions that make what costs.
const MAKES: &[&str] = &[Action::RunInstances.as_str()];

/// A client for all products of one region. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: ClientConfig,
    http: reqwest::Client,
    bases: BTreeMap<Product, Base>,
    limiter: Limiter,
    stats: Stats,
    permit: OnceLock<Permit>,
}

/// Says whether this process may still make something.
struct Permit(Box<dyn Fn() -> bool + Send + Sync>);

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Permit").finish_non_exhaustive()
    }
}

/// Where a product is.
#[derive(Debug, Clone)]
struct Base {
    /// Scheme, host and port, without a slash at the end.
    url: String,
    /// The value of the `host` header, which is signed.
    host: String,
}

impl Client {
    /// Makes no call.
    ///
    /// # Errors
    /// When an endpoint is not a URL, or TLS cannot be set up.
    pub fn new(config: ClientConfig) -> Result<Self, CloudError> {
        // Fails when another crate installed one before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .user_agent(format!("kerf/{}", config.version))
            .connect_timeout(config.connect_timeout)
            .timeout(config.read_timeout)
            // A redirect would send a signed request somewhere else.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| CloudError::Config {
                detail: chain(&error),
            })?;
        let bases = Product::ALL
            .into_iter()
            .map(|product| Ok((product, base_of(product, &config)?)))
            .collect::<Result<_, CloudError>>()?;
        let limiter = Limiter::new(config.calls_per_second, config.burst);
        let inner = Inner {
            config,
            http,
            bases,
            limiter,
            stats: Stats::default(),
            permit: OnceLock::new(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// The region that all calls go to.
    #[must_use]
    pub fn region_id(&self) -> &str {
        &self.inner.config.region_id
    }

    /// The time by the client's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner.config.clock.now()
    }

    /// Counters per action since the start.
    #[must_use]
    pub fn stats(&self) -> BTreeMap<&'static str, ActionStats> {
        self.inner.stats.snapshot()
    }

    /// From now on each attempt of a call that makes something first asks whether it may, right before it is sent. Only the
    /// first permit counts.
    pub fn ask_before_making(&self, permit: impl Fn() -> bool + Send + Sync + 'static) {
        // A second one would be our own bug and changes nothing.
        let _ = self.inner.permit.set(Permit(Box::new(permit)));
    }

    fn is_withheld(&self, action: &str) -> bool {
        let permit = self.inner.permit.get();
        MAKES.contains(&action) && permit.is_some_and(|Permit(may)| !may())
    }

    /// Makes a call and reads its JSON.
    ///
    /// # Errors
    /// The last attempt's, inside [`CloudError::Deadline`] if time ran out.
    pub async fn send<T: DeserializeOwned>(&self, request: &Request) -> Result<T, CloudError> {
        self.call(request, |reply| reply.into_json(request.action))
            .await
    }

    /// Makes a call and gives the body as it is.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn send_text(&self, request: &Request) -> Result<String, CloudError> {
        self.call(request, |reply| reply.into_text(request.action))
            .await
    }

    async fn call<T>(
        &self,
        request: &Request,
        read: impl Fn(Reply) -> Result<T, CloudError>,
    ) -> Result<T, CloudError> {
        let Inner { config, .. } = &*self.inner;
        let limit = deadline(request.patience, config);
        let deadline = Instant::now() + limit;
        let mut attempt = 1;
        // A refusal says nothing about an attempt before it whose answer was lost.
        let mut unknown = None;
        loop {
            let outcome = timeout_at(deadline, self.attempt(request, &read)).await;
            let error = match outcome {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(error)) => error,
                Err(_) => self.timed_out(request, limit),
            };
            if error.is_outcome_unknown() {
                unknown.get_or_insert_with(|| error.clone());
            }
            let error = error.after(unknown.as_ref());
            let Decision::Again(pause) = decide(&error, attempt, request.patience, config) else {
                return Err(error);
            };
            debug!(action = request.action, attempt, ?pause, %error, "cloud call is tried again");
            if Instant::now() + pause >= deadline {
                let last = Box::new(error);
                return Err(CloudError::Deadline {
                    action: request.action,
                    limit,
                    last,
                });
            }
            sleep(pause).await;
            attempt += 1;
        }
    }

    async fn attempt<T>(
        &self,
        request: &Request,
        read: &impl Fn(Reply) -> Result<T, CloudError>,
    ) -> Result<T, CloudError> {
        let Inner {
            config,
            limiter,
            stats,
            ..
        } = &*self.inner;
        let action = request.action;
        self.wait_for_turn(action).await;
        let credentials = config.credentials.load().await?;
        let base = self.base(request.product)?;
        let nonce = unique::nonce();
        let stamp = Stamp {
            now: config.clock.now(),
            nonce: &nonce,
        };
        let signed = sign(request, &base.host, config.signature, &credentials, stamp);
        if self.is_withheld(action) {
            return Err(CloudError::Withheld { action });
        }
        let started = Instant::now();
        let result = self.exchange(base, action, signed).await.and_then(read);
        let now = Instant::now();
        stats.on_attempt(
            action,
            now.saturating_duration_since(started),
            result.as_ref().err(),
        );
        match &result {
            Err(error) if error.class() == ErrorClass::Throttled => {
                limiter.on_throttled(action, asked_pause(error), now);
            }
            Err(error) if error.class() == ErrorClass::Transient => {}
            Ok(_) | Err(_) => limiter.on_answered(action, now),
        }
        result
    }

    async fn wait_for_turn(&self, action: &'static str) {
        let wait = self.inner.limiter.take(action, Instant::now());
        if !wait.is_zero() {
            self.inner.stats.on_wait(action, wait);
            let mut token = TokenGuard {
                limiter: &self.inner.limiter,
                action,
                is_used: false,
            };
            sleep(wait).await;
            token.is_used = true;
        }
    }

    async fn exchange(
        &self,
        base: &Base,
        action: &'static str,
        signed: Signed,
    ) -> Result<Reply, CloudError> {
        let url = format!("{}{}", base.url, signed.target);
        let method = reqwest::Method::from_bytes(signed.method.as_bytes()).map_err(|error| {
            CloudError::Config {
                detail: error.to_string(),
            }
        })?;
        let mut builder = self.inner.http.request(method, url);
        for (name, value) in &signed.headers {
            builder = builder.header(name, value);
        }
        let fail = |error| self.transport(base, action, &error);
        let response = builder.body(signed.body).send().await.map_err(fail)?;
        let status = response.status().as_u16();
        let retry_after = response
            .headers()
            .get("x-acs-retry-after")
            .and_then(|value| value.to_str().ok())
            .and_then(parse_retry_after);
        let body = response.text().await.map_err(fail)?;
        Ok(Reply {
            status,
            retry_after,
            body,
        })
    }

    fn transport(&self, base: &Base, action: &'static str, error: &reqwest::Error) -> CloudError {
        let host = base.host.clone();
        if error.is_timeout() && !error.is_connect() {
            return CloudError::Timeout {
                action,
                host,
                limit: self.inner.config.read_timeout,
            };
        }
        CloudError::Transport {
            action,
            host,
            detail: chain(error),
        }
    }

    fn timed_out(&self, request: &Request, limit: Duration) -> CloudError {
        let host = self
            .base(request.product)
            .map_or_else(|_| String::new(), |base| base.host.clone());
        CloudError::Timeout {
            action: request.action,
            host,
            limit,
        }
    }

    fn base(&self, product: Product) -> Result<&Base, CloudError> {
        let missing = || CloudError::Config {
            detail: format!("no endpoint for {product}"),
        };
        self.inner.bases.get(&product).ok_or_else(missing)
    }
}

/// Returns the token of a caller that was dropped while it waited.
struct TokenGuard<'a> {
    limiter: &'a Limiter,
    action: &'static str,
    is_used: bool,
}

impl Drop for TokenGuard<'_> {
    fn drop(&mut self) {
        if !self.is_used {
            self.limiter.put_back(self.action, Instant::now());
        }
    }
}

fn asked_pause(error: &CloudError) -> Option<Duration> {
    if let CloudError::Api { retry_after, .. } = error {
        *retry_after
    } else {
        None
    }
}

fn base_of(product: Product, config: &ClientConfig) -> Result<Base, CloudError> {
    let built_in = || endpoint::base_url(product, &config.region_id, config.network);
    let text = config
        .endpoints
        .get(&product)
        .cloned()
        .unwrap_or_else(built_in);
    let text = if text.contains("://") {
        text
    } else {
        format!("https://{text}")
    };
    let bad = |detail: String| CloudError::Config {
        detail: format!("{product} endpoint {text:?}: {detail}"),
    };
    let url = reqwest::Url::parse(&text).map_err(|error| bad(error.to_string()))?;
    let name = url.host_str().ok_or_else(|| bad("no host".to_owned()))?;
    let host = url
        .port()
        .map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
    Ok(Base {
        url: format!("{}://{host}", url.scheme()),
        host,
    })
}

/// An error with its causes; reqwest's own text leaves them out, and puts the URL with all parameters in.
fn chain(error: &reqwest::Error) -> String {
    let mut parts = vec![kind_of(error).to_owned()];
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        parts.push(cause.to_string());
        source = cause.source();
    }
    parts.join(": ")
}

fn kind_of(error: &reqwest::Error) -> &'static str {
    if error.is_connect() {
        "connect"
    } else if error.is_timeout() {
        "timeout"
    } else if error.is_body() || error.is_decode() {
        "the reply broke off"
    } else {
        "send"
    }
}
