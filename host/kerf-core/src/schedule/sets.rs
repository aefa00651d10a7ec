//! Requirement sets by number. Each distinct set is kept once, and each pair is combined once.

use std::sync::Arc;

use rustc_hash::FxHashMap;

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
    singles: FxHashMap<(Arc<str>, Arc<str>), SetId>,
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

    /// What a new node with the set becomes when one label gets that value.
    pub(super) fn narrow(
        &mut self,
        node: SetId,
        key: &Arc<str>,
        value: &Arc<str>,
    ) -> Option<SetId> {
        let single = match self.singles.get(&(Arc::clone(key), Arc::clone(value))) {
            Some(single) => *single,
            None => {
                let single = self.intern(
                    [Requirement::in_values(key, [&**value])]
                        .into_iter()
                        .collect(),
                );
                self.singles
                    .insert((Arc::clone(key), Arc::clone(value)), single);
                single
            }
        };
        self.combine(node, single)
    }
}
