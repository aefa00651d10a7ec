//! Which shapes of a pool hold an amount, answered for all shapes at once.

use super::bits::Bits;
use super::pool::PoolEntry;
use super::vector::Vector;

/// For each resource: the amounts of room that shapes have, rising, each with the shapes that have at least that much.
#[derive(Debug)]
pub(super) struct RoomyShapes {
    steps: Vec<Vec<(i64, Bits)>>,
    all: Bits,
}

impl RoomyShapes {
    /// Takes one bit per shape, resource and distinct amount: made only where many amounts are asked for.
    pub(super) fn of(pool: &PoolEntry, places: usize) -> Self {
        Self {
            steps: (0..places).map(|place| steps(pool, place)).collect(),
            all: Bits::all(pool.shapes.len()),
        }
    }

    /// The shapes with room for that much.
    pub(super) fn holding(&self, wanted: &Vector) -> Bits {
        let mut shapes = self.all.clone();
        for (place, steps) in self.steps.iter().enumerate() {
            let enough = steps.partition_point(|(room, _)| *room < wanted.at(place));
            match steps.get(enough) {
                Some((_, roomy)) => shapes.intersect(roomy),
                None => return Bits::default(),
            }
        }
        shapes
    }
}

fn steps(pool: &PoolEntry, place: usize) -> Vec<(i64, Bits)> {
    let mut by_room: Vec<(i64, usize)> = pool
        .shapes
        .iter()
        .enumerate()
        .map(|(shape, entry)| (entry.room.at(place), shape))
        .collect();
    by_room.sort_unstable();
    let mut roomy = Bits::default();
    let mut steps: Vec<(i64, Bits)> = Vec::new();
    for same in by_room.chunk_by(|one, other| one.0 == other.0).rev() {
        for (_, shape) in same {
            roomy.insert(*shape);
        }
        steps.extend(same.first().map(|(room, _)| (*room, roomy.clone())));
    }
    steps.reverse();
    steps
}
