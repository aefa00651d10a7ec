//! Requirement sets by number. Each distinct set is kept once, and each pair is combined once.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::domains::{Domains, KeyId};
use crate::requirement::Requirement;
use crate::requirements::{Requirements, Undefined};

/// The number of a requirement set in a [`SetTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SetId(u32);

impl SetId {
    /// The set without requirements.
    pub(super) const EMPTY: Self = Self(0);
}

/// All requirement sets of a round.
#[derive(Debug)]
pub(super) struct SetTable {
    sets: Vec<Arc<Requirements>>,
    ids: FxHashMap<Arc<Requirements>, SetId>,
    combined: FxHashMap<(SetId, SetId), Option<SetId>>,
    /// Sets of one label and one value, by the numbers of both.
    singles: FxHashMap<(KeyId, usize), SetId>,
}

impl SetTable {
    pub(super) fn new() -> Self {
        let mut table = Self {
            sets: Vec::new(),
            ids: FxHashMap::default(),
            combined: FxHashMap::default(),
            singles: FxHashMap::default(),
        };
        table.intern(Requirements::default());
        table
    }

    pub(super) fn intern(&mut self, requirements: Requirements) -> SetId {
        if let Some(id) = self.ids.get(&requirements) {
            return *id;
        }
        let id = SetId(u32::try_from(self.sets.len()).unwrap_or(u32::MAX));
        let requirements = Arc::new(requirements);
        self.sets.push(Arc::clone(&requirements));
        self.ids.insert(requirements, id);
        id
    }

    pub(super) fn at(&self, id: SetId) -> &Arc<Requirements> {
        &self.sets[id.0 as usize]
    }

    /// What a new node with the first set becomes when the second comes in; none when it cannot.
    pub(super) fn combine(&mut self, node: SetId, incoming: SetId) -> Option<SetId> {
        if incoming == SetId::EMPTY || incoming == node {
            return Some(node);
        }
        if let Some(known) = self.combined.get(&(node, incoming)) {
            return *known;
        }
        let (own, wanted) = (Arc::clone(self.at(node)), Arc::clone(self.at(incoming)));
        let result = own
            .is_compatible(&wanted, Undefined::WellKnownAllowed)
            .then(|| {
                let mut both = Requirements::clone(&own);
                both.add_all(&wanted);
                self.intern(both)
            });
        self.combined.insert((node, incoming), result);
        result
    }

    /// What a new node with the set becomes when one label gets the value of that domain.
    pub(super) fn narrow(
        &mut self,
        node: SetId,
        key: KeyId,
        domain: usize,
        domains: &Domains,
    ) -> Option<SetId> {
        let single = match self.singles.get(&(key, domain)) {
            Some(single) => *single,
            None => {
                let requirement =
                    Requirement::in_values(&domains.name(key), [&**domains.value(key, domain)]);
                let single = self.intern([requirement].into_iter().collect());
                self.singles.insert((key, domain), single);
                single
            }
        };
        self.combine(node, single)
    }
}
