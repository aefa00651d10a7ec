//! Default spread constraints: what kube-scheduler adds to a pod that has none of its own.
//!
//! They count the pod's siblings: those that its Services and its workload select. A pod that nothing selects gets none.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{ReplicationController, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use kerf_core::pod::{PodSpec, TopologySpread};
use kerf_core::selector::{LabelSelector, Labels, SelectorExpression, SelectorOperator};

use crate::convert::affinity::label_selector;
use crate::convert::pod::PodEntry;
use crate::problem::{Kind, ObjectKey, Problems};

/// The workload that controls a pod, of a kind whose selector tells the pod's siblings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Workload {
    pub(crate) kind: Kind,
    pub(crate) name: Arc<str>,
}

/// The constraints, and the selectors of what can select pods. Those tables stay empty where there are no constraints:
/// then nobody watches these kinds.
#[derive(Debug, Default)]
pub(crate) struct DefaultSpread {
    pub(crate) constraints: Vec<TopologySpread>,
    pub(crate) services: BTreeMap<ObjectKey, Labels>,
    pub(crate) replication_controllers: BTreeMap<ObjectKey, Labels>,
    pub(crate) replica_sets: BTreeMap<ObjectKey, LabelSelector>,
    pub(crate) stateful_sets: BTreeMap<ObjectKey, LabelSelector>,
}

/// Specs with the constraints, each made once in a snapshot: pods whose specs are one object are planned as one class.
#[derive(Debug)]
pub(crate) struct Specs<'a> {
    of: &'a DefaultSpread,
    /// By namespace, address of the spec in the index, and workload.
    made: BTreeMap<(&'a str, usize, Option<&'a Workload>), Arc<PodSpec>>,
}

impl DefaultSpread {
    pub(crate) fn specs(&self) -> Specs<'_> {
        Specs {
            of: self,
            made: BTreeMap::new(),
        }
    }

    /// Which pods the constraints count; none where nothing selects the pod. Labels of Services are merged in the order of
    /// their names, those of a ReplicationController go over them, and a ReplicaSet or StatefulSet narrows that down.
    /// Karpenter: same, but for the order of Services, which it leaves to chance.
    fn selector(
        &self,
        namespace: &str,
        labels: &Labels,
        workload: Option<&Workload>,
    ) -> Option<LabelSelector> {
        let first = ObjectKey {
            namespace: namespace.into(),
            name: Arc::default(),
        };
        let services = self.services.range(first..);
        let services = services.take_while(|(key, _)| *key.namespace == *namespace);
        let mut selector = LabelSelector::default();
        for (_, selected) in services {
            let is_subset = selected
                .iter()
                .all(|(key, value)| labels.get(key) == Some(value));
            if is_subset {
                selector.match_labels.extend(selected.clone());
            }
        }
        if let Some(Workload { kind, name }) = workload {
            let key = ObjectKey {
                namespace: namespace.into(),
                name: Arc::clone(name),
            };
            if let Some(selected) = self.replication_controllers.get(&key)
                && *kind == Kind::ReplicationController
            {
                selector.match_labels.extend(selected.clone());
            }
            let table = match kind {
                Kind::ReplicaSet => self.replica_sets.get(&key),
                Kind::StatefulSet => self.stateful_sets.get(&key),
                _ => None,
            };
            if let Some(narrower) = table {
                narrow(&mut selector, narrower);
            }
        }
        (selector != LabelSelector::default()).then_some(selector)
    }
}

impl<'a> Specs<'a> {
    /// The spec with the constraints, where they apply to the pod.
    pub(crate) fn with_constraints(&mut self, entry: &'a PodEntry) -> Option<Arc<PodSpec>> {
        let spec = &entry.pod.spec;
        if self.of.constraints.is_empty() || !spec.topology_spread.is_empty() {
            return None;
        }
        let namespace = &*entry.pod.namespace;
        let workload = entry.workload();
        let key = (namespace, Arc::as_ptr(spec) as usize, workload);
        if let Some(made) = self.made.get(&key) {
            return Some(Arc::clone(made));
        }
        let selector = self.of.selector(namespace, &spec.labels, workload)?;
        let constraints = self.of.constraints.iter();
        let constraints = constraints.map(|constraint| TopologySpread {
            selector: Some(selector.clone()),
            ..constraint.clone()
        });
        let made = Arc::new(PodSpec {
            topology_spread: constraints.collect(),
            ..(**spec).clone()
        });
        self.made.insert(key, Arc::clone(&made));
        Some(made)
    }
}

/// Makes the selector select only what the other one selects too.
fn narrow(selector: &mut LabelSelector, other: &LabelSelector) {
    for (key, value) in &other.match_labels {
        let known = selector
            .match_labels
            .entry(key.clone())
            .or_insert_with(|| value.clone());
        if known != value {
            selector.match_expressions.push(SelectorExpression {
                key: key.clone(),
                operator: SelectorOperator::In,
                values: vec![value.clone()],
            });
        }
    }
    let expressions = other.match_expressions.iter().cloned();
    selector.match_expressions.extend(expressions);
}

/// What a Service selects. One without selector selects nothing, and so adds nothing.
pub(crate) fn service(service: &Service) -> Labels {
    let spec = service.spec.as_ref();
    spec.and_then(|spec| spec.selector.clone())
        .unwrap_or_default()
}

pub(crate) fn replication_controller(controller: &ReplicationController) -> Labels {
    let spec = controller.spec.as_ref();
    spec.and_then(|spec| spec.selector.clone())
        .unwrap_or_default()
}

pub(crate) fn replica_set(set: &ReplicaSet, problems: &mut Problems) -> LabelSelector {
    workload_selector(set.spec.as_ref().map(|spec| &spec.selector), problems)
}

pub(crate) fn stateful_set(set: &StatefulSet, problems: &mut Problems) -> LabelSelector {
    workload_selector(set.spec.as_ref().map(|spec| &spec.selector), problems)
}

fn workload_selector(
    selector: Option<&meta::LabelSelector>,
    problems: &mut Problems,
) -> LabelSelector {
    selector.map_or_else(LabelSelector::default, |it| {
        label_selector(it, "spec.selector", problems)
    })
}
