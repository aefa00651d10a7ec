//! What a run works on: pools, guards, work, and what the cloud is told.

use serde_json::{Value, json};

use super::script::WILD_DEPLOYMENTS;
use super::stage::{FLEETING, GUARD_PODS, GUARDS, LIMIT_CPU, STEADY, WILD};
use crate::rig::{self, NAMESPACE};

pub(super) const CLASS: &str = "/apis/karpenter.alibabacloud.com/v1alpha1/ecsnodeclasses/default";
/// From launch to Running.
pub(super) const BOOT_MS: u64 = 600;
const POLICY: &str = "chaos-policy";
const CONSOLIDATE_AFTER: &str = "5s";
const FLEETING_PODS: usize = 2;

/// Everything at the start; `class` is the spec of the quick start's class.
pub(super) fn all(class: &Value) -> Vec<Value> {
    let mut policed = class.clone();
    policed["policies"] = json!([{
        "name": "chaos", "hook": "InstanceSelection", "failurePolicy": "Ignore",
        "source": {"configMap": {"name": POLICY}},
    }]);
    let class = json!({
        "apiVersion": "karpenter.alibabacloud.com/v1alpha1", "kind": "ECSNodeClass",
        "metadata": {"name": WILD}, "spec": policed,
    });
    let mut objects = vec![class, steady_pool(0), wild_pool(), fleeting_pool()];
    for guard in 0..GUARDS {
        let name = format!("guard-{guard}");
        objects.push(rig::deployment(&name, STEADY, GUARD_PODS, "850m"));
        objects.push(json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}},
        }));
    }
    objects.extend((0..WILD_DEPLOYMENTS).map(|index| wild_deployment(index, 4)));
    objects.push(rig::deployment("fleeting", FLEETING, FLEETING_PODS, "900m"));
    objects
}

/// Four pods on a node, and one node of the budget; another `roll` is another template.
pub(super) fn steady_pool(roll: usize) -> Value {
    let mut pool = pool(STEADY, "default", &["ecs.g7.xlarge"], &["on-demand"]);
    pool["spec"]["template"]["metadata"]["annotations"] =
        json!({"kerf.test/roll": roll.to_string()});
    pool["spec"]["disruption"] = json!({
        "consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": CONSOLIDATE_AFTER,
        "budgets": [{"nodes": "1"}],
    });
    pool
}

fn wild_pool() -> Value {
    let types = [
        "ecs.g7.large",
        "ecs.g7.xlarge",
        "ecs.g7.2xlarge",
        "ecs.c7.xlarge",
        "ecs.c7.2xlarge",
    ];
    let mut pool = pool(WILD, WILD, &types, &["spot", "on-demand"]);
    pool["spec"]["limits"] = json!({"cpu": LIMIT_CPU.to_string()});
    pool["spec"]["disruption"] = json!({
        "consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": CONSOLIDATE_AFTER,
        "budgets": [{"nodes": "50%"}],
    });
    pool
}

pub(super) fn fleeting_pool() -> Value {
    pool(FLEETING, "default", &["ecs.g7.large"], &["on-demand"])
}

fn pool(name: &str, class: &str, types: &[&str], capacity_types: &[&str]) -> Value {
    let mut pool = rig::pool(name, "");
    let spec = &mut pool["spec"]["template"]["spec"];
    spec["nodeClassRef"]["name"] = json!(class);
    spec["requirements"] = json!([
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity_types},
    ]);
    pool
}

/// Sizes differ, so that pods share nodes in many ways.
pub(super) fn wild_deployment(index: usize, pods: usize) -> Value {
    let cpu = ["400m", "900m", "1500m", "2500m"][index % WILD_DEPLOYMENTS];
    rig::deployment(&format!("wild-{index}"), WILD, pods, cpu)
}

pub(super) fn pool_path(name: &str) -> String {
    format!("/apis/karpenter.sh/v1/nodepools/{name}")
}

pub(super) fn policy_path() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{POLICY}")
}

pub(super) fn policy_map(base64: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": POLICY, "namespace": NAMESPACE},
        "binaryData": {"policy.wasm": base64},
    })
}

pub(super) fn throttle() -> Value {
    json!({"kind": "throttle", "status": 400, "code": "Throttling.User"})
}

pub(super) fn no_stock() -> Value {
    json!({"kind": "error", "status": 403, "code": "OperationDenied.NoStock"})
}

pub(super) fn timing(running_after_ms: u64) -> Value {
    json!({
        "visibleAfterMs": 200, "startingAfterMs": 300, "runningAfterMs": running_after_ms,
        "releasedAfterMs": 500, "nodeRemovedAfterMs": 500, "bootLimitMs": 60_000,
    })
}
