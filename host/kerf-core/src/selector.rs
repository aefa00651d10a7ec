//! Label selectors of pods and namespaces, with Kubernetes' matching rules.

use std::collections::BTreeMap;

/// Labels by key.
pub type Labels = BTreeMap<String, String>;

/// Operators of a label selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SelectorOperator {
    /// The label has one of the values.
    In,
    /// The label is absent or has none of the values.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

/// One expression of a selector.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SelectorExpression {
    /// The label key.
    pub key: String,
    /// The operator.
    pub operator: SelectorOperator,
    /// Its values.
    pub values: Vec<String>,
}

impl SelectorExpression {
    fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let is_listed = value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            SelectorOperator::In => is_listed,
            SelectorOperator::NotIn => !is_listed,
            SelectorOperator::Exists => value.is_some(),
            SelectorOperator::DoesNotExist => value.is_none(),
        }
    }
}

/// A selector: every label and expression must match. An empty one matches everything; where the API allows null,
/// which matches nothing, we have an `Option`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LabelSelector {
    /// `matchLabels`.
    pub match_labels: Labels,
    /// `matchExpressions`.
    pub match_expressions: Vec<SelectorExpression>,
}

impl LabelSelector {
    /// Selects by one label.
    pub fn label(key: &str, value: &str) -> Self {
        let match_labels = [(key.to_owned(), value.to_owned())].into_iter().collect();
        Self {
            match_labels,
            match_expressions: Vec::new(),
        }
    }

    /// Whether the labels match.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.match_labels
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
            && self
                .match_expressions
                .iter()
                .all(|expression| expression.matches(labels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_labels_match_not_in_and_does_not_exist() {
        let labels = Labels::from([("app".to_owned(), "web".to_owned())]);
        let check = |operator, key: &str, values: &[&str], expected| {
            let values = values.iter().map(|value| (*value).to_owned()).collect();
            let selector = LabelSelector {
                match_labels: Labels::new(),
                match_expressions: vec![SelectorExpression {
                    key: key.to_owned(),
                    operator,
                    values,
                }],
            };
            assert_eq!(selector.matches(&labels), expected, "{operator:?} {key}");
        };
        check(SelectorOperator::NotIn, "tier", &["a"], true);
        check(SelectorOperator::DoesNotExist, "tier", &[], true);
        check(SelectorOperator::Exists, "tier", &[], false);
        check(SelectorOperator::In, "app", &["web", "db"], true);
        check(SelectorOperator::NotIn, "app", &["web"], false);
    }

    #[test]
    fn an_empty_selector_matches_everything() {
        assert!(LabelSelector::default().matches(&Labels::new()));
        assert!(!LabelSelector::label("app", "web").matches(&Labels::new()));
    }
}
