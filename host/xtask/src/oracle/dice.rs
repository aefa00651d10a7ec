//! Draws that repeat: all of a case come from its seed (the generator is SplitMix64).

#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `least` to `most`, both possible.
    pub(crate) fn between(&mut self, least: i64, most: i64) -> i64 {
        let count = most.abs_diff(least).saturating_add(1);
        least.saturating_add_unsigned(self.roll() % count)
    }

    /// True in that many of a hundred draws.
    pub(crate) fn percent(&mut self, chance: i64) -> bool {
        self.between(1, 100) <= chance
    }

    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.index(items.len())]
    }

    /// An index into a list of that length, which must not be empty.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.roll() >> 1).unwrap_or(usize::MAX) % len
    }

    /// At least one of the items, in their order.
    pub(crate) fn some<T: Copy>(&mut self, items: &[T]) -> Vec<T> {
        let sure = self.index(items.len());
        let mut chosen = Vec::new();
        for (idx, item) in items.iter().enumerate() {
            if idx == sure || self.percent(50) {
                chosen.push(*item);
            }
        }
        chosen
    }
}
