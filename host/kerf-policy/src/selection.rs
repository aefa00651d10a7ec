//! Input and checked output of the InstanceSelection hook.

use crate::bindings::selection::exports::kerf::policy::instance_selection::Selection as RawSelection;
use crate::call::shorten;
use crate::error::CallError;
use crate::memo::Fingerprint;
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

impl SelectionInput {
    /// Stands for all of the question but the demand and the time: what claims of one shape have in common.
    pub(crate) fn fingerprint_of_shape(&self) -> Fingerprint {
        let Self {
            context,
            candidates,
        } = self;
        let Context {
            reason,
            node_pool,
            node_class,
            region,
            as_of_unix_s: _,
            vocabulary,
            demand: _,
            requirements,
            fleet,
            labels,
        } = context;
        let names = (reason, node_pool, node_class, region);
        Fingerprint::of(&(names, vocabulary, requirements, fleet, labels, candidates))
    }

    /// Each candidate and its offerings, by index.
    pub(crate) fn all_indexes(&self) -> Vec<(usize, Vec<usize>)> {
        let offerings = |it: &Candidate| (0..it.offerings.len()).collect();
        self.candidates.iter().map(offerings).enumerate().collect()
    }
}

impl Candidate {
    /// The same instance type, sold in these ways.
    pub(crate) fn with_offerings(&self, offerings: Vec<Offering>) -> Self {
        Self {
            instance_type: self.instance_type.clone(),
            family: self.family,
            architecture: self.architecture,
            generation: self.generation,
            capacity: self.capacity,
            allocatable: self.allocatable,
            network_mbps: self.network_mbps,
            local_disk_gib: self.local_disk_gib,
            bare_metal: self.bare_metal,
            burstable: self.burstable,
            gpu_model: self.gpu_model.clone(),
            extended: self.extended.clone(),
            offerings,
        }
    }
}

/// Something that a policy took out, by index into the input.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Exclusion {
    pub candidate: usize,
    /// One offering of the candidate; `None` means all of them.
    pub offering: Option<usize>,
    pub reason: String,
}

/// An answer whose indexes are known to exist, each named once.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Selection {
    /// The score of each candidate of the input; `None` where the policy gave none.
    pub scores: Vec<Option<i32>>,
    pub exclusions: Vec<Exclusion>,
}

impl Selection {
    /// The candidates that are left, best first: scored ones by falling score, then the others, both in input order.
    pub fn order(&self) -> Vec<usize> {
        let gone: BTreeSet<_> = self.excluded_candidates().collect();
        let mut order: Vec<_> = (0..self.scores.len())
            .filter(|i| !gone.contains(i))
            .collect();
        // `None` is less than every score, so `Reverse` puts it last; the sort is stable.
        order.sort_by_key(|i| Reverse(self.scores[*i]));
        order
    }

    /// Whether it says anything else than the input's own order.
    pub fn changes_anything(&self) -> bool {
        !self.exclusions.is_empty() || !self.scores.is_sorted_by(|a, b| a >= b)
    }

    /// Candidates that were taken out as a whole.
    pub fn excluded_candidates(&self) -> impl Iterator<Item = usize> {
        self.exclusions
            .iter()
            .filter(|e| e.offering.is_none())
            .map(|e| e.candidate)
    }

    pub(crate) fn check(raw: &RawSelection, candidates: &[Candidate]) -> Result<Self, CallError> {
        let mut scores = vec![None; candidates.len()];
        for ranked in &raw.ranked {
            let candidate = index("candidate", ranked.candidate, candidates.len())?;
            if scores[candidate].replace(ranked.score).is_some() {
                return Err(CallError::Duplicate {
                    index: ranked.candidate,
                });
            }
        }
        Ok(Self {
            scores,
            exclusions: check_exclusions(raw, candidates)?,
        })
    }
}

fn check_exclusions(
    raw: &RawSelection,
    candidates: &[Candidate],
) -> Result<Vec<Exclusion>, CallError> {
    let mut named = BTreeSet::new();
    let mut exclusions = Vec::with_capacity(raw.excluded.len());
    for excluded in &raw.excluded {
        let candidate = index("candidate", excluded.candidate, candidates.len())?;
        let offerings = candidates[candidate].offerings.len();
        let offering = excluded
            .offering
            .map(|i| index("offering", i, offerings))
            .transpose()?;
        if !named.insert((candidate, offering)) {
            return Err(CallError::Duplicate {
                index: excluded.candidate,
            });
        }
        exclusions.push(Exclusion {
            candidate,
            offering,
            reason: shorten(&excluded.reason),
        });
    }
    Ok(exclusions)
}

pub(crate) fn index(what: &'static str, index: u32, len: usize) -> Result<usize, CallError> {
    usize::try_from(index)
        .ok()
        .filter(|i| *i < len)
        .ok_or(CallError::BadIndex { what, index, len })
}
