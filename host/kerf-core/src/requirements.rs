//! A set of requirements, one per label key, and the questions that scheduling asks of two such sets.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::labels;
use crate::requirement::Requirement;

/// Requirements by (normalised) key. Adding one to a key that has one intersects them.
///
/// A copy of a set shares its requirements with it, and sets that [`Requirements::share`] with each other have equal ones
/// once: a thousand instance types have few different ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Requirements(
    /// In key order, one per key.
    Vec<Arc<Requirement>>,
);

/// Requirements that several sets have, each kept once.
#[derive(Debug, Default)]
pub struct SharedRequirements(BTreeSet<Arc<Requirement>>);

impl SharedRequirements {
    /// Forgets those that no set has any more.
    pub fn prune(&mut self) {
        self.0.retain(|it| Arc::strong_count(it) > 1);
    }

    fn one(&mut self, requirement: &Arc<Requirement>) -> Arc<Requirement> {
        if let Some(known) = self.0.get(requirement) {
            return Arc::clone(known);
        }
        self.0.insert(Arc::clone(requirement));
        Arc::clone(requirement)
    }
}

/// Whether keys that the left side does not define may take any value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undefined {
    /// An existing node: a label that it lacks has no value.
    Denied,
    /// A new node: well-known labels that nobody constrains can have any value.
    WellKnownAllowed,
}

/// Why two sets of requirements cannot hold on one node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Incompatibility {
    /// What is asked for.
    pub wanted: Requirement,
    /// What the node or pool offers; none when it does not know the label.
    pub offered: Option<Requirement>,
    /// The well-known key that was probably meant, when the label is unknown.
    pub hint: Option<&'static str>,
}

impl Requirements {
    /// Every label as a requirement to have that value.
    pub fn from_labels<K: AsRef<str>, V: AsRef<str>>(
        labels: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        labels
            .into_iter()
            .map(|(key, value)| Requirement::in_values(key.as_ref(), [value.as_ref()]))
            .collect()
    }

    /// Adds a requirement, intersecting it with what the key already has.
    pub fn add(&mut self, requirement: Requirement) {
        self.add_shared(&Arc::new(requirement));
    }

    /// Adds every requirement of the other set.
    pub fn add_all(&mut self, other: &Self) {
        for requirement in &other.0 {
            self.add_shared(requirement);
        }
    }

    fn add_shared(&mut self, requirement: &Arc<Requirement>) {
        match self.slot(requirement.key()) {
            Ok(idx) => self.0[idx] = Arc::new(self.0[idx].intersection(requirement)),
            Err(idx) => self.0.insert(idx, Arc::clone(requirement)),
        }
    }

    /// Takes equal requirements from `known`, and leaves there those that were new to it.
    pub fn share(&mut self, known: &mut SharedRequirements) {
        for requirement in &mut self.0 {
            *requirement = known.one(requirement);
        }
        self.0.shrink_to_fit();
    }

    fn slot(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|it| it.key().cmp(key))
    }

    /// Both sets together; none when they contradict each other, so that no node meets both.
    pub fn together(&self, other: &Self) -> Option<Self> {
        let mut both = self.clone();
        both.add_all(other);
        let is_contradiction = |requirement: &Requirement| {
            let absent_in = |set: &Self| {
                set.on(requirement.key())
                    .is_some_and(Requirement::tolerates_absence)
            };
            let only_one_side =
                self.on(requirement.key()).is_none() || other.on(requirement.key()).is_none();
            requirement.is_empty() && !only_one_side && !(absent_in(self) && absent_in(other))
        };
        let is_possible = !both.iter().any(is_contradiction);
        is_possible.then_some(both)
    }

    /// Takes a key away.
    pub fn remove(&mut self, key: &str) -> Option<Requirement> {
        let idx = self.slot(key).ok()?;
        Some(Arc::unwrap_or_clone(self.0.remove(idx)))
    }

    /// Replaces what the key has.
    pub fn replace(&mut self, requirement: Requirement) {
        let requirement = Arc::new(requirement);
        match self.slot(requirement.key()) {
            Ok(idx) => self.0[idx] = requirement,
            Err(idx) => self.0.insert(idx, requirement),
        }
    }

    /// The requirement on a (canonical) key.
    pub fn on(&self, key: &str) -> Option<&Requirement> {
        self.slot(key).ok().map(|idx| &*self.0[idx])
    }

    /// [`Self::on`] for a caller who asks many sets for one key: `slot` is where the last one had it.
    pub(crate) fn on_near(&self, key: &str, slot: &mut usize) -> Option<&Requirement> {
        if let Some(it) = self.0.get(*slot).filter(|it| it.key() == key) {
            return Some(it);
        }
        *slot = self.slot(key).ok()?;
        self.0.get(*slot).map(|it| &**it)
    }

    /// Whether the (canonical) key may have this value; a key without a requirement may have any.
    pub fn allows(&self, key: &str, value: &str) -> bool {
        self.on(key)
            .is_none_or(|requirement| requirement.has(value))
    }

    /// All requirements by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Requirement> {
        self.0.iter().map(|it| &**it)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether some requirement asks for a least number of distinct values.
    pub fn has_min_values(&self) -> bool {
        self.iter()
            .any(|requirement| requirement.min_values().is_some())
    }

    /// Whether both sets can hold together, as far as both speak of the same keys.
    pub fn intersects(&self, other: &Self) -> bool {
        let (small, large) = if self.0.len() <= other.0.len() {
            (self, other)
        } else {
            (other, self)
        };
        small.iter().all(|requirement| {
            large
                .on(requirement.key())
                .is_none_or(|own| can_meet(own, requirement))
        })
    }

    /// Whether a node with these requirements can satisfy what comes in.
    pub fn is_compatible(&self, incoming: &Self, undefined: Undefined) -> bool {
        self.first_incompatibility(incoming, undefined).is_none()
    }

    /// The first (by key) requirement that a node with these requirements cannot satisfy.
    pub fn first_incompatibility(
        &self,
        incoming: &Self,
        undefined: Undefined,
    ) -> Option<Incompatibility> {
        incoming
            .iter()
            .find_map(|wanted| match self.on(wanted.key()) {
                Some(own) if can_meet(own, wanted) => None,
                Some(own) => Some(Incompatibility {
                    wanted: wanted.clone(),
                    offered: Some(own.clone()),
                    hint: None,
                }),
                None if may_be_undefined(wanted, undefined) => None,
                None => {
                    let hint = labels::closest_well_known(wanted.key());
                    Some(Incompatibility {
                        wanted: wanted.clone(),
                        offered: None,
                        hint,
                    })
                }
            })
    }
}

fn may_be_undefined(wanted: &Requirement, undefined: Undefined) -> bool {
    let well_known =
        undefined == Undefined::WellKnownAllowed && labels::is_well_known(wanted.key());
    well_known || wanted.tolerates_absence()
}

/// Two requirements that are both met by an absent label agree on that, whatever their values.
fn can_meet(left: &Requirement, right: &Requirement) -> bool {
    left.intersects(right) || (left.tolerates_absence() && right.tolerates_absence())
}

impl FromIterator<Requirement> for Requirements {
    fn from_iter<I: IntoIterator<Item = Requirement>>(items: I) -> Self {
        let mut requirements = Self::default();
        for item in items {
            requirements.add(item);
        }
        requirements
    }
}

impl fmt::Display for Requirements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Incompatibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.offered, self.hint) {
            (Some(offered), _) => write!(f, "wants {}, but offers {offered}", self.wanted),
            (None, Some(hint)) => write!(
                f,
                "wants {}, a label without known values; did you mean {hint}?",
                self.wanted
            ),
            (None, None) => write!(f, "wants {}, a label without known values", self.wanted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_requirements_of_several_sets_are_kept_once() {
        let set = |name: &str| Requirements::from_labels([("arch", "amd64"), ("name", name)]);
        let (mut a, mut b) = (set("a"), set("b"));
        let mut known = SharedRequirements::default();

        a.share(&mut known);
        b.share(&mut known);

        assert_eq!((&a, &b), (&set("a"), &set("b")));
        let at = |set: &Requirements, key: &str| std::ptr::from_ref(set.on(key).unwrap());
        assert_eq!(at(&a, "arch"), at(&b, "arch"));
        drop(b);
        known.prune();
        assert_eq!(known.0.len(), 2);
    }
}
