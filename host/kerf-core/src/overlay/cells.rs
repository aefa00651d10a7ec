//! The targets of one pool: each offering with the overlays that set its price and its amounts.

use std::sync::Arc;

use crate::instance_type::{InstanceType, Offering};
use crate::labels;
use crate::node_pool::NodePool;
use crate::requirement::Requirement;
use crate::requirements::Requirements;
use crate::resources::Resources;
use crate::schedule::{template_requirements, type_meets};

use super::{Conflict, Overlay, PriceChange, Target};

/// A pool's offerings in a row.
pub(super) struct Cells<'a> {
    pub(super) pool: &'a NodePool,
    required: Requirements,
    cells: Vec<Cell<'a>>,
}

/// An offering and what overlays say about it so far.
struct Cell<'a> {
    instance_type: &'a InstanceType,
    offering: &'a Offering,
    price: Option<PriceChange>,
    added: Resources,
    /// Who spoke of the price or of an amount last; the order is by weight, so nobody lighter came before.
    spoken: Vec<Spoken>,
}

struct Spoken {
    /// None for the price.
    resource: Option<String>,
    overlay: String,
    weight: u32,
}

impl<'a> Cells<'a> {
    pub(super) fn of(pool: &'a NodePool) -> Self {
        let required = template_requirements(pool);
        let usable = pool.instance_types.iter().filter(|instance_type| {
            let mut all = required.iter();
            all.all(|requirement| type_meets(instance_type, requirement))
        });
        let cells = usable.flat_map(|instance_type| {
            let offerings = instance_type.offerings.iter();
            offerings.map(move |offering| (&**instance_type, offering))
        });
        let cells = cells
            .filter(|(_, offering)| offering.is_allowed_by(&required))
            .map(|(instance_type, offering)| Cell {
                instance_type,
                offering,
                price: None,
                added: Resources::default(),
                spoken: Vec::new(),
            });
        Self {
            pool,
            cells: cells.collect(),
            required,
        }
    }

    /// The places of the offerings that the overlay speaks of.
    pub(super) fn touched(&self, overlay: &Overlay) -> Vec<usize> {
        let meets = |cell: &Cell<'_>| {
            cell.offering.is_allowed_by(&overlay.requirements)
                && overlay
                    .requirements
                    .iter()
                    .all(|requirement| self.may_meet(cell.instance_type, requirement))
        };
        let all = self.cells.iter().enumerate();
        all.filter(|(_, cell)| meets(cell))
            .map(|(place, _)| place)
            .collect()
    }

    /// Whether nodes of the type in this pool can meet the requirement. What the type does not speak of, the pool does;
    /// what neither knows is only met by absence, unless it is a label that every node can have.
    fn may_meet(&self, instance_type: &InstanceType, requirement: &Requirement) -> bool {
        if !type_meets(instance_type, requirement) {
            return false;
        }
        if instance_type.requirements.on(requirement.key()).is_some() {
            return true;
        }
        match self.required.on(requirement.key()) {
            Some(own) => {
                own.intersects(requirement)
                    || (own.tolerates_absence() && requirement.tolerates_absence())
            }
            None => requirement.tolerates_absence() || labels::is_well_known(requirement.key()),
        }
    }

    /// The first target among these that an overlay of the same weight has spoken of.
    pub(super) fn conflict(&self, overlay: &Overlay, places: &[usize]) -> Option<Conflict> {
        places.iter().find_map(|place| {
            let cell = &self.cells[*place];
            let mut spoken = cell.spoken.iter();
            let other = spoken.find(|it| {
                it.weight == overlay.weight && speaks_of(overlay, it.resource.as_deref())
            })?;
            Some(Conflict {
                with: other.overlay.clone(),
                weight: other.weight,
                target: Target {
                    pool: self.pool.name.clone(),
                    instance_type: cell.instance_type.name.clone(),
                    zone: cell.offering.zone.clone(),
                    capacity_type: cell.offering.capacity_type,
                    resource: other.resource.clone(),
                },
            })
        })
    }

    /// Sets what nobody heavier has set.
    pub(super) fn apply(&mut self, overlay: &Overlay, places: &[usize]) {
        for place in places {
            let cell = &mut self.cells[*place];
            if let Some(change) = overlay.price {
                cell.price.get_or_insert(change);
                cell.note(None, overlay);
            }
            for (name, amount) in overlay.capacity.iter() {
                if cell.note(Some(name), overlay) {
                    cell.added.set(name, amount);
                }
            }
        }
    }

    /// All types of the pool with what was set; none when nothing was.
    pub(super) fn instance_types(&self) -> Option<Vec<Arc<InstanceType>>> {
        if self.cells.iter().all(|cell| cell.spoken.is_empty()) {
            return None;
        }
        let mut cells = self.cells.as_slice();
        let changed = self.pool.instance_types.iter().map(|instance_type| {
            let is_own = |cell: &Cell<'_>| std::ptr::eq(cell.instance_type, &**instance_type);
            let count = cells.iter().take_while(|cell| is_own(cell)).count();
            let (own, rest) = cells.split_at(count);
            cells = rest;
            match own.iter().all(|cell| cell.spoken.is_empty()) {
                true => Arc::clone(instance_type),
                false => Arc::new(overlaid(instance_type, own)),
            }
        });
        Some(changed.collect())
    }
}

impl Cell<'_> {
    /// Writes down who spoke; whether they were the first.
    fn note(&mut self, resource: Option<&str>, overlay: &Overlay) -> bool {
        let mut spoken = self.spoken.iter_mut();
        match spoken.find(|it| it.resource.as_deref() == resource) {
            Some(known) => {
                known.overlay.clone_from(&overlay.name);
                known.weight = overlay.weight;
                false
            }
            None => {
                self.spoken.push(Spoken {
                    resource: resource.map(str::to_owned),
                    overlay: overlay.name.clone(),
                    weight: overlay.weight,
                });
                true
            }
        }
    }
}

fn speaks_of(overlay: &Overlay, resource: Option<&str>) -> bool {
    match resource {
        None => overlay.price.is_some(),
        Some(name) => overlay.capacity.amount(name) != 0,
    }
}

/// The type with the prices and amounts of its cells. What all its offerings get, the type gets.
fn overlaid(instance_type: &InstanceType, cells: &[Cell<'_>]) -> InstanceType {
    let mut changed = instance_type.clone();
    let common = cells.first().map(|cell| &cell.added).filter(|added| {
        cells.len() == instance_type.offerings.len()
            && cells.iter().all(|cell| cell.added == **added)
    });
    if let Some(added) = common {
        set_all(&mut changed.capacity, added);
    }
    let offerings = instance_type.offerings.iter().zip(&mut changed.offerings);
    for (before, offering) in offerings {
        let Some(cell) = cells.iter().find(|it| std::ptr::eq(it.offering, before)) else {
            continue;
        };
        offering.overlay_price = cell.price.map(|change| change.apply(before.price));
        if cell.added.is_empty() {
            continue;
        }
        offering.is_capacity_overlaid = true;
        if common.is_none() || offering.capacity_override.is_some() {
            let mut capacity = instance_type.capacity_of(before).clone();
            set_all(&mut capacity, &cell.added);
            offering.capacity_override = Some(Box::new(capacity));
        }
    }
    changed
}

fn set_all(capacity: &mut Resources, added: &Resources) {
    for (name, amount) in added.iter() {
        capacity.set(name, amount);
    }
}
