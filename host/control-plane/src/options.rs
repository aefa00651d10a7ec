//! What a caller can choose about a control plane.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::Component;

/// Ready in two to five seconds on an idle machine; the rest is for two loaded cores on which other tests compile.
const READY_TIMEOUT: Duration = Duration::from_secs(120);

/// What the kubelet asks for.
const NODE_LEASE: Duration = Duration::from_secs(40);

/// How to start a control plane. `Options::default()` is what a test wants.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which servers run. etcd and kube-apiserver always do. Without the controller manager nobody makes service
    /// accounts, so pods may then be created without one.
    pub components: BTreeSet<Component>,
    /// Who may log in besides the admin. RBAC decides what they may do.
    pub users: Vec<User>,
    /// Write every request that changes something to `audit.log` in the logs folder, one JSON object per line.
    pub audit_log: bool,
    /// Of these users, every request goes into that log, those that only read too.
    pub audited_users: Vec<String>,
    /// How long a node's lease is valid. kwok renews it after a quarter of that.
    pub node_lease: Duration,
    /// More flags for a server; they win over ours.
    pub extra_args: BTreeMap<Component, Vec<String>>,
    /// Where to keep state, keys and logs. By default a temporary folder that is removed at the end; this one stays.
    pub folder: Option<PathBuf>,
    /// Where the programs are, before the usual places are searched.
    pub binaries: Option<PathBuf>,
    /// How long one server may take until it is ready.
    pub ready_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            components: Component::ALL.into(),
            users: Vec::new(),
            audit_log: false,
            audited_users: Vec::new(),
            node_lease: NODE_LEASE,
            extra_args: BTreeMap::new(),
            folder: None,
            binaries: None,
            ready_timeout: READY_TIMEOUT,
        }
    }
}

impl Options {
    /// Only etcd and kube-apiserver: half the memory and start-up time, for tests that need objects but no behaviour.
    pub fn api_server_only() -> Self {
        Self {
            components: [Component::Etcd, Component::ApiServer].into(),
            ..Self::default()
        }
    }

    pub(crate) fn runs(&self, component: Component) -> bool {
        matches!(component, Component::Etcd | Component::ApiServer)
            || self.components.contains(&component)
    }
}

/// Somebody who logs in with a bearer token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub groups: Vec<String>,
    pub token: String,
}
