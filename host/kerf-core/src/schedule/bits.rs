//! A set of small numbers, one bit each.

/// Numbers per word.
pub(super) const WORD: usize = u64::BITS as usize;

/// A set of numbers below some bound. Numbers beyond its length are absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    /// All numbers below the bound.
    pub(super) fn all(bound: usize) -> Self {
        let mut words = vec![u64::MAX; bound / WORD];
        let rest = bound % WORD;
        if rest > 0 {
            words.push((1 << rest) - 1);
        }
        Self(words)
    }

    pub(super) fn insert(&mut self, number: usize) {
        let word = number / WORD;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % WORD);
    }

    pub(super) fn remove(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / WORD) {
            *word &= !(1 << (number % WORD));
        }
    }

    pub(super) fn contains(&self, number: usize) -> bool {
        self.word(number / WORD) >> (number % WORD) & 1 == 1
    }

    /// The numbers from `WORD * idx` on, as a mask.
    pub(super) fn word(&self, idx: usize) -> u64 {
        self.0.get(idx).copied().unwrap_or(0)
    }

    pub(super) fn words(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub(super) fn intersect(&mut self, other: &Self) {
        for (idx, word) in self.0.iter_mut().enumerate() {
            *word &= other.word(idx);
        }
    }

    pub(super) fn subtract(&mut self, other: &Self) {
        for (word, away) in self.0.iter_mut().zip(&other.0) {
            *word &= !away;
        }
    }

    pub(super) fn unite(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (idx, word) in self.0.iter_mut().enumerate() {
            *word |= other.word(idx);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        self.0
            .iter()
            .enumerate()
            .flat_map(|(idx, word)| ones(*word).map(move |bit| idx * WORD + bit))
    }
}

impl FromIterator<usize> for Bits {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Self {
        let mut bits = Self::default();
        for number in numbers {
            bits.insert(number);
        }
        bits
    }
}

/// The positions of the ones of a word, lowest first.
pub(super) fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_different_length_meet() {
        let mut left: Bits = [1, 64, 130].into_iter().collect();
        let right: Bits = [1, 64].into_iter().collect();
        assert!(left.contains(130) && !left.contains(500));
        left.intersect(&right);
        assert_eq!(left.iter().collect::<Vec<_>>(), [1, 64]);
        left.unite(&Bits::all(3));
        left.remove(64);
        assert_eq!(left.iter().collect::<Vec<_>>(), [0, 1, 2]);
    }
}
