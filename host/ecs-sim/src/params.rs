//! The parameters of a call after decoding, with the flattening rules of RPC-style products undone.

use std::collections::BTreeMap;

use crate::error::ApiError;

/// No list of any action is longer; it also bounds the search for `Name.N`.
const LIST_ITEMS_MAX: usize = 1000;

/// Name to value. Of a name that is sent twice the last value counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Params(BTreeMap<String, String>);

/// A tag filter or a tag to set; no value in a filter means any value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TagParam {
    pub(crate) key: String,
    pub(crate) value: Option<String>,
}

impl FromIterator<(String, String)> for Params {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl Params {
    /// The value, where an empty one counts as absent (the SDKs send unset text as `Name=`).
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    pub(crate) fn required(&self, name: &str) -> Result<&str, ApiError> {
        self.text(name)
            .ok_or_else(|| ApiError::missing_parameter(name))
    }

    pub(crate) fn int(&self, name: &str) -> Result<Option<i64>, ApiError> {
        self.parsed(name)
    }

    pub(crate) fn float(&self, name: &str) -> Result<Option<f64>, ApiError> {
        self.parsed(name)
    }

    fn parsed<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        self.text(name)
            .map(|value| value.parse().map_err(|_| ApiError::invalid_parameter(name)))
            .transpose()
    }

    /// Python's SDK writes `True`, Go's writes `true`; the real server reads both.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, ApiError> {
        match self.text(name) {
            None => Ok(false),
            Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
            Some(value) if value.eq_ignore_ascii_case("false") => Ok(false),
            Some(_) => Err(ApiError::invalid_parameter(name)),
        }
    }

    /// `Name.1`, `Name.2`, …
    pub(crate) fn list(&self, name: &str) -> Vec<&str> {
        (1..=LIST_ITEMS_MAX)
            .map_while(|i| self.text(&format!("{name}.{i}")))
            .collect()
    }

    /// A list inside one text as JSON, as `DescribeInstances.InstanceIds` is.
    pub(crate) fn json_list(&self, name: &str) -> Result<Option<Vec<String>>, ApiError> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        serde_json::from_str(text)
            .map(Some)
            .map_err(|_| ApiError::invalid_parameter(name))
    }

    /// `Name.1.Key`, `Name.1.Value`, …
    pub(crate) fn tags(&self, name: &str) -> Vec<TagParam> {
        (1..=LIST_ITEMS_MAX)
            .map_while(|i| {
                let key = self.text(&format!("{name}.{i}.Key"))?.to_owned();
                Some(TagParam {
                    key,
                    value: self.0.get(&format!("{name}.{i}.Value")).cloned(),
                })
            })
            .collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Whether tags satisfy every term of a filter.
pub(crate) fn tags_match(filter: &[TagParam], tags: &BTreeMap<String, String>) -> bool {
    filter
        .iter()
        .all(|term| match (&term.value, tags.get(&term.key)) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(wanted), Some(found)) => wanted == found,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(pairs: &[(&str, &str)]) -> Params {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn flags_are_read_as_python_and_as_go_write_them() {
        let params = params(&[("A", "True"), ("B", "false"), ("C", "1")]);

        assert_eq!(params.flag("A"), Ok(true));
        assert_eq!(params.flag("B"), Ok(false));
        assert_eq!(params.flag("Absent"), Ok(false));
        assert!(params.flag("C").is_err());
    }

    #[test]
    fn lists_and_tags_are_read_from_their_numbers() {
        let params = params(&[
            ("InstanceId.1", "i-1"),
            ("InstanceId.2", "i-2"),
            ("Tag.1.Key", "k"),
            ("Tag.1.Value", ""),
        ]);

        assert_eq!(params.list("InstanceId"), ["i-1", "i-2"]);
        assert_eq!(
            params.tags("Tag"),
            [TagParam {
                key: "k".to_owned(),
                value: Some(String::new())
            }]
        );
    }
}
