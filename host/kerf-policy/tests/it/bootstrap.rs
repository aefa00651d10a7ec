//! The BootstrapUserData hook through the real host.

use crate::guest::{ENGINE, NODE_TUNING};
use expect_test::expect;
use kerf_policy::{
    BootstrapInput, Hook, LoadError, Node, Now, Part, PolicyDigest, PolicySpec, Registry,
};
use serde_json::json;
use std::time::Instant;

fn join() -> Part {
    Part {
        content_type: "text/x-shellscript".into(),
        name: Some("join.sh".into()),
        body: "#!/bin/bash\n/attach_node.sh --token __TOKEN__\n".into(),
    }
}

fn input(max_bytes: u32) -> BootstrapInput {
    let node = Node {
        node_pool: "default".into(),
        node_class: "default".into(),
        region: "cn-hangzhou".into(),
        instance_types: vec!["ecs.g7.large".into()],
        architecture: "amd64".into(),
        capacity_type: "spot".into(),
        image_id: "m-1".into(),
        image_family: String::new(),
        kubernetes_version: "1.36".into(),
        max_pods: 64,
        kubelet_json: "{}".into(),
        labels: vec![],
        taints: vec![],
        max_bytes,
    };
    BootstrapInput {
        node,
        parts: vec![join()],
        host_owned: vec![join()],
    }
}

fn spec(config: serde_json::Value) -> PolicySpec {
    PolicySpec {
        config: Some(config),
        digest: Some(PolicyDigest::of(NODE_TUNING)),
        ..PolicySpec::new("tuning", Hook::BootstrapUserData)
    }
}

fn now() -> Now {
    Now {
        instant: Instant::now(),
        unix_secs: 0,
    }
}

#[test]
fn a_policy_adds_a_script_before_the_one_that_joins() {
    let registry = Registry::new(ENGINE.clone());
    let config = json!({"sysctls": {"net.core.somaxconn": "32768"}, "registryMirror": "https://mirror.example.com"});
    registry
        .update("default", spec(config), NODE_TUNING)
        .unwrap();

    let (parts, _) = registry
        .chain("default")
        .render(&input(16_384), now())
        .unwrap();

    assert_eq!(parts[1], join());
    expect![[r##"
        #!/bin/bash
        set -e
        cat > /etc/sysctl.d/90-kerf.conf <<'END'
        net.core.somaxconn = 32768
        END
        sysctl --system
        mkdir -p /etc/containerd/certs.d/docker.io
        cat > /etc/containerd/certs.d/docker.io/hosts.toml <<'END'
        server = "https://registry-1.docker.io"
        [host."https://mirror.example.com"]
        capabilities = ["pull", "resolve"]
        END
    "##]]
    .assert_eq(&parts[0].body);
}

#[test]
fn a_configuration_that_would_break_out_of_the_script_is_refused() {
    let registry = Registry::new(ENGINE.clone());
    let config = json!({"sysctls": {"net.core.somaxconn": "1\nEND\nreboot"}, "registryMirror": "https://$(reboot)"});

    let error = registry
        .update("default", spec(config), NODE_TUNING)
        .unwrap_err();

    expect!["its configuration is refused: /sysctls/net.core.somaxconn: has characters that a sysctl does not have; /registryMirror: must be an https address, such as https://mirror.example.com"].assert_eq(&error.to_string());
}

#[test]
fn user_data_that_is_too_large_stops_the_launch() {
    let registry = Registry::new(ENGINE.clone());
    registry
        .update(
            "default",
            spec(json!({"sysctls": {"vm.swappiness": "1"}})),
            NODE_TUNING,
        )
        .unwrap();

    let error = registry
        .chain("default")
        .render(&input(60), now())
        .unwrap_err();

    expect![[r#"policy "tuning" returned user data with 144 bytes, and the limit is 60; change what the policy returns; nothing is launched because its failurePolicy is Fail"#]].assert_eq(&error.to_string());
}

#[test]
fn without_a_digest_nothing_becomes_root_on_every_node() {
    let unpinned = || PolicySpec {
        digest: None,
        ..spec(json!({}))
    };
    let registry = Registry::new(ENGINE.clone());

    let error = registry
        .update("default", unpinned(), NODE_TUNING)
        .unwrap_err();

    assert_eq!(
        error,
        LoadError::Unpinned {
            found: PolicyDigest::of(NODE_TUNING)
        }
    );
    let lax = Registry::new(ENGINE.clone()).allowing_unpinned_bootstrap();
    lax.update("default", unpinned(), NODE_TUNING).unwrap();
}
