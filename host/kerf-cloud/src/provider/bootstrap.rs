//! User data: what a new instance runs so that it becomes a node.
//!
//! The join part is ours: it carries the labels, the taints with `karpenter.sh/unregistered:NoExecute`, and the
//! kubelet configuration that the capacity model assumed. The user's and the policies' parts run before it and cannot
//! edit it. Secrets stand as placeholders until the very end, so what is shown, hashed or given to a policy holds
//! none.

mod disks;
mod join;
mod render;
mod user_data;

use std::collections::BTreeMap;

use kerf_core::taint::Taint;

use crate::provider::class::KubeletSettings;

pub use disks::disks_part;
pub use join::JoinScript;
pub use render::{RenderFuture, RenderQuestion, Renderer};
pub use user_data::{UserData, base_parts, compose, join_part};

/// The most user data that an instance takes, before base64.
pub const USER_DATA_BYTES_MAX: usize = 32 * 1024;

/// What the node must register with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeSettings {
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    pub startup_taints: Vec<Taint>,
}

/// One part of a multipart user data. Parts run in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserDataPart {
    /// For example `text/x-shellscript` or `text/cloud-config`. A `multipart/…` part carries its own headers in
    /// `content`.
    pub content_type: String,
    /// The end of its file name on the node, for logs; it does not change the order.
    pub name: Option<String>,
    pub content: String,
}

/// Everything that the join part must tell the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinSettings<'a> {
    pub cluster_id: &'a str,
    pub node: &'a NodeSettings,
    pub kubelet: &'a KubeletSettings,
    /// Of a self-managed cluster; empty with ACK.
    pub cluster_name: &'a str,
    pub cluster_endpoint: &'a str,
}

/// Why no user data could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BootstrapError {
    #[error(
        "user data has {bytes} bytes, more than the {USER_DATA_BYTES_MAX} that an instance takes; shorten spec.userData"
    )]
    TooLarge { bytes: usize },
    #[error("{what} {value:?} has characters that a node's start script cannot carry")]
    Unsafe { what: &'static str, value: String },
    #[error(
        "the join template has no {{{{taints}}}}, without which pods would land on the node too early; add it"
    )]
    TemplateWithoutTaints,
    #[error("the kubelet configuration cannot be written as JSON: {detail}")]
    Kubelet { detail: String },
    #[error(
        "the part that joins the node is in the user data {count} times after the policies, and must be there once, \
         unchanged; see spec.policies"
    )]
    JoinChanged { count: usize },
}
