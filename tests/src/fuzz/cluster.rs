//! Objects of users, one JSON document a line, into the cluster index.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodeoverlay::NodeOverlay;
use kerf_api::nodepool::NodePool;
use kerf_core::snapshot::Settings;
use kerf_state::Cluster;
use serde_json::Value;

use super::{Planted, Target, seeds_of, text_of};

pub(super) const TARGET: Target = Target {
    name: "cluster",
    run,
    seeds: || seeds_of(&SEEDS),
};

const SEEDS: [&str; 3] = [
    r#"{"kind":"Pod","metadata":{"name":"a","namespace":"default","uid":"1","labels":{"app":"a"}},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"500m","memory":"1Gi"}}}],"tolerations":[{"key":"x","operator":"Exists"}],"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"a"}}}]},"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}"#,
    r#"{"kind":"NodePool","metadata":{"name":"default"},"spec":{"weight":10,"limits":{"cpu":"100"},"disruption":{"consolidateAfter":"30s","budgets":[{"nodes":"10%","schedule":"0 9 * * mon-fri","duration":"8h"}]},"template":{"spec":{"expireAfter":"720h","requirements":[{"key":"kubernetes.io/arch","operator":"In","values":["amd64"]}],"taints":[{"key":"a","effect":"NoSchedule"}],"nodeClassRef":{"group":"karpenter.alibabacloud.com","kind":"ECSNodeClass","name":"default"}}}}}
{"kind":"NodeClaim","metadata":{"name":"default-1","labels":{"karpenter.sh/nodepool":"default"}},"spec":{"requirements":[],"nodeClassRef":{"group":"karpenter.alibabacloud.com","kind":"ECSNodeClass","name":"default"}},"status":{"providerID":"cn-hangzhou.i-1","capacity":{"cpu":"4"}}}
{"kind":"Node","metadata":{"name":"n","labels":{"karpenter.sh/nodepool":"default"}},"spec":{"providerID":"cn-hangzhou.i-1"},"status":{"allocatable":{"cpu":"3900m","pods":"64"}}}"#,
    r#"{"kind":"PodDisruptionBudget","metadata":{"name":"p","namespace":"default"},"spec":{"minAvailable":"50%","selector":{"matchExpressions":[{"key":"app","operator":"In","values":["a"]}]}}}
{"kind":"NodeOverlay","metadata":{"name":"o"},"spec":{"weight":1,"requirements":[{"key":"karpenter.sh/capacity-type","operator":"In","values":["spot"]}],"priceAdjustment":"-10%"}}"#,
];

fn run(bytes: &[u8], planted: Planted) {
    let Some(text) = text_of(bytes) else { return };
    let mut cluster = Cluster::new();
    for line in text.lines() {
        if let Ok(object) = serde_json::from_str::<Value>(line) {
            apply(&mut cluster, object);
        }
    }
    let now = Timestamp::from_second(1_764_000_000).unwrap_or_default();
    let problems = cluster.problems().count();
    let snapshot = cluster.snapshot(&BTreeMap::new(), Settings::default(), now);
    // Two things are wrong that JSON and its types let through.
    planted.at(problems > 1 && snapshot.pools.is_empty());
}

fn apply(cluster: &mut Cluster, object: Value) {
    macro_rules! apply {
        ($type:ty) => {
            if let Ok(object) = serde_json::from_value::<$type>(object) {
                cluster.apply(&object);
            }
        };
    }
    match object["kind"].as_str().unwrap_or_default() {
        "Pod" => apply!(Pod),
        "Node" => apply!(Node),
        "NodePool" => apply!(NodePool),
        "NodeClaim" => apply!(NodeClaim),
        "NodeOverlay" => {
            if let Ok(overlay) = serde_json::from_value::<NodeOverlay>(object) {
                let _ = kerf_state::node_overlay(&overlay);
            }
        }
        "PodDisruptionBudget" => apply!(PodDisruptionBudget),
        _ => {}
    }
}
