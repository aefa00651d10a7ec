//! Idempotency: what a ClientToken was first used for, and what was answered.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::error::ApiError;
use crate::params::Params;
use crate::wire::hex;

/// The gateway refuses longer tokens.
const CLIENT_TOKEN_LENGTH_MAX: usize = 64;

/// Parameters that differ between attempts of one request and so say nothing about its meaning.
const PER_ATTEMPT: &[&str] = &[
    "AccessKeyId",
    "Action",
    "Format",
    "SecurityToken",
    "Signature",
    "SignatureMethod",
    "SignatureNonce",
    "SignatureType",
    "SignatureVersion",
    "Timestamp",
    "Version",
];

#[derive(Debug, Default)]
pub(crate) struct Tokens {
    first_uses: BTreeMap<(String, String), FirstUse>,
}

#[derive(Debug)]
struct FirstUse {
    /// A hash of the parameters, since user data is long and launches are many.
    meaning: String,
    reply: Value,
}

impl Tokens {
    /// The first reply, if this request was already carried out under its token.
    pub(crate) fn replay(&self, action: &str, params: &Params) -> Result<Option<Value>, ApiError> {
        let Some(token) = params.text("ClientToken") else {
            return Ok(None);
        };
        if token.len() > CLIENT_TOKEN_LENGTH_MAX || !token.is_ascii() {
            return Err(ApiError::new(
                400,
                "InvalidClientToken.ValueNotSupported",
                "The ClientToken must be at most 64 ASCII characters.",
            ));
        }
        match self.first_uses.get(&(action.to_owned(), token.to_owned())) {
            None => Ok(None),
            Some(first) if first.meaning == meaning(params) => Ok(Some(first.reply.clone())),
            Some(_) => {
                let message = "The request uses the same client token as a previous, but non-identical request.";
                Err(ApiError::new(400, "IdempotentParameterMismatch", message))
            }
        }
    }

    /// Remembers a success; a refused request leaves its token unused.
    pub(crate) fn remember(&mut self, action: &str, params: &Params, reply: &Value) {
        if let Some(token) = params.text("ClientToken") {
            let first = FirstUse {
                meaning: meaning(params),
                reply: reply.clone(),
            };
            self.first_uses
                .insert((action.to_owned(), token.to_owned()), first);
        }
    }
}

fn meaning(params: &Params) -> String {
    let mut hash = Sha256::new();
    let kept = params
        .iter()
        .filter(|(name, value)| !PER_ATTEMPT.contains(name) && !value.is_empty());
    for (name, value) in kept {
        // Lengths keep `a=bc` and `ab=c` apart.
        hash.update(format!("{}:{name}={}:", name.len(), value.len()));
        hash.update(value);
    }
    hex(&hash.finalize())
}
