//! Whom the gateway believes: access keys, session tokens, used nonces, clocks.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp, fmt::rfc2822};

use crate::error::ApiError;
use crate::params::Params;
use crate::signature::{
    Acs3Authorization, acs3_canonical_request, acs3_sign, acs3_string_to_sign, roa_sign,
    roa_string_to_sign, rpc_sign, rpc_string_to_sign,
};
use crate::wire::{WireRequest, hex};

/// The gateway takes no request whose clock is further off, and remembers nonces for as long.
const CLOCK_SKEW_MAX: SignedDuration = SignedDuration::from_mins(15);

/// Old nonces are dropped now and then, not with every call: there are thousands of them.
const TIDY_EVERY: SignedDuration = SignedDuration::from_mins(1);

/// Session credentials (STS) carry a token and end; long-lived ones do neither.
#[derive(Debug, Clone)]
pub(crate) struct AccessKey {
    pub(crate) secret: String,
    pub(crate) session: Option<Session>,
}

#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) token: String,
    pub(crate) expires_at: Timestamp,
    pub(crate) role_arn: String,
}

#[derive(Debug, Default)]
pub(crate) struct Keyring {
    keys: BTreeMap<String, AccessKey>,
    nonces: BTreeMap<String, Timestamp>,
    tidied_at: Option<Timestamp>,
}

/// A signature as it was found on the request, before anything is compared.
struct Claim<'a> {
    access_key_id: &'a str,
    signature: &'a str,
    nonce: &'a str,
    signed_at: Option<Timestamp>,
    token: Option<&'a str>,
    scheme: Scheme<'a>,
}

enum Scheme<'a> {
    Acs3 { signed_headers: &'a str },
    Rpc,
    Roa,
}

impl Keyring {
    pub(crate) fn insert(&mut self, access_key_id: &str, key: AccessKey) {
        self.keys.insert(access_key_id.to_owned(), key);
    }

    pub(crate) fn session(&self, access_key_id: &str) -> Option<&Session> {
        self.keys.get(access_key_id)?.session.as_ref()
    }

    /// Checks a request in the order of the real gateway: who, when, once, and what was signed. Returns the access key.
    pub(crate) fn verify(
        &mut self,
        request: &WireRequest,
        params: &Params,
        now: Timestamp,
    ) -> Result<String, ApiError> {
        let claim = Claim::find(request, params)?;
        let key = self.keys.get(claim.access_key_id).ok_or_else(|| {
            ApiError::new(
                404,
                "InvalidAccessKeyId.NotFound",
                "Specified access key is not found.",
            )
        })?;
        check_session(key, claim.token, now)?;
        check_clock(claim.signed_at, now)?;
        claim.check_signature(request, params, &key.secret)?;
        let access_key_id = claim.access_key_id.to_owned();
        let nonce = claim.nonce.to_owned();
        self.use_nonce(nonce, now)?;
        Ok(access_key_id)
    }

    fn use_nonce(&mut self, nonce: String, now: Timestamp) -> Result<(), ApiError> {
        if self
            .tidied_at
            .is_none_or(|at| now.duration_since(at) >= TIDY_EVERY)
        {
            self.tidied_at = Some(now);
            self.nonces
                .retain(|_, used_at| now.duration_since(*used_at) < CLOCK_SKEW_MAX);
        }
        match self.nonces.insert(nonce, now) {
            None => Ok(()),
            Some(_) => Err(ApiError::new(
                400,
                "SignatureNonceUsed",
                "The request signature nonce has been used.",
            )),
        }
    }
}

fn check_session(key: &AccessKey, token: Option<&str>, now: Timestamp) -> Result<(), ApiError> {
    let malformed = || {
        Err(ApiError::new(
            400,
            "InvalidSecurityToken.Malformed",
            "The specified SecurityToken is malformed.",
        ))
    };
    match (&key.session, token) {
        (None, None) => Ok(()),
        (None, Some(_)) | (Some(_), None) => malformed(),
        (Some(session), Some(token)) if session.token != token => malformed(),
        (Some(session), Some(_)) if session.expires_at <= now => Err(ApiError::new(
            400,
            "InvalidSecurityToken.Expired",
            "The specified SecurityToken is expired.",
        )),
        (Some(_), Some(_)) => Ok(()),
    }
}

fn check_clock(signed_at: Option<Timestamp>, now: Timestamp) -> Result<(), ApiError> {
    match signed_at {
        Some(at) if now.duration_since(at).abs() <= CLOCK_SKEW_MAX => Ok(()),
        Some(_) => Err(ApiError::new(
            400,
            "IllegalTimestamp",
            "The timestamp is too far from the server's clock.",
        )),
        None => Err(ApiError::new(
            400,
            "InvalidTimeStamp.Format",
            "Specified time stamp or date value is not well formatted.",
        )),
    }
}

impl<'a> Claim<'a> {
    fn find(request: &'a WireRequest, params: &'a Params) -> Result<Self, ApiError> {
        let authorization = request.header("authorization").unwrap_or_default();
        if let Some(acs3) = Acs3Authorization::parse(authorization) {
            return Self::acs3(request, &acs3);
        }
        if let Some((access_key_id, signature)) = authorization
            .strip_prefix("acs ")
            .and_then(|rest| rest.split_once(':'))
        {
            return Ok(Self::roa(request, access_key_id, signature));
        }
        if !authorization.is_empty() {
            return Err(incomplete(
                "The Authorization header is neither ACS3-HMAC-SHA256 nor acs.",
            ));
        }
        Self::rpc(params)
    }

    fn acs3(request: &'a WireRequest, acs3: &Acs3Authorization<'a>) -> Result<Self, ApiError> {
        let signed: Vec<_> = acs3.signed_headers.split(';').collect();
        let must_sign =
            |name: &str| name == "host" || name == "content-type" || name.starts_with("x-acs-");
        if let Some(name) = request
            .headers
            .keys()
            .find(|name| must_sign(name) && !signed.contains(&name.as_str()))
        {
            return Err(incomplete(&format!(
                "The header {name} is not in SignedHeaders."
            )));
        }
        Ok(Self {
            access_key_id: acs3.access_key_id,
            signature: acs3.signature,
            nonce: request
                .header("x-acs-signature-nonce")
                .ok_or_else(|| ApiError::missing_parameter("x-acs-signature-nonce"))?,
            signed_at: request
                .header("x-acs-date")
                .and_then(|date| date.parse().ok()),
            token: request.header("x-acs-security-token"),
            scheme: Scheme::Acs3 {
                signed_headers: acs3.signed_headers,
            },
        })
    }

    fn roa(request: &'a WireRequest, access_key_id: &'a str, signature: &'a str) -> Self {
        let signed_at = request
            .header("date")
            .and_then(|date| rfc2822::parse(date).ok())
            .map(|date| date.timestamp());
        Self {
            access_key_id,
            signature,
            nonce: request.header("x-acs-signature-nonce").unwrap_or_default(),
            signed_at,
            token: request.header("x-acs-security-token"),
            scheme: Scheme::Roa,
        }
    }

    fn rpc(params: &'a Params) -> Result<Self, ApiError> {
        Ok(Self {
            access_key_id: params.required("AccessKeyId")?,
            signature: params.required("Signature")?,
            nonce: params.required("SignatureNonce")?,
            signed_at: params.required("Timestamp")?.parse().ok(),
            token: params.text("SecurityToken"),
            scheme: Scheme::Rpc,
        })
    }

    fn check_signature(
        &self,
        request: &WireRequest,
        params: &Params,
        secret: &str,
    ) -> Result<(), ApiError> {
        let (string_to_sign, expected) = match self.scheme {
            Scheme::Acs3 { signed_headers } => {
                check_body_hash(request)?;
                let canonical = acs3_canonical_request(request, signed_headers);
                let string_to_sign = acs3_string_to_sign(&canonical);
                let expected = acs3_sign(secret, &string_to_sign);
                // The canonical request is what helps to find the difference; its hash alone would not.
                (
                    format!("{string_to_sign}\nserver CanonicalRequest is: {canonical}"),
                    expected,
                )
            }
            Scheme::Rpc => {
                let string_to_sign = rpc_string_to_sign(&request.method, params.iter());
                let expected = rpc_sign(secret, &string_to_sign);
                (string_to_sign, expected)
            }
            Scheme::Roa => {
                let string_to_sign = roa_string_to_sign(request);
                let expected = roa_sign(secret, &string_to_sign);
                (string_to_sign, expected)
            }
        };
        if expected == self.signature {
            return Ok(());
        }
        let message = format!(
            "Specified signature is not matched with our calculation. server string to sign is:{string_to_sign}"
        );
        Err(ApiError::new(400, "SignatureDoesNotMatch", message))
    }
}

fn check_body_hash(request: &WireRequest) -> Result<(), ApiError> {
    use sha2::{Digest, Sha256};
    let hash = hex(&Sha256::digest(&request.body));
    match request.header("x-acs-content-sha256") {
        Some(sent) if sent == hash => Ok(()),
        _ => Err(ApiError::new(
            400,
            "SignatureDoesNotMatch",
            format!("x-acs-content-sha256 should be {hash}."),
        )),
    }
}

fn incomplete(message: &str) -> ApiError {
    ApiError::new(400, "IncompleteSignature", message)
}
