//! Volumes that are still attached to a Node: deleting the instance under them could corrupt them.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kerf_api::names::event;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::api_call::{bounded, is_not_found};
use crate::context::Context;
use crate::error::Error;

/// A volume that is waited for, as a message; none when all are detached. Volumes of the pods that stay are never
/// detached by a drain, so they are not waited for (Karpenter: same).
///
/// # Errors
/// When the API server could not be asked.
pub async fn held(
    node: &Node,
    staying: &[Pod],
    context: &Context,
) -> Result<Option<String>, Error> {
    let api: Api<VolumeAttachment> = Api::all(context.client.clone());
    let attachments = bounded(api.list(&ListParams::default()))
        .await
        .map_err(|source| Error::kube("list the volume attachments of", node, source))?;
    let attached = attached(&attachments.items, &node.name_any());
    if attached.is_empty() {
        return Ok(None);
    }
    let kept = volumes_of(staying, context).await?;
    let Some(volume) = attached.difference(&kept).next() else {
        return Ok(None);
    };
    let note = format!(
        "volume {volume} is still attached to node {}",
        node.name_any()
    );
    context
        .events
        .normal(node, event::AWAITING_VOLUME_DETACHMENT, &note)
        .await;
    Ok(Some(note))
}

/// Names of the persistent volumes that are attached to the node. Pure.
fn attached(attachments: &[VolumeAttachment], node: &str) -> BTreeSet<String> {
    attachments
        .iter()
        .filter(|it| it.spec.node_name == node)
        .filter_map(|it| it.spec.source.persistent_volume_name.clone())
        .collect()
}

async fn volumes_of(pods: &[Pod], context: &Context) -> Result<BTreeSet<String>, Error> {
    let mut volumes = BTreeSet::new();
    for pod in pods {
        let namespace = pod.namespace().unwrap_or_default();
        let api: Api<PersistentVolumeClaim> = Api::namespaced(context.client.clone(), &namespace);
        for name in claims_of(pod) {
            match bounded(api.get(&name)).await {
                Ok(claim) => volumes.extend(claim.spec.and_then(|spec| spec.volume_name)),
                Err(error) if is_not_found(&error) => {}
                Err(source) => return Err(Error::kube("read the volumes of", pod, source)),
            }
        }
    }
    Ok(volumes)
}

/// Names of the pod's volume claims. Pure.
fn claims_of(pod: &Pod) -> Vec<String> {
    let volumes = pod
        .spec
        .iter()
        .flat_map(|spec| spec.volumes.iter().flatten());
    volumes
        .filter_map(|volume| {
            let named = volume.persistent_volume_claim.as_ref();
            let ephemeral = || {
                let _ = volume.ephemeral.as_ref()?;
                Some(format!("{}-{}", pod.name_any(), volume.name))
            };
            named.map(|it| it.claim_name.clone()).or_else(ephemeral)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{PersistentVolumeClaimVolumeSource, PodSpec, Volume};

    use super::*;

    #[test]
    fn only_volumes_with_a_name_on_this_node_count() {
        let attachment = |node: &str, volume: Option<&str>| {
            let mut attachment = VolumeAttachment::default();
            attachment.spec.node_name = node.to_owned();
            attachment.spec.source.persistent_volume_name = volume.map(str::to_owned);
            attachment
        };
        let all = [
            attachment("a", Some("pv-1")),
            attachment("b", Some("pv-2")),
            attachment("a", None),
        ];

        assert_eq!(attached(&all, "a"), BTreeSet::from(["pv-1".to_owned()]));
    }

    #[test]
    fn the_claims_of_a_pod_are_those_that_it_names_and_those_made_for_it() {
        let named = Volume {
            name: "data".to_owned(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: "data-0".to_owned(),
                ..PersistentVolumeClaimVolumeSource::default()
            }),
            ..Volume::default()
        };
        let made = Volume {
            name: "scratch".to_owned(),
            ephemeral: Some(Default::default()),
            ..Volume::default()
        };
        let mut pod = Pod::default();
        pod.metadata.name = Some("db-0".to_owned());
        pod.spec = Some(PodSpec {
            volumes: Some(vec![named, made, Volume::default()]),
            ..PodSpec::default()
        });

        assert_eq!(claims_of(&pod), ["data-0", "db-0-scratch"]);
    }
}
