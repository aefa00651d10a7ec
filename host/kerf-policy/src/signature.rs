//! Signatures of components by raw keys: ed25519, and ECDSA over P-256 as cosign makes it.
//!
//! What is signed is the component as it was built. There are no certificates, no logs and no dates: whoever runs the
//! controller gives it the keys.

use crate::digest::PolicyDigest;
use crate::error::LoadError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ECDSA_P256_SHA256_ASN1, ED25519, UnparsedPublicKey};
use std::borrow::Cow;
use std::fmt;

/// DER of a SubjectPublicKeyInfo up to the key itself.
const ED25519_HEAD: &[u8] = &[
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];
const P256_HEAD: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
const ED25519_KEY_BYTES: usize = 32;
/// An uncompressed point: a byte that says so, and two coordinates.
const P256_KEY_BYTES: usize = 65;
const PEM_BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const PEM_END: &str = "-----END PUBLIC KEY-----";
/// A signature in text is below 100 characters; what is much longer is another file.
const SIGNATURE_BYTES_MAX: usize = 1_024;
/// Raw ed25519; ECDSA in DER is longer and begins with the tag of a sequence.
const ED25519_SIGNATURE_BYTES: usize = 64;
const DER_SEQUENCE: u8 = 0x30;

/// A public key whose signatures count.
#[derive(Clone, PartialEq, Eq)]
pub struct PolicyKey {
    kind: Kind,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ed25519,
    EcdsaP256,
}

/// A file that is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseKeyError {
    /// There is no key in it.
    #[error(
        "there is no `BEGIN PUBLIC KEY` in it; write it with `openssl pkey -pubout` or `cosign public-key`"
    )]
    NotPem,
    /// A key of a kind that is not served.
    #[error("it is no ed25519 key and no ECDSA key over P-256, and other kinds are not served")]
    OtherKind,
}

impl PolicyKey {
    /// The key in a PEM file: `cosign.pub`, or what `openssl pkey -pubout` writes.
    pub fn from_pem(text: &str) -> Result<Self, ParseKeyError> {
        let body = text.split_once(PEM_BEGIN).map(|(_, rest)| rest);
        let body = body.and_then(|rest| rest.split_once(PEM_END));
        let (body, _) = body.ok_or(ParseKeyError::NotPem)?;
        let der = base64(body).ok_or(ParseKeyError::NotPem)?;
        let kinds = [
            (Kind::Ed25519, ED25519_HEAD, ED25519_KEY_BYTES),
            (Kind::EcdsaP256, P256_HEAD, P256_KEY_BYTES),
        ];
        let key = kinds.into_iter().find_map(|(kind, head, len)| {
            let bytes = der
                .strip_prefix(head)
                .filter(|it| it.len() == len)?
                .to_vec();
            Some(Self { kind, bytes })
        });
        key.ok_or(ParseKeyError::OtherKind)
    }

    fn has_signed(&self, component: &[u8], signature: &[u8]) -> bool {
        let verified = match self.kind {
            Kind::Ed25519 => {
                UnparsedPublicKey::new(&ED25519, &self.bytes).verify(component, signature)
            }
            Kind::EcdsaP256 => UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &self.bytes)
                .verify(component, signature),
        };
        verified.is_ok()
    }
}

impl fmt::Debug for PolicyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PolicyKey").field(&self.kind).finish()
    }
}

/// Whether one of the keys signed the component; `signature` is the content of a file, raw or in base64.
pub fn verify(keys: &[PolicyKey], component: &[u8], signature: &[u8]) -> Result<(), LoadError> {
    let signature = read(signature)?;
    if keys.iter().any(|key| key.has_signed(component, &signature)) {
        return Ok(());
    }
    Err(LoadError::UntrustedSignature {
        found: PolicyDigest::of(component),
        keys: keys.len(),
    })
}

/// The bytes of a signature as tools write it: raw, or in base64 with or without a line's end.
fn read(signature: &[u8]) -> Result<Cow<'_, [u8]>, LoadError> {
    if signature.len() > SIGNATURE_BYTES_MAX {
        return Err(LoadError::BadSignature("it is too long"));
    }
    let in_text = std::str::from_utf8(signature).ok().and_then(base64);
    match in_text.filter(|it| is_signature(it)) {
        Some(bytes) => Ok(Cow::Owned(bytes)),
        None if is_signature(signature) => Ok(Cow::Borrowed(signature)),
        None => Err(LoadError::BadSignature(
            "it is neither ed25519 nor ECDSA, raw or in base64",
        )),
    }
}

/// By its form: which key made it is another question.
fn is_signature(bytes: &[u8]) -> bool {
    let is_der = matches!(bytes, [DER_SEQUENCE, len, rest @ ..] if rest.len() == usize::from(*len));
    is_der || bytes.len() == ED25519_SIGNATURE_BYTES
}

/// Standard base64 with padding; white space does not count. `None` for anything else.
fn base64(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|it| !it.is_ascii_whitespace())
        .collect();
    STANDARD.decode(digits).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNED: &[u8] = b"kerf policy\n";
    /// Made by OpenSSL 3: `openssl dgst -sha256 -sign`, whose form is that of `cosign sign-blob`, and `pkeyutl -sign -rawin`.
    const P256: [&str; 2] = [
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE2GQv+PGl6EKFw4S03nOYECIuUkEsX/8bmQ4R2cZI9Kqywupm4HQFSAUCmBEemPhOKtssNy0kQQpsB1pcW/T4OQ==",
        "MEQCIDMRWrEa3yYlpxgKFLbuqTgJhs3rbkUIt/MSGr/sUqgjAiAj6tTg2GvOepp54D/jjsPuNGFs1RDNzQ5pMPIgvsKC0w==",
    ];
    const ED25519: [&str; 2] = [
        "MCowBQYDK2VwAyEAAkEZHFMSO6A3d5uTEbN1FGk1JKoI7MMgYShbIFOGDC4=",
        "2tXnAV3FVVzsbxATx6OMhJ1LpjUFWFc59luwkYetCDgE+ceUMkghQgxJMrX40afFM4LpFAIhVpdULFvJ9IbrCQ==",
    ];

    #[test]
    fn what_openssl_signed_is_verified_and_other_bytes_are_not() {
        for [key, signature] in [P256, ED25519] {
            let key = PolicyKey::from_pem(&format!("{PEM_BEGIN}\n{key}\n{PEM_END}\n")).unwrap();
            let signature = read(signature.as_bytes()).unwrap();

            assert!(key.has_signed(SIGNED, &signature), "{key:?}");
            assert!(!key.has_signed(b"kerf policy", &signature), "{key:?}");
        }
    }
}
