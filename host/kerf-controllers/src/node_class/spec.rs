//! An ECSNodeClass in the cloud crate's words. Pure.

use std::collections::BTreeMap;

use kerf_api::duration::NillableDuration;
use kerf_api::ecsnodeclass::disk::{DiskCategory, PerformanceLevel, SYSTEM_DISK_GIB_DEFAULT};
use kerf_api::ecsnodeclass::{
    DataDisk, EcsNodeClass, EcsNodeClassSpec, KubeletConfiguration, SystemDisk,
};
use kerf_cloud::provider::class;
use kerf_core::quantity::Quantity;
use kube::ResourceExt;

/// Bytes of a GiB.
const GIB: i64 = 1 << 30;
/// The disk when the class names none (AL: same).
const DISK_CATEGORY_DEFAULT: &str = "cloud_essd";

/// What the class asks the cloud for; a class without a role gets the default.
#[must_use]
pub fn spec(class: &EcsNodeClass, default_role: &str) -> class::NodeClassSpec {
    let spec = &class.spec;
    class::NodeClassSpec {
        name: class.name_any(),
        cluster_id: text(spec.cluster_id.as_ref()),
        cluster_name: text(spec.cluster_name.as_ref()),
        cluster_endpoint: text(spec.cluster_endpoint.as_ref()),
        vswitch_selector_terms: vswitch_terms(spec),
        security_group_selector_terms: security_group_terms(spec),
        image_selector_terms: image_terms(spec),
        system_disk: system_disk(spec.system_disk.as_ref()),
        data_disks: spec.data_disks.iter().map(data_disk).collect(),
        format_data_disk: spec.format_data_disk.unwrap_or_default(),
        instance_store_policy: word(spec.instance_store_policy.as_ref().map(|it| it.as_str())),
        spot: class::SpotSettings {
            strategy: word(spec.spot_strategy.as_ref().map(|it| it.as_str())),
            price_limit_per_hour: spec.spot_price_limit,
            ..class::SpotSettings::default()
        },
        role: spec
            .role
            .clone()
            .filter(|role| !role.is_empty())
            .unwrap_or_else(|| default_role.to_owned()),
        key_pair_name: text(spec.key_pair_name.as_ref()),
        key_pair_selector_terms: key_pair_terms(spec),
        password_inherit: spec.password_inherit.unwrap_or_default(),
        launch_template_id: text(spec.launch_template_id.as_ref()),
        private_pools: private_pools(spec),
        resource_group_id: text(spec.resource_group_id.as_ref()),
        tags: spec.tags.clone(),
        user_data: text(spec.user_data.as_ref()),
        join_template: text(spec.join_template.as_ref()),
        metadata_options: metadata_options(spec),
        internet_max_bandwidth_out: spec
            .internet_accessible
            .as_ref()
            .and_then(|it| u32::try_from(it.max_bandwidth_out).ok()),
        internet_charge_type: word(
            spec.internet_accessible
                .as_ref()
                .and_then(|it| it.charge_type.as_ref())
                .map(|it| it.as_str()),
        ),
        kubelet: spec.kubelet.as_ref().map(kubelet).unwrap_or_default(),
    }
}

fn word(value: Option<&str>) -> String {
    value.unwrap_or_default().to_owned()
}

fn key_pair_terms(spec: &EcsNodeClassSpec) -> Vec<class::KeyPairTerm> {
    let terms = spec.ssh_key_selector_terms.iter();
    terms
        .map(|term| class::KeyPairTerm {
            name: text(term.name.as_ref()),
            tags: term.tags.clone(),
        })
        .collect()
}

fn private_pools(spec: &EcsNodeClassSpec) -> class::PrivatePools {
    let preference = spec.capacity_reservation_preference.as_ref();
    let terms = spec.capacity_reservation_selector_terms.iter();
    class::PrivatePools {
        preference: word(preference.map(|it| it.as_str())),
        selector_terms: terms
            .map(|term| class::PrivatePoolTerm {
                id: text(term.id.as_ref()),
                tags: term.tags.clone(),
            })
            .collect(),
    }
}

fn text(value: Option<&String>) -> String {
    value.cloned().unwrap_or_default()
}

fn vswitch_terms(spec: &EcsNodeClassSpec) -> Vec<class::VSwitchTerm> {
    let terms = spec.v_switch_selector_terms.iter();
    terms
        .map(|term| class::VSwitchTerm {
            id: text(term.id.as_ref()),
            tags: term.tags.clone(),
            zone_id: text(term.zone_id.as_ref()),
        })
        .collect()
}

fn security_group_terms(spec: &EcsNodeClassSpec) -> Vec<class::SecurityGroupTerm> {
    let terms = spec.security_group_selector_terms.iter();
    terms
        .map(|term| class::SecurityGroupTerm {
            id: text(term.id.as_ref()),
            name: text(term.name.as_ref()),
            tags: term.tags.clone(),
        })
        .collect()
}

fn image_terms(spec: &EcsNodeClassSpec) -> Vec<class::ImageTerm> {
    let terms = spec.image_selector_terms.iter();
    terms
        .map(|term| class::ImageTerm {
            id: text(term.id.as_ref()),
            image_family: text(term.image_family.as_ref()),
            alias: text(term.alias.as_ref()),
            name: text(term.name.as_ref()),
            owner_alias: text(term.image_owner_alias.as_ref()),
            owner_id: text(term.image_owner_id.as_ref()),
            tags: term.tags.clone(),
        })
        .collect()
}

fn system_disk(disk: Option<&SystemDisk>) -> class::SystemDisk {
    let default = SystemDisk::default();
    let disk = disk.unwrap_or(&default);
    class::SystemDisk {
        categories: categories(disk.category.as_ref(), disk.categories.as_deref()),
        size_gib: size_gib(
            disk.size,
            disk.volume_size.as_ref(),
            SYSTEM_DISK_GIB_DEFAULT,
        ),
        performance_level: level(disk.performance_level.as_ref()),
        encrypted: disk.encrypted.unwrap_or_default(),
        kms_key_id: text(disk.kms_key_id.as_ref()),
    }
}

fn data_disk(disk: &DataDisk) -> class::DataDisk {
    class::DataDisk {
        categories: categories(disk.category.as_ref(), disk.categories.as_deref()),
        // Zero leaves the size to the snapshot.
        size_gib: size_gib(disk.size, disk.volume_size.as_ref(), 0),
        performance_level: level(disk.performance_level.as_ref()),
        device: text(disk.device.as_ref()),
        snapshot_id: text(disk.snapshot_id.as_ref()),
        encrypted: disk.encrypted.unwrap_or_default(),
        kms_key_id: text(disk.kms_key_id.as_ref()),
        delete_with_instance: disk.delete_with_instance,
        mount_target: text(disk.mount_target.as_ref()),
        file_system: word(disk.file_system.as_ref().map(|it| it.as_str())),
    }
}

/// Never empty.
fn categories(one: Option<&DiskCategory>, many: Option<&[DiskCategory]>) -> Vec<String> {
    let named = many
        .unwrap_or_default()
        .iter()
        .chain(one)
        .map(|it| it.as_str().to_owned());
    let named: Vec<String> = named.collect();
    if named.is_empty() {
        vec![DISK_CATEGORY_DEFAULT.to_owned()]
    } else {
        named
    }
}

fn size_gib(
    gib: Option<i32>,
    quantity: Option<&k8s_openapi::apimachinery::pkg::api::resource::Quantity>,
    default: i32,
) -> u32 {
    let from_quantity = quantity
        .and_then(|it| Quantity::parse(&it.0).ok())
        .map(|it| {
            let bytes = it.units();
            // A part of a GiB needs a whole one.
            bytes.saturating_add(GIB - 1) / GIB
        });
    let gib = from_quantity.unwrap_or_else(|| i64::from(gib.unwrap_or(default)));
    u32::try_from(gib).unwrap_or_default()
}

fn level(level: Option<&PerformanceLevel>) -> String {
    level.map(|it| it.as_str().to_owned()).unwrap_or_default()
}

fn metadata_options(spec: &EcsNodeClassSpec) -> class::MetadataOptions {
    let Some(options) = &spec.metadata_options else {
        return class::MetadataOptions::default();
    };
    class::MetadataOptions {
        http_endpoint: options
            .http_endpoint
            .as_ref()
            .map(|it| it.as_str().to_owned())
            .unwrap_or_default(),
        http_tokens: options
            .http_tokens
            .as_ref()
            .map(|it| it.as_str().to_owned())
            .unwrap_or_default(),
        http_put_response_hop_limit: options
            .http_put_response_hop_limit
            .and_then(|it| u32::try_from(it).ok()),
    }
}

fn kubelet(kubelet: &KubeletConfiguration) -> class::KubeletSettings {
    let number = |value: Option<i32>| value.and_then(|it| u32::try_from(it).ok());
    class::KubeletSettings {
        cluster_dns: kubelet.cluster_dns.clone().unwrap_or_default(),
        max_pods: number(kubelet.max_pods),
        pods_per_core: number(kubelet.pods_per_core),
        system_reserved: amounts(kubelet.system_reserved.as_ref()),
        kube_reserved: amounts(kubelet.kube_reserved.as_ref()),
        eviction_hard: kubelet.eviction_hard.clone().unwrap_or_default(),
        eviction_soft: kubelet.eviction_soft.clone().unwrap_or_default(),
        eviction_soft_grace_period: durations(kubelet.eviction_soft_grace_period.as_ref()),
        eviction_max_pod_grace_period: number(kubelet.eviction_max_pod_grace_period),
        image_gc_high_threshold_percent: number(kubelet.image_gc_high_threshold_percent),
        image_gc_low_threshold_percent: number(kubelet.image_gc_low_threshold_percent),
        cpu_cfs_quota: kubelet.cpu_cfs_quota,
    }
}

fn amounts(
    amounts: Option<&BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>>,
) -> BTreeMap<String, String> {
    amounts
        .into_iter()
        .flatten()
        .map(|(name, amount)| (name.clone(), amount.0.clone()))
        .collect()
}

fn durations(durations: Option<&BTreeMap<String, NillableDuration>>) -> BTreeMap<String, String> {
    durations
        .into_iter()
        .flatten()
        .map(|(name, it)| (name.clone(), it.as_str().to_owned()))
        .collect()
}

#[cfg(test)]
mod tests;
