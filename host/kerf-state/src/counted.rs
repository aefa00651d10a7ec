//! Values with how many have them, kept as they come and go, for the least and the most of them.

use std::collections::BTreeMap;

/// A value that nobody has is not in it.
#[derive(Debug, PartialEq)]
pub(crate) struct Counted<T>(BTreeMap<T, usize>);

impl<T> Default for Counted<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord + Copy> Counted<T> {
    /// One more has the value.
    pub(crate) fn add(&mut self, value: T) {
        *self.0.entry(value).or_default() += 1;
    }

    /// One that had the value has it no more.
    pub(crate) fn remove(&mut self, value: T) {
        if let Some(count) = self.0.get_mut(&value) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&value);
            }
        }
    }

    pub(crate) fn least(&self) -> Option<T> {
        self.0.first_key_value().map(|(value, _)| *value)
    }

    pub(crate) fn most(&self) -> Option<T> {
        self.0.last_key_value().map(|(value, _)| *value)
    }
}
