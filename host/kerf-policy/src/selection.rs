//! Input and checked output of the InstanceSelection hook.

use crate::bindings::selection::exports::kerf::policy::instance_selection::Selection as RawSelection;
use crate::call::shorten;
use crate::error::CallError;
use std::cmp::Reverse;
use std::collections::BTreeSet;

pub use crate::bindings::selection::kerf::policy::types::{
    Candidate, Context, Demand, FleetEntry, Offering, Requirement, Resources, Vocabulary,
};

/// One question to an InstanceSelection policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct SelectionInput {
    pub context: Context,
    /// In the order in which they would be tried without a policy.
    pub candidates: Vec<Candidate>,
}

/// Something that a policy took out, by index into the input.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Exclusion {
    pub candidate: usize,
    /// One offering of the candidate; `None` means all of them.
    pub offering: Option<usize>,
    pub reason: String,
}

/// An answer whose indexes are known to exist.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Selection {
    /// Every candidate that was not excluded as a whole: the ranked ones by falling score, then the others, both in input order.
    pub order: Vec<usize>,
    /// How many of `order`, from the front, the policy ranked.
    pub ranked: usize,
    pub exclusions: Vec<Exclusion>,
}

impl Selection {
    /// The answer of a policy that has no opinion.
    pub fn unchanged(candidates: usize) -> Self {
        Self { order: (0..candidates).collect(), ranked: 0, exclusions: Vec::new() }
    }

    /// Whether it says anything else than `unchanged`.
    pub fn changes_anything(&self) -> bool {
        !self.exclusions.is_empty() || !self.order.is_sorted()
    }

    pub(crate) fn check(raw: RawSelection, candidates: &[Candidate]) -> Result<Self, CallError> {
        let exclusions = check_exclusions(&raw, candidates)?;
        let gone: BTreeSet<_> =
            exclusions.iter().filter(|e| e.offering.is_none()).map(|e| e.candidate).collect();
        let mut named = BTreeSet::new();
        let mut scored = Vec::with_capacity(raw.ranked.len());
        for ranked in &raw.ranked {
            let candidate = index("candidate", ranked.candidate, candidates.len())?;
            if !named.insert(candidate) {
                return Err(CallError::Duplicate { index: ranked.candidate });
            }
            if !gone.contains(&candidate) {
                scored.push((Reverse(ranked.score), candidate));
            }
        }
        scored.sort_unstable();
        let ranked = scored.len();
        let rest = (0..candidates.len()).filter(|i| !named.contains(i) && !gone.contains(i));
        let order = scored.into_iter().map(|(_, candidate)| candidate).chain(rest).collect();
        Ok(Self { order, ranked, exclusions })
    }
}

fn check_exclusions(raw: &RawSelection, candidates: &[Candidate]) -> Result<Vec<Exclusion>, CallError> {
    let mut named = BTreeSet::new();
    let mut exclusions = Vec::with_capacity(raw.excluded.len());
    for excluded in &raw.excluded {
        let candidate = index("candidate", excluded.candidate, candidates.len())?;
        let offerings = candidates[candidate].offerings.len();
        let offering = excluded.offering.map(|i| index("offering", i, offerings)).transpose()?;
        if !named.insert((candidate, offering)) {
            return Err(CallError::Duplicate { index: excluded.candidate });
        }
        exclusions.push(Exclusion { candidate, offering, reason: shorten(&excluded.reason) });
    }
    Ok(exclusions)
}

fn index(what: &'static str, index: u32, len: usize) -> Result<usize, CallError> {
    usize::try_from(index).ok().filter(|i| *i < len).ok_or(CallError::BadIndex { what, index, len })
}
