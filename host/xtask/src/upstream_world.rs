//! What there is to buy: upstream's kwok types in its zones, with its overhead, as ecs-sim sells them and kerf prices them.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::burst;
use crate::demo::manifests;
use crate::rig::{CLUSTER_ID, REGION, Rig};
use crate::workload::{UPSTREAM_SPOT_PART, UPSTREAM_ZONES, upstream_types};

/// The table of design.md, kept here so that the measurements need nothing else.
pub(crate) const TABLE: &str = "host/xtask/data/scale_replicasets.csv";
const PATIENCE: Duration = Duration::from_secs(60);

const DISCOVERY: &str = "my-cluster";

/// The simulator's world.
pub(crate) fn world() -> Value {
    let vswitches = UPSTREAM_ZONES.iter().enumerate().map(|(idx, zone)| {
        json!({
            "id": format!("vsw-{zone}"), "zone": zone, "cidr": format!("10.0.{}.0/20", 16 * idx),
            "tags": {"karpenter.sh/discovery": DISCOVERY},
        })
    });
    let types = upstream_types().into_iter().map(|it| {
        json!({
            "id": it.name, "cpu": it.vcpu, "memoryGib": it.memory_gib, "pricePerHour": it.price,
            "spotPercent": (UPSTREAM_SPOT_PART * 100.0).round(),
        })
    });
    json!({
        "vswitches": vswitches.collect::<Vec<_>>(),
        "instanceTypes": types.map(whole_percent).collect::<Vec<_>>(),
        // Of no network that counts addresses: upstream's types say themselves how many pods they take.
        "clusters": [{
            "id": CLUSTER_ID, "name": DISCOVERY, "version": "1.36.3-aliyun.1", "network": "none",
            "endpoint": "10.0.0.1:6443", "nodePoolId": "np00000000000000000000000000sim1",
        }],
        "memoryVisibleRatio": 1.0,
        "timing": {"visibleAfterMs": 0, "startingAfterMs": 0, "runningAfterMs": 0},
    })
}

/// The percentage without a fraction, as the world's file wants it.
fn whole_percent(mut sold: Value) -> Value {
    let percent = sold["spotPercent"].as_f64().unwrap_or_default();
    sold["spotPercent"] = serde_json::from_str(&format!("{percent:.0}")).unwrap_or_default();
    sold
}

/// Prices for kerf, in its catalog format.
pub(crate) fn prices() -> Value {
    let types = upstream_types().into_iter().map(|it| {
        let offerings = UPSTREAM_ZONES.iter().flat_map(|zone| {
            [("on-demand", it.price), ("spot", it.price * UPSTREAM_SPOT_PART)].map(
                |(capacity_type, price)| {
                    json!({"zone": zone, "capacityType": capacity_type, "pricePerHour": price})
                },
            )
        });
        json!({
            "name": it.name, "family": "kwok", "architecture": "amd64", "cpus": it.vcpu,
            "memoryMib": it.memory_gib * 1024, "enis": 1, "ipsPerEni": 1,
            "offerings": offerings.collect::<Vec<_>>(),
        })
    });
    json!({
        "format": "kerf-catalog", "version": 1, "region": REGION, "currency": "none",
        "source": "the price rule of upstream's kwok provider", "zones": UPSTREAM_ZONES,
        "types": types.collect::<Vec<_>>(),
    })
}

/// The price per hour of a node; none for a type that is not upstream's.
pub(crate) fn price(name: &str, capacity_type: &str) -> Option<f64> {
    let found = upstream_types().into_iter().find(|it| it.name == name)?;
    match capacity_type {
        "on-demand" => Some(found.price),
        "spot" => Some(found.price * UPSTREAM_SPOT_PART),
        _ => None,
    }
}

/// A class whose kubelets keep back what upstream's types do: 100m and 10Mi; 16 pods per core, 1,024 at most.
pub(crate) fn node_class() -> Value {
    let discovery = json!([{"tags": {"karpenter.sh/discovery": DISCOVERY}}]);
    json!({
        "apiVersion": "karpenter.alibabacloud.com/v1alpha1", "kind": "ECSNodeClass", "metadata": {"name": "default"},
        "spec": {
            "clusterID": "",
            "vSwitchSelectorTerms": discovery, "securityGroupSelectorTerms": discovery,
            "imageSelectorTerms": [{"imageFamily": "acs:alibaba_cloud_linux_3_2104_lts_x64"}],
            "systemDisk": {"category": "cloud_essd", "size": 40},
            "kubelet": {
                "maxPods": 1024, "podsPerCore": 16,
                "kubeReserved": {"cpu": "100m", "memory": "10Mi"},
                "systemReserved": {"cpu": "0", "memory": "0"},
                "evictionHard": {"memory.available": "0"},
            },
        },
    })
}

/// Starts kerf in this world, with the pool and more arguments, and waits until the pool is ready.
pub(crate) fn start(rig: &mut Rig, pool: &Value, more: &[&str]) -> Result<()> {
    rig.api.delete("/apis/karpenter.sh/v1/nodepools/default")?;
    manifests::apply(&rig.api, &node_class())?;
    manifests::apply(&rig.api, pool)?;
    let file = rig.folder().join("prices.json");
    std::fs::write(&file, prices().to_string())
        .with_context(|| format!("cannot write {}", file.display()))?;
    let file = file.display().to_string();
    let mut args = vec!["--batch-idle-duration", "1s", "--price-catalog", &file];
    args.extend(["--vm-memory-overhead-percent", "0"]);
    args.extend(more);
    rig.start_kerf(&args)?;
    rig.until("the pool is ready", PATIENCE, burst::pool_is_ready)
}

/// A pool of both capacity types and every amd64 type, without limits.
pub(crate) fn pool(name: &str, disruption: &Value) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {
            "template": {"spec": {
                "requirements": [
                    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]},
                ],
                "nodeClassRef": {"group": "karpenter.alibabacloud.com", "kind": "ECSNodeClass", "name": "default"},
            }},
            "disruption": disruption,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_costs_what_upstreams_rule_says() {
        let spot = price("c-2x-amd64-linux", "spot").unwrap();

        assert!((spot - 0.7 * (0.05 + 0.004 * 1.073_741_824)).abs() < 1e-9);
        assert_eq!(price("ecs.g7.large", "spot"), None);
        assert_eq!(world()["instanceTypes"][0]["spotPercent"], 70);
    }
}
