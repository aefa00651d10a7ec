//! Taint lists and toleration lists by number, so that each pair is compared once.

use rustc_hash::FxHashMap;

use crate::taint::{Taint, Toleration, first_untolerated};

/// The number of a list of taints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TaintsId(u32);

/// The number of a list of tolerations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TolerationsId(u32);

/// All taint and toleration lists of a round.
#[derive(Debug, Default)]
pub(super) struct TaintTable {
    taints: Vec<Vec<Taint>>,
    tolerations: Vec<Vec<Toleration>>,
    taint_ids: FxHashMap<Vec<Taint>, TaintsId>,
    toleration_ids: FxHashMap<Vec<Toleration>, TolerationsId>,
    answers: FxHashMap<(TaintsId, TolerationsId), bool>,
}

impl TaintTable {
    pub(super) fn taints(&mut self, taints: impl Iterator<Item = Taint>) -> TaintsId {
        let taints: Vec<Taint> = taints.collect();
        if let Some(id) = self.taint_ids.get(&taints) {
            return *id;
        }
        let id = TaintsId(u32::try_from(self.taints.len()).unwrap_or(u32::MAX));
        self.taints.push(taints.clone());
        self.taint_ids.insert(taints, id);
        id
    }

    pub(super) fn tolerations(&mut self, tolerations: &[Toleration]) -> TolerationsId {
        if let Some(id) = self.toleration_ids.get(tolerations) {
            return *id;
        }
        let id = TolerationsId(u32::try_from(self.tolerations.len()).unwrap_or(u32::MAX));
        self.tolerations.push(tolerations.to_vec());
        self.toleration_ids.insert(tolerations.to_vec(), id);
        id
    }

    /// Whether all taints are tolerated.
    pub(super) fn tolerated(&mut self, taints: TaintsId, tolerations: TolerationsId) -> bool {
        let (all, given) = (
            &self.taints[taints.0 as usize],
            &self.tolerations[tolerations.0 as usize],
        );
        *self
            .answers
            .entry((taints, tolerations))
            .or_insert_with(|| first_untolerated(all, given).is_none())
    }

    /// The first taint that is not tolerated.
    pub(super) fn first_untolerated(
        &self,
        taints: TaintsId,
        tolerations: TolerationsId,
    ) -> Option<&Taint> {
        first_untolerated(
            &self.taints[taints.0 as usize],
            &self.tolerations[tolerations.0 as usize],
        )
    }
}
