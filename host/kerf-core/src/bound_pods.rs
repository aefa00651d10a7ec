//! The pods of a node, shared by all snapshots that have the node with the same pods.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use crate::pod::{OwnerKind, Pod, PodPhase, PodSpec};
use crate::resources::Resources;

/// A list of pods. A clone is the same list until one of them is changed.
#[derive(Debug, Clone, Default)]
pub struct BoundPods(Option<Arc<List>>);

/// Pods, and what they come to together once somebody has asked: every plan asks all nodes, and most pods of a large cluster
/// are not in the processor's cache when it does.
#[derive(Debug, Default)]
struct List {
    pods: Vec<Arc<Pod>>,
    held: OnceLock<Held>,
}

/// What pods on a node take from it together. Pods that have ended take nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Held {
    /// What they ask for, each as one pod at least.
    pub requests: Resources,
    /// The same of daemons alone.
    pub by_daemons: Resources,
    /// Whether any has ports of the host or volumes that are attached.
    pub has_attachments: bool,
    /// Whether any keeps others away.
    pub has_anti_affinity: bool,
}

/// Nodes without pods are common, and need no list of their own.
static NONE: List = List::of(Vec::new());

impl List {
    const fn of(pods: Vec<Arc<Pod>>) -> Self {
        Self {
            pods,
            held: OnceLock::new(),
        }
    }
}

impl BoundPods {
    /// What the pods take together.
    pub fn held(&self) -> &Held {
        let list = self.0.as_deref().unwrap_or(&NONE);
        list.held.get_or_init(|| Held::by(&list.pods))
    }
}

impl Held {
    fn by(pods: &[Arc<Pod>]) -> Self {
        let mut held = Self::default();
        for pod in pods.iter().filter(|pod| pod.phase != PodPhase::Terminal) {
            held.add(&pod.spec);
        }
        held
    }

    fn add(&mut self, spec: &PodSpec) {
        let requests = spec.requests.with_one_pod();
        if spec.owner == OwnerKind::DaemonSet {
            self.by_daemons.add(&requests);
        }
        self.requests.add(&requests);
        let mut volumes = spec.volumes.iter();
        self.has_attachments |=
            !spec.host_ports.is_empty() || volumes.any(|it| it.attachment.is_some());
        self.has_anti_affinity |= !spec.anti_affinity.is_empty();
    }
}

impl Clone for List {
    /// A copy that is about to be changed.
    fn clone(&self) -> Self {
        Self::of(self.pods.clone())
    }
}

impl Deref for BoundPods {
    type Target = Vec<Arc<Pod>>;

    fn deref(&self) -> &Vec<Arc<Pod>> {
        &self.0.as_deref().unwrap_or(&NONE).pods
    }
}

impl DerefMut for BoundPods {
    /// The list of this one alone from now.
    fn deref_mut(&mut self) -> &mut Vec<Arc<Pod>> {
        let list = Arc::make_mut(self.0.get_or_insert_default());
        list.held.take();
        &mut list.pods
    }
}

impl From<Vec<Arc<Pod>>> for BoundPods {
    fn from(pods: Vec<Arc<Pod>>) -> Self {
        Self((!pods.is_empty()).then(|| Arc::new(List::of(pods))))
    }
}

impl FromIterator<Arc<Pod>> for BoundPods {
    fn from_iter<I: IntoIterator<Item = Arc<Pod>>>(pods: I) -> Self {
        pods.into_iter().collect::<Vec<_>>().into()
    }
}

impl<'a> IntoIterator for &'a BoundPods {
    type Item = &'a Arc<Pod>;
    type IntoIter = std::slice::Iter<'a, Arc<Pod>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for BoundPods {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for BoundPods {}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, cpu_milli: i64) -> Arc<Pod> {
        let spec = PodSpec {
            requests: Resources::of(cpu_milli, 0),
            ..PodSpec::default()
        };
        Arc::new(Pod::new(name, spec))
    }

    #[test]
    fn a_list_that_is_changed_leaves_its_clones_as_they_were() {
        let before: BoundPods = [pod("a", 0)].into_iter().collect();
        let mut after = before.clone();
        after.push(pod("b", 0));

        assert_eq!((before.len(), after.len()), (1, 2));
    }

    #[test]
    fn what_pods_take_together_follows_the_list() {
        let mut pods = BoundPods::default();
        assert_eq!(*pods.held(), Held::default());

        pods.push(pod("a", 100));
        pods.push(pod("b", 20));
        let both = pods.clone();
        assert_eq!(both.held().requests.cpu_milli(), 120);
        assert_eq!(both.held().requests.pods(), 2);

        let ended = Pod {
            phase: PodPhase::Terminal,
            ..Pod::clone(&pods[0])
        };
        pods[0] = Arc::new(ended);
        assert_eq!(pods.held().requests.cpu_milli(), 20);
        assert_eq!(both.held().requests.cpu_milli(), 120);
    }
}
