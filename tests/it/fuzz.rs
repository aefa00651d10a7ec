//! The fuzzer's targets for a moment: good inputs, and some thousand that are nearly good. `cargo xtask fuzz` takes minutes.

use kerf_tests::fuzz::{Planted, TARGETS};

/// Of each target; a few seconds for all in a debug build.
const MUTANTS: usize = 20_000;
/// A mutant that grows with each step would become slow and no more telling.
const BYTES_MAX: usize = 64 << 10;

/// xorshift64*, seeded: the same mutants on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let mixed = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(mixed).unwrap() % bound.max(1)
    }
}

/// One change: a byte, a cut, a repeated piece, or a piece of another seed.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(bytes.len());
    let length = random.below(16) + 1;
    match random.below(5) {
        0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
        1 => bytes.truncate(at),
        2 => {
            let piece = bytes[at..bytes.len().min(at + length)].to_vec();
            bytes.splice(at..at, piece);
        }
        3 => {
            let from = random.below(other.len());
            let piece = &other[from..other.len().min(from + length)];
            bytes.splice(at..at, piece.iter().copied());
        }
        _ => bytes
            .splice(at..bytes.len().min(at + length), [])
            .for_each(drop),
    }
    bytes.truncate(BYTES_MAX);
}

#[test]
fn nothing_that_strangers_write_makes_a_reader_panic() {
    for target in TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{}", target.name);
        seeds
            .iter()
            .for_each(|seed| (target.run)(seed, Planted::No));
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for _ in 0..MUTANTS {
            let mut mutant = seeds[random.below(seeds.len())].clone();
            let other = &seeds[random.below(seeds.len())];
            for _ in 0..=random.below(4) {
                mutate(&mut mutant, other, &mut random);
            }
            (target.run)(&mutant, Planted::No);
        }
    }
}
