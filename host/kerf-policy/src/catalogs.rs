//! What is known of whole catalogs: the question about their prices, and what questions about claims are made of.

use crate::input::{Words, candidate, list_price, micros};
use crate::memo::Fingerprint;
use crate::pricing::{PricingContext, PricingInput};
use crate::selection::{Candidate, Offering};
use kerf_core::ids::InstanceTypeName;
use kerf_core::instance_type::InstanceType;
use kerf_core::node_pool::NodePool;
use kerf_core::resources::Resources;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Catalogs that are known at once: more than NodeClasses and overlays make in one cluster.
const KNOWN_MAX: usize = 64;

/// Catalogs that were asked about, by where they lie. It keeps none of them alive, but what it made of each until another
/// one comes.
#[derive(Debug, Default)]
pub(crate) struct Catalogs {
    known: Mutex<Vec<Known>>,
}

#[derive(Debug)]
struct Known {
    /// As long as this exists nothing else can lie there.
    types: Weak<Vec<Arc<InstanceType>>>,
    node_class: String,
    region: String,
    facts: Arc<Facts>,
}

/// A catalog in the contract's words.
#[derive(Debug)]
pub(crate) struct Facts {
    /// Offering `j` of candidate `i` is the catalog's.
    pub(crate) question: PricingInput,
    pub(crate) fingerprint: Fingerprint,
    /// Those of the question.
    pub(crate) words: Words,
    /// By place in the catalog.
    pub(crate) kinds: Vec<Kind>,
    places: HashMap<InstanceTypeName, usize>,
}

/// An instance type of a catalog.
#[derive(Debug)]
pub(crate) struct Kind {
    /// Of its candidate, given the words.
    pub(crate) fingerprint: Fingerprint,
    pub(crate) capacity: Resources,
    pub(crate) allocatable: Resources,
}

impl Catalogs {
    /// What is known of the pool's catalog.
    pub(crate) fn facts(&self, pool: &NodePool, region: &str) -> Arc<Facts> {
        let node_class = &pool.template.node_class.name;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |it: &&Known| {
            std::ptr::eq(it.types.as_ptr(), Arc::as_ptr(&pool.instance_types))
                && (&it.node_class, it.region.as_str()) == (node_class, region)
        };
        if let Some(it) = known.iter().find(is_it) {
            return Arc::clone(&it.facts);
        }
        let facts = Arc::new(Facts::new(pool, region));
        known.retain(|it| it.types.strong_count() > 0);
        if known.len() >= KNOWN_MAX {
            known.remove(0);
        }
        known.push(Known {
            types: Arc::downgrade(&pool.instance_types),
            node_class: node_class.clone(),
            region: region.to_owned(),
            facts: Arc::clone(&facts),
        });
        facts
    }
}

impl Facts {
    fn new(pool: &NodePool, region: &str) -> Self {
        let mut words = Words::default();
        let types = pool.instance_types.iter();
        let candidates: Vec<Candidate> = types
            .clone()
            .map(|it| catalog_candidate(it, &mut words))
            .collect();
        let kind = |(it, asked): (&Arc<InstanceType>, &Candidate)| Kind {
            fingerprint: Fingerprint::of(asked),
            capacity: it.capacity.clone(),
            allocatable: it.allocatable(),
        };
        let kinds = types.clone().zip(&candidates).map(kind).collect();
        let places = types.enumerate().map(|(i, it)| (it.name.clone(), i));
        let places = places.collect();
        let context = PricingContext {
            node_class: pool.template.node_class.name.clone(),
            region: region.to_owned(),
            as_of_unix_s: 0,
            vocabulary: words.vocabulary(),
        };
        let question = PricingInput {
            context,
            candidates,
        };
        Self {
            fingerprint: question.fingerprint_of_catalog(),
            question,
            words,
            kinds,
            places,
        }
    }

    /// Where in the catalog a type is.
    pub(crate) fn place(&self, instance_type: &str) -> Option<usize> {
        self.places.get(instance_type).copied()
    }
}

fn catalog_candidate(it: &InstanceType, words: &mut Words) -> Candidate {
    let offering = |sold: &kerf_core::instance_type::Offering| Offering {
        zone: words.zones.index(&sold.zone),
        capacity_type: words.capacity_types.index(sold.capacity_type.as_str()),
        price_micros: micros(sold.ordering_price()),
        list_price_micros: micros(list_price(Some(it), &sold.zone)),
        interruption_permille: None,
        recent_failures: 0,
        reservation: sold
            .reservation
            .as_ref()
            .map(|reservation| reservation.id.as_str().to_owned()),
    };
    let offerings = it.offerings.iter().map(offering).collect();
    candidate(
        &it.name,
        Some(it),
        (&it.capacity, &it.allocatable()),
        offerings,
        words,
    )
}
