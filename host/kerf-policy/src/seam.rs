//! Where decisions meet policies. Core calls no policy, so the caller plans, consults, and plans again:
//!
//! ```text
//! loop (at most ROUNDS_MAX) {
//!     plan = schedule(snapshot, &preferences, …);
//!     if !consult(…, &plan, &mut preferences).is_changed { break }
//! }
//! ```
//!
//! Preferences only grow: the first score of an offering stays, and bars are never lifted. So the loop ends, and what
//! one claim made a policy say holds for the later ones of the pool.

mod asking;

use crate::chain::{Chain, ChainError, Now, PolicyRun, RunResult};
use crate::registry::Registry;
use crate::view::PoolView;
use kerf_core::ids::NodePoolName;
use kerf_core::plan::{Plan, PlannedClaim};
use kerf_core::preferences::{Bar, OfferingKey, PoolPreferences, Preferences};
use kerf_core::price::Price;
use kerf_core::snapshot::Snapshot;
use std::collections::BTreeMap;
use std::sync::Arc;

use asking::{Inquiry, Said, ask_all};

/// How often to plan for the same pods; then what is left unplaced says which policy barred it.
pub const ROUNDS_MAX: usize = 8;

/// What a consultation is about, apart from the plan.
#[derive(Debug, Clone, Copy)]
pub struct Occasion<'a> {
    pub region: &'a str,
    /// provision, consolidate, drift, simulate or test.
    pub reason: &'a str,
    pub now: Now,
}

/// What came of asking the policies about every claim of a plan.
#[derive(Debug, Default)]
pub struct Consultation {
    /// The preferences grew, so the plan should be made again.
    pub is_changed: bool,
    /// Claims, by index into the plan, that may not be made, and the policy's failure.
    pub blocked: Vec<(usize, ChainError)>,
    /// What each policy did, by index of the claim.
    pub runs: Vec<(usize, PolicyRun)>,
}

impl Consultation {
    /// Whether a policy gave no answer that it might give when it is asked again.
    pub fn has_failures(&self) -> bool {
        let mut runs = self.runs.iter();
        !self.blocked.is_empty() || runs.any(|(_, run)| matches!(run.result, RunResult::Failed(_)))
    }
}

/// Asks the policies of each claim's NodeClass and adds what they say to `preferences`. Blocks for as long as they take:
/// call it where a thread may block.
pub fn consult(
    registry: &Registry,
    snapshot: &Snapshot,
    plan: &Plan,
    preferences: &mut Preferences,
    occasion: Occasion<'_>,
) -> Consultation {
    let mut consultation = Consultation::default();
    let inquiries = inquiries(registry, snapshot, plan);
    let view = |pool| PoolView::new(snapshot, pool, registry.catalogs(), occasion);
    let answers = ask_all(&inquiries, &view, occasion.now);
    for (inquiry, answer) in inquiries.iter().zip(answers) {
        match answer {
            Err(error) => consultation.blocked.push((inquiry.index, error)),
            Ok(answer) => {
                let runs = answer.runs.into_iter();
                consultation
                    .runs
                    .extend(runs.map(|run| (inquiry.index, run)));
                // In the order of the claims: the first score of an offering stays.
                let preferences = preferences.pool_mut(&inquiry.claim.pool);
                consultation.is_changed |= record(answer.said, preferences);
            }
        }
    }
    consultation
}

/// The claims that some policy is asked about.
fn inquiries<'a>(registry: &Registry, snapshot: &'a Snapshot, plan: &'a Plan) -> Vec<Inquiry<'a>> {
    // One chain per NodeClass for the whole consultation, even when a swap happens meanwhile.
    let mut chains: BTreeMap<&str, Arc<Chain>> = BTreeMap::new();
    let inquiry = |(index, claim): (usize, &'a PlannedClaim)| {
        let class = claim.node_class.name.as_str();
        let chain = chains.entry(class).or_insert_with(|| registry.chain(class));
        let pool = snapshot.pools.iter().find(|pool| pool.name == claim.pool)?;
        let chain = chain
            .has_selection_for(pool.name.as_str())
            .then(|| Arc::clone(chain))?;
        Some(Inquiry {
            index,
            claim,
            pool,
            chain,
        })
    };
    plan.new_claims
        .iter()
        .enumerate()
        .filter_map(inquiry)
        .collect()
}

/// What came of asking the policies about prices.
#[derive(Debug, Default)]
pub struct PriceConsultation {
    /// Pools that may not launch anything, and the policy's failure.
    pub blocked: Vec<(NodePoolName, ChainError)>,
    /// What each policy did, by pool.
    pub runs: Vec<(NodePoolName, PolicyRun)>,
}

/// Asks the PricingPreference policies about the catalog of each pool and writes the prices that ordering shall use into
/// `preferences`. Call it once before the first round; pools of one NodeClass share the answers.
pub fn consult_prices(
    registry: &Registry,
    snapshot: &Snapshot,
    preferences: &mut Preferences,
    occasion: Occasion<'_>,
) -> PriceConsultation {
    let mut consultation = PriceConsultation::default();
    for pool in &snapshot.pools {
        let chain = registry.chain(&pool.template.node_class.name);
        if !chain.has_pricing_for(pool.name.as_str()) {
            continue;
        }
        let facts = registry.catalogs().facts(pool, occasion.region);
        let mut make = || facts.question.clone();
        let asked = (pool.name.as_str(), facts.fingerprint);
        match chain.adjust_in(asked.0, asked.1, &mut make, occasion.now) {
            Err(error) => consultation.blocked.push((pool.name.clone(), error)),
            Ok(verdict) => {
                let prices = &mut preferences.pool_mut(&pool.name).prices;
                for ((i, j), price_micros) in verdict.prices_micros {
                    let instance_type = &pool.instance_types[i];
                    let offering = &instance_type.offerings[j];
                    let key = OfferingKey {
                        instance_type: instance_type.name.clone(),
                        zone: offering.zone.clone(),
                        capacity_type: offering.capacity_type,
                    };
                    prices.insert(key, Price::from_micros(u64::from(price_micros)));
                }
                consultation
                    .runs
                    .extend(verdict.runs.into_iter().map(|run| (pool.name.clone(), run)));
            }
        }
    }
    consultation
}

/// Whether anything was new.
fn record(said: Said, preferences: &mut PoolPreferences) -> bool {
    let mut is_new = false;
    for bar in said.bars {
        is_new |= add_bar(preferences, bar);
    }
    for (key, score) in said.scores {
        is_new |= add_score(preferences, key, score);
    }
    is_new
}

fn add_bar(preferences: &mut PoolPreferences, bar: Bar) -> bool {
    let is_known = preferences.bars.iter().any(|known| {
        (&known.instance_type, &known.zone, known.capacity_type)
            == (&bar.instance_type, &bar.zone, bar.capacity_type)
    });
    if !is_known {
        preferences.bars.push(bar);
    }
    !is_known
}

fn add_score(preferences: &mut PoolPreferences, key: OfferingKey, score: i64) -> bool {
    let is_known = preferences.scores.contains_key(&key);
    if !is_known {
        preferences.scores.insert(key, score);
    }
    !is_known
}
