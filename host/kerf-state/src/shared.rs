//! What many objects have in common is kept once: of a large cluster, that is most of what the index holds. Equal pod
//! specs that are one allocation also make grouping the pods of one workload nearly free.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use kerf_core::node_labels::{Label, NodeLabels};
use kerf_core::pod::PodSpec;

/// What the objects of the index share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) specs: Pool<PodSpec>,
    /// Namespaces, names of nodes and of workloads.
    pub(crate) words: Pool<str>,
    labels: Pool<Label>,
}

impl Shared {
    /// Forgets what nobody has any more.
    pub(crate) fn sweep(&mut self) {
        self.specs.sweep();
        self.words.sweep();
        self.labels.sweep();
    }

    pub(crate) fn labels(&mut self, labels: &BTreeMap<String, String>) -> NodeLabels {
        let share = |(key, value): (&String, &String)| {
            let label = Label::new(key.as_str(), value.as_str());
            self.labels.share(label)
        };
        NodeLabels::of(labels.iter().map(share))
    }
}

/// Values in use, and some that were. Swept when it has doubled, so that sweeping costs little per insertion.
#[derive(Debug)]
pub(crate) struct Pool<T: ?Sized> {
    known: HashSet<Arc<T>>,
    swept_at: usize,
}

/// Below this many values a sweep frees nothing worth the walk.
const SWEEP_LEAST: usize = 1024;

impl<T: ?Sized> Default for Pool<T> {
    fn default() -> Self {
        Self {
            known: HashSet::new(),
            swept_at: 0,
        }
    }
}

impl<T: ?Sized + Eq + Hash> Pool<T> {
    pub(crate) fn share(&mut self, value: impl Borrow<T> + Into<Arc<T>>) -> Arc<T> {
        if let Some(known) = self.known.get(value.borrow()) {
            return Arc::clone(known);
        }
        if self.known.len() >= SWEEP_LEAST.max(self.swept_at * 2) {
            self.sweep();
        }
        let shared: Arc<T> = value.into();
        self.known.insert(Arc::clone(&shared));
        shared
    }

    fn sweep(&mut self) {
        self.known.retain(|value| Arc::strong_count(value) > 1);
        self.known.shrink_to_fit();
        self.swept_at = self.known.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_specs_are_one_and_unused_ones_are_swept() {
        let mut specs = Pool::default();
        let kept = specs.share(PodSpec::requesting(1, 1));

        for cpu_milli in 0..10_000 {
            specs.share(PodSpec::requesting(cpu_milli, 2));
        }

        assert!(Arc::ptr_eq(&kept, &specs.share(PodSpec::requesting(1, 1))));
        assert!(specs.known.len() <= SWEEP_LEAST + 1);
    }

    #[test]
    fn nodes_of_a_kind_share_the_labels_that_they_have_in_common() {
        let labels = |name: &str| {
            let pairs = [("arch", "amd64"), ("host", name)];
            pairs.map(|(key, value)| (key.to_owned(), value.to_owned()))
        };
        let mut shared = Shared::default();
        let one = shared.labels(&labels("a").into());
        let other = shared.labels(&labels("b").into());

        let is_one: Vec<bool> = one
            .shared()
            .zip(other.shared())
            .map(|(a, b)| Arc::ptr_eq(a, b))
            .collect();
        assert_eq!(is_one, [true, false]);
    }
}
