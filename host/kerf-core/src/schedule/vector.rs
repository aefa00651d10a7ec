//! Resource amounts as arrays of numbers, for the inner loops.
//!
//! Only resources that some pod asks for or some pool limits have a place; the others cannot change a decision.

use crate::resources::{COMMON, Resources};

/// Places without a further allocation: the four common resources and two extended ones, such as GPUs and ENIs.
const INLINE: usize = COMMON.len() + 2;

/// Which resource has which place.
#[derive(Debug, Clone, Default)]
pub(super) struct ResourceIndex {
    extended: Vec<String>,
}

impl ResourceIndex {
    /// Places for these resources besides the common ones.
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut extended: Vec<String> = names
            .filter(|name| !COMMON.contains(name))
            .map(str::to_owned)
            .collect();
        extended.sort_unstable();
        extended.dedup();
        Self { extended }
    }

    /// All places with their resources.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        COMMON
            .into_iter()
            .chain(self.extended.iter().map(String::as_str))
    }

    pub(super) fn vector(&self, resources: &Resources) -> Vector {
        let rest = (COMMON.len() + self.extended.len()).saturating_sub(INLINE);
        let mut vector = Vector {
            inline: [0; INLINE],
            rest: vec![0; rest],
        };
        for (place, name) in self.names().enumerate() {
            vector.set(place, resources.amount(name));
        }
        vector
    }

    pub(super) fn resources(&self, vector: &Vector) -> Resources {
        let mut resources = Resources::default();
        for (place, name) in self.names().enumerate() {
            resources.set(name, vector.at(place));
        }
        resources
    }
}

/// An amount per place of a [`ResourceIndex`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Vector {
    inline: [i64; INLINE],
    rest: Vec<i64>,
}

impl Vector {
    pub(super) fn at(&self, place: usize) -> i64 {
        if place < INLINE {
            self.inline[place]
        } else {
            self.rest[place - INLINE]
        }
    }

    pub(super) fn set(&mut self, place: usize, amount: i64) {
        if place < INLINE {
            self.inline[place] = amount;
        } else if let Some(own) = self.rest.get_mut(place - INLINE) {
            *own = amount;
        }
    }

    /// Whether every amount is at most the other's. A negative amount there holds nothing, not even zero.
    #[inline]
    pub(super) fn fits_in(&self, available: &Self) -> bool {
        let mut fits = true;
        for place in 0..INLINE {
            fits &= self.inline[place] <= available.inline[place];
        }
        fits && self
            .rest
            .iter()
            .zip(&available.rest)
            .all(|(wanted, there)| wanted <= there)
    }

    /// The first place where more is wanted than there is.
    pub(super) fn first_shortage(&self, available: &Self) -> Option<usize> {
        (0..INLINE + self.rest.len()).find(|place| self.at(*place) > available.at(*place))
    }

    #[inline]
    pub(super) fn add(&mut self, other: &Self) {
        self.combine(other, i64::saturating_add);
    }

    #[inline]
    pub(super) fn subtract(&mut self, other: &Self) {
        self.combine(other, i64::saturating_sub);
    }

    pub(super) fn raise_to(&mut self, other: &Self) {
        self.combine(other, i64::max);
    }

    pub(super) fn sum(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.add(other);
        sum
    }

    pub(super) fn difference(&self, other: &Self) -> Self {
        let mut difference = self.clone();
        difference.subtract(other);
        difference
    }

    /// Whether `most`, the most of a group that this belongs to, may fall when this becomes `new`.
    pub(super) fn was_the_most(&self, new: &Self, most: &Self) -> bool {
        let falls = |((old, new), most): ((&i64, &i64), &i64)| new < old && old == most;
        let mut inline = self.inline.iter().zip(&new.inline).zip(&most.inline);
        let mut rest = self.rest.iter().zip(&new.rest).zip(&most.rest);
        inline.any(falls) || rest.any(falls)
    }

    #[inline]
    fn combine(&mut self, other: &Self, operation: impl Fn(i64, i64) -> i64) {
        for place in 0..INLINE {
            self.inline[place] = operation(self.inline[place], other.inline[place]);
        }
        for (mine, theirs) in self.rest.iter_mut().zip(&other.rest) {
            *mine = operation(*mine, *theirs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_extended_resources_than_places_inline_still_count() {
        let names = ["a", "b", "c", "d"];
        let index = ResourceIndex::new(names.into_iter());
        let wanted = index.vector(&Resources::of(1, 1).with("d", 2));
        assert!(!wanted.fits_in(&index.vector(&Resources::of(9, 9).with("d", 1))));
        assert!(wanted.fits_in(&index.vector(&Resources::of(9, 9).with("d", 2))));
        assert_eq!(index.resources(&wanted), Resources::of(1, 1).with("d", 2));
    }
}
