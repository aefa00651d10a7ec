//! Signatures by raw keys: what a key that was given signed needs no digest, and what another one signed never loads.

use crate::guest::{ENGINE, NODE_TUNING, PREFER_FAMILY};
use kerf_policy::{Hook, LoadError, ParseKeyError, PolicyKey, PolicySpec, Registry};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};

/// What a SubjectPublicKeyInfo has before the key, in base64 of its own: both lengths are multiples of three.
const ED25519_HEAD: &str = "MCowBQYDK2VwAyEA";

/// The same for ECDSA over P-256.
const P256_HEAD: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn pem(body: &str) -> PolicyKey {
    let text = format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n");
    PolicyKey::from_pem(&text).unwrap()
}

fn ed25519() -> (Ed25519KeyPair, PolicyKey) {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
    let key = pem(&format!(
        "{ED25519_HEAD}{}",
        base64(pair.public_key().as_ref())
    ));
    (pair, key)
}

fn bootstrap(signature: Option<Vec<u8>>) -> PolicySpec {
    PolicySpec {
        signature,
        ..PolicySpec::new("tuning", Hook::BootstrapUserData)
    }
}

fn trusting(key: PolicyKey) -> Registry {
    Registry::new(ENGINE.clone()).trusting(vec![key])
}

#[test]
fn user_data_that_a_trusted_key_signed_needs_no_digest() {
    let (pair, key) = ed25519();
    let signature = pair.sign(NODE_TUNING).as_ref().to_vec();
    let in_text = format!("{}\n", base64(&signature)).into_bytes();
    let registry = trusting(key);

    for signature in [signature, in_text] {
        let loaded = registry.update("default", bootstrap(Some(signature)), NODE_TUNING);
        assert_eq!(loaded.unwrap().metadata.name, "node-tuning");
    }
}

#[test]
fn without_a_signature_or_with_that_of_another_key_nothing_serves() {
    let (_, trusted) = ed25519();
    let (other, _) = ed25519();
    let registry = trusting(trusted);

    let unsigned = registry.update("default", bootstrap(None), NODE_TUNING);
    assert!(
        matches!(unsigned, Err(LoadError::Unpinned { .. })),
        "{unsigned:?}"
    );
    let signature = other.sign(NODE_TUNING).as_ref().to_vec();
    let foreign = registry.update("default", bootstrap(Some(signature)), NODE_TUNING);
    assert!(
        matches!(foreign, Err(LoadError::UntrustedSignature { keys: 1, .. })),
        "{foreign:?}"
    );
}

#[test]
fn a_signature_holds_for_the_bytes_that_were_signed_only() {
    let (pair, key) = ed25519();
    let signature = pair.sign(NODE_TUNING).as_ref().to_vec();
    let mut other = NODE_TUNING.to_vec();
    other.extend([0, 2, 1, b'x']);

    let error = trusting(key).update("default", bootstrap(Some(signature)), &other);

    assert!(
        matches!(error, Err(LoadError::UntrustedSignature { .. })),
        "{error:?}"
    );
}

#[test]
fn a_version_whose_signature_is_taken_away_is_refused_and_the_one_before_serves() {
    let (pair, key) = ed25519();
    let signature = pair.sign(NODE_TUNING).as_ref().to_vec();
    let registry = trusting(key);
    registry
        .update("default", bootstrap(Some(signature)), NODE_TUNING)
        .unwrap();

    let error = registry.update("default", bootstrap(None), NODE_TUNING);

    assert!(
        matches!(error, Err(LoadError::Unpinned { .. })),
        "{error:?}"
    );
}

#[test]
fn a_key_and_a_signature_as_cosign_writes_them_are_read() {
    let random = SystemRandom::new();
    let pair = || {
        let kind = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        EcdsaKeyPair::from_pkcs8(kind, pkcs8.as_ref(), &random).unwrap()
    };
    let (own, other) = (pair(), pair());
    let key = [&P256_HEAD[..], own.public_key().as_ref()].concat();
    let registry = trusting(pem(&base64(&key)));
    let signed_by = |pair: &EcdsaKeyPair| {
        let signature = pair.sign(&random, PREFER_FAMILY).unwrap();
        PolicySpec {
            signature: Some(base64(signature.as_ref()).into_bytes()),
            ..PolicySpec::new("family", Hook::InstanceSelection)
        }
    };

    registry
        .update("default", signed_by(&own), PREFER_FAMILY)
        .unwrap();
    let error = registry
        .update("other", signed_by(&other), PREFER_FAMILY)
        .unwrap_err();

    assert!(error.to_string().contains("--policy-key-dir"), "{error}");
}

#[test]
fn what_is_no_key_or_no_signature_is_said() {
    let rsa = "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAK==\n-----END PUBLIC KEY-----";
    assert_eq!(
        PolicyKey::from_pem("ssh-ed25519 AAAA"),
        Err(ParseKeyError::NotPem)
    );
    assert!(PolicyKey::from_pem(rsa).is_err());
    let (_, key) = ed25519();

    let error = trusting(key).update("default", bootstrap(Some(b"hello".to_vec())), NODE_TUNING);

    assert!(
        matches!(error, Err(LoadError::BadSignature(_))),
        "{error:?}"
    );
}
