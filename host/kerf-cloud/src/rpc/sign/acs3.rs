//! ACS3-HMAC-SHA256, the signature of all products.

use crate::rpc::credentials::Credentials;
use crate::rpc::encode;
use crate::rpc::request::Request;
use crate::rpc::sign::hash::{hmac_sha256, sha256_hex};
use crate::rpc::sign::{JSON, Signed, Stamp, target, utc_seconds};

const ALGORITHM: &str = "ACS3-HMAC-SHA256";

pub(super) fn sign(
    request: &Request,
    host: &str,
    credentials: &Credentials,
    stamp: Stamp<'_>,
) -> Signed {
    let body = request.body.clone().unwrap_or_default();
    let mut headers = vec![
        ("host", host.to_owned()),
        ("x-acs-action", request.action.to_owned()),
        ("x-acs-content-sha256", sha256_hex(body.as_bytes())),
        ("x-acs-date", utc_seconds(stamp.now)),
        ("x-acs-signature-nonce", stamp.nonce.to_owned()),
        ("x-acs-version", request.product.version().to_owned()),
    ];
    if request.body.is_some() {
        headers.push(("content-type", JSON.to_owned()));
    }
    if let Some(token) = &credentials.security_token {
        headers.push(("x-acs-accesskey-id", credentials.access_key_id.clone()));
        headers.push(("x-acs-security-token", token.clone()));
    }
    let mut headers: Vec<_> = headers
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    headers.sort();
    let method = request.method.as_str();
    let canonical = canonical_request(method, &request.path, &request.query, &headers, &body);
    headers.push((
        "authorization".to_owned(),
        authorize(&canonical, &headers, credentials),
    ));
    headers.push(("accept".to_owned(), "application/json".to_owned()));
    Signed {
        method,
        target: target(&request.path, &request.query),
        headers,
        body,
    }
}

/// The text whose hash is signed; `headers` are lower-case and sorted.
#[must_use]
pub fn canonical_request(
    method: &str,
    path: &str,
    query: &[(String, String)],
    headers: &[(String, String)],
    body: &str,
) -> String {
    let lines: String = headers
        .iter()
        .map(|(name, value)| format!("{name}:{}\n", value.trim()))
        .collect();
    let parts = [
        method.to_owned(),
        encode::percent_path(path),
        encode::canonical_query(query),
        lines,
        names(headers),
        sha256_hex(body.as_bytes()),
    ];
    parts.join("\n")
}

/// The signature of a canonical request.
#[must_use]
pub fn signature(canonical_request: &str, secret: &str) -> String {
    let to_sign = format!("{ALGORITHM}\n{}", sha256_hex(canonical_request.as_bytes()));
    encode::hex(&hmac_sha256(secret.as_bytes(), &to_sign))
}

/// The value of the `Authorization` header.
#[must_use]
pub fn authorize(
    canonical_request: &str,
    headers: &[(String, String)],
    credentials: &Credentials,
) -> String {
    format!(
        "{ALGORITHM} Credential={},SignedHeaders={},Signature={}",
        credentials.access_key_id,
        names(headers),
        signature(canonical_request, &credentials.access_key_secret)
    )
}

fn names(headers: &[(String, String)]) -> String {
    let names: Vec<_> = headers.iter().map(|(name, _)| name.as_str()).collect();
    names.join(";")
}
