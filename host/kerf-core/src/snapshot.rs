//! The world at one moment, as every decision sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::disruption::pod_budget::PodBudget;
use crate::node::Node;
use crate::node_pool::NodePool;
use crate::pod::{DaemonPod, Pod};
use crate::selector::Labels;

/// What to do with soft constraints of pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PreferencePolicy {
    /// Try to meet them, and drop them one by one where that fails.
    #[default]
    Respect,
    /// Leave them to the kube-scheduler.
    Ignore,
}

/// What to do when a pool's `minValues` cannot be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MinValuesPolicy {
    /// The pool cannot serve the pod.
    #[default]
    Strict,
    /// Lower it to what can be met, and say so in an annotation.
    BestEffort,
}

/// Settings of the controller that decisions depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// Soft constraints.
    pub preference_policy: PreferencePolicy,
    /// `minValues`.
    pub min_values_policy: MinValuesPolicy,
}

/// Everything that a decision may look at. It never changes; clones share their parts.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// NodePools of ours, in any order.
    pub pools: Vec<Arc<NodePool>>,
    /// Nodes and NodeClaims, in any order; those that kerf does not manage too.
    pub nodes: Vec<Arc<Node>>,
    /// Pods that wait for a node because kube-scheduler found none, or is too busy to have looked, in any order. Those of nodes that are being
    /// removed are not among them: planning adds them by itself.
    pub pending_pods: Vec<Arc<Pod>>,
    /// The pods that DaemonSets put on nodes.
    pub daemon_pods: Vec<DaemonPod>,
    /// PodDisruptionBudgets, in any order.
    pub pod_budgets: Vec<Arc<PodBudget>>,
    /// Labels of the namespaces, for namespace selectors.
    pub namespaces: BTreeMap<String, Labels>,
    /// Settings.
    pub settings: Settings,
}
