//! A second look at claims whose pods could be anywhere: all of them packed anew, if that is cheaper.

use std::collections::BTreeMap;

use super::claims::Claim;
use super::class::Class;
use super::pack::{Bin, Item, Mix, pack};
use super::round::Round;
use super::vector::Vector;

/// With fewer claims there is little to gain.
const MIN_CLAIMS: usize = 3;
/// With more classes the packing would take longer than it is worth.
const MAX_ITEMS: usize = 512;

/// A claim that would replace old ones: the shape's place in the view, what it uses, and its classes.
struct Replacement {
    place: usize,
    used: Vector,
    content: Vec<(usize, u32)>,
    times: u32,
}

impl Round<'_> {
    /// Packs the plain claims of each bucket anew and keeps what is cheaper.
    pub(super) fn improve(&mut self, classes: &[Class]) {
        for bucket in 0..self.claims.buckets.len() {
            let plain: Vec<usize> = self.claims.buckets[bucket]
                .members
                .iter()
                .filter(|claim| self.is_plain(*claim, classes))
                .collect();
            if plain.len() >= MIN_CLAIMS {
                self.improve_claims(&plain, classes);
            }
        }
    }

    /// Whether nothing but resources matters to the claim's pods.
    fn is_plain(&self, claim: usize, classes: &[Class]) -> bool {
        let claim = &self.claims.all[claim];
        let has_reservation = self.pools[claim.pool].shapes[claim.shape()]
            .reservation
            .is_some();
        let is_plain = |pod: &usize| classes[self.class_of[*pod]].is_plain();
        claim.min_values.is_empty() && !has_reservation && claim.pods.iter().all(is_plain)
    }

    fn improve_claims(&mut self, old: &[usize], classes: &[Class]) {
        // Pods of equal requests are one item, whatever their classes.
        let mut of_request: BTreeMap<Vec<i64>, usize> = BTreeMap::new();
        let mut items: Vec<Item> = Vec::new();
        let mut pods: Vec<Vec<usize>> = Vec::new();
        let places = self.resources.names().count();
        for pod in old.iter().flat_map(|claim| &self.claims.all[*claim].pods) {
            let request = &classes[self.class_of[*pod]].claim_request;
            let key = (0..places).map(|place| request.at(place)).collect();
            let item = *of_request.entry(key).or_insert(items.len());
            if item == items.len() {
                items.push(Item {
                    request: request.clone(),
                    count: 0,
                });
                pods.push(Vec::new());
            }
            items[item].count += 1;
            pods[item].push(*pod);
        }
        if items.len() > MAX_ITEMS {
            return;
        }
        let bins = self.bins_of(old[0]);
        let Some(mixes) = pack(&items, &bins, places, &mut self.work) else {
            return;
        };
        let replacements = self.replacements(old[0], &items, mixes);
        if self.is_better(old, &replacements) {
            self.replace(old, &replacements, pods);
        }
    }

    fn bins_of(&self, claim: usize) -> Vec<Bin> {
        let claim = &self.claims.all[claim];
        let pool = &self.pools[claim.pool];
        let best_score = claim.view.order.first().map(|it| it.rank.score);
        // A worse score is never made good by a lower price.
        let ranked = claim
            .view
            .order
            .iter()
            .filter(|it| Some(it.rank.score) == best_score && it.rank.price.is_known());
        let unreserved = ranked.filter(|it| pool.shapes[it.shape].reservation.is_none());
        unreserved
            .map(|it| Bin {
                room: pool.shapes[it.shape].room.clone(),
                price: it.rank.price.micros(),
            })
            .collect()
    }

    /// The cheapest shape for each mix.
    fn replacements(
        &self,
        like: usize,
        items: &[Item],
        mixes: Vec<Mix>,
    ) -> Option<Vec<Replacement>> {
        let claim = &self.claims.all[like];
        let pool = &self.pools[claim.pool];
        let replacement = |mix: Mix| {
            let mut used = claim.used.difference(&claim.used);
            for (item, count) in &mix.content {
                for _ in 0..*count {
                    used.add(&items[*item].request);
                }
            }
            let mut places = 0..claim.view.order.len();
            let place = places.find(|place| {
                let shape = &pool.shapes[claim.view.order[*place].shape];
                used.fits_in(&shape.room) && shape.reservation.is_none()
            })?;
            Some(Replacement {
                place,
                used,
                content: mix.content,
                times: mix.times,
            })
        };
        mixes.into_iter().map(replacement).collect()
    }

    /// Whether the replacements hold all pods, cost less, and stay within the pool's limits.
    fn is_better(&self, old: &[usize], new: &Option<Vec<Replacement>>) -> bool {
        let Some(new) = new else {
            return false;
        };
        let like = &self.claims.all[old[0]];
        let pods: usize = old
            .iter()
            .map(|claim| self.claims.all[*claim].pods.len())
            .sum();
        let packed = new
            .iter()
            .map(|it| it.times * it.content.iter().map(|(_, count)| count).sum::<u32>())
            .sum::<u32>();
        let price_of = |claim: &Claim, place: usize| claim.view.order[place].rank.price.micros();
        let score_of = |claim: &Claim, place: usize| claim.view.order[place].rank.score;
        let old_price: u64 = old
            .iter()
            .map(|claim| &self.claims.all[*claim])
            .fold(0, |sum, it| sum.saturating_add(price_of(it, it.place)));
        let new_price: u64 = new.iter().fold(0, |sum, it| {
            sum.saturating_add(price_of(like, it.place).saturating_mul(it.times.into()))
        });
        let worst_old = old
            .iter()
            .map(|claim| score_of(&self.claims.all[*claim], self.claims.all[*claim].place))
            .max();
        let worst_new = new.iter().map(|it| score_of(like, it.place)).max();
        packed as usize == pods
            && new_price < old_price
            && worst_new <= worst_old
            && self.keeps_limits(old, new)
    }

    fn keeps_limits(&self, old: &[usize], new: &[Replacement]) -> bool {
        let like = &self.claims.all[old[0]];
        let pool = &self.pools[like.pool];
        let mut limits = self.limits[like.pool].clone();
        for claim in old {
            limits.return_node(&pool.shapes[self.claims.all[*claim].shape()].capacity);
        }
        new.iter().all(|it| {
            let capacity = &pool.shapes[like.view.order[it.place].shape].capacity;
            (0..it.times).all(|_| {
                let is_allowed = limits.allows_node(capacity);
                limits.take_node(capacity);
                is_allowed
            })
        })
    }

    fn replace(
        &mut self,
        old: &[usize],
        new: &Option<Vec<Replacement>>,
        mut pods: Vec<Vec<usize>>,
    ) {
        let Some(new) = new else { return };
        let (pool, set) = (self.claims.all[old[0]].pool, self.claims.all[old[0]].set);
        for claim in old {
            let shape = self.claims.all[*claim].shape();
            self.limits[pool].return_node(&self.pools[pool].shapes[shape].capacity);
            self.uncount_zone(pool, set);
            self.claims.remove(*claim);
        }
        let view = self.view(pool, set);
        for replacement in new {
            for _ in 0..replacement.times {
                let mut of_claim: Vec<usize> = Vec::new();
                for (item, count) in &replacement.content {
                    let rest = pods[*item].len().saturating_sub(*count as usize);
                    of_claim.extend(pods[*item].split_off(rest));
                }
                of_claim.sort_unstable();
                let shape = &self.pools[pool].shapes[view.order[replacement.place].shape];
                self.limits[pool].take_node(&shape.capacity);
                let free = shape.room.difference(&replacement.used);
                let headroom = view.most_room.difference(&replacement.used);
                let claim = Claim {
                    pool,
                    set,
                    view: std::rc::Rc::clone(&view),
                    place: replacement.place,
                    used: replacement.used.clone(),
                    pods: of_claim,
                    ports: Vec::new(),
                    min_values: Vec::new(),
                    min_values_relaxed: false,
                };
                self.claims.push(claim, free, headroom);
                self.count_zone(pool, set);
            }
        }
    }
}
