//! Reading a reply: by status first, then as JSON, because a gateway may answer with a page.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::CloudError;

/// Enough of a foreign body to recognise it.
const EXCERPT_CHARS_MAX: usize = 120;
/// A throttled caller never waits longer than this on the server's word: limits are per minute.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(65);

/// A reply as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    pub retry_after: Option<Duration>,
    pub body: String,
}

/// Both spellings: RPC products use capitals, CS does not.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Envelope {
    #[serde(alias = "code")]
    #[serde(rename = "Code")]
    code: String,
    #[serde(alias = "message")]
    #[serde(rename = "Message")]
    message: String,
    #[serde(alias = "requestId", alias = "request_id")]
    #[serde(rename = "RequestId")]
    request_id: String,
}

impl Reply {
    /// The body of a good reply.
    ///
    /// # Errors
    /// The typed error of any other.
    pub fn into_text(self, action: &'static str) -> Result<String, CloudError> {
        if (200..300).contains(&self.status) {
            return Ok(self.body);
        }
        match serde_json::from_str::<Envelope>(&self.body) {
            Ok(envelope) if !envelope.code.is_empty() => Err(CloudError::Api {
                action,
                status: self.status,
                code: envelope.code,
                message: envelope.message,
                request_id: envelope.request_id,
                retry_after: self.retry_after.map(|asked| asked.min(RETRY_AFTER_MAX)),
            }),
            _ => Err(CloudError::Gateway {
                action,
                status: self.status,
                excerpt: excerpt(&self.body),
            }),
        }
    }

    /// The body of a good reply, read as JSON.
    ///
    /// # Errors
    /// The typed error of any other, or [`CloudError::Decode`].
    pub fn into_json<T: DeserializeOwned>(self, action: &'static str) -> Result<T, CloudError> {
        let text = self.into_text(action)?;
        decode(action, &text)
    }
}

/// Reads JSON.
///
/// # Errors
/// [`CloudError::Decode`].
pub fn decode<T: DeserializeOwned>(action: &'static str, text: &str) -> Result<T, CloudError> {
    serde_json::from_str(text).map_err(|error| CloudError::Decode {
        action,
        detail: error.to_string(),
    })
}

/// Reads the pause that a throttled reply asks for, in milliseconds.
#[must_use]
pub fn parse_retry_after(text: &str) -> Option<Duration> {
    text.trim().parse().ok().map(Duration::from_millis)
}

fn excerpt(body: &str) -> String {
    let flat = body.split_whitespace().collect::<Vec<_>>().join(" ");
    flat.chars().take(EXCERPT_CHARS_MAX).collect()
}
