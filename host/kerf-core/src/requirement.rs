//! One requirement on one label: a set of values, or all but a set, with optional integer bounds.
//!
//! [`Requirement`] is a value with exact set algebra; [`crate::requirements::Requirements`] holds one per key.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use crate::labels;
use crate::planted::{self, Bug};

/// The operators of node selectors, and Karpenter's `Gte` and `Lte`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// The value is one of these.
    In,
    /// The label is absent or its value none of these.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The value is an integer greater than this.
    Gt,
    /// The value is an integer less than this.
    Lt,
    /// The value is an integer of at least this.
    Gte,
    /// The value is an integer of at most this.
    Lte,
}

impl Operator {
    /// The operator of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "In" => Self::In,
            "NotIn" => Self::NotIn,
            "Exists" => Self::Exists,
            "DoesNotExist" => Self::DoesNotExist,
            "Gt" => Self::Gt,
            "Lt" => Self::Lt,
            "Gte" => Self::Gte,
            "Lte" => Self::Lte,
            _ => return None,
        })
    }

    /// The operator's name in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
            Self::Gt => "Gt",
            Self::Lt => "Lt",
            Self::Gte => "Gte",
            Self::Lte => "Lte",
        }
    }
}

/// A requirement that cannot be built from what was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseRequirementError {
    /// A bound is not one integer.
    #[error("requirement on {key}: {operator} needs exactly one integer value")]
    ReadBound {
        /// The label key.
        key: String,
        /// The operator as written.
        operator: &'static str,
    },
}

/// The values that one label may take.
///
/// `complement` false: exactly `values` (none: the label must be absent). `complement` true: any value but `values`,
/// within the bounds if there are any.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    key: String,
    complement: bool,
    values: BTreeSet<String>,
    gte: Option<i64>,
    lte: Option<i64>,
    min_values: Option<u32>,
}

impl Requirement {
    /// Builds a requirement from its written form; the key is normalised.
    pub fn parse<I>(key: &str, operator: Operator, values: I) -> Result<Self, ParseRequirementError>
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let values: BTreeSet<String> = values.into_iter().map(Into::into).collect();
        let bound = || {
            let mut numbers = values.iter().map(|value| parse_integer(value));
            match (numbers.next(), numbers.next()) {
                (Some(Some(number)), None) => Ok(number),
                _ => Err(ParseRequirementError::ReadBound {
                    key: key.to_owned(),
                    operator: operator.as_str(),
                }),
            }
        };
        Ok(match operator {
            Operator::In => Self::concrete(key, values),
            Operator::NotIn => Self {
                complement: true,
                ..Self::concrete(key, values)
            },
            Operator::Exists => Self::exists(key),
            Operator::DoesNotExist => Self::does_not_exist(key),
            Operator::Gte => Self {
                gte: Some(bound()?),
                ..Self::exists(key)
            },
            Operator::Lte => Self {
                lte: Some(bound()?),
                ..Self::exists(key)
            },
            Operator::Gt => match bound()?.checked_add(1) {
                Some(least) => Self {
                    gte: Some(least),
                    ..Self::exists(key)
                },
                None => Self::does_not_exist(key),
            },
            Operator::Lt => match bound()?.checked_sub(1) {
                Some(most) => Self {
                    lte: Some(most),
                    ..Self::exists(key)
                },
                None => Self::does_not_exist(key),
            },
        })
    }

    /// The label has one of these values.
    pub fn in_values<I>(key: &str, values: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        Self::concrete(key, values.into_iter().map(Into::into).collect())
    }

    /// The label is present.
    pub fn exists(key: &str) -> Self {
        Self {
            complement: true,
            ..Self::concrete(key, BTreeSet::new())
        }
    }

    /// The label is absent.
    pub fn does_not_exist(key: &str) -> Self {
        Self::concrete(key, BTreeSet::new())
    }

    fn concrete(key: &str, values: BTreeSet<String>) -> Self {
        let key = labels::normalize_key(key).into_owned();
        Self {
            key,
            complement: false,
            values,
            gte: None,
            lte: None,
            min_values: None,
        }
    }

    /// The same with a least number of distinct values that must stay possible.
    #[must_use]
    pub fn with_min_values(self, min_values: Option<u32>) -> Self {
        Self { min_values, ..self }
    }

    /// The normalised label key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How many distinct values must stay possible.
    pub fn min_values(&self) -> Option<u32> {
        self.min_values
    }

    /// The inclusive integer bounds.
    pub fn bounds(&self) -> (Option<i64>, Option<i64>) {
        (self.gte, self.lte)
    }

    /// The operator that describes the set; bounds do not show in it.
    pub fn operator(&self) -> Operator {
        match (self.complement, self.values.is_empty()) {
            (true, true) => Operator::Exists,
            (true, false) => Operator::NotIn,
            (false, true) => Operator::DoesNotExist,
            (false, false) => Operator::In,
        }
    }

    /// The values allowed (`In`) or excluded (`NotIn`), in order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &str> {
        self.values.iter().map(String::as_str)
    }

    /// The only value that is possible, if there is exactly one.
    pub fn single_value(&self) -> Option<&str> {
        match (self.complement, self.values.len()) {
            (false, 1) => self.values.first().map(String::as_str),
            _ => None,
        }
    }

    /// Whether the label may have this value.
    pub fn has(&self, value: &str) -> bool {
        self.values.contains(value) != self.complement && self.within_bounds(value)
    }

    /// Whether a node without the label satisfies this.
    pub fn tolerates_absence(&self) -> bool {
        matches!(self.operator(), Operator::NotIn | Operator::DoesNotExist)
    }

    /// Whether no value is possible.
    pub fn is_empty(&self) -> bool {
        !self.complement && self.values.is_empty()
    }

    /// The values that this one forbids; none where a bound would have to be turned round.
    pub fn opposite(&self) -> Option<Self> {
        (self.gte.is_none() && self.lte.is_none()).then(|| Self {
            complement: !self.complement,
            min_values: None,
            ..self.clone()
        })
    }

    /// The requirement that both make together. They must be on the same key.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let gte = self.gte.max(other.gte);
        let lte = least(self.lte, other.lte);
        let min_values = self.min_values.max(other.min_values);
        let bounds_are_empty = matches!((gte, lte), (Some(gte), Some(lte)) if gte > lte);
        if bounds_are_empty {
            return Self::does_not_exist(&self.key).with_min_values(min_values);
        }
        let values: BTreeSet<String> = match (self.complement, other.complement) {
            (true, true) => self.values.union(&other.values).cloned().collect(),
            (true, false) => other.values.difference(&self.values).cloned().collect(),
            (false, true) => self.values.difference(&other.values).cloned().collect(),
            (false, false) => self.values.intersection(&other.values).cloned().collect(),
        };
        let complement = self.complement && other.complement;
        let mut result = Self {
            key: self.key.clone(),
            complement,
            values,
            gte,
            lte,
            min_values,
        };
        result.drop_values_out_of_bounds();
        if !complement {
            (result.gte, result.lte) = (None, None);
        }
        result
    }

    /// Whether some value satisfies both.
    pub fn intersects(&self, other: &Self) -> bool {
        let gte = self.gte.max(other.gte);
        let lte = least(self.lte, other.lte);
        if matches!((gte, lte), (Some(gte), Some(lte)) if gte > lte) {
            return false;
        }
        match (self.complement, other.complement) {
            (true, true) => true,
            (false, _) => self
                .values
                .iter()
                .any(|value| self.has(value) && other.has(value)),
            (true, false) => other.values.iter().any(|value| self.has(value)),
        }
    }

    /// The least value that satisfies this, as a label for a new node; none when the label must be absent.
    ///
    /// Karpenter: differs, because it draws one at random; the same input must give the same node here.
    pub fn any_value(&self) -> Option<Cow<'_, str>> {
        if !self.complement {
            return self
                .values
                .first()
                .map(|value| Cow::Borrowed(value.as_str()));
        }
        let mut number = self.gte.unwrap_or_else(|| self.lte.unwrap_or(0).min(0));
        loop {
            let text = number.to_string();
            if !self.values.contains(&text) {
                return self.within_bounds(&text).then_some(Cow::Owned(text));
            }
            number = number.checked_add(1)?;
        }
    }

    /// The requirement as items of a manifest: bounds become entries of their own.
    pub fn written(&self) -> Vec<WrittenRequirement> {
        let item = |operator, values| WrittenRequirement {
            key: self.key.clone(),
            operator,
            values,
            min_values: self.min_values,
        };
        let bounds = [(Operator::Gte, self.gte), (Operator::Lte, self.lte)];
        let mut items: Vec<WrittenRequirement> = bounds
            .into_iter()
            .filter_map(|(operator, bound)| Some(item(operator, vec![bound?.to_string()])))
            .collect();
        if items.is_empty() || !self.values.is_empty() {
            items.insert(
                0,
                item(self.operator(), self.values.iter().cloned().collect()),
            );
        }
        items
    }

    fn drop_values_out_of_bounds(&mut self) {
        if self.gte.is_none() && self.lte.is_none() {
            return;
        }
        let (gte, lte) = (self.gte, self.lte);
        self.values.retain(|value| is_within(value, gte, lte));
    }

    fn within_bounds(&self, value: &str) -> bool {
        is_within(value, self.gte, self.lte)
    }
}

/// One item of `spec.requirements`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenRequirement {
    /// The label key.
    pub key: String,
    /// The operator.
    pub operator: Operator,
    /// Its values.
    pub values: Vec<String>,
    /// `minValues`.
    pub min_values: Option<u32>,
}

fn is_within(value: &str, gte: Option<i64>, lte: Option<i64>) -> bool {
    if gte.is_none() && lte.is_none() {
        return true;
    }
    let Some(number) = parse_integer(value) else {
        return false;
    };
    let slack = i64::from(planted::is_on(Bug::GtInclusive));
    gte.is_none_or(|least| number + slack >= least) && lte.is_none_or(|most| number <= most)
}

fn parse_integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn least(left: Option<i64>, right: Option<i64>) -> Option<i64> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (bound, None) | (None, bound) => bound,
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, item) in self.written().iter().enumerate() {
            let separator = if i == 0 { "" } else { " and " };
            write!(f, "{separator}{} {}", item.key, item.operator.as_str())?;
            if !item.values.is_empty() {
                write!(f, " {}", ShortList(&item.values))?;
            }
        }
        Ok(())
    }
}

/// Prints the first values of a list and how many more there are.
struct ShortList<'a>(&'a [String]);

/// More values than this make a message unreadable.
const MAX_VALUES_SHOWN: usize = 5;

impl fmt::Display for ShortList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.len().min(MAX_VALUES_SHOWN);
        write!(f, "[{}", self.0[..shown].join(", "))?;
        match self.0.len() - shown {
            0 => write!(f, "]"),
            more => write!(f, " and {more} more]"),
        }
    }
}

#[cfg(test)]
mod tests;
