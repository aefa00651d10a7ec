//! The pods that DaemonSets will put on every new node.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kerf_core::pod::{DaemonPod, OwnerKind, PodSpec};

use crate::convert::pod::{PodEntry, pod_spec};
use crate::problem::{ObjectKey, Problems};
use crate::shared::Shared;

/// A DaemonSet in the index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DaemonEntry {
    uid: Arc<str>,
    template: Arc<PodSpec>,
}

pub(crate) fn daemon_set(
    daemon_set: &DaemonSet,
    shared: &mut Shared,
    problems: &mut Problems,
) -> DaemonEntry {
    let spec = daemon_set.spec.clone().unwrap_or_default();
    let template = spec.template;
    let pod = template.spec.unwrap_or_default();
    let metadata: ObjectMeta = template.metadata.unwrap_or_default();
    let converted = pod_spec(&pod, &metadata, None, OwnerKind::DaemonSet, problems);
    DaemonEntry {
        uid: Arc::from(daemon_set.metadata.uid.as_deref().unwrap_or_default()),
        template: shared.specs.share(converted),
    }
}

/// The pod of each DaemonSet: what its newest live pod asks for, where its template wants to be. `newest` finds that pod by
/// the DaemonSet's uid.
pub(crate) fn daemon_pods<'a>(
    daemon_sets: &BTreeMap<ObjectKey, DaemonEntry>,
    newest: impl Fn(&str) -> Option<&'a PodEntry>,
) -> Vec<DaemonPod> {
    let daemons = daemon_sets.iter().map(|(key, entry)| {
        let live = newest(&entry.uid).map(|entry| &entry.pod.spec);
        DaemonPod {
            namespace: Arc::clone(&key.namespace),
            name: Arc::clone(&key.name),
            spec: live.map_or_else(
                || Arc::clone(&entry.template),
                |live| merge(live, &entry.template),
            ),
        }
    });
    daemons.collect()
}

/// A live pod is pinned to its node; everything else of it is truer than the template, which admission may change.
fn merge(live: &PodSpec, template: &PodSpec) -> Arc<PodSpec> {
    Arc::new(PodSpec {
        node_selector: template.node_selector.clone(),
        required_node_terms: template.required_node_terms.clone(),
        preferred_node_terms: template.preferred_node_terms.clone(),
        ..live.clone()
    })
}
