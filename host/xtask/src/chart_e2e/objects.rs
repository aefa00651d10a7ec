//! The objects that the run applies, and where what is left over would be.

use anyhow::Result;
use serde_json::{Value, json};

use crate::rig::{ACCESS_KEY, CLUSTER_ID, REGION, Rig};

pub(super) const NAMESPACE: &str = "kerf-system";
pub(super) const RELEASE: &str = "kerf";
/// The label of nodes and the selector of pods.
pub(super) const RUN: &str = "chart-e2e";
pub(super) const FIRST: &str = "first";
pub(super) const SECOND: &str = "second";
/// Ten pods fill a node of four vCPUs.
pub(super) const POD_CPU: &str = "370m";
/// The second pool, its label and its workload.
pub(super) const SPOT: &str = "spot";
pub(super) const LIKED_FAMILY: &str = "ecs.g8i";
/// Only nodes that were made after the edit have it.
pub(super) const DRIFT_LABEL: &str = "drifted";
const POLICY: &str = "policy";
pub(super) const POOL_PATH: &str = "/apis/karpenter.sh/v1/nodepools/default";
const INSTANCE_TYPE: &str = "ecs.g7.xlarge";
const SECRET: &str = "kerf-cloud";
const LEASE: &str = "karpenter-leader-election";
pub(super) const CLASSES_PATH: &str = "/apis/karpenter.alibabacloud.com/v1alpha1/ecsnodeclasses";
pub(super) const CLASS_PATH: &str =
    "/apis/karpenter.alibabacloud.com/v1alpha1/ecsnodeclasses/default";

pub(super) fn leases_path() -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases")
}

pub(super) fn lease_path() -> String {
    format!("{}/{LEASE}", leases_path())
}

pub(super) fn memory_path() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps/kerf-memory")
}

/// The list that holds it, if it is there.
pub(super) fn memories_path() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps?fieldSelector=metadata.name%3Dkerf-memory")
}

/// A plain node of the cluster, which the chart's defaults must find good.
pub(super) fn system_node(idx: usize) -> Value {
    let name = format!("system-{idx}");
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {control_plane::FAKE_NODE_ANNOTATION: "fake"},
            "labels": {
                "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name,
                "topology.kubernetes.io/zone": format!("cn-hangzhou-{}", if idx == 1 { "h" } else { "i" }),
            },
        },
        "status": {
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "64"},
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "64"},
        },
    })
}

pub(super) fn secret() -> Value {
    let [id, secret] = ACCESS_KEY;
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": NAMESPACE},
        "stringData": {"access-key-id": id, "access-key-secret": secret},
    })
}

/// An access key first, and the role of the service account after the upgrade.
pub(super) fn values(rig: &Rig, is_upgrade: bool, grace: &str) -> Value {
    let url = rig.sim_url();
    let endpoints = ["ECS", "VPC", "CS", "RAM", "STS"]
        .map(|product| json!({"name": format!("{product}_ENDPOINT"), "value": url}));
    let credentials = if is_upgrade {
        json!({"rrsa": {
            "roleARN": "acs:ram::1:role/kerf", "oidcProviderARN": "acs:ram::1:oidc-provider/ack-rrsa-c1",
        }})
    } else {
        json!({"secretName": SECRET})
    };
    let tags = json!({"karpenter.sh/discovery": "my-cluster"});
    json!({
        "settings": {
            "clusterID": CLUSTER_ID, "region": REGION, "batchIdleDuration": "300ms", "disruptionPollDuration": "1s",
            "garbageCollectionPollDuration": "5s",
        },
        "credentials": credentials,
        "controller": {"env": endpoints},
        "networkPolicy": {"enabled": true},
        "dashboards": {"enabled": true},
        "nodeClass": {"create": true, "spec": {
            "vSwitchSelectorTerms": [{"tags": tags}], "securityGroupSelectorTerms": [{"tags": tags}],
            "imageSelectorTerms": [{"imageFamily": "acs:alibaba_cloud_linux_3_2104_lts_x64"}],
        }},
        "nodePool": {"create": true, "spec": {
            "template": {
                "metadata": {"labels": {"run": RUN}},
                "spec": {
                    "terminationGracePeriod": grace,
                    "requirements": [
                        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [INSTANCE_TYPE]},
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                    ],
                },
            },
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"},
        }},
    })
}

/// A pod that may not be disrupted, and one that no drain touches, with its volume.
pub(super) fn guests(node: &str) -> [(&'static str, Value); 4] {
    let pod = |name: &str, more: Value| {
        let mut spec = json!({
            "nodeName": node, "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "registry.invalid/pause"}],
        });
        for (field, value) in more.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        json!({
            "apiVersion": "v1", "kind": "Pod", "spec": spec,
            "metadata": {"name": name, "namespace": "default", "annotations": {"karpenter.sh/do-not-disrupt": "true"}},
        })
    };
    let stays = json!({
        "tolerations": [{"operator": "Exists"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "guest"}}],
    });
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "guest", "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": "pv-guest",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    let attachment = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "guest"},
        "spec": {
            "attacher": "diskplugin.csi.alibabacloud.com", "nodeName": node,
            "source": {"persistentVolumeName": "pv-guest"},
        },
    });
    [
        ("/api/v1/namespaces/default/persistentvolumeclaims", claim),
        ("/apis/storage.k8s.io/v1/volumeattachments", attachment),
        ("/api/v1/namespaces/default/pods", pod("stays", stays)),
        (
            "/api/v1/namespaces/default/pods",
            pod("stubborn", json!({})),
        ),
    ]
}

/// `wasm` in base64.
pub(super) fn policy_source(wasm: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": POLICY, "namespace": NAMESPACE,
            "labels": {"karpenter.alibabacloud.com/policy": "true"},
        },
        "binaryData": {"policy.wasm": wasm},
    })
}

pub(super) fn policy_path() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{POLICY}")
}

/// The class with one policy, which likes the dearer of the two families of [`spot_pool`].
pub(super) fn class_with_policy() -> Value {
    json!({
        "apiVersion": "karpenter.alibabacloud.com/v1alpha1", "kind": "ECSNodeClass", "metadata": {"name": "default"},
        "spec": {"policies": [{
            "name": "family", "hook": "InstanceSelection", "config": {"weights": {LIKED_FAMILY: 100}},
            "source": {"configMap": {"name": POLICY, "key": "policy.wasm"}},
        }]},
    })
}

/// Machines that can be taken back, of two families.
pub(super) fn spot_pool() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": SPOT},
        "spec": {
            "template": {
                "metadata": {"labels": {"run": SPOT}},
                "spec": {
                    "terminationGracePeriod": "10s",
                    "requirements": [
                        {"key": "karpenter.alibabacloud.com/instance-family", "operator": "In", "values": ["ecs.g7", LIKED_FAMILY]},
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
                    ],
                    "nodeClassRef": {"group": "karpenter.alibabacloud.com", "kind": "ECSNodeClass", "name": "default"},
                },
            },
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"},
        },
    })
}

/// What makes every node of the chart's pool drift, and lets half of them go at a time.
pub(super) fn drifted_pool() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
        "spec": {
            // Labels are replaced as a whole.
            "template": {"metadata": {"labels": {"run": RUN, DRIFT_LABEL: "true"}}},
            "disruption": {"consolidateAfter": "Never", "budgets": [{"nodes": "50%"}]},
        },
    })
}

/// What an uninstall should have taken, but for what the run itself made.
pub(super) fn leftovers(rig: &Rig) -> Result<Vec<String>> {
    let ours = ["kube-root-ca.crt", "default", SECRET];
    let own = |api: &str, kind: &str| format!("{api}/namespaces/{NAMESPACE}/{kind}");
    let release = format!("labelSelector=app.kubernetes.io/instance%3D{RELEASE}");
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let mut paths = vec![
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(),
        "/api/v1/nodes?labelSelector=karpenter.sh/nodepool".to_owned(),
        format!("{rbac}/clusterroles?{release}"),
        format!("{rbac}/clusterrolebindings?{release}"),
        own(rbac, "roles"),
        own(rbac, "rolebindings"),
        own("/apis/apps/v1", "deployments"),
        own("/apis/apps/v1", "replicasets"),
        own("/apis/policy/v1", "poddisruptionbudgets"),
        own("/apis/networking.k8s.io/v1", "networkpolicies"),
        leases_path(),
    ];
    let core = [
        "configmaps",
        "secrets",
        "serviceaccounts",
        "services",
        "pods",
    ];
    paths.extend(core.map(|kind| own("/api/v1", kind)));
    let mut left = Vec::new();
    for path in paths {
        for object in rig.api.list(&path)? {
            let name = object["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            if !ours.contains(&name.as_str()) {
                left.push(format!("{path}: {name}"));
            }
        }
    }
    let living = rig
        .instances()?
        .into_iter()
        .filter(|it| it["status"] != "Gone");
    left.extend(living.map(|it| format!("instance {}", it["id"])));
    Ok(left)
}
