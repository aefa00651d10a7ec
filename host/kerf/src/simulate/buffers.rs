//! CapacityBuffers of a simulation: the pods that they stand for, from templates and workloads among the manifests.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kerf_api::capacitybuffer::{ACTIVE_CAPACITY, CapacityBuffer};
use kerf_core::buffer::Buffer;
use kerf_core::plan::Plan;
use kerf_state::Cluster;

use crate::simulate::complaint::Complaint;
use crate::simulate::objects::Objects;
use crate::simulate::workload;
use crate::simulate::world::Owners;

/// Hands the pods of all buffers to the index.
pub(crate) fn put(
    objects: &Objects,
    cluster: &mut Cluster,
    owners: &mut Owners,
    notes: &mut Vec<Complaint>,
) {
    if !objects.capacity_buffers.is_empty() {
        notes.push(Complaint::note(
            "CapacityBuffers keep their room; the controller does so only with --feature-gates CapacityBuffer=true",
        ));
    }
    for (item, written) in &objects.capacity_buffers {
        let namespace = workload::namespace(&written.metadata);
        let name = written.metadata.name.clone().unwrap_or_default();
        let title = title(&namespace, &name);
        match resolve(written, &namespace, &title, objects) {
            Ok(buffer) => {
                for pod in buffer.virtual_pods() {
                    let key = (namespace.clone(), pod.name.to_string());
                    owners.insert(key, (title.clone(), *item));
                }
                cluster.set_buffer(format!("{namespace}/{name}"), Some(buffer));
            }
            Err(why) => notes.push(Complaint::note(&format!("{title} keeps no room: {why}"))),
        }
    }
}

fn title(namespace: &str, name: &str) -> String {
    format!("CapacityBuffer {namespace}/{name}")
}

fn resolve(
    written: &CapacityBuffer,
    namespace: &str,
    title: &str,
    objects: &Objects,
) -> Result<Buffer, String> {
    let strategy = written.spec.provisioning_strategy.as_deref();
    if let Some(other) = strategy.filter(|it| *it != ACTIVE_CAPACITY) {
        return Err(format!("spec.provisioningStrategy {other} is not kerf's"));
    }
    let mut buffer = written.clone();
    buffer.metadata.namespace = Some(namespace.to_owned());
    buffer.metadata.uid.get_or_insert_with(|| title.to_owned());
    let (template, replicas) = find(written, namespace, objects)?;
    kerf_controllers::capacity_buffer::buffer(&buffer, template, replicas)
}

/// What the buffer refers to: a template, and the replicas of a workload.
fn find<'a>(
    buffer: &CapacityBuffer,
    namespace: &str,
    objects: &'a Objects,
) -> Result<(&'a PodTemplateSpec, u32), String> {
    let spec = &buffer.spec;
    let is_meant = |metadata: &ObjectMeta, name: &str| {
        metadata.name.as_deref() == Some(name) && workload::namespace(metadata) == namespace
    };
    match (&spec.pod_template_ref, &spec.scalable_ref) {
        (Some(reference), None) => {
            let templates = objects.pod_templates.iter().map(|(_, it)| it);
            let mut templates = templates.filter(|it| is_meant(&it.metadata, &reference.name));
            let template = templates.next().and_then(|it| it.template.as_ref());
            let template = template.map(|template| (template, 0));
            template.ok_or_else(|| {
                format!(
                    "PodTemplate {namespace}/{} is not among the manifests",
                    reference.name
                )
            })
        }
        (None, Some(reference)) => {
            let group = reference.api_group.as_deref().unwrap_or_default();
            let mut workloads = workload::scalable(objects).filter(|it| {
                matches!(group, "" | "apps")
                    && it.kind == reference.kind
                    && is_meant(it.metadata, &reference.name)
            });
            let found = workloads.next().and_then(|it| {
                // One is what the API server fills in.
                let replicas = u32::try_from(it.replicas.unwrap_or(1)).unwrap_or_default();
                Some((it.template?, replicas))
            });
            found.ok_or_else(|| {
                format!(
                    "{} {namespace}/{} is not among the manifests (Deployments, StatefulSets and ReplicaSets can be scaled)",
                    reference.kind, reference.name
                )
            })
        }
        (Some(_), Some(_)) | (None, None) => {
            Err("set podTemplateRef or scalableRef, and not both".to_owned())
        }
    }
}

/// What buffers lack in a plan. Nobody waits for their pods, so that these are not among those without a place.
pub(crate) fn short(plan: &Plan, owners: &Owners) -> Vec<Complaint> {
    let mut short: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for group in &plan.unschedulable {
        for pod in group.pods.iter().filter(|pod| pod.is_virtual()) {
            let key = (pod.namespace.to_string(), pod.name.to_string());
            let title = owners.get(&key).map(|(title, _)| title.as_str());
            let key = (title.unwrap_or_default(), group.reason.to_string());
            *short.entry(key).or_default() += 1;
        }
    }
    let notes = short.into_iter().map(|((title, reason), pods)| {
        Complaint::note(&format!(
            "{title} lacks room for {pods} of its pods: {reason}"
        ))
    });
    notes.collect()
}
