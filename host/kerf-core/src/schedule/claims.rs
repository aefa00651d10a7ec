//! Claims that this round plans, and the buckets of those that are alike.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::bits::Bits;
use super::sets::SetId;
use super::shelf::Shelf;
use super::vector::Vector;
use super::view::View;
use crate::pod::HostPort;

/// A claim in the making.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) pool: usize,
    pub(super) set: SetId,
    pub(super) view: Rc<View>,
    /// Its place in the view's order: the best shape that holds its pods.
    pub(super) place: usize,
    pub(super) used: Vector,
    /// Pods by their place in the round's order.
    pub(super) pods: Vec<usize>,
    pub(super) ports: Vec<HostPort>,
    /// `minValues` that it must keep; lowered if the policy is best effort.
    pub(super) min_values: Vec<(String, u32)>,
    pub(super) min_values_relaxed: bool,
}

impl Claim {
    pub(super) fn shape(&self) -> usize {
        self.view.order[self.place].shape
    }
}

/// Claims of one pool and one requirement set: they are alike except for what is on them.
#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) pool: usize,
    pub(super) set: SetId,
    pub(super) view: Rc<View>,
    pub(super) members: Bits,
    pub(super) count: usize,
}

/// All claims of a round.
#[derive(Debug, Default)]
pub(super) struct Claims {
    pub(super) all: Vec<Claim>,
    pub(super) buckets: Vec<Bucket>,
    bucket_ids: FxHashMap<(usize, SetId), usize>,
    /// Room that is free on the best shape that each claim has now.
    pub(super) free: Shelf,
    /// Room that there would be on the largest shapes.
    pub(super) headroom: Shelf,
}

impl Claims {
    pub(super) fn push(&mut self, claim: Claim, free: Vector, headroom: Vector) -> usize {
        let idx = self.all.len();
        self.join_bucket(idx, claim.pool, claim.set, &claim.view);
        self.all.push(claim);
        self.free.push(free);
        self.headroom.push(headroom);
        idx
    }

    /// Those that have pods.
    pub(super) fn live(&self) -> impl Iterator<Item = &Claim> {
        self.all.iter().filter(|it| !it.pods.is_empty())
    }

    /// Moves a claim, whose view is new already, to the bucket of its new set.
    pub(super) fn change_set(&mut self, idx: usize, set: SetId) {
        let (pool, old) = (self.all[idx].pool, self.all[idx].set);
        if old == set {
            return;
        }
        if let Some(bucket) = self.bucket_ids.get(&(pool, old)) {
            let bucket = &mut self.buckets[*bucket];
            bucket.members.remove(idx);
            bucket.count -= 1;
        }
        self.all[idx].set = set;
        let view = Rc::clone(&self.all[idx].view);
        self.join_bucket(idx, pool, set, &view);
    }

    /// Takes a claim out of the round; its place stays, without pods.
    pub(super) fn remove(&mut self, idx: usize) {
        let claim = &mut self.all[idx];
        claim.pods.clear();
        if let Some(bucket) = self.bucket_ids.get(&(claim.pool, claim.set)) {
            let bucket = &mut self.buckets[*bucket];
            bucket.members.remove(idx);
            bucket.count -= 1;
        }
    }

    fn join_bucket(&mut self, idx: usize, pool: usize, set: SetId, view: &Rc<View>) {
        let next = self.buckets.len();
        let bucket = *self.bucket_ids.entry((pool, set)).or_insert(next);
        if bucket == next {
            let view = Rc::clone(view);
            self.buckets.push(Bucket {
                pool,
                set,
                view,
                members: Bits::default(),
                count: 0,
            });
        }
        self.buckets[bucket].members.insert(idx);
        self.buckets[bucket].count += 1;
    }
}
