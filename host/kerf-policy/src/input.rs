//! From core's types to the contract's: what a policy is told about a planned NodeClaim.

use crate::selection::{Candidate, Demand, Offering, Requirement, Resources, Vocabulary};
use kerf_core::ids::ZoneId;
use kerf_core::instance_type::{CapacityType, InstanceType};
use kerf_core::labels;
use kerf_core::plan::{PlannedClaim, PlannedOffering};
use kerf_core::price::Price;
use kerf_core::requirements::Requirements;
use kerf_core::resources::{EPHEMERAL_STORAGE, Resources as CoreResources};
use std::collections::BTreeMap;

const MIB: i64 = 1 << 20;
/// nvidia.com/gpu, aliyun.com/gpu and the like.
const GPU_SUFFIX: &str = "/gpu";

pub(crate) fn candidate(
    name: &str,
    known: Option<&InstanceType>,
    (capacity, allocatable): (&CoreResources, &CoreResources),
    offerings: Vec<Offering>,
    words: &mut Words,
) -> Candidate {
    let label = |key| {
        known
            .and_then(|it| it.requirements.on(key)?.single_value())
            .unwrap_or_default()
    };
    let category = label(labels::INSTANCE_CATEGORY);
    let gpu_model = label(labels::INSTANCE_GPU_NAME);
    Candidate {
        instance_type: name.to_owned(),
        family: words
            .families
            .index(family_or(label(labels::INSTANCE_FAMILY), name)),
        architecture: words.architectures.index(label(labels::ARCH)),
        generation: label(labels::INSTANCE_GENERATION).parse().unwrap_or(0),
        capacity: resources(capacity),
        allocatable: resources(allocatable),
        // The catalog has neither; 0 means unknown.
        network_mbps: 0,
        local_disk_gib: 0,
        bare_metal: category.starts_with("ebm"),
        burstable: category == "t",
        gpu_model: (!gpu_model.is_empty()).then(|| gpu_model.to_owned()),
        extended: extended(capacity),
        offerings,
    }
}

pub(crate) fn list_price(known: Option<&InstanceType>, zone: &ZoneId) -> Price {
    let is_list_price = |it: &&kerf_core::instance_type::Offering| {
        it.zone == *zone && it.capacity_type == CapacityType::OnDemand
    };
    known
        .and_then(|it| it.offerings.iter().find(is_list_price))
        .map_or(Price::UNKNOWN, |it| it.price)
}

pub(crate) fn offering(
    planned: &PlannedOffering,
    known: Option<&InstanceType>,
    words: &mut Words,
) -> Offering {
    Offering {
        zone: words.zones.index(&planned.zone),
        capacity_type: words.capacity_types.index(planned.capacity_type.as_str()),
        price_micros: micros(ordering_price(planned, known)),
        list_price_micros: micros(list_price(known, &planned.zone)),
        interruption_permille: None,
        recent_failures: 0,
        reservation: planned
            .reservation
            .as_ref()
            .map(|id| id.as_str().to_owned()),
    }
}

/// The price that ordering uses before any policy has spoken: a NodeOverlay may have changed it.
fn ordering_price(planned: &PlannedOffering, known: Option<&InstanceType>) -> Price {
    let is_same = |it: &&kerf_core::instance_type::Offering| {
        it.zone == planned.zone
            && it.capacity_type == planned.capacity_type
            && it.reservation.as_ref().map(|it| &it.id) == planned.reservation.as_ref()
    };
    known
        .and_then(|it| it.offerings.iter().find(is_same))
        .map_or(planned.price, |it| it.ordering_price())
}

pub(crate) fn demand(claim: &PlannedClaim) -> Demand {
    let mut largest = CoreResources::default();
    let mut daemons = claim.requests.clone();
    for pod in &claim.pods {
        largest.raise_to(&pod.spec.requests);
        daemons.subtract(&pod.spec.requests);
    }
    daemons.clear_negatives();
    Demand {
        pods: u32::try_from(claim.pods.len()).unwrap_or(u32::MAX),
        total: resources(&claim.requests),
        largest_pod: resources(&largest),
        daemon_overhead: resources(&daemons),
    }
}

pub(crate) fn requirements(requirements: &Requirements) -> Vec<Requirement> {
    let is_wanted = |key: &str| key != labels::INSTANCE_TYPE;
    let written = requirements
        .iter()
        .filter(|it| is_wanted(it.key()))
        .flat_map(|it| it.written());
    written
        .map(|it| Requirement {
            key: it.key,
            operator: it.operator.as_str().to_owned(),
            values: it.values,
            min_values: it.min_values,
        })
        .collect()
}

pub(crate) fn resources(from: &CoreResources) -> Resources {
    let gpus = from
        .iter()
        .filter(|(name, _)| name.ends_with(GPU_SUFFIX))
        .map(|(_, amount)| amount)
        .sum();
    Resources {
        cpu_milli: to_u32(from.cpu_milli()),
        memory_mib: to_u32(from.memory_bytes() / MIB),
        ephemeral_mib: to_u32(from.amount(EPHEMERAL_STORAGE) / MIB),
        pods: to_u32(from.pods()),
        gpus: to_u32(gpus),
    }
}

fn extended(from: &CoreResources) -> Vec<(String, u32)> {
    let is_extended =
        |name: &str| !kerf_core::resources::COMMON.contains(&name) && !name.ends_with(GPU_SUFFIX);
    let wanted = from.iter().filter(|(name, _)| is_extended(name));
    wanted
        .map(|(name, amount)| (name.to_owned(), to_u32(amount)))
        .collect()
}

pub(crate) fn micros(price: Price) -> u32 {
    u32::try_from(price.micros()).unwrap_or(u32::MAX)
}

fn to_u32(amount: i64) -> u32 {
    u32::try_from(amount.max(0)).unwrap_or(u32::MAX)
}

/// Without a label the family is the name up to the size: `ecs.g7` of `ecs.g7.large`.
pub(crate) fn family_or<'a>(family: &'a str, instance_type: &'a str) -> &'a str {
    let derived = instance_type
        .rsplit_once('.')
        .map_or(instance_type, |(family, _)| family);
    if family.is_empty() { derived } else { family }
}

/// The tables of a question, filled in the order in which words appear.
#[derive(Debug, Clone, Default)]
pub(crate) struct Words {
    pub(crate) zones: Table,
    pub(crate) families: Table,
    pub(crate) architectures: Table,
    pub(crate) capacity_types: Table,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    words: Vec<String>,
    places: BTreeMap<String, u16>,
}

impl Table {
    pub(crate) fn index(&mut self, word: &str) -> u16 {
        if let Some(place) = self.places.get(word) {
            return *place;
        }
        // There are some hundred families; 65,535 words are another program's bug.
        let place = u16::try_from(self.words.len()).unwrap_or(u16::MAX);
        self.words.push(word.to_owned());
        self.places.insert(word.to_owned(), place);
        place
    }
}

impl Words {
    pub(crate) fn vocabulary(&self) -> Vocabulary {
        Vocabulary {
            zones: self.zones.words.clone(),
            families: self.families.words.clone(),
            architectures: self.architectures.words.clone(),
            capacity_types: self.capacity_types.words.clone(),
        }
    }
}
