//! Draws that repeat: all come from one seed (the generator is SplitMix64).

#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `least` to `most`, both possible.
    pub(crate) fn between(&mut self, least: i64, most: i64) -> i64 {
        let count = most.abs_diff(least).saturating_add(1);
        // The remainder is below `count`, so the sum is at most `most`.
        least.saturating_add_unsigned(self.roll() % count)
    }

    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        let idx = usize::try_from(self.roll()).unwrap_or(usize::MAX) % items.len();
        items[idx]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_draw_equally_and_stay_in_range() {
        let (mut left, mut right) = (Dice::new(7), Dice::new(7));
        for _ in 0..1000 {
            let number = left.between(-3, 5);
            assert!((-3..=5).contains(&number));
            assert_eq!(number, right.between(-3, 5));
        }
    }
}
