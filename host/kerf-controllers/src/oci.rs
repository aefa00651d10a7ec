//! Components in OCI registries: pulled by the digest of their manifest and pushed by `kerf plugin publish`.
//!
//! Only what the distribution specification asks of a client that moves one small artifact: a manifest, a blob, and the
//! two ways to log in. Whatever a registry, a mirror or a proxy sends is held against the digest before anybody reads it.

mod artifact;
mod challenge;
mod error;
mod login;
mod pull;
mod push;
mod reference;
mod transport;

pub use error::OciError;
pub use login::Login;
pub use pull::Pulled;
pub use reference::Reference;
pub use transport::Registries;
