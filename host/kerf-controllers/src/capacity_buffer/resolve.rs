//! Which pods a buffer stands for: its pod template or workload, read from the API server.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{PodTemplate, PodTemplateSpec};
use kerf_api::capacitybuffer::{CapacityBuffer, ScalableReference};
use kerf_api::names::reason;
use kerf_core::buffer::{Buffer, BufferDemand};
use kerf_state::{buffer_limits, buffer_pod};
use kube::{Api, ResourceExt};

use crate::api_call::bounded;
use crate::context::Context;
use crate::error::Error;
use crate::events::created_at;

/// A buffer whose pods are known.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Resolved {
    pub(super) buffer: Buffer,
    /// The generation of the template or workload.
    pub(super) generation: Option<i64>,
}

/// Why a buffer's pods are not known: reason and message of `ReadyForProvisioning`.
pub(super) type Unresolved = (&'static str, String);

/// What a buffer refers to.
struct Found {
    template: PodTemplateSpec,
    replicas: u32,
    generation: Option<i64>,
}

/// Reads what the buffer refers to.
///
/// # Errors
/// When the API server cannot be asked. What does not exist or cannot be used is the inner error.
pub(super) async fn resolve(
    buffer: &CapacityBuffer,
    context: &Context,
) -> Result<Result<Resolved, Unresolved>, Error> {
    let found = match find(buffer, context).await? {
        Ok(found) => found,
        Err(why) => return Ok(Err(why)),
    };
    Ok(assemble(buffer, &found))
}

async fn find(
    buffer: &CapacityBuffer,
    context: &Context,
) -> Result<Result<Found, Unresolved>, Error> {
    let namespace = buffer.namespace().unwrap_or_default();
    match (&buffer.spec.pod_template_ref, &buffer.spec.scalable_ref) {
        (Some(reference), None) => {
            let api: Api<PodTemplate> = Api::namespaced(context.client.clone(), &namespace);
            let found = bounded(api.get_opt(&reference.name))
                .await
                .map_err(|source| Error::kube("read the pod template of", buffer, source))?;
            Ok(
                match found.and_then(|it| Some((it.template?, it.metadata.generation))) {
                    Some((template, generation)) => Ok(Found {
                        template,
                        replicas: 0,
                        generation,
                    }),
                    None => {
                        let message =
                            format!("PodTemplate {namespace}/{} does not exist", reference.name);
                        Err((reason::POD_TEMPLATE_NOT_FOUND, message))
                    }
                },
            )
        }
        (None, Some(reference)) => find_workload(buffer, reference, &namespace, context).await,
        (Some(_), Some(_)) | (None, None) => {
            let message = "set podTemplateRef or scalableRef, and not both".to_owned();
            Ok(Err((reason::RESOLUTION_FAILED, message)))
        }
    }
}

async fn find_workload(
    buffer: &CapacityBuffer,
    reference: &ScalableReference,
    namespace: &str,
    context: &Context,
) -> Result<Result<Found, Unresolved>, Error> {
    let ScalableReference {
        api_group,
        kind,
        name,
    } = reference;
    let group = api_group.as_deref().unwrap_or_default();
    let client = || context.client.clone();
    let failed = |source| Error::kube("read the workload of", buffer, source);
    let found = match (group, kind.as_str()) {
        ("" | "apps", "Deployment") => {
            let api: Api<Deployment> = Api::namespaced(client(), namespace);
            let object = bounded(api.get_opt(name)).await.map_err(failed)?;
            object.map(|it| (it.spec.map(|it| (it.template, it.replicas)), it.metadata))
        }
        ("" | "apps", "StatefulSet") => {
            let api: Api<StatefulSet> = Api::namespaced(client(), namespace);
            let object = bounded(api.get_opt(name)).await.map_err(failed)?;
            object.map(|it| (it.spec.map(|it| (it.template, it.replicas)), it.metadata))
        }
        ("" | "apps", "ReplicaSet") => {
            let api: Api<ReplicaSet> = Api::namespaced(client(), namespace);
            let object = bounded(api.get_opt(name)).await.map_err(failed)?;
            object.map(|it| {
                let spec = it.spec.and_then(|it| Some((it.template?, it.replicas)));
                (spec, it.metadata)
            })
        }
        _ => {
            let message = format!(
                "scalableRef: {kind} of group {group:?} cannot be used; kerf knows Deployment, StatefulSet and ReplicaSet of apps"
            );
            return Ok(Err((reason::RESOLUTION_FAILED, message)));
        }
    };
    Ok(
        match found.and_then(|(spec, metadata)| Some((spec?, metadata.generation))) {
            Some(((template, replicas), generation)) => Ok(Found {
                template,
                // Kubernetes' own default.
                replicas: u32::try_from(replicas.unwrap_or(1)).unwrap_or_default(),
                generation,
            }),
            None => {
                let message = format!("{kind} {namespace}/{name} does not exist");
                Err((reason::SCALABLE_REF_NOT_FOUND, message))
            }
        },
    )
}

/// The buffer's pods and how many. Pure.
fn assemble(buffer: &CapacityBuffer, found: &Found) -> Result<Resolved, Unresolved> {
    let buffer = self::buffer(buffer, &found.template, found.replicas)
        .map_err(|problems| (reason::RESOLUTION_FAILED, problems))?;
    Ok(Resolved {
        buffer,
        generation: found.generation,
    })
}

/// The pods of a buffer whose template is known, and, where it refers to a workload, that workload's replicas. Pure.
///
/// # Errors
/// What of the template or the limits cannot be used, by field.
pub fn buffer(
    buffer: &CapacityBuffer,
    template: &PodTemplateSpec,
    workload_replicas: u32,
) -> Result<Buffer, String> {
    let lines = |problems: Vec<kerf_state::Problem>| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        lines.join("; ")
    };
    let spec = buffer_pod(template).map_err(lines)?;
    let number = |it: Option<i32>| it.and_then(|it| u32::try_from(it).ok());
    let demand = BufferDemand {
        replicas: number(buffer.spec.replicas),
        percentage: number(buffer.spec.percentage),
        workload_replicas,
        limits: buffer_limits(&buffer.spec).map_err(lines)?,
    };
    let pods = demand.pods(&spec.requests);
    let (namespace, uid) = (
        buffer.namespace().unwrap_or_default(),
        buffer.uid().unwrap_or_default(),
    );
    let mut resolved = Buffer::new(&namespace, &buffer.name_any(), &uid, spec, pods);
    resolved.created_at = created_at(buffer);
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pods(spec: serde_json::Value, replicas: u32) -> Result<u32, Unresolved> {
        let buffer = CapacityBuffer::new("spare", serde_json::from_value(spec).unwrap());
        let template = json!({"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "500m"}}}]}});
        let found = Found {
            template: serde_json::from_value(template).unwrap(),
            replicas,
            generation: Some(1),
        };
        assemble(&buffer, &found).map(|it| it.buffer.pods)
    }

    #[test]
    fn a_buffer_is_as_large_as_it_says() {
        assert_eq!(pods(json!({"replicas": 3}), 0), Ok(3));
        assert_eq!(pods(json!({"percentage": 25}), 9), Ok(3));
        assert_eq!(pods(json!({"limits": {"cpu": "2"}}), 0), Ok(4));
        assert_eq!(
            pods(json!({"replicas": 9, "limits": {"cpu": "1"}}), 0),
            Ok(2)
        );
    }

    #[test]
    fn a_limit_that_cannot_be_read_is_a_failed_resolution() {
        let (reason, message) =
            pods(json!({"replicas": 1, "limits": {"cpu": "much"}}), 0).unwrap_err();

        assert_eq!(reason, reason::RESOLUTION_FAILED);
        assert!(message.contains("spec.limits.cpu"), "{message}");
    }
}
