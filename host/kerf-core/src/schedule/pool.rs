//! A NodePool prepared for a round: its instance types as shapes, and what each shape costs where.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::sayings::{OfType, Sayings};
use super::sets::{SetId, SetTable};
use super::stock::Stock;
use super::taints::{TaintTable, TaintsId};
use super::vector::{ResourceIndex, Vector};
use crate::ids::{ReservationId, ZoneId};
use crate::instance_type::{CapacityType, InstanceType, Offering};
use crate::labels;
use crate::node_pool::NodePool;
use crate::pod::{DaemonPod, HostPort};
use crate::preferences::PoolPreferences;
use crate::price::Price;
use crate::requirement::Requirement;
use crate::requirements::Requirements;
use crate::resources::Resources;

/// A NodePool that can grow.
#[derive(Debug)]
pub(super) struct PoolEntry {
    pub(super) pool: Arc<NodePool>,
    /// What a claim of the pool requires before any pod is on it.
    pub(super) set: SetId,
    pub(super) taints: TaintsId,
    pub(super) shapes: Arc<Vec<Shape>>,
    /// The offerings of all shapes, in the order of the shapes.
    pub(super) sales: Vec<Sale>,
    /// Least numbers of distinct values, by label key.
    pub(super) min_values: Vec<(String, u32)>,
}

/// What a new node can be: an instance type with one allocatable, from one reservation or none.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) instance_type: Arc<InstanceType>,
    /// The reservation that it uses up, by its place in [`Reservations`].
    pub(super) reservation: Option<usize>,
    /// Where in the pool's sales its offerings are.
    pub(super) sales: Range<usize>,
    /// What pods can use once the daemons are there.
    pub(super) room: Vector,
    /// What daemons use.
    pub(super) daemons: Vector,
    pub(super) daemon_ports: Vec<HostPort>,
    pub(super) capacity: Vector,
    pub(super) capacity_resources: Resources,
    pub(super) allocatable: Resources,
}

/// An offering as a round sees it.
#[derive(Debug, Clone)]
pub(super) struct Sale {
    pub(super) zone: ZoneId,
    pub(super) capacity_type: CapacityType,
    pub(super) reservation: Option<ReservationId>,
    pub(super) price: Price,
    pub(super) overlaid: Overlaid,
    /// What ordering uses: higher scores first, then reservations, then lower prices.
    pub(super) rank: Rank,
    /// Why it cannot be used now.
    pub(super) closed: Option<Closed>,
}

/// What NodeOverlays changed of an offering.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Overlaid {
    pub(super) price: bool,
    pub(super) capacity: bool,
}

/// Why an offering cannot be used.
#[derive(Debug, Clone)]
pub(super) enum Closed {
    Unavailable(String),
    Barred { policy: String, reason: String },
}

/// How good an offering is; the least is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Rank {
    pub(super) score: Reverse<i64>,
    /// Reserved capacity is paid for already.
    pub(super) is_bought: bool,
    pub(super) price: Price,
    pub(super) is_stock_uncertain: bool,
}

/// The reservations of a round and how many instances each has left. Pools may share them.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    places: FxHashMap<ReservationId, usize>,
    pub(super) left: Vec<u32>,
}

impl Reservations {
    pub(super) fn place(&mut self, id: &ReservationId, remaining: u32) -> usize {
        let next = self.left.len();
        let place = *self.places.entry(id.clone()).or_insert(next);
        if place == next {
            self.left.push(remaining);
        }
        // Pools that report different numbers are read at different times; the least is safe.
        self.left[place] = self.left[place].min(remaining);
        place
    }
}

/// What pools are prepared with.
pub(super) struct PoolContext<'a> {
    pub(super) resources: &'a ResourceIndex,
    pub(super) sets: &'a mut SetTable,
    pub(super) taints: &'a mut TaintTable,
    pub(super) reservations: &'a mut Reservations,
    pub(super) daemons: &'a [DaemonPod],
}

impl PoolEntry {
    /// `kept` is where the stock of the same pool beside the same pods is, or is kept for the next round.
    pub(super) fn new(
        pool: &Arc<NodePool>,
        preferences: Option<&PoolPreferences>,
        kept: Option<&mut Option<Stock>>,
        ctx: &mut PoolContext<'_>,
    ) -> Self {
        let requirements = template_requirements(pool);
        let stock = Stock::take(pool, &requirements, kept, ctx);
        let min_values = requirements
            .iter()
            .filter_map(|it| Some((it.key().to_owned(), it.min_values()?)))
            .collect();
        let mut entry = Self {
            pool: Arc::clone(pool),
            set: ctx.sets.intern(requirements),
            taints: ctx.taints.taints(pool.template.taints.iter().cloned()),
            shapes: stock.shapes,
            sales: stock.sales,
            min_values,
        };
        entry.hear(&Sayings::new(preferences));
        entry
    }

    /// Takes in what policies said.
    fn hear(&mut self, sayings: &Sayings<'_>) {
        let mut by_type = sayings.by_type();
        for shape in self.shapes.iter() {
            let said = by_type.of(&shape.instance_type.name);
            for sale in &mut self.sales[shape.sales.clone()] {
                sale.hear(said);
            }
        }
    }
}

impl Sale {
    /// As it is before anything was said of it.
    pub(super) fn new(offering: &Offering) -> Self {
        Self {
            zone: offering.zone.clone(),
            capacity_type: offering.capacity_type,
            reservation: offering.reservation.as_ref().map(|it| it.id.clone()),
            price: offering.price,
            overlaid: Overlaid {
                price: offering.overlay_price.is_some(),
                capacity: offering.is_capacity_overlaid,
            },
            rank: Rank {
                score: Reverse(0),
                is_bought: offering.capacity_type != CapacityType::Reserved,
                price: offering.ordering_price(),
                is_stock_uncertain: offering.is_stock_uncertain,
            },
            closed: offering
                .unavailable
                .as_deref()
                .map(|why| Closed::Unavailable(why.to_owned())),
        }
    }

    fn hear(&mut self, said: OfType<'_>) {
        if let Some(score) = said.score(&self.zone, self.capacity_type) {
            self.rank.score = Reverse(score);
        }
        if let Some(price) = said.price(&self.zone, self.capacity_type) {
            self.rank.price = price;
        }
        if self.closed.is_none() {
            let bar = said.bar(&self.zone, self.capacity_type);
            self.closed = bar.map(|bar| Closed::Barred {
                policy: bar.policy.clone(),
                reason: bar.reason.clone(),
            });
        }
    }
}

/// The requirements of the pool's template, with its labels and those that its nodes get once they run. The latter are
/// taken out of planned claims again.
pub(crate) fn template_requirements(pool: &NodePool) -> Requirements {
    let mut requirements = pool.template.requirements.clone();
    requirements.add_all(&Requirements::from_labels(&pool.template.labels));
    requirements.add(Requirement::in_values(labels::NODE_POOL, [&*pool.name]));
    for key in [labels::REGISTERED, labels::INITIALIZED] {
        requirements.add(Requirement::in_values(key, ["true"]));
    }
    if let Some((key, value)) = node_class_label(pool) {
        requirements.add(Requirement::in_values(&key, [value]));
    }
    requirements
}

/// The label by which nodes name their NodeClass.
pub(crate) fn node_class_label(pool: &NodePool) -> Option<(String, &str)> {
    let class = &pool.template.node_class;
    let is_named = !class.group.is_empty() && !class.kind.is_empty();
    is_named.then(|| {
        (
            format!("{}/{}", class.group, class.kind.to_lowercase()),
            class.name.as_str(),
        )
    })
}

/// Whether nodes of an instance type can meet a requirement. Keys that the type does not speak of are left to the
/// pool, except those that describe the hardware: there silence means that the type has no such thing.
pub(crate) fn type_meets(instance_type: &InstanceType, requirement: &Requirement) -> bool {
    let own = instance_type.requirements.on(requirement.key());
    own_meets(own, instance_type, requirement)
}

/// [`type_meets`] for a caller who has what the type says of the key.
pub(super) fn own_meets(
    own: Option<&Requirement>,
    instance_type: &InstanceType,
    requirement: &Requirement,
) -> bool {
    match own {
        Some(own) => {
            own.intersects(requirement)
                || (own.tolerates_absence() && requirement.tolerates_absence())
        }
        None if requirement.tolerates_absence() => true,
        None if requirement.key().starts_with(labels::DISK_TYPE_PREFIX) => {
            !knows_disk_types(instance_type)
        }
        None => !describes_hardware(requirement.key()),
    }
}

/// Whether the type says which disk categories it can attach; if not, all might do.
fn knows_disk_types(instance_type: &InstanceType) -> bool {
    instance_type
        .requirements
        .iter()
        .any(|own| own.key().starts_with(labels::DISK_TYPE_PREFIX))
}

fn describes_hardware(key: &str) -> bool {
    key.strip_prefix(labels::GROUP)
        .is_some_and(|rest| rest.starts_with("/instance-"))
}
