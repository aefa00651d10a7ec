//! A policy in the path, on the real control plane: what is in the ConfigMap decides the next launch.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::nodeclaim::NodeClaim;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use crate::stage::{NAMESPACE, Stage};

pub(crate) const PREFER_FAMILY: &[u8] =
    include_bytes!("../../host/kerf-policy/tests/fixtures/prefer-family.wasm");

const NODE_TUNING: &[u8] = include_bytes!("../../host/kerf-policy/tests/fixtures/node-tuning.wasm");

const DIGESTS: &str = include_str!("../../host/kerf-policy/tests/fixtures/DIGESTS");

pub(crate) const MANIFESTS: &str = r#"
apiVersion: karpenter.alibabacloud.com/v1alpha1
kind: ECSNodeClass
metadata: {name: default}
spec:
  clusterID: ""
  vSwitchSelectorTerms: [{tags: {karpenter.sh/discovery: my-cluster}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: my-cluster}}]
  imageSelectorTerms: [{imageFamily: "acs:alibaba_cloud_linux_3_2104_lts_x64"}]
  policies:
    - name: family
      hook: InstanceSelection
      source: {configMap: {name: family, key: policy.wasm}}
      config: {weights: {ecs.g8i: 100}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: ["on-demand"]}
        - {key: kubernetes.io/arch, operator: In, values: ["amd64"]}
      nodeClassRef: {group: karpenter.alibabacloud.com, kind: ECSNodeClass, name: default}
  disruption: {consolidateAfter: 720h}
"#;

pub(crate) fn put_config_map(stage: &Stage, bytes: &[u8]) {
    put_config_map_as(stage, "family", bytes);
}

fn put_config_map_as(stage: &Stage, name: &str, bytes: &[u8]) {
    put_keys(stage, name, &[("policy.wasm", bytes)]);
}

fn put_keys(stage: &Stage, name: &str, keys: &[(&str, &[u8])]) {
    let key = |(key, bytes): &(&str, &[u8])| ((*key).to_owned(), ByteString(bytes.to_vec()));
    let mut config_map = ConfigMap {
        binary_data: Some(keys.iter().map(key).collect::<BTreeMap<_, _>>()),
        ..ConfigMap::default()
    };
    config_map.metadata.name = Some(name.to_owned());
    config_map.labels_mut().insert(
        "karpenter.alibabacloud.com/policy".to_owned(),
        "true".to_owned(),
    );
    let api: Api<ConfigMap> = Api::namespaced(stage.client.clone(), NAMESPACE);
    let params = PatchParams {
        force: true,
        ..PatchParams::apply("test")
    };
    stage
        .runtime
        .block_on(api.patch(name, &params, &Patch::Apply(&config_map)))
        .expect("put the ConfigMap");
}

/// Waits until the status says this about the policy: its state, and a part of its last error.
pub(crate) fn until_policy(stage: &Stage, state: &str, error: &str) {
    stage.until(&format!("the policy is {state}: {error}"), || async {
        let classes: Vec<EcsNodeClass> = stage.list_async().await;
        let status = classes.into_iter().next()?.status?;
        let policy = status.policies.into_iter().next()?;
        let says = policy.last_error.unwrap_or_default().contains(error);
        (policy.state.as_str() == state && says).then_some(())
    });
}

/// A pod that fits on no node of an earlier one; the instance type of the node that it gets.
pub(crate) fn launch_one(stage: &Stage, name: &str) -> String {
    let before: Vec<String> = stage
        .list::<NodeClaim>()
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    stage.apply(&crate::scenarios::deployment(name, 1, "1100m", "1Gi", ""));
    stage.until_bound(before.len() + 1);
    let claims: Vec<NodeClaim> = stage.list();
    let new = claims
        .iter()
        .find(|claim| !before.contains(&claim.name_any()))
        .expect("a new NodeClaim");
    new.labels()["node.kubernetes.io/instance-type"].clone()
}

#[test]
fn editing_the_configmap_changes_the_next_launch_without_a_restart() {
    let mut stage = Stage::set();
    stage.apply(MANIFESTS);
    put_config_map(&stage, b"this is not WebAssembly");
    stage.start_kerf(&[]);
    until_policy(&stage, "Failed", "not WebAssembly");

    // A policy that does not load is ignored, and the pods get the cheapest node.
    let without = launch_one(&stage, "without");
    assert!(!without.starts_with("ecs.g8i."), "{without}");

    put_config_map(&stage, PREFER_FAMILY);
    until_policy(&stage, "Ready", "");
    let with = launch_one(&stage, "with");
    assert!(with.starts_with("ecs.g8i."), "{with}");

    // A bad version leaves the good one serving.
    put_config_map(&stage, b"broken again");
    until_policy(&stage, "Stale", "not WebAssembly");
    let still = launch_one(&stage, "still");
    assert!(still.starts_with("ecs.g8i."), "{still}");
    assert!(stage.kerf_is_alive());
}

/// The manifests with this BootstrapUserData policy instead.
fn with_tuning(digest: &str) -> String {
    let tuning = format!(
        r#"    - name: tuning
      hook: BootstrapUserData
      source: {{configMap: {{name: tuning}}}}
      {digest}
      config: {{sysctls: {{vm.max_map_count: "262144"}}}}
---"#
    );
    let start = MANIFESTS.find("    - name: family").expect("the policy");
    let end = MANIFESTS[start..].find("---").expect("the next document") + start;
    format!("{}{tuning}{}", &MANIFESTS[..start], &MANIFESTS[end + 3..])
}

#[test]
fn a_policy_writes_a_sysctl_that_the_booted_node_shows_once_its_digest_is_named() {
    let mut stage = Stage::set();
    stage.apply(&with_tuning(""));
    put_config_map_as(&stage, "tuning", NODE_TUNING);
    stage.start_kerf(&[]);
    until_policy(&stage, "Failed", "set spec.policies[].digest to sha256:");

    // Nobody said which version may run as root on every node, so no node starts without it.
    stage.apply(&crate::scenarios::deployment("app", 1, "1100m", "1Gi", ""));
    let claim = stage.until("a claim that says which policy it waits for", || async {
        let claims: Vec<NodeClaim> = stage.list_async().await;
        let is_told = |claim: &NodeClaim| {
            let launched = kerf_api::condition::find(claim.conditions(), "Launched");
            launched.is_some_and(|it| {
                it.reason == "PolicyFailed" && it.message.contains("policy \"tuning\"")
            })
        };
        claims.into_iter().find(is_told)
    });
    assert!(stage.instances().is_empty());

    let digest = DIGESTS
        .lines()
        .find_map(|line| line.strip_suffix(" node-tuning.wasm"))
        .expect("the digest of the fixture");
    stage.apply(&with_tuning(&format!("digest: \"{digest}\"")));
    until_policy(&stage, "Ready", "");
    stage.until_bound(1);
    let instances = stage.instances();
    assert_eq!(instances.len(), 1);
    let file = stage
        .sim
        .read_file(&instances[0].id, "/etc/sysctl.d/90-kerf.conf");
    assert_eq!(
        file.map(|it| String::from_utf8_lossy(&it).into_owned()),
        Some("vm.max_map_count = 262144\n".to_owned()),
        "{:?}",
        stage.sim.boot_log(&instances[0].id)
    );
    let claims: Vec<NodeClaim> = stage.list();
    assert_eq!(claims[0].name_any(), claim.name_any());
}

/// A key, in PEM as openssl writes it.
fn ed25519() -> (Ed25519KeyPair, String) {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
    let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).expect("its own key");
    // What comes before the 32 bytes of the key has twelve, so its base64 ends where that of the key begins.
    let body = format!("MCowBQYDK2VwAyEA{}", base64(pair.public_key().as_ref()));
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n");
    (pair, pem)
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[test]
fn user_data_that_a_given_key_signed_serves_without_a_digest_and_another_key_changes_nothing() {
    let mut stage = Stage::set();
    let folder = tempfile::tempdir().expect("a folder");
    let (pair, pem) = ed25519();
    std::fs::write(folder.path().join("reviewers.pem"), pem).expect("write the key");
    let folder = folder.path().to_str().expect("a path").to_owned();
    stage.apply(&with_tuning(""));
    put_config_map_as(&stage, "tuning", NODE_TUNING);
    stage.start_kerf(&["--policy-key-dir", &folder]);
    until_policy(&stage, "Failed", "set spec.policies[].digest to sha256:");

    let signature = base64(pair.sign(NODE_TUNING).as_ref());
    let keys = [
        ("policy.wasm", NODE_TUNING),
        ("policy.wasm.sig", signature.as_bytes()),
    ];
    put_keys(&stage, "tuning", &keys);
    until_policy(&stage, "Ready", "");

    let (other, _) = ed25519();
    let foreign = base64(other.sign(NODE_TUNING).as_ref());
    let keys = [
        ("policy.wasm", NODE_TUNING),
        ("policy.wasm.sig", foreign.as_bytes()),
    ];
    put_keys(&stage, "tuning", &keys);
    until_policy(&stage, "Stale", "by any of the 1 keys");
}
