//! The published vectors, and the recorded requests of the official Python SDK.

use serde_json::Value;

use super::*;
use crate::wire::decode_pairs;

fn fixture(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap()
}

fn vectors(kind: &str) -> Vec<Value> {
    let all = fixture(include_str!("../../tests/fixtures/signature-vectors.json"));
    let found: Vec<_> = all
        .into_iter()
        .filter(|vector| vector["kind"] == kind && vector["signature"].is_string())
        .collect();
    assert!(!found.is_empty(), "no vectors of kind {kind}");
    found
}

fn pairs(object: &Value) -> Vec<(&str, &str)> {
    object
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
        .collect()
}

fn text<'a>(vector: &'a Value, name: &str) -> &'a str {
    vector[name].as_str().unwrap_or_default()
}

#[test]
fn rpc_vectors_are_reproduced() {
    for vector in vectors("rpc-v1") {
        let string_to_sign = rpc_string_to_sign(
            text(&vector, "method"),
            pairs(&vector["params"]).into_iter(),
        );

        assert_eq!(
            string_to_sign,
            text(&vector, "string_to_sign"),
            "{}",
            vector["name"]
        );
        assert_eq!(
            rpc_sign(text(&vector, "secret"), &string_to_sign),
            text(&vector, "signature"),
            "{}",
            vector["name"]
        );
    }
}

#[test]
fn acs3_vectors_are_reproduced() {
    for vector in vectors("acs3") {
        let secret = vector["secret"].as_str().unwrap_or("YourAccessKeySecret");
        let string_to_sign = acs3_string_to_sign(text(&vector, "canonical_request"));

        assert!(
            string_to_sign.ends_with(text(&vector, "hashed_canonical_request")),
            "{}",
            vector["name"]
        );
        assert_eq!(
            acs3_sign(secret, &string_to_sign),
            text(&vector, "signature"),
            "{}",
            vector["name"]
        );
    }
}

#[test]
fn roa_vectors_are_reproduced() {
    for vector in vectors("roa-v1") {
        let signature = roa_sign(text(&vector, "secret"), text(&vector, "string_to_sign"));

        assert_eq!(signature, text(&vector, "signature"), "{}", vector["name"]);
    }
}

/// A recorded request of the SDK, as the server decodes it.
fn recorded(request: &Value) -> WireRequest {
    let (path, query) = text(request, "target")
        .split_once('?')
        .unwrap_or((text(request, "target"), ""));
    let headers = request["headers"].as_array().unwrap().iter();
    WireRequest {
        method: text(request, "method").to_owned(),
        path: path.to_owned(),
        query: decode_pairs(query),
        headers: headers
            .map(|pair| {
                (
                    pair[0].as_str().unwrap().to_lowercase(),
                    pair[1].as_str().unwrap().to_owned(),
                )
            })
            .collect(),
        body: text(request, "body").as_bytes().to_vec(),
    }
}

#[test]
fn what_the_python_sdk_sent_is_accepted() {
    const SECRET: &str = "testsecret";
    let mut seen = [0; 3];
    for recording in fixture(include_str!("../../tests/fixtures/python-sdk-wire.json")) {
        for request in recording["requests"].as_array().unwrap() {
            let request = recorded(request);
            let authorization = request
                .header("authorization")
                .unwrap_or_default()
                .to_owned();
            let params = request.params();
            if let Some(acs3) = Acs3Authorization::parse(&authorization) {
                let string_to_sign =
                    acs3_string_to_sign(&acs3_canonical_request(&request, acs3.signed_headers));
                assert_eq!(
                    acs3_sign(SECRET, &string_to_sign),
                    acs3.signature,
                    "{}",
                    recording["name"]
                );
                seen[0] += 1;
            } else if authorization.starts_with("acs ") {
                let signature = roa_sign(SECRET, &roa_string_to_sign(&request));
                assert!(
                    authorization.ends_with(&format!(":{signature}")),
                    "{}",
                    recording["name"]
                );
                seen[1] += 1;
            } else if let Some(signature) = params.text("Signature") {
                let string_to_sign = rpc_string_to_sign(&request.method, params.iter());
                assert_eq!(
                    rpc_sign(SECRET, &string_to_sign),
                    signature,
                    "{}",
                    recording["name"]
                );
                seen[2] += 1;
            }
        }
    }
    assert!(
        seen.iter().all(|count| *count > 0),
        "each kind of signature was recorded: {seen:?}"
    );
}
