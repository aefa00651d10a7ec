//! Adoption on the real control plane: a claim of the other provider is kept, and its end is a proper one.

use k8s_openapi::api::core::v1::Node;
use kerf_api::nodeclaim::NodeClaim;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::scenarios::{ECSNODECLASS, deployment, pool};
use crate::stage::Stage;

const FINALIZER: &str = "karpenter.sh/termination";

/// One machine with its claim and Node, as the CloudPilot provider leaves them.
fn leave_behind(stage: &Stage) {
    let tags = [
        ("kubernetes.io/cluster/c1", "owned"),
        ("karpenter.sh/nodepool", "default"),
        ("karpenter.k8s.alibabacloud/ecsnodeclass", "default"),
    ];
    let machine = stage.plant(&tags);
    let (provider_id, node) = (
        format!("cn-hangzhou.{}", machine.id),
        format!("cn-hangzhou.{}", machine.ip),
    );
    stage.apply(&format!(
        "apiVersion: karpenter.sh/v1\nkind: NodeClaim\n\
         metadata:\n  name: old-1\n  finalizers: [{FINALIZER}]\n  labels: {{karpenter.sh/nodepool: default}}\n\
         \x20 annotations: {{karpenter.sh/nodepool-hash: \"1\", karpenter.sh/nodepool-hash-version: v3}}\n\
         spec:\n  requirements: []\n\
         \x20 nodeClassRef: {{group: karpenter.k8s.alibabacloud, kind: ECSNodeClass, name: default}}"
    ));
    let condition = |type_: &str| json!({"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let conditions = ["Launched", "Registered", "Initialized", "Ready"].map(condition);
    let status =
        json!({"status": {"providerID": provider_id, "nodeName": node, "conditions": conditions}});
    let claims: Api<NodeClaim> = Api::all(stage.client.clone());
    let (params, patch) = (PatchParams::default(), Patch::Merge(status));
    let written = claims.patch_status("old-1", &params, &patch);
    stage.runtime.block_on(written).unwrap();
    stage.apply(&format!(
        "apiVersion: v1\nkind: Node\n\
         metadata:\n  name: {node}\n  finalizers: [{FINALIZER}]\n  annotations: {{kwok.x-k8s.io/node: fake}}\n\
         \x20 labels: {{karpenter.sh/nodepool: default, karpenter.sh/registered: \"true\", karpenter.sh/initialized: \"true\"}}\n\
         spec: {{providerID: {provider_id}}}"
    ));
}

#[test]
fn a_claim_of_the_other_provider_is_kept_while_collections_pass_and_ends_with_its_machine() {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    // The pool is the other provider's too; its class group cannot be edited.
    let theirs = "group: karpenter.k8s.alibabacloud";
    stage.apply(&pool("Never", "").replace("group: karpenter.alibabacloud.com", theirs));
    leave_behind(&stage);
    stage.start_kerf(&[
        "--garbage-collection-poll-duration",
        "1s",
        "--orphan-grace-duration",
        "1s",
    ]);
    // Several comparisons of both sides, and one judgement of the claim.
    stage.until("the claim is looked after", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        claims
            .first()?
            .is_true("ConsistentStateFound")
            .then_some(())
    });
    let listings = |stage: &Stage| stage.sim.calls()["DescribeInstances"].total;
    let before = listings(&stage);
    stage.until("four more comparisons", || async {
        (listings(&stage) >= before + 8).then_some(())
    });
    let kept = stage.list::<NodeClaim>().remove(0);
    assert!(kept.metadata.deletion_timestamp.is_none());
    assert!(!kept.is_true("Drifted"), "{:?}", kept.conditions());
    assert_eq!(stage.instances().len(), 1);

    stage.delete::<Node>(&stage.list::<Node>().remove(0).name_any());

    stage.until_empty();
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    stage.until_bound(1);
    let new = stage.list::<NodeClaim>().remove(0);
    assert_eq!(new.spec.node_class_ref.group, "karpenter.alibabacloud.com");
}
