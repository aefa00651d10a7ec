//! A request as it arrived, decoded as far as the signature rules need it.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::params::Params;

/// RFC 3986: everything but the unreserved characters is escaped.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// One request, header names in lower case, the query decoded.
#[derive(Debug, Clone, Default)]
pub(crate) struct WireRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl WireRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Query and form fields together: RPC products take parameters from both.
    pub(crate) fn params(&self) -> Params {
        self.query.iter().cloned().chain(self.form()).collect()
    }

    fn form(&self) -> Vec<(String, String)> {
        let is_form = self
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
        if is_form {
            decode_pairs(&String::from_utf8_lossy(&self.body))
        } else {
            Vec::new()
        }
    }
}

/// `a=b&c=d` to pairs; `+` is a space, because that is how both SDKs write one.
pub(crate) fn decode_pairs(text: &str) -> Vec<(String, String)> {
    let decode = |part: &str| {
        percent_decode_str(&part.replace('+', " "))
            .decode_utf8_lossy()
            .into_owned()
    };
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}

/// The escaping that all three signatures use.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// Sorted, escaped and joined pairs: the canonical query of both signatures.
pub(crate) fn canonical_query<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut sorted: Vec<_> = pairs.collect();
    sorted.sort_unstable();
    let encoded: Vec<_> = sorted
        .into_iter()
        .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
        .collect();
    encoded.join("&")
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
