//! Replies before they become HTTP, in the spelling of each product.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};

use crate::error::ApiError;

/// A slow body arrives in this many pieces.
const SLOW_PIECES: usize = 8;

#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

/// What every reply says about the request that it answers.
#[derive(Debug)]
pub(crate) struct Envelope<'a> {
    pub(crate) request_id: String,
    pub(crate) host: &'a str,
    pub(crate) is_roa: bool,
    /// RPC version 1 answers XML unless `Format=JSON` is sent.
    pub(crate) is_xml: bool,
}

impl Reply {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            content_type: "application/json; charset=utf-8",
            headers: Vec::new(),
            body: body.to_string().into_bytes(),
        }
    }

    pub(crate) fn text(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            headers: Vec::new(),
            body: body.into(),
        }
    }

    pub(crate) fn html_502() -> Self {
        let page = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>bad gateway</body>\r\n</html>\r\n";
        Self {
            status: 502,
            content_type: "text/html",
            headers: Vec::new(),
            body: page.into(),
        }
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn outcome(outcome: &Result<Value, ApiError>, envelope: &Envelope<'_>) -> Self {
        match outcome {
            Ok(body) => Self::success(body, envelope),
            Err(error) => Self::refusal(error, envelope),
        }
    }

    fn success(body: &Value, envelope: &Envelope<'_>) -> Self {
        if let Value::String(text) = body {
            return Self::text(200, text.as_bytes());
        }
        let Value::Object(fields) = body else {
            return Self::json(200, body);
        };
        let id = envelope.request_id.as_str();
        let mut whole = serde_json::Map::new();
        whole.insert(
            if envelope.is_roa {
                "request_id"
            } else {
                "RequestId"
            }
            .to_owned(),
            id.into(),
        );
        whole.extend(fields.clone());
        if envelope.is_xml {
            Self::xml(200, id)
        } else {
            Self::json(200, &whole.into())
        }
    }

    pub(crate) fn refusal(error: &ApiError, envelope: &Envelope<'_>) -> Self {
        let ApiError {
            status,
            code,
            message,
        } = error;
        let id = envelope.request_id.as_str();
        if envelope.is_xml {
            return Self::xml(*status, id);
        }
        let body = if envelope.is_roa {
            json!({"requestId": id, "code": code, "message": message})
        } else {
            json!({
                "RequestId": id, "HostId": envelope.host, "Code": code, "Message": message,
                "Recommend": format!("https://api.aliyun.com/troubleshoot?q={code}"),
            })
        };
        Self::json(*status, &body)
    }

    /// Nobody who wants XML is served here; it is enough that a client which forgot `Format=JSON` notices.
    fn xml(status: u16, request_id: &str) -> Self {
        let body = format!(
            "<?xml version='1.0' encoding='UTF-8'?><Response><RequestId>{request_id}</RequestId></Response>"
        );
        Self {
            status,
            content_type: "text/xml; charset=utf-8",
            headers: Vec::new(),
            body: body.into_bytes(),
        }
    }

    pub(crate) fn into_response(self) -> Response {
        let body = Body::from(self.body.clone());
        self.response(body)
    }

    /// The same reply, but its body trickles in over a time.
    pub(crate) fn into_slow_response(self, over: Duration) -> Response {
        let size = self.body.len().div_ceil(SLOW_PIECES).max(1);
        let pieces: Vec<Vec<u8>> = self.body.chunks(size).map(<[u8]>::to_vec).collect();
        let pause = over / u32::try_from(pieces.len().max(1)).unwrap_or(1);
        let stream = futures::stream::unfold(pieces.into_iter(), move |mut pieces| async move {
            tokio::time::sleep(pause).await;
            let piece = pieces.next()?;
            Some((Ok::<_, std::convert::Infallible>(piece), pieces))
        });
        self.response(Body::from_stream(stream))
    }

    fn response(self, body: Body) -> Response {
        let mut response = Response::new(body);
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(self.content_type),
        );
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}
