//! Signatures. Pure: the same request, key, time and nonce give the same bytes.

mod acs3;
mod hash;
mod v1;

pub use acs3::{authorize, canonical_request, signature as acs3_signature};
pub use hash::sha256_hex;
pub use v1::{roa_signature, roa_string_to_sign, rpc_signature, rpc_string_to_sign};

use jiff::Timestamp;

use crate::rpc::config::SignatureVersion;
use crate::rpc::credentials::Credentials;
use crate::rpc::encode;
use crate::rpc::request::Request;

/// The content type of every body that kerf sends.
const JSON: &str = "application/json; charset=utf-8";

/// A request as it goes on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    pub method: &'static str,
    /// Path with query, percent-encoded.
    pub target: String,
    /// Lower-case names.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// What changes with every attempt.
#[derive(Debug, Clone, Copy)]
pub struct Stamp<'a> {
    pub now: Timestamp,
    pub nonce: &'a str,
}

/// Signs a request for a host.
#[must_use]
pub fn sign(
    request: &Request,
    host: &str,
    version: SignatureVersion,
    credentials: &Credentials,
    stamp: Stamp<'_>,
) -> Signed {
    match (version, request.is_rpc()) {
        (SignatureVersion::Acs3, _) => acs3::sign(request, host, credentials, stamp),
        (SignatureVersion::V1, true) => v1::sign_rpc(request, host, credentials, stamp),
        (SignatureVersion::V1, false) => v1::sign_roa(request, host, credentials, stamp),
    }
}

/// `2026-01-02T03:04:05Z`.
fn utc_seconds(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Path and query as they are sent: what was signed, byte for byte.
fn target(path: &str, query: &[(String, String)]) -> String {
    let path = encode::percent_path(path);
    if query.is_empty() {
        path
    } else {
        format!("{path}?{}", encode::canonical_query(query))
    }
}
