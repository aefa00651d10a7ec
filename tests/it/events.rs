//! Events that tell what nobody would see otherwise, on the real control plane.

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::events::v1::Event;
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::nodeclaim::NodeClaim;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::scenarios::{ECSNODECLASS, deployment, pool, ready_stage};
use crate::stage::{CLUSTER_ID, Stage};

/// Waits for an event of that reason on that object; its note.
pub(crate) fn note(stage: &Stage, kind: &str, name: &str, reason: &str) -> String {
    stage.until(&format!("{reason} on {kind} {name}"), || async {
        let events: Vec<Event> = stage.list_async().await;
        let is_meant = |event: &Event| {
            let about = event.regarding.as_ref();
            event.reason.as_deref() == Some(reason)
                && about.is_some_and(|it| {
                    it.kind.as_deref() == Some(kind) && it.name.as_deref() == Some(name)
                })
        };
        events.into_iter().find(is_meant)?.note
    })
}

#[test]
fn a_node_and_a_claim_that_are_gone_say_so_and_which_instance_went_with_them() {
    let stage = ready_stage("720h", "");
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    stage.until_bound(1);
    let (node, claim) = (
        stage.list::<Node>().remove(0).name_any(),
        stage.list::<NodeClaim>().remove(0).name_any(),
    );
    let instance = stage.instances().remove(0).id;

    stage.apply(&deployment("web", 0, "1", "1Gi", ""));
    stage.delete::<NodeClaim>(&claim);
    stage.until_empty();

    for (kind, name) in [("Node", &node), ("NodeClaim", &claim)] {
        let note = note(&stage, kind, name, "Finalized");
        assert!(note.contains(&instance), "{kind}: {note}");
    }
}

#[test]
fn a_pool_whose_requirements_no_instance_type_meets_says_so() {
    let stage = ready_stage("720h", "");
    stage.apply(&pool(
        "720h",
        "        - {key: node.kubernetes.io/instance-type, operator: In, values: [\"m5.large\"]}",
    ));

    let note = note(&stage, "NodePool", "default", "NoCompatibleInstanceTypes");

    assert!(note.contains("none of the "), "{note}");
    assert!(note.contains("ECSNodeClass default"), "{note}");
}

#[test]
fn an_instance_with_our_tags_that_no_claim_claims_is_deleted_and_told() {
    let mut stage = ready_stage("720h", "");
    stage.kill_kerf();
    let tags = [
        ("karpenter.sh/managed-by", "kerf"),
        ("karpenter.sh/cluster-id", CLUSTER_ID),
        ("karpenter.sh/nodeclaim", "default-gone"),
    ];
    let id = stage.plant(&tags).id;

    stage.start_kerf(&[
        "--garbage-collection-poll-duration",
        "1s",
        "--orphan-grace-duration",
        "1s",
    ]);

    let note = note(&stage, "NodeClaim", "default-gone", "OrphanDeleted");
    assert!(note.contains(&id), "{note}");
    stage.until("no instance", || async {
        stage.instances().is_empty().then_some(())
    });
}

/// Claims are read a hundred at a time: the instance of one that stands behind those is no orphan.
#[test]
fn an_instance_of_a_claim_behind_many_others_is_kept_when_orphans_go() {
    let mut stage = ready_stage("720h", "");
    stage.kill_kerf();
    let tags = [
        ("karpenter.sh/managed-by", "kerf"),
        ("karpenter.sh/cluster-id", CLUSTER_ID),
    ];
    let (claimed, orphan) = (stage.plant(&tags).id, stage.plant(&tags).id);
    let foreign = |name: &str| {
        format!(
            "apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {{name: {name}}}\n\
             spec:\n  requirements: []\n\
             \x20 nodeClassRef: {{group: example.com, kind: Foreign, name: default}}"
        )
    };
    let fillers = (0..110).map(|nth| foreign(&format!("a-{nth}")));
    let all: Vec<String> = fillers.chain([foreign("z")]).collect();
    stage.apply(&all.join("\n---\n"));
    let claims: Api<NodeClaim> = Api::all(stage.client.clone());
    let status = json!({"status": {"providerID": format!("cn-hangzhou.{claimed}")}});
    let (params, patch) = (PatchParams::default(), Patch::Merge(status));
    let written = claims.patch_status("z", &params, &patch);
    stage.runtime.block_on(written).unwrap();

    stage.start_kerf(&[
        "--garbage-collection-poll-duration",
        "1s",
        "--orphan-grace-duration",
        "1s",
    ]);

    stage.until("the orphan gone", || async {
        let left: Vec<String> = stage.instances().into_iter().map(|it| it.id).collect();
        (!left.contains(&orphan)).then_some(())
    });
    let left: Vec<String> = stage.instances().into_iter().map(|it| it.id).collect();
    assert_eq!(left, [claimed]);
}

/// user-reports.md, F33: the error was swallowed.
#[test]
fn a_cloud_whose_certificate_nobody_signed_is_told_in_the_class() {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    // An https server whose authority no machine knows.
    let stranger = stage.control_plane.server_url();
    stage.start_kerf_with(&[], &[("ECS_ENDPOINT", &stranger)]);

    let message = stage.until("a class that is not Ready", || async {
        let class = stage.list_async::<EcsNodeClass>().await.pop()?;
        let conditions = class.status?.conditions;
        let told = conditions
            .into_iter()
            .find(|it| it.message.contains("certificate"));
        told.map(|it| it.message)
    });

    assert!(message.contains("UnknownIssuer"), "{message}");
}
