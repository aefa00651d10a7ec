//! Machines that become nodes of a real API server.

use std::time::Instant;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use control_plane::ControlPlane;
use ecs_sim::{EcsSim, Options, World};
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};

use crate::boots::{attach_script, booted};
use crate::client::{call, eventually, fast_world, ids, launch};

async fn cluster(options: control_plane::Options) -> (ControlPlane, Api<Node>) {
    let start = || ControlPlane::start(options);
    let control_plane = tokio::task::spawn_blocking(start).await.unwrap().unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let file = Kubeconfig::read_from(control_plane.kubeconfig_path()).unwrap();
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .unwrap();
    (control_plane, Api::all(Client::try_from(config).unwrap()))
}

async fn start(control_plane: &ControlPlane, world: World) -> EcsSim {
    let kubeconfig = Some(control_plane.kubeconfig_path().to_owned());
    EcsSim::start(Options {
        world,
        kubeconfig,
        ..Options::default()
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_becomes_the_node_that_its_user_data_describes_and_goes_with_it() {
    let (control_plane, nodes) = cluster(control_plane::Options::default()).await;
    let sim = start(&control_plane, fast_world()).await;
    let config = r#"{"kubelet_config":{"maxPods":32,"kubeReserved":{"cpu":"100m","memory":"512Mi"},"systemReserved":{"cpu":"100m","memory":"512Mi"},"evictionHard":{"memory.available":"200Mi"}}}"#;
    let script = attach_script(&sim, "{}").await;
    let script = script.replace("--labels ", "--labels karpenter.sh/nodepool=default,");
    let taints = "karpenter.sh/unregistered:NoExecute,team=a:NoSchedule";
    let user_data = format!(
        "#!/bin/bash\n{script} --taints {taints} --node-config {}\n",
        STANDARD.encode(config)
    );

    let encoded = STANDARD.encode(user_data);
    let id = ids(&call(&sim, "RunInstances", &launch(&[("UserData", &encoded)])).await).remove(0);
    let instance = booted(&sim, &id).await;

    let name = instance
        .node_name
        .unwrap_or_else(|| panic!("{}", sim.boot_log(&id).unwrap()));
    assert_eq!(name, format!("cn-hangzhou.{}", instance.ip));
    let node = nodes.get(&name).await.unwrap();
    let labels = node.metadata.labels.unwrap();
    let spec = node.spec.unwrap();
    let status = node.status.unwrap();
    assert_eq!(spec.provider_id, Some(format!("cn-hangzhou.{id}")));
    assert_eq!(labels["karpenter.sh/nodepool"], "default");
    assert_eq!(
        labels["ack.aliyun.com"],
        "c0000000000000000000000000000sim1"
    );
    assert_eq!(labels["node.kubernetes.io/instance-type"], "ecs.g7.xlarge");
    assert_eq!(labels["topology.kubernetes.io/zone"], "cn-hangzhou-h");
    let taints: Vec<_> = spec
        .taints
        .unwrap()
        .into_iter()
        .map(|taint| format!("{}:{}", taint.key, taint.effect))
        .collect();
    assert!(
        taints.contains(&"karpenter.sh/unregistered:NoExecute".to_owned()),
        "{taints:?}"
    );
    assert!(taints.contains(&"team:NoSchedule".to_owned()), "{taints:?}");
    let (capacity, allocatable) = (status.capacity.unwrap(), status.allocatable.unwrap());
    assert_eq!(
        (capacity["pods"].0.as_str(), allocatable["cpu"].0.as_str()),
        ("32", "3800m")
    );
    // 93.5 % of 16 GiB, less 1224 MiB.
    assert_eq!(
        (
            capacity["memory"].0.as_str(),
            allocatable["memory"].0.as_str()
        ),
        ("15686696Ki", "14433320Ki")
    );

    eventually("the node is ready", async || {
        is_ready(&nodes.get(&name).await.unwrap()).then_some(())
    })
    .await;

    call(
        &sim,
        "DeleteInstances",
        &[("InstanceId.1", id.as_str()), ("Force", "true")],
    )
    .await;
    eventually("the node's end", async || {
        nodes.get_opt(&name).await.unwrap().is_none().then_some(())
    })
    .await;
}

/// Kept alive by kwok, and no longer tainted by the node lifecycle controller.
fn is_ready(node: &Node) -> bool {
    let conditions = node
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let tainted = node
        .spec
        .iter()
        .flat_map(|spec| spec.taints.iter().flatten());
    conditions
        .into_iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
        && !tainted
            .into_iter()
            .any(|taint| taint.key == "node.kubernetes.io/not-ready")
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_machines_join_in_twenty_seconds() {
    let (control_plane, nodes) = cluster(control_plane::Options::api_server_only()).await;
    let sim = start(&control_plane, World::default()).await;
    let encoded = STANDARD.encode(format!(
        "#!/bin/bash\n{}\n",
        attach_script(&sim, "{}").await
    ));
    let began = Instant::now();

    call(
        &sim,
        "RunInstances",
        &launch(&[("UserData", &encoded), ("Amount", "50")]),
    )
    .await;
    eventually("all nodes", async || {
        let joined = nodes
            .list_metadata(&ListParams::default())
            .await
            .unwrap()
            .items
            .len();
        (joined == 50).then_some(())
    })
    .await;

    let seconds = began.elapsed().as_secs_f64();
    assert!(seconds < 20.0, "it took {seconds:.1} s");
}
