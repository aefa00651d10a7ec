//! Labels of a node, in little room: of a fleet they are most of what is kept.

use std::fmt;
use std::sync::Arc;

use crate::labels;
use crate::requirement::Requirement;
use crate::selector::Labels;

/// One label. Nodes of a kind have most of theirs in common and may share them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// Its key, as written.
    pub key: Box<str>,
    /// Its value.
    pub value: Box<str>,
}

impl Label {
    /// A label of that key and value; nothing is checked.
    pub fn new(key: impl Into<Box<str>>, value: impl Into<Box<str>>) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
        }
    }
}

/// The labels of one node, each key once. A copy shares them all; a label takes eight bytes where another node has it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct NodeLabels(
    /// In the order of their keys.
    Arc<[Arc<Label>]>,
);

/// What a node has under a label key, in any of the key's spellings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    Nothing,
    Value(&'a str),
    /// Two spellings with two values: no value is possible.
    Contradiction,
}

impl NodeLabels {
    /// Labels that may be shared with other nodes; of those with one key the last counts.
    pub fn of(labels: impl IntoIterator<Item = Arc<Label>>) -> Self {
        let mut all: Vec<Arc<Label>> = labels.into_iter().collect();
        all.reverse();
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all.dedup_by(|later, kept| later.key == kept.key);
        Self(all.into())
    }

    /// The value of the key as it is written.
    pub fn get(&self, key: &str) -> Option<&str> {
        let slot = self.0.binary_search_by(|it| (*it.key).cmp(key)).ok()?;
        Some(&self.0[slot].value)
    }

    /// Whether the key is there, as it is written.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// All labels in the order of their keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|it| (&*it.key, &*it.value))
    }

    /// All labels in the order of their keys, to share them.
    pub fn shared(&self) -> impl ExactSizeIterator<Item = &Arc<Label>> {
        self.0.iter()
    }

    /// Sets a label.
    pub fn insert(&mut self, key: impl Into<Box<str>>, value: impl Into<Box<str>>) {
        let label = Arc::new(Label::new(key, value));
        *self = Self::of(self.shared().cloned().chain([label]));
    }

    /// Takes a label away.
    pub fn remove(&mut self, key: &str) {
        *self = Self::of(self.shared().filter(|it| *it.key != *key).cloned());
    }

    /// These labels with the other ones over them.
    #[must_use]
    pub fn with(&self, others: &Self) -> Self {
        Self::of(self.shared().chain(others.shared()).cloned())
    }

    /// What the (canonical) key is, in whichever spelling the node has it.
    pub(crate) fn on(&self, key: &str) -> Found<'_> {
        let aliased = labels::aliases_of(key).filter_map(|alias| self.get(&alias));
        let mut values = self.get(key).into_iter().chain(aliased);
        match values.next() {
            None => Found::Nothing,
            Some(first) if values.all(|other| other == first) => Found::Value(first),
            Some(_) => Found::Contradiction,
        }
    }
}

impl Found<'_> {
    /// Whether what was found under the requirement's key satisfies it. A contradiction is like an absent label.
    pub(crate) fn meets(self, wanted: &Requirement) -> bool {
        match self {
            Self::Value(value) => wanted.has(value),
            Self::Nothing | Self::Contradiction => wanted.tolerates_absence(),
        }
    }
}

impl<K: Into<Box<str>>, V: Into<Box<str>>> FromIterator<(K, V)> for NodeLabels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter();
        Self::of(pairs.map(|(key, value)| Arc::new(Label::new(key, value))))
    }
}

impl From<Labels> for NodeLabels {
    fn from(labels: Labels) -> Self {
        labels.into_iter().collect()
    }
}

impl From<&NodeLabels> for Labels {
    fn from(labels: &NodeLabels) -> Self {
        let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        labels.iter().map(owned).collect()
    }
}

impl fmt::Debug for NodeLabels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Node;
    use crate::requirement::Operator;
    use crate::requirements::{Requirements, Undefined};

    #[test]
    fn of_two_labels_with_one_key_the_last_counts() {
        let labels: NodeLabels = [("zone", "h"), ("arch", "amd64"), ("zone", "i")]
            .into_iter()
            .collect();
        let all: Vec<_> = labels.iter().collect();
        assert_eq!(all, [("arch", "amd64"), ("zone", "i")]);

        let over: NodeLabels = [("arch", "arm64")].into_iter().collect();
        assert_eq!(labels.with(&over).get("arch"), Some("arm64"));
    }

    #[test]
    fn a_key_is_found_in_all_its_spellings() {
        let on = |pairs: &[(&str, &str)], key: &str| {
            let labels: NodeLabels = pairs.iter().copied().collect();
            format!("{:?}", labels.on(key))
        };
        let old = ("failure-domain.beta.kubernetes.io/zone", "h");
        assert_eq!(on(&[old], labels::ZONE), "Value(\"h\")");
        assert_eq!(
            on(&[old, (labels::ZONE, "h")], labels::ZONE),
            "Value(\"h\")"
        );
        assert_eq!(
            on(&[old, (labels::ZONE, "i")], labels::ZONE),
            "Contradiction"
        );
        let theirs = ("karpenter.k8s.alibabacloud/instance-cpu", "4");
        assert_eq!(on(&[theirs], labels::INSTANCE_CPU), "Value(\"4\")");
        assert_eq!(on(&[theirs], labels::ZONE), "Nothing");
    }

    /// The labels as requirements say the same, which takes far more room and time.
    #[test]
    fn what_labels_meet_is_what_requirements_of_them_are_compatible_with() {
        let old = "failure-domain.beta.kubernetes.io/zone";
        let sets: [&[(&str, &str)]; 5] = [
            &[],
            &[(labels::ZONE, "h"), ("cores", "4")],
            &[(old, "h")],
            &[(old, "h"), (labels::ZONE, "i")],
            &[("cores", "many")],
        ];
        let asks = [
            (labels::ZONE, Operator::In, vec!["h"]),
            (labels::ZONE, Operator::NotIn, vec!["h"]),
            (labels::ZONE, Operator::Exists, vec![]),
            (labels::ZONE, Operator::DoesNotExist, vec![]),
            ("cores", Operator::Gt, vec!["2"]),
            ("cores", Operator::Lte, vec!["2"]),
        ];
        for pairs in sets {
            let own: NodeLabels = pairs.iter().copied().collect();
            let as_requirements = Requirements::from_labels(own.iter());
            let node = Node {
                labels: own,
                ..Node::default()
            };
            for (key, operator, values) in asks.clone() {
                let wanted = Requirement::parse(key, operator, values).unwrap();
                let wanted: Requirements = [wanted].into_iter().collect();
                assert_eq!(
                    node.meets(&wanted),
                    as_requirements.is_compatible(&wanted, Undefined::Denied),
                    "{pairs:?} {wanted}"
                );
            }
        }
    }
}
