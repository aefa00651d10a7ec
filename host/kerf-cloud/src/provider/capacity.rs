//! How much of a machine pods can use: what it shows, what ACK keeps back, and how many pods fit.
//!
//! The same numbers go to the kubelet (see `bootstrap`), so the model and the node agree.

use std::collections::BTreeMap;

use kerf_core::quantity::Quantity;
use kerf_core::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources};

use crate::provider::class::{KubeletSettings, NodeClassSpec};
use crate::provider::config::{CniMode, ProviderConfig};
use crate::provider::facts::TypeFacts;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// The kubelet's own default.
const PODS_DEFAULT: u32 = 110;
/// Pods that use the host's address and so need none of their own, by ACK's count.
const HOST_NETWORK_PODS: u32 = 3;
/// A node of a Terway cluster with no more pod addresses than this is refused.
const TERWAY_SHARED_IPS_OVER: u32 = 11;
/// The same for exclusive interfaces.
const TERWAY_EXCLUSIVE_ENIS_OVER: u32 = 6;
/// Part of the disk that the kubelet keeps free before it evicts: its default, passed on explicitly.
const NODEFS_FREE_PERCENT: u64 = 10;

/// Where a mounted disk holds what the kubelet keeps.
const KUBELET_FOLDERS: [&str; 3] = ["/var/lib/kubelet", "/var/lib", "/var"];

/// What a node of a type offers, and what it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCapacity {
    pub capacity: Resources,
    pub kube_reserved: Resources,
    pub system_reserved: Resources,
    pub eviction: Resources,
    pub max_pods: u32,
}

impl NodeCapacity {
    /// All that pods cannot use.
    #[must_use]
    pub fn overhead(&self) -> Resources {
        let mut all = self.kube_reserved.clone();
        all.add(&self.system_reserved);
        all.add(&self.eviction);
        all
    }
}

/// The model.
#[must_use]
pub fn node_capacity(
    facts: &TypeFacts,
    class: &NodeClassSpec,
    cni: CniMode,
    config: &ProviderConfig,
) -> NodeCapacity {
    let max_pods = max_pods(facts, &class.kubelet, cni);
    let memory_shown = memory_shown_bytes(facts.memory_mib, config.vm_memory_overhead_percent);
    let disk_bytes = kubelet_disk_gib(class, facts) * GIB;
    let mut capacity = Resources::of(signed(u64::from(facts.cpus) * 1000), signed(memory_shown))
        .with(EPHEMERAL_STORAGE, signed(disk_bytes))
        .with(PODS, i64::from(max_pods));
    if let Some(resource) = gpu_resource(facts) {
        capacity.set(resource, i64::from(facts.gpus));
    }
    if cni == CniMode::TerwayExclusive {
        capacity.set("aliyun/eni", i64::from(facts.enis.saturating_sub(1)));
    }
    let cpu_milli = cpu_reserved_milli(facts.cpus);
    let memory_mib = memory_reserved_mib(facts.memory_mib, max_pods);
    let half = Resources::of(signed(cpu_milli / 2), signed(memory_mib / 2 * MIB));
    let rest = Resources::of(
        signed(cpu_milli - cpu_milli / 2),
        signed((memory_mib - memory_mib / 2) * MIB),
    );
    let kubelet = &class.kubelet;
    NodeCapacity {
        kube_reserved: overridden(rest, &kubelet.kube_reserved),
        system_reserved: overridden(half, &kubelet.system_reserved),
        eviction: eviction(kubelet, &capacity, config.eviction_memory_mib),
        capacity,
        max_pods,
    }
}

/// Why a node of the type cannot join a cluster with this network; none when it can.
#[must_use]
pub fn cannot_join(facts: &TypeFacts, cni: CniMode) -> Option<String> {
    let secondary = facts.enis.saturating_sub(1);
    let (there, needs_over) = match cni {
        CniMode::TerwayShared => (secondary * facts.ips_per_eni, TERWAY_SHARED_IPS_OVER),
        CniMode::TerwayExclusive => (secondary, TERWAY_EXCLUSIVE_ENIS_OVER),
        CniMode::Flannel { .. } | CniMode::Other => return None,
    };
    (there <= needs_over)
        .then(|| format!("{there} pod addresses, and Terway wants more than {needs_over}"))
}

/// Pods per node: what the network can address, or what the class says if that is less.
#[must_use]
pub fn max_pods(facts: &TypeFacts, kubelet: &KubeletSettings, cni: CniMode) -> u32 {
    let secondary = facts.enis.saturating_sub(1);
    let by_network = match cni {
        CniMode::TerwayShared => secondary * facts.ips_per_eni + HOST_NETWORK_PODS,
        CniMode::TerwayExclusive => secondary.saturating_add(HOST_NETWORK_PODS),
        CniMode::Flannel { node_cidr_mask } => 1_u32
            .checked_shl(32_u32.saturating_sub(node_cidr_mask.into()))
            .unwrap_or(u32::MAX),
        CniMode::Other => PODS_DEFAULT,
    };
    let asked = match (kubelet.max_pods, cni) {
        // Without addresses to count, what the class says is all that is known.
        (Some(asked), CniMode::Other) => asked,
        // More than the network can address would only strand pods without an address.
        (Some(asked), _) => asked.min(by_network),
        (None, _) => by_network,
    };
    let by_core = kubelet.pods_per_core.filter(|per_core| *per_core > 0);
    let by_core = by_core.map(|per_core| per_core.saturating_mul(facts.cpus));
    by_core.map_or(asked, |by_core| asked.min(by_core))
}

/// ACK's CPU reserve from Kubernetes 1.28 on: 6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 %
/// of each further one.
#[must_use]
pub fn cpu_reserved_milli(cpus: u32) -> u64 {
    let tenths = |core: u32| match core {
        1 => 600,
        2 => 100,
        3 | 4 => 50,
        _ => 25,
    };
    let tenths: u64 = (1..=cpus).map(tenths).sum();
    tenths.div_ceil(10)
}

/// ACK's memory reserve from Kubernetes 1.28 on: 11 MiB per pod and 255 MiB, a quarter of the memory at most.
#[must_use]
pub fn memory_reserved_mib(memory_mib: u64, max_pods: u32) -> u64 {
    (11 * u64::from(max_pods) + 255).min(memory_mib / 4)
}

/// Nominal memory without what kernel and firmware keep.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "memory sizes are far below 2^53 bytes and the part is between 0 and 1"
)]
fn memory_shown_bytes(nominal_mib: u64, overhead_percent: f64) -> u64 {
    let part = (1.0 - overhead_percent / 100.0).clamp(0.0, 1.0);
    (nominal_mib as f64 * part).floor() as u64 * MIB
}

/// The disk that holds the kubelet's and the containers' files.
fn kubelet_disk_gib(class: &NodeClassSpec, facts: &TypeFacts) -> u64 {
    if class.instance_store_policy == "RAID0" && facts.local_nvme_gib > 0 {
        return facts.local_nvme_gib;
    }
    let mut mounted = class.data_disks.iter();
    if let Some(disk) = mounted.find(|it| KUBELET_FOLDERS.contains(&it.mount_target.as_str())) {
        return disk.size_gib.into();
    }
    let gib = match class.data_disks.first() {
        Some(disk) if class.format_data_disk => disk.size_gib,
        _ => class.system_disk.size_gib,
    };
    gib.into()
}

fn gpu_resource(facts: &TypeFacts) -> Option<&'static str> {
    let is_amd = facts.gpu_spec.to_uppercase().starts_with("AMD");
    (facts.gpus > 0).then_some(if is_amd {
        "amd.com/gpu"
    } else {
        "nvidia.com/gpu"
    })
}

fn overridden(mut reserved: Resources, by: &BTreeMap<String, String>) -> Resources {
    for name in [CPU, MEMORY, EPHEMERAL_STORAGE] {
        if let Some(quantity) = by.get(name).and_then(|text| Quantity::parse(text).ok()) {
            reserved.set_quantity(name, quantity);
        }
    }
    reserved
}

fn eviction(kubelet: &KubeletSettings, capacity: &Resources, default_mib: u64) -> Resources {
    let threshold = |signal: &str, of: i64| {
        kubelet
            .eviction_hard
            .get(signal)
            .and_then(|text| threshold_amount(text, of))
    };
    let memory = threshold("memory.available", capacity.memory_bytes());
    let disk_total = capacity.amount(EPHEMERAL_STORAGE);
    let disk = threshold("nodefs.available", disk_total);
    let disk = disk.unwrap_or(disk_total / 100 * signed(NODEFS_FREE_PERCENT));
    Resources::of(0, memory.unwrap_or(signed(default_mib * MIB))).with(EPHEMERAL_STORAGE, disk)
}

/// `500Mi` or `5%`.
fn threshold_amount(text: &str, of: i64) -> Option<i64> {
    match text.strip_suffix('%') {
        Some(percent) => {
            let hundredths = Quantity::parse(percent).ok()?.millis() / 10;
            Some(i64::try_from(i128::from(of) * i128::from(hundredths) / 10_000).unwrap_or(of))
        }
        None => Quantity::parse(text).ok().map(Quantity::units),
    }
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// The kubelet configuration that makes the node keep to the model.
#[must_use]
pub fn kubelet_config(
    node: &NodeCapacity,
    class: &NodeClassSpec,
    config: &ProviderConfig,
) -> KubeletSettings {
    let mut kubelet = class.kubelet.clone();
    kubelet.max_pods = Some(node.max_pods);
    // Already counted in `max_pods`; given as well, it would be applied twice by different roundings.
    kubelet.pods_per_core = None;
    fill_reserved(&mut kubelet.kube_reserved, &node.kube_reserved);
    fill_reserved(&mut kubelet.system_reserved, &node.system_reserved);
    let memory_free = format!("{}Mi", config.eviction_memory_mib);
    // Setting one hard threshold clears the kubelet's other defaults, so all are given.
    for (signal, value) in [
        ("memory.available", memory_free.as_str()),
        ("nodefs.available", "10%"),
        ("nodefs.inodesFree", "5%"),
        ("imagefs.available", "15%"),
    ] {
        let entry = kubelet.eviction_hard.entry(signal.to_owned());
        entry.or_insert_with(|| value.to_owned());
    }
    kubelet
}

fn fill_reserved(settings: &mut BTreeMap<String, String>, model: &Resources) {
    let cpu = format!("{}m", model.cpu_milli());
    let memory = format!("{}Mi", model.memory_bytes() / signed(MIB));
    settings.entry(CPU.to_owned()).or_insert(cpu);
    settings.entry(MEMORY.to_owned()).or_insert(memory);
}

#[cfg(test)]
mod tests;
