//! From core's types to the contract's: what a policy is told about a planned NodeClaim.

use crate::memo::Fingerprint;
use crate::selection::{
    Candidate, Context, Demand, Exclusion, FleetEntry, Offering, Requirement, Resources,
    SelectionInput, Vocabulary,
};
use kerf_core::ids::ZoneId;
use kerf_core::instance_type::{CapacityType, InstanceType};
use kerf_core::labels;
use kerf_core::node::Node;
use kerf_core::node_pool::NodePool;
use kerf_core::plan::{PlannedClaim, PlannedOffering};
use kerf_core::price::Price;
use kerf_core::requirements::Requirements;
use kerf_core::resources::{EPHEMERAL_STORAGE, Resources as CoreResources};
use kerf_core::snapshot::Snapshot;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

const MIB: i64 = 1 << 20;
/// nvidia.com/gpu, aliyun.com/gpu and the like.
const GPU_SUFFIX: &str = "/gpu";

/// A NodePool with what every question about it needs, gathered once per consultation.
pub(crate) struct PoolView<'a> {
    pool: &'a NodePool,
    types: BTreeMap<&'a str, &'a InstanceType>,
    nodes: Vec<&'a Node>,
    /// By where their offerings and requirements lie; the claims of a plan share both where they are equal.
    shapes: HashMap<(usize, usize), Shape>,
}

/// What claims with the same offerings and requirements have in common.
pub(crate) struct Shape {
    /// With the demand of the claim that was asked about last.
    pub(crate) input: SelectionInput,
    pub(crate) fingerprint: Fingerprint,
    /// For each candidate, the offerings of the claim that are its own.
    pub(crate) groups: Vec<Vec<usize>>,
    /// What the policies said of the last claim.
    pub(crate) heard: Option<Heard>,
}

/// The part of a verdict that becomes preferences.
pub(crate) type Heard = (Vec<Option<i64>>, Vec<(String, Exclusion)>);

impl<'a> PoolView<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, pool: &'a NodePool) -> Self {
        let types = pool
            .instance_types
            .iter()
            .map(|it| (it.name.as_str(), &**it))
            .collect();
        let is_of_pool = |node: &&Node| node.pool.as_ref() == Some(&pool.name) && !node.is_deleting;
        let nodes = snapshot
            .nodes
            .iter()
            .map(|node| &**node)
            .filter(is_of_pool)
            .collect();
        Self {
            pool,
            types,
            nodes,
            shapes: HashMap::new(),
        }
    }

    /// The question about `claim`. What it has in common with claims of the same shape is made once.
    pub(crate) fn question(
        &mut self,
        claim: &PlannedClaim,
        region: &str,
        reason: &str,
    ) -> &mut Shape {
        // The plan keeps both alive, so nothing else can come to lie where they are.
        let offerings = Arc::as_ptr(&claim.offerings).addr();
        let requirements = Arc::as_ptr(&claim.requirements).addr();
        let key = (offerings, requirements);
        let shape = match self.shapes.remove(&key) {
            Some(known) => known,
            None => self.shape(claim, region, reason),
        };
        let shape = self.shapes.entry(key).insert_entry(shape).into_mut();
        shape.input.context.demand = demand(claim);
        shape
    }

    fn shape(&self, claim: &PlannedClaim, region: &str, reason: &str) -> Shape {
        let mut words = Words::default();
        let groups = by_instance_type(&claim.offerings);
        let candidates = groups
            .iter()
            .map(|group| self.candidate(claim, group, &mut words))
            .collect();
        let fleet = self.fleet(&mut words);
        let labels = self.pool.template.labels.iter();
        let context = Context {
            reason: reason.to_owned(),
            node_pool: claim.pool.as_str().to_owned(),
            node_class: claim.node_class.name.clone(),
            region: region.to_owned(),
            as_of_unix_s: 0,
            vocabulary: words.into_vocabulary(),
            demand: demand(claim),
            requirements: requirements(&claim.requirements),
            fleet,
            labels: labels
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        };
        let input = SelectionInput {
            context,
            candidates,
        };
        Shape {
            fingerprint: input.fingerprint_of_shape(),
            input,
            groups,
            heard: None,
        }
    }

    fn candidate(&self, claim: &PlannedClaim, group: &[usize], words: &mut Words) -> Candidate {
        // `by_instance_type` makes no empty groups.
        let first = &claim.offerings[group[0]];
        let name = first.instance_type.as_str();
        let known = self.types.get(name).copied();
        let offerings = group
            .iter()
            .map(|i| offering(&claim.offerings[*i], known, words))
            .collect();
        candidate(
            name,
            known,
            (&first.capacity, &first.allocatable),
            offerings,
            words,
        )
    }

    fn fleet(&self, words: &mut Words) -> Vec<FleetEntry> {
        let mut kinds: BTreeMap<(&str, &str, &str), (u32, CoreResources)> = BTreeMap::new();
        for node in &self.nodes {
            let label = |key| node.labels.get(key).map_or("", |value| &**value);
            let family = family_or(label(labels::INSTANCE_FAMILY), label(labels::INSTANCE_TYPE));
            let (nodes, total) = kinds
                .entry((label(labels::ZONE), label(labels::CAPACITY_TYPE), family))
                .or_default();
            *nodes += 1;
            total.add(&node.capacity);
        }
        let entry =
            |((zone, capacity_type, family), (nodes, total)): (_, (_, CoreResources))| FleetEntry {
                zone: words.zones.index(zone),
                capacity_type: words.capacity_types.index(capacity_type),
                family: words.families.index(family),
                nodes,
                total: resources(&total),
            };
        kinds.into_iter().map(entry).collect()
    }
}

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

/// Indexes of the offerings of each instance type, both in the order of the claim.
fn by_instance_type(offerings: &[PlannedOffering]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut places = BTreeMap::new();
    for (i, offering) in offerings.iter().enumerate() {
        let place = *places
            .entry(&offering.instance_type)
            .or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(i);
    }
    groups
}

fn offering(
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

fn demand(claim: &PlannedClaim) -> Demand {
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

fn requirements(requirements: &Requirements) -> Vec<Requirement> {
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

fn resources(from: &CoreResources) -> Resources {
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
fn family_or<'a>(family: &'a str, instance_type: &'a str) -> &'a str {
    let derived = instance_type
        .rsplit_once('.')
        .map_or(instance_type, |(family, _)| family);
    if family.is_empty() { derived } else { family }
}

/// The tables of a question, filled in the order in which words appear.
#[derive(Default)]
pub(crate) struct Words {
    pub(crate) zones: Table,
    pub(crate) families: Table,
    pub(crate) architectures: Table,
    pub(crate) capacity_types: Table,
}

#[derive(Default)]
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
    pub(crate) fn into_vocabulary(self) -> Vocabulary {
        Vocabulary {
            zones: self.zones.words,
            families: self.families.words,
            architectures: self.architectures.words,
            capacity_types: self.capacity_types.words,
        }
    }
}
