//! The trial call: a small question that every policy must survive before it serves.

use crate::bootstrap::{BootstrapInput, Node, Part};
use crate::error::CallError;
use crate::hook::Hook;
use crate::limits::CallLimits;
use crate::policy::Policy;
use crate::pricing::{PricingContext, PricingInput};
use crate::selection::{
    Candidate, Context, Demand, Offering, Resources, SelectionInput, Vocabulary,
};

/// Asks once with candidates and once with none, because both happen.
pub(crate) fn call(policy: &Policy, config: &str, limits: &CallLimits) -> Result<(), CallError> {
    let limits = limits.for_loading();
    match policy.hook() {
        Hook::InstanceSelection => {
            let mut input = question();
            policy.select(config, &limits, &input).result?;
            input.candidates.clear();
            policy.select(config, &limits, &input).result.map(drop)
        }
        Hook::PricingPreference => {
            let SelectionInput {
                context:
                    Context {
                        node_class,
                        region,
                        vocabulary,
                        ..
                    },
                candidates,
            } = question();
            let context = PricingContext {
                node_class,
                region,
                as_of_unix_s: 0,
                vocabulary,
            };
            let mut input = PricingInput {
                context,
                candidates,
            };
            policy.adjust(config, &limits, &input).result?;
            input.candidates.clear();
            policy.adjust(config, &limits, &input).result.map(drop)
        }
        Hook::BootstrapUserData => policy
            .render(config, &limits, &launch_group())
            .result
            .map(drop),
    }
}

fn launch_group() -> BootstrapInput {
    let join = Part {
        content_type: "text/x-shellscript".into(),
        name: Some("join.sh".into()),
        body: "#!/bin/bash\n/bin/true --token __KERF_JOIN_TOKEN__\n".into(),
    };
    let node = Node {
        node_pool: "trial".into(),
        node_class: "trial".into(),
        region: "cn-hangzhou".into(),
        instance_types: vec!["ecs.c7.large".into()],
        architecture: "amd64".into(),
        capacity_type: "on-demand".into(),
        image_id: "trial".into(),
        image_family: "acs:alibaba_cloud_linux_3_2104_lts_x64".into(),
        kubernetes_version: "1.36".into(),
        max_pods: 64,
        kubelet_json: "{}".into(),
        labels: vec![],
        taints: vec![],
        max_bytes: 16 << 10,
    };
    BootstrapInput {
        node,
        parts: vec![join.clone()],
        host_owned: vec![join],
    }
}

fn question() -> SelectionInput {
    let resources = |cpu_milli, memory_mib| Resources {
        cpu_milli,
        memory_mib,
        ephemeral_mib: 40_960,
        pods: 64,
        gpus: 0,
    };
    let candidate = |name: &str, family, architecture, cpu_milli, price_micros| Candidate {
        instance_type: name.to_owned(),
        family,
        architecture,
        generation: 7,
        capacity: resources(cpu_milli, 8_192),
        allocatable: resources(cpu_milli - 100, 7_168),
        network_mbps: 1_000,
        local_disk_gib: 0,
        bare_metal: false,
        burstable: false,
        gpu_model: None,
        extended: Vec::new(),
        offerings: (0..2).map(|zone| offering(zone, price_micros)).collect(),
    };
    let candidates = vec![
        candidate("ecs.c7.large", 0, 0, 2_000, 300_000),
        candidate("ecs.g7.large", 1, 0, 2_000, 400_000),
        candidate("ecs.c8y.large", 2, 1, 2_000, 250_000),
    ];
    SelectionInput {
        context: context(resources(500, 1_024)),
        candidates,
    }
}

fn offering(zone: u16, price_micros: u32) -> Offering {
    Offering {
        zone,
        capacity_type: zone,
        price_micros,
        list_price_micros: price_micros,
        interruption_permille: None,
        recent_failures: 0,
        reservation: None,
    }
}

fn context(demand: Resources) -> Context {
    let strings = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    Context {
        reason: "test".into(),
        node_pool: "trial".into(),
        node_class: "trial".into(),
        region: "cn-hangzhou".into(),
        as_of_unix_s: 0,
        vocabulary: Vocabulary {
            zones: strings(&["cn-hangzhou-h", "cn-hangzhou-i"]),
            families: strings(&["ecs.c7", "ecs.g7", "ecs.c8y"]),
            architectures: strings(&["amd64", "arm64"]),
            capacity_types: strings(&["on-demand", "spot"]),
        },
        demand: Demand {
            pods: 1,
            total: demand,
            largest_pod: demand,
            daemon_overhead: demand,
        },
        requirements: Vec::new(),
        fleet: Vec::new(),
        labels: Vec::new(),
    }
}
