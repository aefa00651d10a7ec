//! DescribeInstanceTypes: facts about types, whatever is on sale.

use serde_json::{Value, json};

use super::{PageBounds, token_page};
use crate::catalog::{InstanceType, Network};
use crate::error::ApiError;
use crate::params::Params;
use crate::state::State;

const PAGE: PageBounds = PageBounds {
    min: 1,
    default: 1600,
    max: 1600,
};
const TYPES_ASKED_MAX: usize = 10;
/// Interfaces of a type that the catalog has no row for: the primary one with its address.
const NETWORK_UNKNOWN: Network = Network {
    interfaces: 1,
    ipv4_per_interface: 1,
    ipv6_per_interface: 0,
};

pub(super) fn describe_instance_types(state: &State, params: &Params) -> Result<Value, ApiError> {
    let asked = params.list("InstanceTypes");
    if asked.len() > TYPES_ASKED_MAX {
        return Err(ApiError::invalid_parameter("InstanceTypes"));
    }
    let filter = Filter::read(params, asked)?;
    let found: Vec<_> = state
        .catalog
        .iter()
        .filter(|instance_type| filter.takes(instance_type))
        .collect();
    let (page, next) = token_page(state, params, found, PAGE)?;
    let rows: Vec<_> = page.into_iter().map(row).collect();
    Ok(json!({"NextToken": next, "InstanceTypes": {"InstanceType": rows}}))
}

struct Filter<'a> {
    types: Vec<&'a str>,
    family: Option<&'a str>,
    architecture: Option<&'a str>,
    cpu: (Option<i64>, Option<i64>),
    memory_gib: (Option<f64>, Option<f64>),
    gpu_min: Option<i64>,
}

impl<'a> Filter<'a> {
    fn read(params: &'a Params, types: Vec<&'a str>) -> Result<Self, ApiError> {
        Ok(Self {
            types,
            family: params.text("InstanceTypeFamily"),
            architecture: params.text("CpuArchitecture"),
            cpu: (
                params.int("MinimumCpuCoreCount")?,
                params.int("MaximumCpuCoreCount")?,
            ),
            memory_gib: (
                params.float("MinimumMemorySize")?,
                params.float("MaximumMemorySize")?,
            ),
            gpu_min: params.int("MinimumGPUAmount")?,
        })
    }

    fn takes(&self, instance_type: &InstanceType) -> bool {
        (self.types.is_empty() || self.types.contains(&instance_type.id.as_str()))
            && self
                .family
                .is_none_or(|family| family.trim_start_matches("ecs.") == instance_type.family)
            && self
                .architecture
                .is_none_or(|wanted| wanted == architecture(instance_type))
            && is_within(i64::from(instance_type.cpu), self.cpu)
            && is_within(instance_type.memory_gib, self.memory_gib)
            && self
                .gpu_min
                .is_none_or(|min| i64::from(instance_type.gpu_count) >= min)
    }
}

fn is_within<T: PartialOrd + Copy>(value: T, (min, max): (Option<T>, Option<T>)) -> bool {
    min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max)
}

/// The API says X86 and ARM where images say x86_64 and arm64.
fn architecture(instance_type: &InstanceType) -> &'static str {
    if instance_type.arm64 { "ARM" } else { "X86" }
}

fn row(instance_type: &InstanceType) -> Value {
    let network = instance_type.network.unwrap_or(NETWORK_UNKNOWN);
    json!({
        "InstanceTypeId": instance_type.id,
        "InstanceTypeFamily": format!("ecs.{}", instance_type.family),
        "InstanceFamilyLevel": family_level(instance_type),
        "InstanceCategory": category(instance_type),
        "CpuArchitecture": architecture(instance_type),
        "CpuCoreCount": instance_type.cpu,
        "MemorySize": instance_type.memory_gib,
        "GPUAmount": instance_type.gpu_count,
        "GPUSpec": instance_type.gpu_model,
        "GPUMemorySize": instance_type.gpu_memory_gib,
        "EniQuantity": network.interfaces,
        "EniPrivateIpAddressQuantity": network.ipv4_per_interface,
        "EniIpv6AddressQuantity": network.ipv6_per_interface,
        "EniTotalQuantity": network.interfaces,
        "EniTrunkSupported": false,
        "EriQuantity": 0,
        "DiskQuantity": 17,
        "LocalStorageAmount": instance_type.local_disks.0,
        "LocalStorageCapacity": instance_type.local_disks.1,
        "LocalStorageCategory": local_category(instance_type),
        "NvmeSupport": if instance_type.generation() >= 8 { "required" } else { "unsupported" },
        "JumboFrameSupport": instance_type.generation() >= 8,
        "SupportedBootModes": {"SupportedBootMode": if instance_type.arm64 { vec!["UEFI"] } else { vec!["BIOS", "UEFI"] }},
    })
}

fn family_level(instance_type: &InstanceType) -> &'static str {
    match (
        instance_type.burstable,
        instance_type.family.starts_with('e'),
    ) {
        (true, _) => "CreditEntryLevel",
        (false, true) => "EntryLevel",
        (false, false) => "EnterpriseLevel",
    }
}

fn local_category(instance_type: &InstanceType) -> &'static str {
    match (instance_type.local_disks.0, instance_type.has_local_nvme()) {
        (0, _) => "",
        (_, true) => "local_ssd_pro",
        (_, false) => "local_hdd_pro",
    }
}

fn category(instance_type: &InstanceType) -> &'static str {
    if instance_type.gpu_count > 0 {
        "GPU"
    } else if instance_type.bare_metal {
        "Bare Metal"
    } else {
        match instance_type.memory_gib / f64::from(instance_type.cpu) {
            ratio if ratio < 3.0 => "Compute-optimized",
            ratio if ratio < 6.0 => "General-purpose",
            _ => "Memory-optimized",
        }
    }
}
