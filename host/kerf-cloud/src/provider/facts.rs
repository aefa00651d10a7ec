//! What an instance type is: the API's row, parsed once, and the labels that a node of it has.

use std::collections::BTreeMap;

use kerf_core::labels;

use crate::actions::types::TypeItem;
use crate::provider::class::Architecture;

/// MiB in a GiB.
const MIB_PER_GIB: f64 = 1024.0;

/// One instance type.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeFacts {
    /// `ecs.g7.xlarge`
    pub name: String,
    /// `ecs.g7`
    pub family: String,
    pub architecture: Architecture,
    pub cpus: u32,
    pub memory_mib: u64,
    /// Whole GPUs; a sliced one is none.
    pub gpus: u32,
    /// `NVIDIA A10`
    pub gpu_spec: String,
    /// GiB of one GPU.
    pub gpu_memory_gib: u64,
    /// With the primary one.
    pub enis: u32,
    pub ips_per_eni: u32,
    pub cpu_model: String,
    /// GiB of all local NVMe disks together; local hard disks are not counted.
    pub local_nvme_gib: u64,
}

impl TypeFacts {
    /// `None` for a type that cannot be a node: an architecture that we do not know, or no CPU or memory.
    #[must_use]
    pub fn parse(item: &TypeItem) -> Option<Self> {
        let architecture = Architecture::from_cpu(&item.cpu_architecture)?;
        let family = match item.instance_type_family.as_str() {
            "" => item.instance_type_id.rsplit_once('.')?.0.to_owned(),
            family => family.to_owned(),
        };
        let facts = Self {
            architecture,
            cpus: item.cpu_core_count,
            memory_mib: whole(item.memory_size * MIB_PER_GIB),
            gpus: if is_sliced(&family) {
                0
            } else {
                item.gpu_amount
            },
            gpu_spec: item.gpu_spec.clone(),
            gpu_memory_gib: whole(item.gpu_memory_size),
            enis: item.eni_quantity,
            ips_per_eni: item.eni_private_ip_address_quantity,
            cpu_model: item.physical_processor_model.clone(),
            local_nvme_gib: local_nvme_gib(item),
            name: item.instance_type_id.clone(),
            family,
        };
        (facts.cpus > 0 && facts.memory_mib > 0).then_some(facts)
    }

    /// The labels of a node of this type, without zone and capacity type.
    #[must_use]
    pub fn labels(&self, region_id: &str) -> BTreeMap<&'static str, String> {
        let name = Name::parse(&self.name);
        let mut labels = BTreeMap::from([
            (labels::REGION, region_id.to_owned()),
            (labels::INSTANCE_TYPE, self.name.clone()),
            (labels::ARCH, self.architecture.as_str().to_owned()),
            (labels::OS, "linux".to_owned()),
            (labels::INSTANCE_FAMILY, self.family.clone()),
            (labels::INSTANCE_CPU, self.cpus.to_string()),
            (labels::INSTANCE_MEMORY, self.memory_mib.to_string()),
        ]);
        let mut put = |key, value: &str| {
            if !value.is_empty() {
                labels.insert(key, value.to_owned());
            }
        };
        put(labels::INSTANCE_CATEGORY, name.category);
        put(labels::INSTANCE_GENERATION, name.generation);
        put(labels::INSTANCE_SIZE, name.size);
        put(labels::INSTANCE_CPU_MODEL, cpu_maker(&self.cpu_model));
        if self.gpus > 0 {
            put(labels::INSTANCE_GPU_NAME, &gpu_name(&self.gpu_spec));
            put(labels::INSTANCE_GPU_MANUFACTURER, gpu_maker(&self.gpu_spec));
            put(labels::INSTANCE_GPU_COUNT, &self.gpus.to_string());
            put(
                labels::INSTANCE_GPU_MEMORY,
                &self.gpu_memory_gib.to_string(),
            );
        }
        labels
    }
}

/// The parts of `ecs.gn7i-c8g1.2xlarge`.
#[derive(Debug, PartialEq, Eq)]
struct Name<'a> {
    category: &'a str,
    generation: &'a str,
    size: &'a str,
}

impl<'a> Name<'a> {
    fn parse(name: &'a str) -> Self {
        let name = name.strip_prefix("ecs.").unwrap_or(name);
        let (family, size) = name.split_once('.').unwrap_or((name, ""));
        let letters = family
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(family.len());
        let (category, rest) = family.split_at(letters);
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        Self {
            category,
            generation: &rest[..digits],
            size,
        }
    }
}

/// Families whose instances have a part of a GPU: it cannot be scheduled as a whole one.
pub(crate) fn is_sliced(family: &str) -> bool {
    let family = family.strip_prefix("ecs.").unwrap_or(family);
    family.starts_with("vgn") || family.starts_with("sgn")
}

/// NVMe disks only: instanceStorePolicy cannot tell local hard disks from cloud disks by their names.
fn local_nvme_gib(item: &TypeItem) -> u64 {
    const NVME: &str = "local_ssd_pro";
    let is_nvme = item.local_storage_category == NVME;
    let total = item
        .local_storage_capacity
        .saturating_mul(item.local_storage_amount.into());
    if is_nvme { total } else { 0 }
}

fn cpu_maker(model: &str) -> &'static str {
    const MAKERS: [(&str, &str); 5] = [
        ("intel", "intel"),
        ("amd", "amd"),
        ("hygon", "hygon"),
        ("yitian", "yitian"),
        ("ampere", "ampere"),
    ];
    let model = model.to_lowercase();
    MAKERS
        .iter()
        .find(|(word, _)| model.contains(word))
        .map_or("", |(_, maker)| maker)
}

fn gpu_maker(spec: &str) -> &str {
    spec.split([' ', '/']).next().unwrap_or("")
}

/// A label value: letters, digits and hyphens.
fn gpu_name(spec: &str) -> String {
    let spec = spec.to_lowercase();
    let parts: Vec<_> = spec
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|part| !part.is_empty())
        .collect();
    parts.join("-")
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to int saturates, and a size beyond that is no size"
)]
/// The nearest whole number; amounts of instance types come as fractions.
pub(super) fn whole(amount: f64) -> u64 {
    amount.round() as u64
}

#[cfg(test)]
impl TypeFacts {
    /// A general-purpose type of four cores and 16 GiB, for tests to change.
    pub(crate) fn plain(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            family: name.rsplit_once('.').unwrap().0.to_owned(),
            architecture: Architecture::Amd64,
            cpus: 4,
            memory_mib: 16 * 1024,
            gpus: 0,
            gpu_spec: String::new(),
            gpu_memory_gib: 0,
            enis: 4,
            ips_per_eni: 15,
            cpu_model: String::new(),
            local_nvme_gib: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(name: &str, edit: impl FnOnce(&mut TypeItem)) -> TypeFacts {
        let mut item = TypeItem {
            instance_type_id: name.to_owned(),
            cpu_architecture: "X86".to_owned(),
            cpu_core_count: 4,
            memory_size: 16.0,
            ..TypeItem::default()
        };
        edit(&mut item);
        TypeFacts::parse(&item).unwrap()
    }

    #[test]
    fn names_fall_into_parts() {
        let check = |name, category, generation, size| {
            assert_eq!(
                Name::parse(name),
                Name {
                    category,
                    generation,
                    size
                },
                "{name}"
            );
        };

        check("ecs.g7.xlarge", "g", "7", "xlarge");
        check("ecs.gn7i-c8g1.2xlarge", "gn", "7", "2xlarge");
        check("ecs.ebmg7.32xlarge", "ebmg", "7", "32xlarge");
        check("ecs.e-c1m4.large", "e", "", "large");
        check("ecs.sn1ne.large", "sn", "1", "large");
    }

    #[test]
    fn a_tebibyte_is_a_whole_number_in_the_label() {
        let facts = facts("ecs.re6.13xlarge", |item| item.memory_size = 1024.0);

        assert_eq!(
            facts.labels("cn-hangzhou")[labels::INSTANCE_MEMORY],
            "1048576"
        );
    }

    #[test]
    fn half_a_gibibyte_is_512_mib() {
        assert_eq!(
            facts("ecs.t5.nano", |item| item.memory_size = 0.5).memory_mib,
            512
        );
    }

    #[test]
    fn f23_arm_comes_from_the_architecture_and_not_from_the_name() {
        let facts = facts("ecs.r6.large", |item| {
            item.cpu_architecture = "ARM".to_owned();
        });

        assert_eq!(facts.labels("r")[labels::ARCH], "arm64");
    }

    #[test]
    fn f17_a_sliced_gpu_is_no_gpu() {
        let gpu = |item: &mut TypeItem| {
            item.gpu_amount = 1;
            item.gpu_spec = "NVIDIA A10*1/6".to_owned();
        };

        assert_eq!(facts("ecs.sgn7i-vws-m2.xlarge", gpu).gpus, 0);
        let whole = facts("ecs.gn7i-c8g1.2xlarge", gpu).labels("r");
        assert_eq!(whole[labels::INSTANCE_GPU_NAME], "nvidia-a10-1-6");
        assert_eq!(whole[labels::INSTANCE_GPU_MANUFACTURER], "NVIDIA");
    }
}
