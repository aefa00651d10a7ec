//! A call before it is signed.

use crate::rpc::action::Action;
use crate::rpc::endpoint::Product;
use crate::rpc::params::Params;

/// What to call, with what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub product: Product,
    pub action: &'static str,
    pub method: Method,
    /// `/` for RPC products.
    pub path: String,
    /// All parameters of an RPC call; the query of a ROA call.
    pub query: Vec<(String, String)>,
    /// JSON body of a ROA call.
    pub body: Option<String>,
    /// How long the caller would wait for the answer.
    pub patience: Patience,
}

/// What the caller does without the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Patience {
    /// It cannot go on: all attempts of the client's settings.
    #[default]
    Full,
    /// It goes on with an estimate, so others must not wait long: few attempts, a short deadline.
    Short,
}

/// The HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
}

impl Method {
    /// As on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

impl Request {
    /// An RPC call: everything in the query of a POST without a body, as the official SDKs do.
    #[must_use]
    pub fn rpc(action: Action, params: Params) -> Self {
        Self {
            product: action.product(),
            action: action.as_str(),
            method: Method::Post,
            path: "/".to_owned(),
            query: params.into_pairs(),
            body: None,
            patience: Patience::Full,
        }
    }

    /// A ROA call that reads.
    #[must_use]
    pub fn roa_get(action: Action, path: String, query: Params) -> Self {
        Self {
            product: action.product(),
            action: action.as_str(),
            method: Method::Get,
            path,
            query: query.into_pairs(),
            body: None,
            patience: Patience::Full,
        }
    }

    /// A ROA call with a JSON body.
    #[must_use]
    pub fn roa_post(action: Action, path: String, body: String) -> Self {
        Self {
            product: action.product(),
            action: action.as_str(),
            method: Method::Post,
            path,
            query: Vec::new(),
            body: Some(body),
            patience: Patience::Full,
        }
    }

    /// For data that the caller can do without for a while.
    #[must_use]
    pub fn optional(self) -> Self {
        Self {
            patience: Patience::Short,
            ..self
        }
    }

    /// True for the products whose calls are not told apart by their path.
    #[must_use]
    pub fn is_rpc(&self) -> bool {
        match self.product {
            Product::Ecs | Product::Vpc | Product::Ram | Product::Sts => true,
            Product::Cs => false,
        }
    }
}
