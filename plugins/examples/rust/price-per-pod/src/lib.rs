//! Orders instance types by what one more pod of the largest kind costs on them, where all of the node is used by such pods: right for
//! pools that fill up, where a larger node is cheaper per pod than the smallest that fits now.

use kerf_policy_sdk::{
    About, Candidate, Context, PolicyError, Ranked, Resources, Selection, SelectionPolicy,
    export_selection,
};
use serde::Deserialize;

struct PricePerPod;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Config {
    max_pods_per_node: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_pods_per_node: 64,
        }
    }
}

impl SelectionPolicy for PricePerPod {
    type Config = Config;

    fn about() -> About {
        About {
            name: "price-per-pod",
            version: env!("CARGO_PKG_VERSION"),
            summary: "orders instance types by the price of one pod on a full node",
            config_schema: include_str!("config-schema.json"),
            default_config: r#"{"maxPodsPerNode":64}"#,
            time_step_secs: 0,
        }
    }

    fn select(
        config: &Config,
        ctx: &Context,
        candidates: &[Candidate],
    ) -> Result<Selection, PolicyError> {
        let demand = &ctx.demand;
        let mut ranked = Vec::new();
        for (candidate, it) in (0..).zip(candidates) {
            let pods = pods_on(
                &it.allocatable,
                &demand.daemon_overhead,
                &demand.largest_pod,
            );
            let pods = pods.min(config.max_pods_per_node).max(1);
            // The largest number means that nobody knows the price.
            let known = it
                .offerings
                .iter()
                .map(|it| it.price_micros)
                .filter(|price| *price != u32::MAX);
            if let Some(price) = known.min() {
                let score = -i32::try_from(price / pods).unwrap_or(i32::MAX);
                ranked.push(Ranked { candidate, score });
            }
        }
        Ok(Selection {
            ranked,
            excluded: Vec::new(),
        })
    }
}

fn pods_on(node: &Resources, daemons: &Resources, pod: &Resources) -> u32 {
    let fit = |node: u32, daemons: u32, pod: u32| node.saturating_sub(daemons).checked_div(pod);
    let counts = [
        fit(node.cpu_milli, daemons.cpu_milli, pod.cpu_milli),
        fit(node.memory_mib, daemons.memory_mib, pod.memory_mib),
        fit(node.gpus, daemons.gpus, pod.gpus),
        Some(node.pods.saturating_sub(daemons.pods)),
    ];
    counts.into_iter().flatten().min().unwrap_or(0)
}

export_selection!(PricePerPod);
