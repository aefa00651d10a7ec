//! User data: what a new instance runs so that it becomes a node.
//!
//! The join part is ours: it carries the labels, the taints with `karpenter.sh/unregistered:NoExecute`, and the
//! kubelet configuration that the capacity model assumed. The user's part runs before it and cannot edit it.

use std::collections::BTreeMap;

use kerf_core::taint::Taint;

/// What the node must register with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeSettings {
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    pub startup_taints: Vec<Taint>,
}
