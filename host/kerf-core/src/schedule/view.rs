//! What a claim of a pool can be under a requirement set: the shapes that it allows, best first.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::bits::Bits;
use super::domains::Domains;
use super::pool::{PoolEntry, Rank, Sale, own_meets};
use super::sets::{SetId, SetTable};
use super::vector::Vector;
use crate::ids::ZoneId;
use crate::labels;
use crate::requirement::Requirement;
use crate::requirements::Requirements;

/// A shape that a view does not have.
const ABSENT: u32 = u32::MAX;

/// The shapes of a pool that a requirement set allows and that can be bought now.
#[derive(Debug)]
pub(super) struct View {
    /// Shapes by the rank of their best offering, then name.
    pub(super) order: Vec<Ranked>,
    /// Where in `order` each shape is.
    places: Vec<u32>,
    /// Shapes than which no other has more of everything: what does not fit in these does not fit at all.
    pub(super) largest: Vec<usize>,
    /// The most room of each resource that any shape has.
    pub(super) most_room: Vector,
    /// The offerings, as places in the pool's sales.
    pub(super) sales: Bits,
    /// The zones of the offerings, by name.
    pub(super) zones: Vec<ZoneId>,
    /// The values that a node can have, by topology key.
    pub(super) domains: Vec<Bits>,
}

/// A shape and how good its best offering is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ranked {
    pub(super) shape: usize,
    pub(super) rank: Rank,
}

impl View {
    /// Where in the order a shape is.
    pub(super) fn place(&self, shape: usize) -> Option<usize> {
        self.places
            .get(shape)
            .filter(|place| **place != ABSENT)
            .map(|place| *place as usize)
    }

    /// Whether some shape has room for that much.
    pub(super) fn can_hold(&self, wanted: &Vector, pool: &PoolEntry) -> bool {
        wanted.fits_in(&self.most_room)
            && self
                .largest
                .iter()
                .any(|shape| wanted.fits_in(&pool.shapes[*shape].room))
    }
}

/// By pool, its sales that meet one requirement.
pub(super) type Masks = FxHashMap<usize, FxHashMap<Requirement, Bits>>;

/// All views of a round, each made once.
#[derive(Debug, Default)]
pub(super) struct ViewTable {
    views: FxHashMap<(usize, SetId), Rc<View>>,
    /// The same for every round about one snapshot.
    pub(super) masks: Masks,
}

impl ViewTable {
    pub(super) fn with(masks: Masks) -> Self {
        Self {
            masks,
            ..Self::default()
        }
    }

    pub(super) fn view(
        &mut self,
        idx: usize,
        pool: &PoolEntry,
        set: SetId,
        sets: &SetTable,
        domains: &mut Domains,
    ) -> Rc<View> {
        if let Some(view) = self.views.get(&(idx, set)) {
            return Rc::clone(view);
        }
        let requirements = sets.at(set);
        let sales = self.open_sales(idx, pool, requirements);
        let view = Rc::new(build(pool, requirements, sales, domains));
        self.views.insert((idx, set), Rc::clone(&view));
        view
    }

    fn open_sales(&mut self, idx: usize, pool: &PoolEntry, requirements: &Requirements) -> Bits {
        let mut sales = self.allowed_sales(idx, pool, requirements);
        for (place, sale) in pool.sales.iter().enumerate() {
            if sale.closed.is_some() {
                sales.remove(place);
            }
        }
        sales
    }

    /// The sales that meet all requirements, open or not.
    pub(super) fn allowed_sales(
        &mut self,
        idx: usize,
        pool: &PoolEntry,
        requirements: &Requirements,
    ) -> Bits {
        let mut sales = Bits::all(pool.sales.len());
        let masks = self.masks.entry(idx).or_default();
        for requirement in requirements.iter() {
            // A requirement may have hundreds of values: only a new one is copied.
            if let Some(mask) = masks.get(requirement) {
                sales.intersect(mask);
                continue;
            }
            let mask = mask_of(pool, requirement);
            sales.intersect(&mask);
            masks.insert(requirement.clone(), mask);
        }
        sales
    }
}

fn mask_of(pool: &PoolEntry, requirement: &Requirement) -> Bits {
    let mut mask = Bits::default();
    let mut slot = 0;
    for shape in pool.shapes.iter() {
        // Nearly all types have the same keys, so each has this one where the last had it.
        let own = shape
            .instance_type
            .requirements
            .on_near(requirement.key(), &mut slot);
        if own_meets(own, &shape.instance_type, requirement) {
            let places = shape.sales.clone();
            places
                .filter(|place| sale_meets(&pool.sales[*place], requirement))
                .for_each(|place| mask.insert(place));
        }
    }
    mask
}

fn sale_meets(sale: &Sale, requirement: &Requirement) -> bool {
    match requirement.key() {
        labels::ZONE => requirement.has(&sale.zone),
        labels::CAPACITY_TYPE => requirement.has(sale.capacity_type.as_str()),
        labels::RESERVATION_ID => match &sale.reservation {
            Some(id) => requirement.has(id),
            None => requirement.tolerates_absence(),
        },
        _ => true,
    }
}

fn build(
    pool: &PoolEntry,
    requirements: &Requirements,
    sales: Bits,
    domains: &mut Domains,
) -> View {
    let mut order: Vec<Ranked> = Vec::new();
    for (idx, shape) in pool.shapes.iter().enumerate() {
        let open = shape.sales.clone().filter(|place| sales.contains(*place));
        let best = open.map(|place| pool.sales[place].rank).min();
        order.extend(best.map(|rank| Ranked { shape: idx, rank }));
    }
    order.sort_by_key(|it| (it.rank, it.shape));
    let mut places = vec![ABSENT; pool.shapes.len()];
    let mut most_room = Vector::default();
    for (place, ranked) in order.iter().enumerate() {
        places[ranked.shape] = u32::try_from(place).unwrap_or(ABSENT);
        let room = &pool.shapes[ranked.shape].room;
        if place == 0 {
            most_room = room.clone();
        }
        most_room.raise_to(room);
    }
    let largest = largest_shapes(pool, &order);
    let domains = domains_of(pool, requirements, &order, &sales, domains);
    let mut zones: Vec<ZoneId> = sales
        .iter()
        .map(|sale| pool.sales[sale].zone.clone())
        .collect();
    zones.sort_unstable();
    zones.dedup();
    View {
        zones,
        order,
        places,
        largest,
        most_room,
        sales,
        domains,
    }
}

fn largest_shapes(pool: &PoolEntry, order: &[Ranked]) -> Vec<usize> {
    let room = |shape: usize| &pool.shapes[shape].room;
    let mut by_size: Vec<usize> = order.iter().map(|it| it.shape).collect();
    by_size.sort_by_key(|shape| std::cmp::Reverse(room(*shape).at(0)));
    let mut largest: Vec<usize> = Vec::new();
    for shape in by_size {
        if !largest
            .iter()
            .any(|larger| room(shape).fits_in(room(*larger)))
        {
            largest.push(shape);
        }
    }
    largest
}

fn domains_of(
    pool: &PoolEntry,
    requirements: &Requirements,
    order: &[Ranked],
    sales: &Bits,
    domains: &mut Domains,
) -> Vec<Bits> {
    let keys: Vec<_> = domains.keys().collect();
    let mut result = Vec::with_capacity(keys.len());
    for key in keys {
        let name = domains.name(key);
        let bits = match &*name {
            labels::ZONE => sales
                .iter()
                .map(|place| domains.intern(key, &pool.sales[place].zone))
                .collect(),
            labels::CAPACITY_TYPE => sales
                .iter()
                .map(|place| domains.intern(key, pool.sales[place].capacity_type.as_str()))
                .collect(),
            _ => values_of(pool, requirements.on(&name), order, &name)
                .into_iter()
                .map(|value| domains.intern(key, &value))
                .collect(),
        };
        result.push(bits);
    }
    result
}

/// The values of a label that is not the offering's: those of the instance types, or else of the pool.
fn values_of(
    pool: &PoolEntry,
    wanted: Option<&Requirement>,
    order: &[Ranked],
    key: &str,
) -> Vec<String> {
    let of_set = || {
        wanted
            .filter(|it| !it.is_empty())
            .map(|it| it.values().map(str::to_owned).collect::<Vec<_>>())
    };
    let mut values = Vec::new();
    for ranked in order {
        match pool.shapes[ranked.shape].instance_type.requirements.on(key) {
            Some(own) => {
                let allowed = own
                    .values()
                    .filter(|value| wanted.is_none_or(|wanted| wanted.has(value)));
                values.extend(allowed.map(str::to_owned));
            }
            None if wanted
                .is_some_and(|wanted| wanted.operator() == crate::requirement::Operator::In) =>
            {
                values.extend(of_set().unwrap_or_default());
            }
            None => {}
        }
    }
    values.sort_unstable();
    values.dedup();
    values
}
