//! What the other providers leave in a cluster: their pools, claims, Nodes and machines, with their labels and tags.

use anyhow::{Context, Result};
use kerf_api::nodepool::{NODEPOOL_HASH_VERSION, NodePool};
use serde_json::{Value, json};

use crate::demo::manifests;
use crate::rig::{CLUSTER_ID, Rig};

const OUR_GROUP: &str = "karpenter.alibabacloud.com";
const OTHER_GROUP: &str = "karpenter.k8s.alibabacloud";
const INSTANCE_TYPE: &str = "ecs.g7.xlarge";
const IMAGE: &str = "aliyun_3_x64_20G_alibase_20250629.vhd";
const ZONES: [&str; 3] = ["cn-hangzhou-h", "cn-hangzhou-i", "cn-hangzhou-j"];
const FINALIZER: &str = "karpenter.sh/termination";
/// Less than the type has, as a node shows it.
const MEMORY: &str = "15350000Ki";

/// Who made a part of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Provider {
    /// AliyunContainerService/karpenter-provider-alibabacloud; its classes are of our own group.
    Aliyun,
    /// cloudpilot-ai/karpenter-provider-alibabacloud.
    CloudPilot,
}

impl Provider {
    pub(super) const ALL: [Self; 2] = [Self::Aliyun, Self::CloudPilot];

    /// Also the name of its pool.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Aliyun => "aliyun",
            Self::CloudPilot => "cloudpilot",
        }
    }

    fn group(self) -> &'static str {
        match self {
            Self::Aliyun => OUR_GROUP,
            Self::CloudPilot => OTHER_GROUP,
        }
    }

    fn is_spot(self) -> bool {
        self == Self::CloudPilot
    }

    fn capacity_type(self) -> &'static str {
        if self.is_spot() { "spot" } else { "on-demand" }
    }

    fn tags(self, claim: &str) -> Value {
        match self {
            Self::Aliyun => json!({
                "karpenter.sh/managed-by": "karpenter", "karpenter.sh/cluster-id": CLUSTER_ID,
                "karpenter.sh/nodepool": self.name(), "karpenter.sh/nodeclaim": claim,
            }),
            Self::CloudPilot => json!({
                format!("kubernetes.io/cluster/{CLUSTER_ID}"): "owned", "ecs:ecs-cluster-id": CLUSTER_ID,
                "karpenter.sh/nodepool": self.name(), "karpenter.sh/nodeclaim": claim,
                "karpenter.k8s.alibabacloud/ecsnodeclass": "default",
            }),
        }
    }

    /// What the pool asks for besides the capacity type; the second provider has labels of its own domain.
    fn requirement(self) -> Value {
        match self {
            Self::Aliyun => {
                json!({"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [INSTANCE_TYPE, "ecs.g7.2xlarge"]})
            }
            Self::CloudPilot => {
                json!({"key": "karpenter.k8s.alibabacloud/instance-category", "operator": "In", "values": ["g", "c"]})
            }
        }
    }

    fn labels(self, zone: &str) -> Value {
        let mut labels = json!({
            "karpenter.sh/nodepool": self.name(), "karpenter.sh/capacity-type": self.capacity_type(),
            "node.kubernetes.io/instance-type": INSTANCE_TYPE, "topology.kubernetes.io/zone": zone,
            "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
        });
        if self == Self::CloudPilot {
            for (key, value) in [
                ("instance-category", "g"),
                ("instance-generation", "7"),
                ("instance-family", "ecs.g7"),
                ("instance-size", "xlarge"),
                ("instance-cpu", "4"),
                ("instance-memory", "16384"),
            ] {
                labels[format!("{OTHER_GROUP}/{key}")] = value.into();
            }
            labels["topology.k8s.alibabacloud/zone-id"] = zone.into();
            labels["topology.kubernetes.io/region"] = "cn-hangzhou".into();
        }
        labels
    }

    fn annotations(self, pool_hash: &str) -> Value {
        let class_hash = match self {
            Self::Aliyun => json!({
                "karpenter.sh/ecsnodeclass-hash": "6f1b2c3d4e5f6071", "karpenter.sh/ecsnodeclass-hash-version": "v1",
            }),
            Self::CloudPilot => json!({
                "karpenter.k8s.alibabacloud/ecsnodeclass-hash": "1234567890123456789",
                "karpenter.k8s.alibabacloud/ecsnodeclass-hash-version": "v3",
                "karpenter.k8s.alibabacloud/tagged": "true",
            }),
        };
        let mut annotations = class_hash;
        annotations["karpenter.sh/nodepool-hash"] = pool_hash.into();
        annotations["karpenter.sh/nodepool-hash-version"] = NODEPOOL_HASH_VERSION.into();
        annotations
    }

    fn pool(self) -> Value {
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": self.name()},
            "spec": {
                "template": {
                    "metadata": {"labels": {"team": "a"}},
                    "spec": {
                        "requirements": [
                            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [self.capacity_type()]},
                            self.requirement(),
                        ],
                        "nodeClassRef": {"group": self.group(), "kind": "ECSNodeClass", "name": "default"},
                        "expireAfter": "720h",
                    },
                },
                "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"},
            },
        })
    }
}

/// Makes one provider's part of the cluster.
pub(super) fn plant(rig: &Rig, provider: Provider, nodes: usize) -> Result<()> {
    let mut pool = provider.pool();
    let typed: NodePool = serde_json::from_value(pool.clone()).context("the pool")?;
    let hash = typed.hash().context("the pool's hash")?;
    pool["metadata"]["annotations"] = json!({
        "karpenter.sh/nodepool-hash": hash, "karpenter.sh/nodepool-hash-version": NODEPOOL_HASH_VERSION,
    });
    manifests::apply(&rig.api, &pool)?;
    let path = format!("/apis/karpenter.sh/v1/nodepools/{}", provider.name());
    let uid = uid(&rig.api.applied(&path, &pool)?)?;
    for idx in 0..nodes {
        let place = Place {
            provider,
            pool_uid: &uid,
            pool_hash: &hash,
            zone: ZONES[idx % ZONES.len()],
            name: format!("{}-{idx:03}", provider.name()),
        };
        place.plant(rig).with_context(|| place.name.clone())?;
    }
    Ok(())
}

/// One node with its claim, its machine and a pod.
#[derive(Debug)]
struct Place<'a> {
    provider: Provider,
    pool_uid: &'a str,
    pool_hash: &'a str,
    zone: &'a str,
    name: String,
}

impl Place<'_> {
    fn plant(&self, rig: &Rig) -> Result<()> {
        let machine = rig.plant(&json!({
            "instanceType": INSTANCE_TYPE, "zone": self.zone, "imageId": IMAGE,
            "isSpot": self.provider.is_spot(), "tags": self.provider.tags(&self.name),
        }))?;
        let text = |field: &str| machine[field].as_str().unwrap_or_default();
        let provider_id = format!("cn-hangzhou.{}", text("id"));
        let node_name = format!("cn-hangzhou.{}", text("ip"));

        let path = format!("/apis/karpenter.sh/v1/nodeclaims/{}", self.name);
        let claim = rig.api.applied(&path, &self.claim())?;
        rig.api.apply(
            &format!("{path}/status"),
            &self.claim_status(&provider_id, &node_name),
        )?;
        let path = format!("/api/v1/nodes/{node_name}");
        let node = self.node(&node_name, &provider_id, &uid(&claim)?);
        rig.api.apply(&path, &node)?;
        let status = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": node_name},
            "status": {"capacity": capacity(), "allocatable": capacity()},
        });
        rig.api.apply(&format!("{path}/status"), &status)?;
        let pod = format!("/api/v1/namespaces/default/pods/{}", self.name);
        rig.api.apply(&pod, &self.pod(&node_name))
    }

    fn claim(&self) -> Value {
        let (provider, name) = (self.provider, &self.name);
        let mut labels = provider.labels(self.zone);
        labels["team"] = "a".into();
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {
                "name": name, "labels": labels, "annotations": provider.annotations(self.pool_hash),
                "finalizers": [FINALIZER],
                "ownerReferences": [{
                    "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": provider.name(),
                    "uid": self.pool_uid, "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [provider.capacity_type()]},
                    {"key": "karpenter.sh/nodepool", "operator": "In", "values": [provider.name()]},
                    provider.requirement(),
                ],
                "resources": {"requests": {"cpu": "1", "memory": "1Gi", "pods": "3"}},
                "nodeClassRef": {"group": provider.group(), "kind": "ECSNodeClass", "name": "default"},
                "expireAfter": "720h",
            },
        })
    }

    fn claim_status(&self, provider_id: &str, node_name: &str) -> Value {
        let condition = |type_: &str| {
            json!({
                "type": type_, "status": "True", "reason": type_, "message": "", "observedGeneration": 1,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        let conditions = ["Launched", "Registered", "Initialized", "Ready"].map(condition);
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": self.name},
            "status": {
                "providerID": provider_id, "nodeName": node_name, "imageID": IMAGE,
                "capacity": capacity(), "allocatable": capacity(), "conditions": conditions,
            },
        })
    }

    fn node(&self, node_name: &str, provider_id: &str, claim_uid: &str) -> Value {
        let mut labels = self.provider.labels(self.zone);
        for (key, value) in [
            ("karpenter.sh/registered", "true"),
            ("karpenter.sh/initialized", "true"),
            ("kubernetes.io/hostname", node_name),
            ("team", "a"),
        ] {
            labels[key] = value.into();
        }
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": node_name, "labels": labels, "finalizers": [FINALIZER],
                "annotations": {"kwok.x-k8s.io/node": "fake"},
                "ownerReferences": [{
                    "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": self.name,
                    "uid": claim_uid, "blockOwnerDeletion": true,
                }],
            },
            "spec": {"providerID": provider_id},
        })
    }

    /// Something to lose on every node.
    fn pod(&self, node_name: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": self.name, "namespace": "default"},
            "spec": {
                "nodeName": node_name,
                "containers": [{
                    "name": "main", "image": "registry.invalid/pause",
                    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                }],
            },
        })
    }
}

fn capacity() -> Value {
    json!({"cpu": "4", "memory": MEMORY, "pods": "48", "ephemeral-storage": "40Gi"})
}

fn uid(object: &Value) -> Result<String> {
    let uid = object["metadata"]["uid"].as_str();
    uid.map(str::to_owned).context("an object without a uid")
}
