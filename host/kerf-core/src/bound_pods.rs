//! The pods of a node, shared by all snapshots that have the node with the same pods.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::pod::Pod;

/// A list of pods. A clone is the same list until one of them is changed.
#[derive(Debug, Clone, Default)]
pub struct BoundPods(Option<Arc<Vec<Arc<Pod>>>>);

/// Nodes without pods are common, and need no list of their own.
static NONE: Vec<Arc<Pod>> = Vec::new();

impl Deref for BoundPods {
    type Target = Vec<Arc<Pod>>;

    fn deref(&self) -> &Vec<Arc<Pod>> {
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for BoundPods {
    /// The list of this one alone from now.
    fn deref_mut(&mut self) -> &mut Vec<Arc<Pod>> {
        Arc::make_mut(self.0.get_or_insert_default())
    }
}

impl From<Vec<Arc<Pod>>> for BoundPods {
    fn from(pods: Vec<Arc<Pod>>) -> Self {
        Self((!pods.is_empty()).then(|| Arc::new(pods)))
    }
}

impl FromIterator<Arc<Pod>> for BoundPods {
    fn from_iter<I: IntoIterator<Item = Arc<Pod>>>(pods: I) -> Self {
        pods.into_iter().collect::<Vec<_>>().into()
    }
}

impl<'a> IntoIterator for &'a BoundPods {
    type Item = &'a Arc<Pod>;
    type IntoIter = std::slice::Iter<'a, Arc<Pod>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for BoundPods {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for BoundPods {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::PodSpec;

    #[test]
    fn a_list_that_is_changed_leaves_its_clones_as_they_were() {
        let pod = |name| Arc::new(Pod::new(name, PodSpec::default()));
        let before: BoundPods = [pod("a")].into_iter().collect();
        let mut after = before.clone();
        after.push(pod("b"));

        assert_eq!((before.len(), after.len()), (1, 2));
    }
}
