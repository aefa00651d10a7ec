//! Percent-encoding and hex as the signatures want them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// RFC 3986: everything but letters, digits and `-_.~`. A space is `%20`, never `+`.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// RFC 3986, with the slashes of a path kept.
const PATH: &AsciiSet = &UNRESERVED.remove(b'/');

/// Encodes a parameter name or value.
#[must_use]
pub fn percent(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// Encodes a path segment by segment.
#[must_use]
pub fn percent_path(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

/// `k=v&k=v`, sorted by key; an empty value still has its `=`.
#[must_use]
pub fn canonical_query(pairs: &[(String, String)]) -> String {
    let mut sorted: Vec<_> = pairs.iter().collect();
    sorted.sort();
    let encoded: Vec<_> = sorted
        .iter()
        .map(|(key, value)| format!("{}={}", percent(key), percent(value)))
        .collect();
    encoded.join("&")
}

/// Lower-case hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 0xf)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(*byte)])
        .collect()
}
