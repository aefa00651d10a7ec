//! The hashes that signatures are made of.

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::rpc::encode;

/// Lower-case hex of the SHA-256.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    encode::hex(&Sha256::digest(bytes))
}

#[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
pub(super) fn hmac_sha256(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

#[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
pub(super) fn hmac_sha1(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha1>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}
