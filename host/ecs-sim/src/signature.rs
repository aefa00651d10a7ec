//! The three signatures of Alibaba Cloud's gateways: what is signed, and with what.
//!
//! Pure functions over a decoded request. `keyring` decides whom to believe.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::wire::{WireRequest, canonical_query, encode, hex};

pub(crate) const ACS3_ALGORITHM: &str = "ACS3-HMAC-SHA256";

/// The parts of `ACS3-HMAC-SHA256 Credential=…,SignedHeaders=…,Signature=…`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Acs3Authorization<'a> {
    pub(crate) access_key_id: &'a str,
    pub(crate) signed_headers: &'a str,
    pub(crate) signature: &'a str,
}

impl<'a> Acs3Authorization<'a> {
    pub(crate) fn parse(header: &'a str) -> Option<Self> {
        let fields = header.strip_prefix(ACS3_ALGORITHM)?.trim();
        let mut parts = fields.split(',').map(str::trim);
        Some(Self {
            access_key_id: parts.next()?.strip_prefix("Credential=")?,
            signed_headers: parts.next()?.strip_prefix("SignedHeaders=")?,
            signature: parts.next()?.strip_prefix("Signature=")?,
        })
    }
}

/// The canonical request of ACS3 as the server sees it: the query is decoded and escaped anew, so it does not matter
/// how the client wrote a space.
pub(crate) fn acs3_canonical_request(request: &WireRequest, signed_headers: &str) -> String {
    let headers: String = signed_headers
        .split(';')
        .map(|name| {
            format!(
                "{name}:{}\n",
                request.header(name).unwrap_or_default().trim()
            )
        })
        .collect();
    let query = canonical_query(
        request
            .query
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    );
    let body_hash = hex(&Sha256::digest(&request.body));
    [
        &request.method,
        &request.path,
        &query,
        &headers,
        signed_headers,
        &body_hash,
    ]
    .map(|line| line.to_owned())
    .join("\n")
}

pub(crate) fn acs3_string_to_sign(canonical_request: &str) -> String {
    format!(
        "{ACS3_ALGORITHM}\n{}",
        hex(&Sha256::digest(canonical_request.as_bytes()))
    )
}

pub(crate) fn acs3_sign(secret: &str, string_to_sign: &str) -> String {
    hex(&hmac::<Hmac<Sha256>>(secret, string_to_sign))
}

/// RPC version 1: every parameter but the signature itself, wherever it was sent.
pub(crate) fn rpc_string_to_sign<'a>(
    method: &str,
    params: impl Iterator<Item = (&'a str, &'a str)>,
) -> String {
    let canonical = canonical_query(params.filter(|(name, _)| *name != "Signature"));
    format!("{method}&{}&{}", encode("/"), encode(&canonical))
}

pub(crate) fn rpc_sign(secret: &str, string_to_sign: &str) -> String {
    STANDARD.encode(hmac::<Hmac<Sha1>>(&format!("{secret}&"), string_to_sign))
}

/// ROA version 1: header lines, then the path with the query unescaped.
pub(crate) fn roa_string_to_sign(request: &WireRequest) -> String {
    let mut lines = vec![request.method.clone()];
    let plain = ["accept", "content-md5", "content-type", "date"];
    lines.extend(plain.map(|name| request.header(name).unwrap_or_default().to_owned()));
    let acs = request
        .headers
        .iter()
        .filter(|(name, _)| name.starts_with("x-acs-"));
    lines.extend(acs.map(|(name, value)| format!("{name}:{value}")));
    lines.push(roa_resource(request));
    lines.join("\n")
}

fn roa_resource(request: &WireRequest) -> String {
    let mut query = request.query.clone();
    query.sort_unstable();
    let pairs: Vec<_> = query
        .into_iter()
        .map(|(name, value)| {
            if value.is_empty() {
                name
            } else {
                format!("{name}={value}")
            }
        })
        .collect();
    if pairs.is_empty() {
        request.path.clone()
    } else {
        format!("{}?{}", request.path, pairs.join("&"))
    }
}

pub(crate) fn roa_sign(secret: &str, string_to_sign: &str) -> String {
    STANDARD.encode(hmac::<Hmac<Sha1>>(secret, string_to_sign))
}

#[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
fn hmac<M: Mac + KeyInit>(secret: &str, text: &str) -> Vec<u8> {
    let mut mac =
        <M as KeyInit>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests;
