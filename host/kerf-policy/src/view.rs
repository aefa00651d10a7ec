//! The questions about the claims of a plan, by NodePool. A claim is recognised by what it has in common with others, and the
//! question itself is made when some policy has not heard it before.

use crate::catalogs::{Catalogs, Facts};
use crate::chain::Source;
use crate::input::{Words, candidate, demand, family_or, offering, requirements, resources};
use crate::memo::Fingerprint;
use crate::seam::Occasion;
use crate::selection::{
    Candidate, Context, Demand, Exclusion, FleetEntry, Requirement, SelectionInput,
};
use kerf_core::instance_type::InstanceType;
use kerf_core::labels;
use kerf_core::node::Node;
use kerf_core::node_pool::NodePool;
use kerf_core::plan::{PlannedClaim, PlannedOffering};
use kerf_core::resources::Resources as CoreResources;
use kerf_core::snapshot::Snapshot;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A NodePool with what every question about it needs, gathered once per consultation.
pub(crate) struct PoolView<'a> {
    frame: Frame<'a>,
    shapes: HashMap<Place, Shape>,
}

/// Where the offerings and the requirements of a claim lie; the claims of a plan share both where they are equal.
pub(crate) type Place = (usize, usize);

/// The plan keeps both alive, so nothing else can come to lie where they are.
pub(crate) fn place_of(claim: &PlannedClaim) -> Place {
    let offerings = Arc::as_ptr(&claim.offerings).addr();
    let requirements = Arc::as_ptr(&claim.requirements).addr();
    (offerings, requirements)
}

/// What all questions of a pool have in common.
struct Frame<'a> {
    pool: &'a NodePool,
    facts: Arc<Facts>,
    /// Of the catalog and the fleet.
    words: Words,
    fleet: Vec<FleetEntry>,
    occasion: Occasion<'a>,
    fingerprint: Fingerprint,
}

/// What claims with the same offerings and requirements have in common.
pub(crate) struct Shape {
    fingerprint: Fingerprint,
    requirements: Vec<Requirement>,
    /// For each candidate, its place in the catalog, and the offerings of the claim that are its own.
    groups: Vec<(Option<usize>, Vec<usize>)>,
    /// With the demand of the claim that was asked about last.
    input: Option<SelectionInput>,
    /// What the policies said of the last claim.
    pub(crate) heard: Option<Heard>,
}

/// The part of a verdict that becomes preferences.
pub(crate) type Heard = (Vec<Option<i64>>, Vec<(String, Exclusion)>);

/// The question about one claim.
pub(crate) struct ClaimQuestion<'v> {
    frame: &'v Frame<'v>,
    claim: &'v PlannedClaim,
    pub(crate) shape: &'v mut Shape,
    demand: Demand,
}

impl<'a> PoolView<'a> {
    pub(crate) fn new(
        snapshot: &Snapshot,
        pool: &'a NodePool,
        catalogs: &Catalogs,
        occasion: Occasion<'a>,
    ) -> Self {
        let facts = catalogs.facts(pool, occasion.region);
        let mut words = facts.words.clone();
        let fleet = fleet(snapshot, pool, &mut words);
        let class = pool.template.node_class.name.as_str();
        let names = (occasion.reason, pool.name.as_str(), class, occasion.region);
        let labels = &pool.template.labels;
        let fingerprint = Fingerprint::of(&(names, words.vocabulary(), &fleet, labels));
        let frame = Frame {
            pool,
            facts,
            words,
            fleet,
            occasion,
            fingerprint,
        };
        Self {
            frame,
            shapes: HashMap::new(),
        }
    }

    pub(crate) fn question<'v>(&'v mut self, claim: &'v PlannedClaim) -> ClaimQuestion<'v> {
        let frame = &self.frame;
        let shape = self.shapes.entry(place_of(claim));
        let shape = shape.or_insert_with(|| frame.shape(claim));
        ClaimQuestion {
            frame,
            claim,
            shape,
            demand: demand(claim),
        }
    }
}

impl Frame<'_> {
    fn shape(&self, claim: &PlannedClaim) -> Shape {
        let groups = self.by_instance_type(&claim.offerings);
        let requirements = requirements(&claim.requirements);
        let marks: Vec<Mark<'_>> = groups
            .iter()
            .map(|(place, own)| self.mark(*place, own, &claim.offerings))
            .collect();
        Shape {
            fingerprint: Fingerprint::of(&(self.fingerprint, &requirements, marks)),
            requirements,
            groups,
            input: None,
            heard: None,
        }
    }

    /// The offerings of each instance type by index, both in the order of the claim.
    fn by_instance_type(&self, offerings: &[PlannedOffering]) -> Vec<(Option<usize>, Vec<usize>)> {
        let mut groups: Vec<(Option<usize>, Vec<usize>)> = Vec::new();
        let mut places = HashMap::new();
        for (i, offering) in offerings.iter().enumerate() {
            let name = offering.instance_type.as_str();
            let group = *places.entry(name).or_insert(groups.len());
            if group == groups.len() {
                groups.push((self.facts.place(name), Vec::new()));
            }
            groups[group].1.push(i);
        }
        groups
    }

    fn mark<'c>(
        &self,
        place: Option<usize>,
        own: &[usize],
        offerings: &'c [PlannedOffering],
    ) -> Mark<'c> {
        // A group has an offering at least.
        let first = &offerings[own[0]];
        let machine = (&first.capacity, &first.allocatable);
        let known = place.map(|place| &self.facts.kinds[place]);
        let instance_type = place.map(|place| &*self.pool.instance_types[place]);
        Mark {
            kind: known.map(|it| it.fingerprint),
            name: known.is_none().then_some(first.instance_type.as_str()),
            machine: known
                .is_none_or(|it| machine != (&it.capacity, &it.allocatable))
                .then_some(machine),
            offerings: own
                .iter()
                .map(|i| OfferingMark::new(&offerings[*i], instance_type))
                .collect(),
        }
    }

    fn input(&self, claim: &PlannedClaim, shape: &Shape) -> SelectionInput {
        // Nearly always all words are known; those of a type that left the catalog are added for this question.
        let mut words = None;
        let candidates = shape.groups.iter();
        let candidates = candidates
            .map(|(place, own)| self.candidate(*place, own, claim, &mut words))
            .collect();
        let labels = self.pool.template.labels.iter();
        let context = Context {
            reason: self.occasion.reason.to_owned(),
            node_pool: claim.pool.as_str().to_owned(),
            node_class: claim.node_class.name.clone(),
            region: self.occasion.region.to_owned(),
            as_of_unix_s: 0,
            vocabulary: words.as_ref().unwrap_or(&self.words).vocabulary(),
            demand: demand(claim),
            requirements: shape.requirements.clone(),
            fleet: self.fleet.clone(),
            labels: labels
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        };
        SelectionInput {
            context,
            candidates,
        }
    }

    fn candidate(
        &self,
        place: Option<usize>,
        own: &[usize],
        claim: &PlannedClaim,
        words: &mut Option<Words>,
    ) -> Candidate {
        let first = &claim.offerings[own[0]];
        let known = place.map(|place| &*self.pool.instance_types[place]);
        let asked = place.map(|place| &self.facts.question.candidates[place]);
        let ready = |i: &usize| {
            let sold = sold_as(&claim.offerings[*i], known)?;
            asked.map(|it| it.offerings[sold].clone())
        };
        let kind = place.map(|place| &self.facts.kinds[place]);
        let ready: Option<Vec<_>> = own.iter().map(ready).collect();
        if let (Some(offerings), Some(asked), Some(kind)) = (ready, asked, kind)
            && (&first.capacity, &first.allocatable) == (&kind.capacity, &kind.allocatable)
        {
            return asked.with_offerings(offerings);
        }
        let words = words.get_or_insert_with(|| self.words.clone());
        let offerings = own
            .iter()
            .map(|i| offering(&claim.offerings[*i], known, words))
            .collect();
        let machine = (&first.capacity, &first.allocatable);
        candidate(&first.instance_type, known, machine, offerings, words)
    }
}

/// What tells one candidate from another: the type of the catalog and the places of its offerings there, or all of it.
#[derive(Hash)]
struct Mark<'c> {
    kind: Option<Fingerprint>,
    name: Option<&'c str>,
    machine: Option<(&'c CoreResources, &'c CoreResources)>,
    offerings: Vec<OfferingMark<'c>>,
}

#[derive(Hash)]
enum OfferingMark<'c> {
    Sold(usize),
    Other(&'c str, &'static str, u64, Option<&'c str>),
}

impl<'c> OfferingMark<'c> {
    fn new(planned: &'c PlannedOffering, known: Option<&InstanceType>) -> Self {
        if let Some(place) = sold_as(planned, known) {
            return Self::Sold(place);
        }
        let reservation = planned.reservation.as_ref().map(|it| it.as_str());
        let capacity_type = planned.capacity_type.as_str();
        let price = planned.price.micros();
        Self::Other(planned.zone.as_str(), capacity_type, price, reservation)
    }
}

/// Which offering of the catalog it is.
fn sold_as(planned: &PlannedOffering, known: Option<&InstanceType>) -> Option<usize> {
    let is_same = |it: &kerf_core::instance_type::Offering| {
        it.capacity_type == planned.capacity_type
            && it.zone == planned.zone
            && it.reservation.as_ref().map(|it| &it.id) == planned.reservation.as_ref()
    };
    known?.offerings.iter().position(is_same)
}

fn fleet(snapshot: &Snapshot, pool: &NodePool, words: &mut Words) -> Vec<FleetEntry> {
    let is_of_pool = |node: &&Node| node.pool.as_ref() == Some(&pool.name) && !node.is_deleting;
    let nodes = snapshot.nodes.iter().map(|node| &**node);
    let mut kinds: BTreeMap<(&str, &str, &str), (u32, CoreResources)> = BTreeMap::new();
    for node in nodes.filter(is_of_pool) {
        let label = |key| node.labels.get(key).unwrap_or_default();
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

impl Shape {
    /// The offering of the claim that is the offering of a candidate.
    pub(crate) fn place(&self, candidate: usize, offering: usize) -> usize {
        self.groups[candidate].1[offering]
    }

    /// For each candidate, the offerings of the claim that are its own.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[usize]> {
        self.groups.iter().map(|(_, own)| own.as_slice())
    }
}

impl Source for ClaimQuestion<'_> {
    fn node_pool(&self) -> &str {
        self.claim.pool.as_str()
    }

    fn shape(&self) -> Fingerprint {
        self.shape.fingerprint
    }

    fn demand(&self) -> &Demand {
        &self.demand
    }

    fn all_indexes(&self) -> Vec<(usize, Vec<usize>)> {
        let indexes = |own: &[usize]| (0..own.len()).collect();
        self.shape.groups().map(indexes).enumerate().collect()
    }

    fn candidates(&self) -> usize {
        self.shape.groups.len()
    }

    fn input(&mut self) -> &SelectionInput {
        let (frame, claim) = (self.frame, self.claim);
        let made = match self.shape.input.take() {
            Some(made) => made,
            None => frame.input(claim, self.shape),
        };
        let input = self.shape.input.insert(made);
        input.context.demand = self.demand;
        input
    }
}
