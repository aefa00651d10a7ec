//! Termination on the real control plane: what holds a drain back, what does not, and that each end is reached.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kerf_api::nodeclaim::NodeClaim;
use kube::api::{DeleteParams, EvictParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::scenarios::{deployment, pool, ready_stage};
use crate::stage::Stage;

fn budget(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: {name}, namespace: default}}\nspec: {{{spec}}}"
    )
}

/// Deletes the only claim, as `kubectl delete nodeclaim` does; its name.
fn delete_the_claim(stage: &Stage) -> String {
    let claim = stage.list::<NodeClaim>().remove(0).name_any();
    stage.delete::<NodeClaim>(&claim);
    claim
}

fn delete_budget(stage: &Stage, name: &str) {
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(stage.client.clone(), "default");
    let deleted = stage
        .runtime
        .block_on(budgets.delete(name, &DeleteParams::default()));
    deleted.expect("delete the budget");
}

fn pool_with_grace(grace: &str) -> String {
    pool("720h", "").replace(
        "      nodeClassRef:",
        &format!("      terminationGracePeriod: {grace}\n      nodeClassRef:"),
    )
}

fn until_replaced(stage: &Stage, claim: &str) {
    stage.until("the claim is gone", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        claims.iter().all(|it| it.name_any() != claim).then_some(())
    });
}

#[test]
fn a_pod_that_never_got_ready_leaves_where_its_budget_always_allows_unhealthy_pods() {
    let stage = ready_stage("720h", "");
    let sleepy = deployment("web", 1, "1", "1Gi", "").replace(
        "metadata: {labels: {app: web}}",
        "metadata: {labels: {app: web}, annotations: {pod-ready.stage.kwok.x-k8s.io/delay: 1h}}",
    );
    stage.apply(&sleepy);
    stage.apply(&budget(
        "web",
        "maxUnavailable: 0, unhealthyPodEvictionPolicy: AlwaysAllow, selector: {matchLabels: {app: web}}",
    ));
    stage.until_bound(1);

    let claim = delete_the_claim(&stage);

    until_replaced(&stage, &claim);
}

#[test]
fn kubectl_delete_node_drains_it_and_takes_its_claim_and_instance_with_it() {
    let stage = ready_stage("720h", "");
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    stage.until_bound(1);
    let node = stage.list::<Node>().remove(0).name_any();
    stage.apply(&deployment("web", 0, "1", "1Gi", ""));

    stage.delete::<Node>(&node);

    stage.until_empty();
}

#[test]
fn a_volume_that_is_still_attached_holds_the_machine_until_the_grace_is_over() {
    let stage = ready_stage("720h", "");
    stage.apply(&pool_with_grace("15s"));
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    stage.until_bound(1);
    let node = stage.list::<Node>().remove(0).name_any();
    stage.apply(&format!(
        "apiVersion: storage.k8s.io/v1\nkind: VolumeAttachment\nmetadata: {{name: held}}\nspec: {{attacher: disk.test, nodeName: {node}, source: {{persistentVolumeName: pv-1}}}}"
    ));
    stage.apply(&deployment("web", 0, "1", "1Gi", ""));

    delete_the_claim(&stage);

    stage.until("the claim waits for the volume", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        let conditions = claims.first()?.conditions();
        kerf_api::condition::find(conditions, "VolumesDetached")
            .filter(|it| it.reason == "AwaitingVolumeDetachment" && it.message.contains("pv-1"))
            .map(drop)
    });
    assert_eq!(stage.instances().len(), 1);
    stage.until_empty();
    assert_eq!(stage.list::<VolumeAttachment>().len(), 1);
}

#[test]
fn a_pod_whose_finalizer_nobody_takes_away_and_a_kubelet_that_is_gone_do_not_hold_a_node_for_ever()
{
    let stage = ready_stage("720h", "");
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    stage.until_bound(1);
    let pod = stage.list::<Pod>().remove(0).name_any();
    let node = stage.list::<Node>().remove(0).name_any();
    let pods: Api<Pod> = Api::namespaced(stage.client.clone(), "default");
    let nodes: Api<Node> = Api::all(stage.client.clone());
    let stuck = json!({"metadata": {"finalizers": ["example.com/stuck"]}});
    let gone = json!({"metadata": {"annotations": {
        "node-break.stage.kwok.x-k8s.io/reason": "KubeletStopped",
    }}});
    stage.runtime.block_on(async {
        let params = PatchParams::default();
        pods.patch(&pod, &params, &Patch::Merge(stuck))
            .await
            .unwrap();
        nodes
            .patch(&node, &params, &Patch::Merge(gone))
            .await
            .unwrap();
    });

    let claim = delete_the_claim(&stage);

    until_replaced(&stage, &claim);
}

#[test]
fn a_budget_that_allows_nothing_holds_a_drain_and_is_told_until_it_is_gone() {
    let stage = ready_stage("720h", "");
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    stage.apply(&budget(
        "none",
        "maxUnavailable: 0, selector: {matchLabels: {app: web}}",
    ));
    stage.until_bound(1);

    let claim = delete_the_claim(&stage);

    stage.until("an event that names the budget", || async {
        let notes = draining_notes(&stage).await;
        notes
            .iter()
            .any(|it| it.contains("disruption budget"))
            .then_some(())
    });
    assert_eq!(stage.instances().len(), 1);
    delete_budget(&stage, "none");
    until_replaced(&stage, &claim);
}

async fn draining_notes(stage: &Stage) -> Vec<String> {
    let events: Api<Event> = Api::all(stage.client.clone());
    let listed = events.list(&ListParams::default()).await;
    let listed = listed.map(|list| list.items).unwrap_or_default();
    let of_drain = listed
        .into_iter()
        .filter(|it| it.reason.as_deref() == Some("FailedDraining"));
    of_drain.filter_map(|it| it.message).collect()
}

#[test]
fn a_pod_with_two_budgets_holds_a_drain_and_each_reason_is_told_on_the_node() {
    let stage = ready_stage("720h", "");
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    stage.apply(&budget(
        "one",
        "maxUnavailable: 0, selector: {matchLabels: {app: web}}",
    ));
    stage.until_bound(1);
    let machine = stage.instances().remove(0).id;

    let claim = delete_the_claim(&stage);

    stage.until("the budget that allows nothing is told", || async {
        let notes = draining_notes(&stage).await;
        notes
            .iter()
            .any(|it| it.contains("disruption budget one"))
            .then_some(())
    });
    stage.apply(&budget(
        "two",
        "maxUnavailable: 1, selector: {matchLabels: {app: web}}",
    ));
    // The same reason on the same Node, and another text.
    stage.until("that there are two budgets is told as well", || async {
        let notes = draining_notes(&stage).await;
        notes
            .iter()
            .any(|it| it.contains("more than one PodDisruptionBudget"))
            .then_some(())
    });
    // Its pod has a place elsewhere by now, and yet it stays.
    assert!(stage.instances().iter().any(|it| it.id == machine));
    delete_budget(&stage, "one");
    until_replaced(&stage, &claim);
}

/// F61.
#[test]
fn a_budget_does_not_block_a_node_after_its_termination_grace_period() {
    let stage = ready_stage("720h", "");
    stage.apply(&pool_with_grace("10s"));
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    stage.apply(&budget(
        "none",
        "maxUnavailable: 0, selector: {matchLabels: {app: web}}",
    ));
    stage.until_bound(1);

    let claim = delete_the_claim(&stage);

    until_replaced(&stage, &claim);
}

/// F31.
#[test]
fn a_claim_that_is_deleted_while_its_machine_is_still_initializing_keeps_its_finalizer_until_it_is_gone()
 {
    let stage = ready_stage("720h", "");
    stage.sim.add_fault(ecs_sim::Fault {
        action: "DeleteInstances".to_owned(),
        when: Default::default(),
        skip: 0,
        times: 2,
        after: false,
        effect: ecs_sim::Effect::Error {
            status: 403,
            code: "IncorrectInstanceStatus.Initializing".to_owned(),
        },
    });
    stage.apply(&deployment("web", 1, "1", "1Gi", ""));
    let claim = stage.until("a claim with an instance", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        claims.into_iter().find(|it| it.provider_id().is_some())
    });
    stage.apply(&deployment("web", 0, "1", "1Gi", ""));

    stage.delete::<NodeClaim>(&claim.name_any());

    let alive_with_claim = stage.until("the claim is gone", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        claims.is_empty().then(|| stage.instances().len())
    });
    assert_eq!(alive_with_claim, 0);
    assert!(!stage.log().contains("reconcile failed"), "{}", stage.log());
    stage.until_empty();
}

const DENIED: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-eviction-of-a}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: ["v1"], operations: [CREATE], resources: ["pods/eviction"]}]
  validations: [{expression: "!object.metadata.name.startsWith('a-')", message: "a stays"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-eviction-of-a}
spec: {policyName: no-eviction-of-a, validationActions: [Deny]}
"#;

#[test]
fn an_eviction_that_fails_for_a_reason_of_its_own_does_not_keep_the_other_pods_on_the_node() {
    let stage = ready_stage("720h", "");
    stage.apply(&deployment("a", 1, "1", "1Gi", ""));
    stage.apply(&deployment("b", 1, "1", "1Gi", ""));
    stage.until_bound(2);
    stage.apply(DENIED);
    let pods: Api<Pod> = Api::namespaced(stage.client.clone(), "default");
    let held = pod_of(&stage, "a");
    stage.until("the API server denies the eviction", || async {
        let mut params = EvictParams::default();
        params.post_options.dry_run = true;
        let denied = pods.evict(&held, &params).await;
        denied.is_err().then_some(())
    });
    let moved = pod_of(&stage, "b");
    let claims: Vec<NodeClaim> = stage.list();
    assert_eq!(claims.len(), 1, "both pods on one node");

    let claim = delete_the_claim(&stage);

    stage.until("the other pod has left", || async {
        let pod = pods.get_opt(&moved).await.ok()?;
        pod.is_none().then_some(())
    });
    stage.until("an event that says why the first one stays", || async {
        let notes = draining_notes(&stage).await;
        notes.iter().any(|it| it.contains("a stays")).then_some(())
    });
    assert_eq!(pod_of(&stage, "a"), held);
    let policies: Api<ValidatingAdmissionPolicyBinding> = Api::all(stage.client.clone());
    let params = DeleteParams::default();
    let deleted = policies.delete("no-eviction-of-a", &params);
    stage.runtime.block_on(deleted).expect("delete the binding");
    until_replaced(&stage, &claim);
}

fn pod_of(stage: &Stage, app: &str) -> String {
    let pods = stage.list::<Pod>();
    let is_of_app = |pod: &&Pod| pod.labels().get("app").is_some_and(|it| it == app);
    pods.iter()
        .find(is_of_app)
        .expect("a pod of the app")
        .name_any()
}
