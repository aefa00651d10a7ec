//! The question about a whole catalog, and how to know without making it that it was asked before.

use crate::input::{Words, candidate, list_price, micros};
use crate::memo::Fingerprint;
use crate::pricing::{PricingContext, PricingInput};
use crate::selection::{Candidate, Offering};
use kerf_core::instance_type::InstanceType;
use kerf_core::node_pool::NodePool;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Catalogs that are told apart without a look inside: more than NodeClasses and overlays make in one cluster.
const KNOWN_MAX: usize = 64;

/// The fingerprints of catalogs that were asked about, by where they lie. It keeps none of them alive.
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
    fingerprint: Fingerprint,
}

impl Catalogs {
    /// The [`PricingInput::fingerprint_of_catalog`] of the pool's catalog. The question is left in `made` when it had to be
    /// made for that.
    pub(crate) fn fingerprint(
        &self,
        pool: &NodePool,
        region: &str,
        made: &mut Option<PricingInput>,
    ) -> Fingerprint {
        let node_class = &pool.template.node_class.name;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |it: &&Known| {
            std::ptr::eq(it.types.as_ptr(), Arc::as_ptr(&pool.instance_types))
                && (&it.node_class, it.region.as_str()) == (node_class, region)
        };
        if let Some(it) = known.iter().find(is_it) {
            return it.fingerprint;
        }
        let question = made.insert(catalog_question(pool, region));
        let fingerprint = question.fingerprint_of_catalog();
        known.retain(|it| it.types.strong_count() > 0);
        if known.len() >= KNOWN_MAX {
            known.remove(0);
        }
        known.push(Known {
            types: Arc::downgrade(&pool.instance_types),
            node_class: node_class.clone(),
            region: region.to_owned(),
            fingerprint,
        });
        fingerprint
    }
}

/// The question about the whole catalog of a pool. Offering `j` of candidate `i` is the pool's.
pub(crate) fn catalog_question(pool: &NodePool, region: &str) -> PricingInput {
    let mut words = Words::default();
    let candidates = pool
        .instance_types
        .iter()
        .map(|it| catalog_candidate(it, &mut words))
        .collect();
    let context = PricingContext {
        node_class: pool.template.node_class.name.clone(),
        region: region.to_owned(),
        as_of_unix_s: 0,
        vocabulary: words.into_vocabulary(),
    };
    PricingInput {
        context,
        candidates,
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
