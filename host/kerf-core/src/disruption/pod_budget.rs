//! PodDisruptionBudgets: which pods may be evicted now.

use std::sync::Arc;

use crate::selector::LabelSelector;

/// A PodDisruptionBudget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodBudget {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// The pods that it speaks of; none matches no pod.
    pub selector: Option<LabelSelector>,
    /// `status.disruptionsAllowed`: how many of them may be evicted now.
    pub allowed: u32,
    /// `maxUnavailable` is 0 or `0%`, or `minAvailable` is `100%`: it never allows any.
    pub blocks_fully: bool,
    /// `unhealthyPodEvictionPolicy: AlwaysAllow`: pods that are not ready may always go.
    pub lets_unready_go: bool,
}
