//! NodeOverlays: what users know better than the cloud about prices and capacities of instance types.
//!
//! [`evaluate`] looks at all overlays and all pools together and gives each pool its instance types as decisions should
//! see them. The real price stays in every offering; only the order of choice follows the overlay.

mod cells;
mod price;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::ids::{InstanceTypeName, NodePoolName, ZoneId};
use crate::instance_type::{CapacityType, InstanceType};
use crate::node_pool::NodePool;
use crate::requirements::Requirements;
use crate::resources::Resources;

use cells::Cells;
pub use price::{ParsePriceChangeError, PriceChange};

/// A NodeOverlay that can be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overlay {
    /// Its name.
    pub name: String,
    /// Of two overlays on one target the heavier one counts; 0 when not set.
    pub weight: u32,
    /// The offerings that it speaks of; empty means all.
    pub requirements: Requirements,
    /// What it does to their prices.
    pub price: Option<PriceChange>,
    /// Resources that their machines have besides the common ones, in these amounts.
    pub capacity: Resources,
}

/// What all overlays together come to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evaluation {
    /// Instance types of the pools that an overlay changes; the others keep theirs.
    pub pools: BTreeMap<NodePoolName, Arc<Vec<Arc<InstanceType>>>>,
    /// Overlays of which nothing applies, since another of the same weight speaks of the same target.
    pub conflicts: BTreeMap<String, Conflict>,
}

/// Why an overlay does not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The overlay that came first.
    pub with: String,
    /// The weight of both.
    pub weight: u32,
    /// The first target of both.
    pub target: Target,
}

/// Something that one overlay alone can change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The pool.
    pub pool: NodePoolName,
    /// The instance type.
    pub instance_type: InstanceTypeName,
    /// The zone.
    pub zone: ZoneId,
    /// The capacity type.
    pub capacity_type: CapacityType,
    /// The resource; none means the price.
    pub resource: Option<String>,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            with,
            weight,
            target,
        } = self;
        write!(
            f,
            "NodeOverlay {with} has weight {weight} too and changes {target} as well; nothing of this one applies: give one of them another weight or narrow its requirements"
        )
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pool,
            instance_type,
            zone,
            capacity_type,
            resource,
        } = self;
        match resource {
            Some(resource) => write!(f, "the {resource} of ")?,
            None => f.write_str("the price of ")?,
        }
        write!(
            f,
            "{instance_type} in {zone} ({capacity_type}) in NodePool {pool}"
        )
    }
}

/// Applies all overlays to all pools, the heaviest first, at equal weight by name, the last name first.
///
/// The first overlay that speaks of a price or of an amount sets it; lighter ones do not count there. An overlay that
/// shares a target with one of its own weight that came before is a conflict, and nothing of it applies anywhere.
/// Offerings that a pool cannot use are no targets. The answer does not depend on the order of the input.
///
/// Karpenter: same, but the capacity that offerings override is kept and overlaid too, and an overlay that speaks of
/// some offerings of a type adds capacity to those alone.
pub fn evaluate(overlays: &[Overlay], pools: &[NodePool]) -> Evaluation {
    let mut sorted: Vec<&Overlay> = overlays.iter().collect();
    sorted.sort_by_key(|overlay| Reverse((overlay.weight, &overlay.name)));
    let mut tables: Vec<Cells<'_>> = pools.iter().map(Cells::of).collect();
    tables.sort_by(|a, b| a.pool.name.cmp(&b.pool.name));
    let mut conflicts = BTreeMap::new();
    for overlay in sorted {
        let touched: Vec<Vec<usize>> = tables.iter().map(|table| table.touched(overlay)).collect();
        let both = || tables.iter().zip(&touched);
        if let Some(conflict) = both().find_map(|(table, cells)| table.conflict(overlay, cells)) {
            conflicts.insert(overlay.name.clone(), conflict);
            continue;
        }
        for (table, cells) in tables.iter_mut().zip(&touched) {
            table.apply(overlay, cells);
        }
    }
    let changed = tables
        .iter()
        .filter_map(|table| Some((table.pool.name.clone(), Arc::new(table.instance_types()?))));
    Evaluation {
        pools: changed.collect(),
        conflicts,
    }
}

#[cfg(test)]
mod tests;
