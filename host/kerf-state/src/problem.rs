//! What is wrong with an object, in the user's words: which object, which field, and why.

use std::fmt;
use std::sync::Arc;

/// The kinds that the index knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Pods of all namespaces.
    Pod,
    /// Nodes.
    Node,
    /// NodeClaims.
    NodeClaim,
    /// NodePools.
    NodePool,
    /// ECSNodeClasses.
    EcsNodeClass,
    /// DaemonSets, for the pods that every new node gets.
    DaemonSet,
    /// PersistentVolumeClaims.
    PersistentVolumeClaim,
    /// PersistentVolumes.
    PersistentVolume,
    /// StorageClasses.
    StorageClass,
    /// CSINodes, for the volumes that a node can attach.
    CsiNode,
    /// Namespaces, for their labels.
    Namespace,
    /// PodDisruptionBudgets, for what may be evicted.
    PodDisruptionBudget,
    /// Services, for the pods that default spread constraints count.
    Service,
    /// ReplicationControllers, likewise.
    ReplicationController,
    /// ReplicaSets, likewise.
    ReplicaSet,
    /// StatefulSets, likewise.
    StatefulSet,
}

impl Kind {
    /// Those that are read for default spread constraints, and only where there are some.
    pub const OF_DEFAULT_SPREAD: [Self; 4] = [
        Self::Service,
        Self::ReplicationController,
        Self::ReplicaSet,
        Self::StatefulSet,
    ];

    /// Those that are always read.
    pub const ALWAYS: [Self; 12] = [
        Self::Pod,
        Self::Node,
        Self::NodeClaim,
        Self::NodePool,
        Self::EcsNodeClass,
        Self::DaemonSet,
        Self::PersistentVolumeClaim,
        Self::PersistentVolume,
        Self::StorageClass,
        Self::CsiNode,
        Self::Namespace,
        Self::PodDisruptionBudget,
    ];

    /// The kind as manifests write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pod => "Pod",
            Self::Node => "Node",
            Self::NodeClaim => "NodeClaim",
            Self::NodePool => "NodePool",
            Self::EcsNodeClass => "ECSNodeClass",
            Self::DaemonSet => "DaemonSet",
            Self::PersistentVolumeClaim => "PersistentVolumeClaim",
            Self::PersistentVolume => "PersistentVolume",
            Self::StorageClass => "StorageClass",
            Self::CsiNode => "CSINode",
            Self::Namespace => "Namespace",
            Self::PodDisruptionBudget => "PodDisruptionBudget",
            Self::Service => "Service",
            Self::ReplicationController => "ReplicationController",
            Self::ReplicaSet => "ReplicaSet",
            Self::StatefulSet => "StatefulSet",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An object of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ObjectKey {
    /// Its namespace; empty for kinds without.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// A pod, by the names that it shares.
    pub(crate) fn pod(namespace: &Arc<str>, name: &Arc<str>) -> Self {
        Self {
            namespace: Arc::clone(namespace),
            name: Arc::clone(name),
        }
    }

    /// An object of a kind without namespaces.
    pub fn cluster(name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: Arc::default(),
            name: name.into(),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// A field that could not be used as written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The field's path, such as `spec.limits.cpu`.
    pub field: String,
    /// What is wrong and what to write instead.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// A problem and the object that has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectProblem {
    /// The object's kind.
    pub kind: Kind,
    /// The object.
    pub key: ObjectKey,
    /// What is wrong with it.
    pub problem: Problem,
}

impl fmt::Display for ObjectProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.kind, self.key, self.problem)
    }
}

/// Collects problems while one object is converted.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    pub(crate) fn add(&mut self, field: impl Into<String>, message: impl fmt::Display) {
        self.0.push(Problem {
            field: field.into(),
            message: message.to_string(),
        });
    }

    /// The value, or none and a problem.
    pub(crate) fn ok<T, E: fmt::Display>(
        &mut self,
        field: &str,
        result: Result<T, E>,
    ) -> Option<T> {
        result.map_err(|error| self.add(field, error)).ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn finish(self) -> Vec<Problem> {
        self.0
    }

    /// All problems in one line.
    pub(crate) fn summary(&self) -> Option<String> {
        let lines: Vec<String> = self.0.iter().map(Problem::to_string).collect();
        (!lines.is_empty()).then(|| lines.join("; "))
    }
}
