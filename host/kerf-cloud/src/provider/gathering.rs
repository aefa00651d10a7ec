//! Ids that wait to go into one call: open until somebody takes them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::actions::instances::INSTANCES_PER_CALL_MAX;

/// Shared by those who add and the call that takes.
#[derive(Debug, Clone)]
pub(crate) struct Gathering(Arc<Mutex<Option<BTreeSet<String>>>>);

impl Gathering {
    /// Open, with these ids; at most as many as a call takes.
    pub(crate) fn of(ids: &[String]) -> Self {
        Self(Arc::new(Mutex::new(Some(ids.iter().cloned().collect()))))
    }

    /// Adds ids unless they have been taken or would become too many.
    pub(crate) fn accept(&self, ids: &[String]) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(waiting) = waiting.as_mut() else {
            return false;
        };
        let new = ids.iter().filter(|id| !waiting.contains(*id)).count();
        let fits = waiting.len() + new <= INSTANCES_PER_CALL_MAX;
        if fits {
            waiting.extend(ids.iter().cloned());
        }
        fits
    }

    /// Closes it; the ids in their order, none at a second call.
    pub(crate) fn take(&self) -> Vec<String> {
        let ids = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        ids.unwrap_or_default().into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_join_until_they_are_taken_or_too_many() {
        let ids = |numbers: std::ops::Range<usize>| -> Vec<String> {
            numbers.map(|it| format!("i-{it:03}")).collect()
        };
        let gathering = Gathering::of(&ids(0..60));

        assert!(gathering.accept(&ids(50..100)));
        assert!(!gathering.accept(&ids(100..101)));
        assert_eq!(gathering.take(), ids(0..100));
        assert!(!gathering.accept(&ids(0..1)));
        assert!(gathering.take().is_empty());
    }
}
