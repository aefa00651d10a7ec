//! Settings of the client.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::rpc::credentials::CredentialSource;
use crate::rpc::endpoint::{Network, Product};

/// Where the client gets the time from. Signatures carry it, so it must be the real one; tests fix it.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// Wraps a function that says the time.
    #[must_use]
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Which signature the calls carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SignatureVersion {
    /// ACS3-HMAC-SHA256, which every public endpoint knows.
    #[default]
    Acs3,
    /// RPC v1 and ROA v1 with HMAC-SHA1, for endpoints that know nothing newer.
    V1,
}

/// Settings of a [`crate::rpc::Client`].
#[derive(Debug, Clone)]
pub struct ClientConfig {
    pub region_id: String,
    pub credentials: CredentialSource,
    pub clock: Clock,
    pub signature: SignatureVersion,
    pub network: Network,
    /// Base URLs that win over the built-in ones, for example `http://127.0.0.1:8080`.
    pub endpoints: BTreeMap<Product, String>,
    /// Goes into the user agent as `kerf/<version>`.
    pub version: String,
    pub connect_timeout: Duration,
    /// Of one attempt, from sending to the last byte of the body.
    pub read_timeout: Duration,
    /// Of all attempts of a call. Past a minute, because a throttled caller may go on in the next minute.
    pub deadline: Duration,
    /// Attempts of one call at most, so a broken endpoint is not hammered until the deadline.
    pub attempts_max: u32,
    /// The first pause between attempts; it doubles up to `backoff_max`.
    pub backoff_first: Duration,
    pub backoff_max: Duration,
    /// Calls per second of one action before the limiter has learnt anything, and how many at once.
    pub calls_per_second: f64,
    pub burst: u32,
}

impl ClientConfig {
    /// Defaults for a region.
    #[must_use]
    pub fn new(region_id: impl Into<String>, credentials: CredentialSource, clock: Clock) -> Self {
        Self {
            region_id: region_id.into(),
            credentials,
            clock,
            signature: SignatureVersion::default(),
            network: Network::Public,
            endpoints: BTreeMap::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            connect_timeout: Duration::from_secs(5),
            read_timeout: Duration::from_secs(20),
            deadline: Duration::from_secs(90),
            attempts_max: 8,
            backoff_first: Duration::from_millis(250),
            backoff_max: Duration::from_secs(20),
            calls_per_second: 3.0,
            burst: 20,
        }
    }
}
