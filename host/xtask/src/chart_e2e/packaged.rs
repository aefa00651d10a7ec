//! What `cargo xtask dist` made, installed in the two ways that it offers: each must bring up a controller that provisions.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use control_plane::Options;
use serde_json::{Value, json};

use super::helm::Helm;
use super::kubelet::Kubelet;
use super::objects::{self, FIRST, NAMESPACE};
use super::{GRACE_QUICK, PODS_QUICK, Stage, WORLD};
use crate::demo::manifests;
use crate::process;
use crate::rig::{ACCESS_KEY, Build, CLUSTER_ID, REGION, Rig};
use crate::source::VERSION;

/// How it is installed.
#[derive(Debug, Clone, Copy)]
enum Way {
    Helm,
    Kubectl,
}

/// Each way on a control plane of its own.
pub(crate) fn run(dist: &Path) -> Result<()> {
    for way in [Way::Helm, Way::Kubectl] {
        let bound = install(way, dist).with_context(|| format!("{way:?}"))?;
        println!("{way:?}: bound={bound}");
        if bound != PODS_QUICK {
            bail!("{bound} of {PODS_QUICK} pods are bound");
        }
    }
    Ok(())
}

fn install(way: Way, dist: &Path) -> Result<usize> {
    let rig = Rig::bare("dist-check", Build::Dev, Options::default(), WORLD)?;
    let mut stage = Stage {
        grace: GRACE_QUICK,
        kubelet: Kubelet::new(&rig)?,
        helm: Helm::new(&rig)?,
        rig,
    };
    for idx in 1..=2 {
        stage
            .rig
            .api
            .post("/api/v1/nodes", &objects::system_node(idx))?;
    }
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    stage.rig.api.post("/api/v1/namespaces", &namespace)?;
    let secrets = format!("/api/v1/namespaces/{NAMESPACE}/secrets");
    let values = objects::values(&stage.rig, false, GRACE_QUICK);
    match way {
        Way::Helm => {
            stage.rig.api.post(&secrets, &objects::secret())?;
            let package = dist.join(format!("kerf-{VERSION}.tgz"));
            stage
                .helm
                .install_from("kerf", &package.display().to_string(), &values)?;
        }
        Way::Kubectl => {
            let [id, secret] = ACCESS_KEY;
            let keys = json!({"ALIBABA_CLOUD_ACCESS_KEY_ID": id, "ALIBABA_CLOUD_ACCESS_KEY_SECRET": secret});
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "stringData": keys,
                "metadata": {"name": "kerf-cloud", "namespace": NAMESPACE},
            });
            stage.rig.api.post(&secrets, &secret)?;
            stage.rig.api.post(
                &format!("/api/v1/namespaces/{NAMESPACE}/configmaps"),
                &settings(&stage.rig),
            )?;
            apply(&stage.rig, &dist.join("kerf.yaml"))?;
            for object in pool_and_class(&values) {
                manifests::apply(&stage.rig.api, &object)?;
            }
        }
    }
    stage.until("an acting replica", |it| {
        Ok(it.kubelet.running() == 2 && !it.lease()?.0.is_empty())
    })?;
    stage.workload(FIRST, PODS_QUICK)?;
    stage.until("every pod bound", |it| Ok(it.bound()? == PODS_QUICK))?;
    stage.bound()
}

/// What kerf.yaml's head tells to make.
fn settings(rig: &Rig) -> Value {
    let mut data = json!({
        "CLUSTER_ID": CLUSTER_ID, "ALIBABA_CLOUD_REGION": REGION, "BATCH_IDLE_DURATION": "300ms",
    });
    for product in ["ECS", "VPC", "CS", "RAM", "STS"] {
        data[format!("{product}_ENDPOINT")] = json!(rig.sim_url());
    }
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": "kerf-settings", "namespace": NAMESPACE},
    })
}

/// By the real kubectl where there is one. Debian has none, so that a machine may lack it: then object by object.
fn apply(rig: &Rig, file: &Path) -> Result<()> {
    let mut kubectl = Command::new("kubectl");
    if kubectl.args(["version", "--client"]).output().is_err() {
        println!(
            "kubectl is not on PATH: each object of {} is applied by itself",
            file.display()
        );
        return manifests::apply_file(&rig.api, file);
    }
    let mut kubectl = Command::new("kubectl");
    kubectl.args(["apply", "-f"]).arg(file);
    kubectl.env("KUBECONFIG", rig.control_plane.kubeconfig_path());
    kubectl.env("HOME", rig.folder());
    process::output(&mut kubectl).map(drop)
}

/// As the chart would make them from these values.
fn pool_and_class(values: &Value) -> [Value; 2] {
    let class = json!({
        "apiVersion": "karpenter.alibabacloud.com/v1alpha1", "kind": "ECSNodeClass", "metadata": {"name": "default"},
        "spec": values["nodeClass"]["spec"],
    });
    let mut pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
        "spec": values["nodePool"]["spec"],
    });
    pool["spec"]["template"]["spec"]["nodeClassRef"] = json!({
        "group": "karpenter.alibabacloud.com", "kind": "ECSNodeClass", "name": "default",
    });
    [class, pool]
}
