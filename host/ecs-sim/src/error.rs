//! Refusals in the form that Alibaba Cloud gives them: a status, a code and a sentence.

/// What an action answers instead of a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{status} {code}: {message}")]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) message: String,
}

impl ApiError {
    pub(crate) fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self {
            status,
            code: code.to_owned(),
            message: message.into(),
        }
    }

    pub(crate) fn missing_parameter(name: &str) -> Self {
        let message = format!(
            "The input parameter \"{name}\" that is mandatory for processing this request is not supplied."
        );
        Self::new(400, "MissingParameter", message)
    }

    pub(crate) fn invalid_parameter(name: &str) -> Self {
        Self::new(
            400,
            "InvalidParameter",
            format!("The specified parameter \"{name}\" is not valid."),
        )
    }
}
