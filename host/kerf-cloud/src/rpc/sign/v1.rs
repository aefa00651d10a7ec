//! The older signatures with HMAC-SHA1: RPC v1 in the query, ROA v1 in a header.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::rpc::credentials::Credentials;
use crate::rpc::encode;
use crate::rpc::request::Request;
use crate::rpc::sign::hash::hmac_sha1;
use crate::rpc::sign::{JSON, Signed, Stamp, target, utc_seconds};

pub(super) fn sign_rpc(
    request: &Request,
    host: &str,
    credentials: &Credentials,
    stamp: Stamp<'_>,
) -> Signed {
    let mut query = request.query.clone();
    let mut put = |name: &str, value: &str| query.push((name.to_owned(), value.to_owned()));
    put("Action", request.action);
    put("Version", request.product.version());
    // The default is XML.
    put("Format", "JSON");
    put("AccessKeyId", &credentials.access_key_id);
    put("SignatureMethod", "HMAC-SHA1");
    put("SignatureVersion", "1.0");
    put("SignatureNonce", stamp.nonce);
    put("Timestamp", &utc_seconds(stamp.now));
    if let Some(token) = &credentials.security_token {
        put("SecurityToken", token);
    }
    let method = request.method.as_str();
    let signature = rpc_signature(method, &query, &credentials.access_key_secret);
    query.push(("Signature".to_owned(), signature));
    Signed {
        method,
        target: target(&request.path, &query),
        headers: vec![
            ("host".to_owned(), host.to_owned()),
            ("accept".to_owned(), "application/json".to_owned()),
        ],
        body: String::new(),
    }
}

/// The text that an RPC v1 signature signs.
#[must_use]
pub fn rpc_string_to_sign(method: &str, params: &[(String, String)]) -> String {
    let canonical = encode::canonical_query(params);
    format!(
        "{method}&{}&{}",
        encode::percent("/"),
        encode::percent(&canonical)
    )
}

/// The RPC v1 signature of all parameters.
#[must_use]
pub fn rpc_signature(method: &str, params: &[(String, String)], secret: &str) -> String {
    // The ampersand after the secret is part of the key.
    let key = format!("{secret}&");
    STANDARD.encode(hmac_sha1(
        key.as_bytes(),
        &rpc_string_to_sign(method, params),
    ))
}

pub(super) fn sign_roa(
    request: &Request,
    host: &str,
    credentials: &Credentials,
    stamp: Stamp<'_>,
) -> Signed {
    let date = stamp.now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let mut headers: Vec<(&str, &str)> = vec![
        ("accept", "application/json"),
        ("date", &date),
        ("x-acs-action", request.action),
        ("x-acs-signature-method", "HMAC-SHA1"),
        ("x-acs-signature-nonce", stamp.nonce),
        ("x-acs-signature-version", "1.0"),
        ("x-acs-version", request.product.version()),
    ];
    if request.body.is_some() {
        headers.push(("content-type", JSON));
    }
    if let Some(token) = &credentials.security_token {
        headers.push(("x-acs-accesskey-id", &credentials.access_key_id));
        headers.push(("x-acs-security-token", token));
    }
    let mut headers: Vec<_> = headers
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let method = request.method.as_str();
    let to_sign = roa_string_to_sign(method, &request.path, &request.query, &headers);
    let signature = roa_signature(&to_sign, &credentials.access_key_secret);
    let authorization = format!("acs {}:{signature}", credentials.access_key_id);
    headers.push(("authorization".to_owned(), authorization));
    headers.push(("host".to_owned(), host.to_owned()));
    Signed {
        method,
        target: target(&request.path, &request.query),
        headers,
        body: request.body.clone().unwrap_or_default(),
    }
}

/// The text that a ROA v1 signature signs. An absent header still has its empty line; values are not encoded.
#[must_use]
pub fn roa_string_to_sign(
    method: &str,
    path: &str,
    query: &[(String, String)],
    headers: &[(String, String)],
) -> String {
    let header = |wanted: &str| {
        headers
            .iter()
            .find(|(name, _)| name == wanted)
            .map_or("", |(_, value)| value.as_str())
    };
    let fixed = [
        method,
        header("accept"),
        header("content-md5"),
        header("content-type"),
        header("date"),
    ];
    let mut own: Vec<_> = headers
        .iter()
        .filter(|(name, _)| name.starts_with("x-acs-"))
        .collect();
    own.sort();
    let own: String = own
        .iter()
        .map(|(name, value)| format!("{name}:{value}\n"))
        .collect();
    format!("{}\n{own}{}", fixed.join("\n"), roa_resource(path, query))
}

fn roa_resource(path: &str, query: &[(String, String)]) -> String {
    let mut sorted: Vec<_> = query.iter().collect();
    sorted.sort();
    let pairs: Vec<_> = sorted
        .iter()
        .map(|(key, value)| {
            if value.is_empty() {
                key.clone()
            } else {
                format!("{key}={value}")
            }
        })
        .collect();
    if pairs.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", pairs.join("&"))
    }
}

/// The ROA v1 signature of a text.
#[must_use]
pub fn roa_signature(to_sign: &str, secret: &str) -> String {
    STANDARD.encode(hmac_sha1(secret.as_bytes(), to_sign))
}
