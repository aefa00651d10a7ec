//! What shapes capacity besides pending pods, on the real control plane: NodeOverlays.

use k8s_openapi::api::core::v1::Node;
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodeoverlay::NodeOverlay;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::scenarios::{ECSNODECLASS, deployment, pool};
use crate::stage::Stage;

const TWO_TYPES: &str = r#"        - {key: node.kubernetes.io/instance-type, operator: In, values: ["ecs.g7.large", "ecs.g7.xlarge"]}"#;

fn stage_with(gates: &str, requirements: &str) -> Stage {
    let mut stage = Stage::set();
    stage.apply(ECSNODECLASS);
    stage.apply(&pool("720h", requirements));
    stage.start_kerf(&["--feature-gates", gates]);
    stage
}

fn overlay(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"
    )
}

async fn reason_of(stage: &Stage, name: &str) -> Option<String> {
    let overlays: Vec<NodeOverlay> = stage.list_async().await;
    let overlay = overlays.into_iter().find(|it| it.name_any() == name)?;
    let conditions = overlay.status?.conditions;
    let validated = conditions
        .iter()
        .find(|it| it.type_ == "ValidationSucceeded")?;
    Some(validated.reason.clone())
}

fn until_reason(stage: &Stage, name: &str, reason: &str) {
    stage.until(&format!("{reason} on NodeOverlay {name}"), || async {
        (reason_of(stage, name).await? == reason).then_some(())
    });
}

#[test]
fn an_overlay_makes_the_dearer_type_the_first_choice_and_two_of_one_weight_are_told() {
    let stage = stage_with("NodeOverlay=true", TWO_TYPES);
    stage.apply(&overlay(
        "discount",
        r#"weight: 5, price: "0.0001", requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [ecs.g7.xlarge]}]"#,
    ));
    // The schema lets it through; as a price it is more than can be counted.
    stage.apply(&overlay(
        "broken",
        r#"requirements: [], price: "99999999999999999999""#,
    ));
    until_reason(&stage, "discount", "ValidationSucceeded");
    until_reason(&stage, "broken", "RuntimeValidation");

    stage.apply(&deployment("web", 1, "500m", "1Gi", ""));
    stage.until_bound(1);

    let claim = stage.list::<NodeClaim>().remove(0);
    assert_eq!(
        claim.labels()["node.kubernetes.io/instance-type"],
        "ecs.g7.xlarge"
    );
    assert_eq!(
        claim.annotations()["karpenter.sh/price-overlay-applied"],
        "true"
    );
    assert!(
        !claim
            .annotations()
            .contains_key("karpenter.sh/capacity-overlay-applied")
    );

    // By name the later one comes first, so that the other has the conflict, and nothing of it applies.
    stage.apply(&overlay(
        "surcharge",
        r#"weight: 5, priceAdjustment: "+50%", requirements: []"#,
    ));
    until_reason(&stage, "discount", "Conflict");
    until_reason(&stage, "surcharge", "ValidationSucceeded");
    stage.apply(&deployment("web", 0, "500m", "1Gi", ""));
    stage.delete::<NodeClaim>(&claim.name_any());
    stage.apply(&deployment("small", 1, "500m", "1Gi", ""));
    stage.until("the cheaper type again", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        let types = claims
            .iter()
            .filter_map(|it| it.labels().get("node.kubernetes.io/instance-type"));
        types.clone().any(|it| it == "ecs.g7.large").then_some(())
    });
    stage.delete::<NodeOverlay>("surcharge");
    until_reason(&stage, "discount", "ValidationSucceeded");
}

#[test]
fn an_overlay_with_a_resource_gives_a_waiting_pod_its_node() {
    let stage = stage_with("NodeOverlay=true", TWO_TYPES);
    let pod = deployment("fuse", 1, "500m", "1Gi", "")
        .replace(r#"cpu: "500m""#, r#"cpu: "500m", "example.com/fuse": "1""#);
    let pod = pod.replace(
        "requests: {",
        "limits: {\"example.com/fuse\": \"1\"}, requests: {",
    );
    stage.apply(&pod);
    stage.until("a refusal that names the resource", || async {
        stage.log().contains("example.com/fuse").then_some(())
    });
    assert!(stage.list::<NodeClaim>().is_empty());

    stage.apply(&overlay(
        "fuse",
        r#"requirements: [{key: karpenter.sh/nodepool, operator: In, values: [default]}], capacity: {"example.com/fuse": "10"}"#,
    ));

    let node = stage.until("a Node for the pod", || async {
        stage.list_async::<Node>().await.pop()
    });
    // What a device plugin does, which no simulated node has.
    let api: Api<Node> = Api::all(stage.client.clone());
    let patch = json!({"status": {"capacity": {"example.com/fuse": "10"}, "allocatable": {"example.com/fuse": "10"}}});
    stage
        .runtime
        .block_on(api.patch_status(
            &node.name_any(),
            &PatchParams::default(),
            &Patch::Merge(&patch),
        ))
        .unwrap();
    stage.until_bound(1);
    let claim = stage.list::<NodeClaim>().remove(0);
    assert_eq!(
        claim.annotations()["karpenter.sh/capacity-overlay-applied"],
        "true"
    );
    assert_eq!(claim.status.unwrap().capacity["example.com/fuse"].0, "10");
}
