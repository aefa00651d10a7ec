//! Room on many hosts, kept so that full ones are skipped in blocks.

use super::bits::{Bits, WORD, ones};
use super::vector::Vector;

/// How much room each host has, and the most that any host of a block of 64 has.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    room: Vec<Vector>,
    block_room: Vec<Vector>,
}

impl Shelf {
    pub(super) fn push(&mut self, room: Vector) {
        if self.room.len().is_multiple_of(WORD) {
            self.block_room.push(room.clone());
        } else if let Some(block) = self.block_room.last_mut() {
            block.raise_to(&room);
        }
        self.room.push(room);
    }

    pub(super) fn room(&self, host: usize) -> &Vector {
        &self.room[host]
    }

    pub(super) fn set(&mut self, host: usize, room: Vector) {
        let block = host / WORD;
        let old = std::mem::replace(&mut self.room[host], room);
        if old.was_the_most(&self.room[host], &self.block_room[block]) {
            let first = block * WORD;
            let last = self.room.len().min(first + WORD);
            let mut most = self.room[first].clone();
            for room in &self.room[first + 1..last] {
                most.raise_to(room);
            }
            self.block_room[block] = most;
        } else {
            self.block_room[block].raise_to(&self.room[host]);
        }
    }

    /// The hosts among `members` and not in `blocked` that have room, lowest first. Each block looked at is counted.
    pub(super) fn with_room<'a>(
        &'a self,
        wanted: &'a Vector,
        members: &'a Bits,
        blocked: &'a Blocked<'_>,
        work: &'a mut u64,
    ) -> impl Iterator<Item = usize> + 'a {
        let blocks = members.words().min(self.block_room.len());
        (0..blocks).flat_map(move |block| {
            *work += 1;
            let mut candidates = members.word(block);
            if candidates != 0 && !wanted.fits_in(&self.block_room[block]) {
                candidates = 0;
            }
            if candidates != 0 {
                candidates = blocked.apply(block, candidates);
            }
            ones(candidates)
                .map(move |bit| block * WORD + bit)
                .filter(|host| wanted.fits_in(&self.room[*host]))
        })
    }
}

/// Hosts that are out of the question: those in some of the sets, and those outside some of the others.
#[derive(Debug, Default)]
pub(super) struct Blocked<'a> {
    /// Hosts in any of these are blocked.
    pub(super) by: Vec<&'a Bits>,
    /// Hosts outside any of these are blocked.
    pub(super) unless: Vec<&'a Bits>,
}

impl Blocked<'_> {
    fn apply(&self, block: usize, candidates: u64) -> u64 {
        let blocked = self
            .by
            .iter()
            .fold(candidates, |left, bits| left & !bits.word(block));
        self.unless
            .iter()
            .fold(blocked, |left, bits| left & bits.word(block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Resources;
    use crate::schedule::vector::ResourceIndex;

    #[test]
    fn hosts_with_room_are_found_and_blocked_ones_are_not() {
        let index = ResourceIndex::default();
        let room = |cpu| index.vector(&Resources::of(cpu, 0));
        let mut shelf = Shelf::default();
        for cpu in 0..200 {
            shelf.push(room(cpu));
        }
        shelf.set(199, room(1));
        let find = |wanted: i64, blocked: &Bits| {
            let blocked = Blocked {
                by: vec![blocked],
                unless: vec![],
            };
            shelf
                .with_room(&room(wanted), &Bits::all(200), &blocked, &mut 0)
                .collect::<Vec<_>>()
        };
        assert_eq!(find(197, &Bits::default()), [197, 198]);
        assert_eq!(find(197, &[197].into_iter().collect()), [198]);
        assert!(find(199, &Bits::default()).is_empty());
    }
}
