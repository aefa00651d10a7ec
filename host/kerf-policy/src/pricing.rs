//! Input and checked output of the PricingPreference hook.

use crate::bindings::pricing::exports::kerf::policy::pricing_preference::Adjustment as RawAdjustment;
use crate::call::shorten;
use crate::error::CallError;
use crate::memo::Fingerprint;
use crate::selection::{Candidate, index};
use std::collections::BTreeSet;

pub use crate::bindings::selection::kerf::policy::types::PricingContext;

/// How far a policy may move a price from the list price, in either direction: enough for any discount or penalty, and
/// not enough to make the other prices vanish.
const FACTOR_MAX: u32 = 100;

/// One question to a PricingPreference policy: a whole catalog.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct PricingInput {
    pub context: PricingContext,
    pub candidates: Vec<Candidate>,
}

impl PricingInput {
    /// Stands for all of the question but the time.
    pub(crate) fn fingerprint_of_catalog(&self) -> Fingerprint {
        let Self {
            context,
            candidates,
        } = self;
        let PricingContext {
            node_class,
            region,
            as_of_unix_s: _,
            vocabulary,
        } = context;
        Fingerprint::of(&(node_class, region, vocabulary, candidates))
    }
}

/// A checked answer.
#[derive(Debug)]
pub(crate) struct Prices {
    pub(crate) adjustments: Vec<Adjustment>,
    /// Whether any price is another than in the question.
    pub(crate) is_change: bool,
}

impl Prices {
    pub(crate) fn new(adjustments: Vec<Adjustment>, input: &PricingInput) -> Self {
        let price =
            |it: &Adjustment| input.candidates[it.candidate].offerings[it.offering].price_micros;
        let is_change = adjustments.iter().any(|it| it.price_micros != price(it));
        Self {
            adjustments,
            is_change,
        }
    }
}

/// The price that ordering uses for one offering.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Adjustment {
    pub candidate: usize,
    pub offering: usize,
    pub price_micros: u32,
    pub reason: Option<String>,
}

/// Checks indexes, and keeps prices within `FACTOR_MAX` of the list price (or of the price, where no list price is known).
pub(crate) fn check(
    raw: Vec<RawAdjustment>,
    candidates: &[Candidate],
) -> Result<Vec<Adjustment>, CallError> {
    let mut named = BTreeSet::new();
    let mut adjustments = Vec::with_capacity(raw.len());
    for it in raw {
        let candidate = index("candidate", it.candidate, candidates.len())?;
        let offerings = &candidates[candidate].offerings;
        let offering = index("offering", it.offering, offerings.len())?;
        if !named.insert((candidate, offering)) {
            return Err(CallError::Duplicate {
                index: it.candidate,
            });
        }
        let known = [
            offerings[offering].list_price_micros,
            offerings[offering].price_micros,
        ];
        let price_micros = match known.into_iter().find(|price| *price != u32::MAX) {
            Some(base) => it.price_micros.clamp(
                (base / FACTOR_MAX).max(1),
                base.saturating_mul(FACTOR_MAX).max(1),
            ),
            None => it.price_micros.max(1),
        };
        adjustments.push(Adjustment {
            candidate,
            offering,
            price_micros,
            reason: it.reason.as_deref().map(shorten),
        });
    }
    Ok(adjustments)
}
