//! Policies from a registry, on the real control plane and with the distribution project's registry: pushed by `kerf plugin
//! publish`, pulled by digest with a login and a private CA, and what happens when any of it is wrong.

mod server;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kerf_api::condition;
use kerf_api::ecsnodeclass::EcsNodeClass;
use kube::api::{Api, Patch, PatchParams};

use crate::policies::{MANIFESTS, PREFER_FAMILY, launch_one, until_policy};
use crate::stage::{NAMESPACE, Stage, binary};
use server::{PASSWORD, Tls, USER, Way};

const SECRET: &str = "registry";

/// The docker configuration with a login for these hosts.
fn docker_config(hosts: &[String], password: &str) -> String {
    let auth = STANDARD.encode(format!("{USER}:{password}"));
    let entries = hosts
        .iter()
        .map(|host| format!(r#""{host}": {{"auth": "{auth}"}}"#));
    format!(
        r#"{{"auths": {{{}}}}}"#,
        entries.collect::<Vec<_>>().join(", ")
    )
}

fn put_secret(stage: &Stage, docker_config: &str) {
    let mut secret = Secret {
        type_: Some("kubernetes.io/dockerconfigjson".to_owned()),
        data: Some(BTreeMap::from([(
            ".dockerconfigjson".to_owned(),
            ByteString(docker_config.as_bytes().to_vec()),
        )])),
        ..Secret::default()
    };
    secret.metadata.name = Some(SECRET.to_owned());
    let api: Api<Secret> = Api::namespaced(stage.client.clone(), NAMESPACE);
    let params = PatchParams::apply("test").force();
    stage
        .runtime
        .block_on(api.patch(SECRET, &params, &Patch::Apply(&secret)))
        .unwrap();
}

/// `kerf plugin publish --oci`.
fn publish(component: &Path, reference: &str, config: &Path, roots: Option<&Path>) -> Output {
    let mut command = Command::new(binary("kerf"));
    command
        .args(["plugin", "publish"])
        .arg(component)
        .args(["--oci", reference, "--json", "--docker-config"])
        .arg(config);
    if let Some(roots) = roots {
        command.arg("--registry-ca-bundle").arg(roots);
    }
    command.output().unwrap()
}

/// The manifest's digest in what `publish` printed.
fn manifest_digest(output: &Output) -> String {
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    result["manifestDigest"].as_str().unwrap().to_owned()
}

/// The usual manifests, with the policy from a registry.
fn manifests(reference: &str, digest: &str, secret: &str) -> String {
    let secret = match secret {
        "" => String::new(),
        name => format!(", pullSecret: {name}"),
    };
    let digest = match digest {
        "" => String::new(),
        digest => format!(r#", digest: "{digest}""#),
    };
    let source = format!(r#"source: {{oci: {{ref: "{reference}"{digest}{secret}}}}}"#);
    let old = "source: {configMap: {name: family, key: policy.wasm}}";
    assert!(MANIFESTS.contains(old));
    MANIFESTS.replace(old, &source)
}

/// The condition's status and message on the only class.
fn told(stage: &Stage, type_: &str) -> Option<(String, String)> {
    let classes: Vec<EcsNodeClass> = stage.list();
    let status = classes.first()?.status.as_ref()?;
    let found = condition::find(&status.conditions, type_)?;
    Some((found.status.as_str().to_owned(), found.message.clone()))
}

fn component_file(folder: &Path) -> PathBuf {
    let file = folder.join("family.wasm");
    std::fs::write(&file, PREFER_FAMILY).unwrap();
    file
}

/// Changes one byte of each component, as a disk or a thief would.
fn damage_components(folder: &Path) {
    let mut blobs = Vec::new();
    let mut folders = vec![folder.join("docker/registry/v2/blobs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                blobs.push(path);
            }
        }
    }
    // Manifests and configurations are smaller.
    for blob in blobs
        .iter()
        .filter(|it| it.metadata().unwrap().len() > 4 << 10)
    {
        let mut bytes = std::fs::read(blob).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(blob, bytes).unwrap();
    }
}

#[test]
fn a_policy_comes_from_a_registry_with_a_private_ca_and_a_login() {
    let mut stage = Stage::set();
    let tls = Tls::of(&stage);
    let folder = tempfile::tempdir().unwrap();
    let registry = server::registry(&tls, folder.path());
    let host = format!("localhost:{}", registry.port);
    let reference = format!("{host}/team/family:v1");
    let config = folder.path().join("docker.json");
    std::fs::write(
        &config,
        docker_config(std::slice::from_ref(&host), PASSWORD),
    )
    .unwrap();
    let file = component_file(folder.path());

    // The CLI's errors: a CA that nobody knows, and a wrong password.
    let unknown = publish(&file, &reference, &config, None);
    let said = String::from_utf8_lossy(&unknown.stderr);
    assert!(
        !unknown.status.success() && said.contains("--registry-ca-bundle"),
        "{said}"
    );
    let wrong = folder.path().join("wrong.json");
    std::fs::write(&wrong, docker_config(std::slice::from_ref(&host), "wrong")).unwrap();
    let refused = publish(&file, &reference, &wrong, Some(&tls.roots));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("refused the login"),
        "{said}"
    );
    assert!(!said.contains(PASSWORD), "{said}");

    let digest = manifest_digest(&publish(&file, &reference, &config, Some(&tls.roots)));
    let again = manifest_digest(&publish(&file, &reference, &config, Some(&tls.roots)));
    assert_eq!(digest, again, "the same component is the same artifact");

    let roots = tls.roots.to_str().unwrap();
    stage.start_kerf(&["--registry-ca-bundle", roots]);
    stage.apply(&manifests(&reference, "", ""));
    until_policy(&stage, "Failed", "set source.oci.digest");
    stage.apply(&manifests(&reference, &digest, ""));
    until_policy(&stage, "Failed", "pullSecret");
    assert_eq!(told(&stage, "PoliciesFetched").unwrap().0, "False");
    assert_eq!(told(&stage, "PoliciesCompiled").unwrap().0, "Unknown");
    stage.apply(&manifests(&reference, &digest, SECRET));
    until_policy(&stage, "Failed", "there is no Secret registry");
    put_secret(&stage, &docker_config(&[host], PASSWORD));
    until_policy(&stage, "Ready", "");
    for type_ in [
        "PoliciesFetched",
        "PoliciesVerified",
        "PoliciesCompiled",
        "PoliciesConfigValid",
        "PoliciesReady",
    ] {
        assert_eq!(told(&stage, type_).unwrap().0, "True", "{type_}");
    }
    let launched = launch_one(&stage, "with");
    assert!(launched.starts_with("ecs.g8i."), "{launched}");
    assert!(!stage.log().contains(PASSWORD));

    // What serves needs no registry.
    drop(registry);
    let still = launch_one(&stage, "still");
    assert!(still.starts_with("ecs.g8i."), "{still}");
}

#[test]
fn what_a_registry_sends_damaged_or_cut_is_not_run_and_comes_by_itself_when_it_is_whole() {
    let mut stage = Stage::set();
    let tls = Tls::of(&stage);
    let folder = tempfile::tempdir().unwrap();
    let (tokens, blobs) = (server::tokens(&tls), folder.path().join("registry"));
    std::fs::create_dir(&blobs).unwrap();
    let registry = server::registry_with_tokens(&tls, &blobs, &tokens);
    // Handshake and manifest pass, and the component does not.
    let way = Way::to(registry.port, 8 << 10);
    let hosts = [registry.port, way.port].map(|port| format!("localhost:{port}"));
    let config = folder.path().join("docker.json");
    std::fs::write(&config, docker_config(&hosts, PASSWORD)).unwrap();
    let file = component_file(folder.path());
    let reference = format!("{}/team/family:v1", hosts[0]);
    let digest = manifest_digest(&publish(&file, &reference, &config, Some(&tls.roots)));
    put_secret(&stage, &docker_config(&hosts, PASSWORD));

    stage.apply(&manifests(
        &format!("{}/team/family", hosts[1]),
        &digest,
        SECRET,
    ));
    stage.start_kerf(&["--registry-ca-bundle", tls.roots.to_str().unwrap()]);
    until_policy(&stage, "Failed", "did not send all of the component");
    way.open();
    until_policy(&stage, "Ready", "");

    // The newer version is damaged on the registry's disk: the older one goes on.
    let mut newer = PREFER_FAMILY.to_vec();
    // An empty custom section: other bytes, the same component.
    newer.extend([0, 2, 1, b'x']);
    std::fs::write(&file, newer).unwrap();
    let newer = manifest_digest(&publish(&file, &reference, &config, Some(&tls.roots)));
    assert_ne!(newer, digest);
    damage_components(&blobs);
    stage.apply(&manifests(&reference, &newer, SECRET));
    until_policy(&stage, "Stale", "damaged or changed on the way");
    let launched = launch_one(&stage, "with");
    assert!(launched.starts_with("ecs.g8i."), "{launched}");

    // A digest that the registry does not have.
    stage.apply(&manifests(
        &reference,
        &format!("sha256:{}", "0".repeat(64)),
        SECRET,
    ));
    until_policy(&stage, "Stale", "has not got the manifest");
}

#[test]
fn a_login_is_shown_to_the_registry_and_to_no_storage_that_it_sends_to() {
    let mut stage = Stage::set();
    let tls = Tls::of(&stage);
    let storage = server::storage(&tls);
    let front = server::front(&tls, &storage);
    let host = format!("localhost:{}", front.port);
    put_secret(
        &stage,
        &docker_config(std::slice::from_ref(&host), PASSWORD),
    );
    let digest = format!("sha256:{}", "0".repeat(64));
    stage.apply(&manifests(&format!("{host}/team/family"), &digest, SECRET));
    stage.start_kerf(&["--registry-ca-bundle", tls.roots.to_str().unwrap()]);

    // Where the storage says to log in nobody goes, so that its refusal is the end.
    until_policy(&stage, "Failed", "refused the login");
    let said = storage.said();
    assert!(said.len() >= 2, "{said:?}");
    assert!(
        said.iter().all(|line| line.ends_with("shown \"\"")),
        "{said:?}"
    );
    assert!(!stage.log().contains("thief"), "the storage's word counts");
}
