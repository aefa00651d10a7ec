//! Reading a reply: by status first, then as JSON, because a gateway may answer with a page.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

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
        match decode::<Envelope>(action, &self.body) {
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
    let fail = |error: serde_json::Error| CloudError::Decode {
        action,
        detail: error.to_string(),
    };
    let mut value = serde_json::from_str(text).map_err(fail)?;
    drop_nulls(&mut value);
    T::deserialize(value).map_err(fail)
}

/// A null means "not given" to these APIs, so it reads like an absent field.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{CapacityScope, ErrorClass};

    fn reply(status: u16, body: &str) -> Reply {
        Reply {
            status,
            retry_after: None,
            body: body.to_owned(),
        }
    }

    #[test]
    fn both_spellings_of_the_envelope_are_read() {
        let rpc =
            r#"{"RequestId":"r","HostId":"h","Code":"OperationDenied.NoStock","Message":"m"}"#;
        let cs = r#"{"request_id":"r","code":"ErrorClusterNotFound","message":null}"#;

        let rpc = reply(403, rpc).into_text("RunInstances").unwrap_err();
        let cs = reply(404, cs)
            .into_text("DescribeClusterDetail")
            .unwrap_err();

        assert_eq!(rpc.class(), ErrorClass::NoCapacity(CapacityScope::Offering));
        assert_eq!(cs.code(), Some("ErrorClusterNotFound"));
    }

    #[test]
    fn a_page_of_a_gateway_keeps_its_status() {
        let error = reply(502, "<html>\n<h1>Bad Gateway</h1>")
            .into_text("A")
            .unwrap_err();

        assert_eq!(error.class(), ErrorClass::Transient);
        assert_eq!(
            error.to_string(),
            "A: HTTP 502 with a body that is not an API reply: <html> <h1>Bad Gateway</h1>"
        );
    }

    #[test]
    fn a_cut_reply_is_an_error_and_a_null_is_not() {
        #[derive(Debug, Default, Deserialize)]
        #[serde(default)]
        struct Named {
            name: String,
        }

        let cut = reply(200, r#"{"name":"a"#).into_json::<Named>("A");
        let null = reply(200, r#"{"name":null,"list":[null]}"#).into_json::<Named>("A");

        assert_eq!(cut.unwrap_err().class(), ErrorClass::Transient);
        assert_eq!(null.unwrap().name, "");
    }
}
