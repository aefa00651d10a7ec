//! What a pool sells before any policy has spoken: the same for every round about one snapshot.

use std::sync::Arc;

use super::class::ATTACHMENTS_PREFIX;
use super::daemon::DaemonLoad;
use super::pool::{PoolContext, Reservations, Sale, Shape};
use super::vector::{ResourceIndex, Vector};
use crate::ids::ReservationId;
use crate::instance_type::{InstanceType, Offering};
use crate::node_pool::NodePool;
use crate::requirements::Requirements;
use crate::resources::Resources;

/// The shapes of a pool and their offerings.
#[derive(Debug, Clone, Default)]
pub(super) struct Stock {
    pub(super) shapes: Arc<Vec<Shape>>,
    /// In the order of the shapes.
    pub(super) sales: Vec<Sale>,
    /// With how many instances each has left, in the order in which shapes name them.
    reservations: Vec<(ReservationId, u32)>,
}

impl Stock {
    /// The one that is kept, or a new one, which is kept where there is a place for it.
    pub(super) fn take(
        pool: &NodePool,
        requirements: &Requirements,
        kept: Option<&mut Option<Self>>,
        ctx: &mut PoolContext<'_>,
    ) -> Self {
        let Some(kept) = kept else {
            return Self::of(pool, requirements, ctx);
        };
        if let Some(stock) = kept {
            for (id, remaining) in &stock.reservations {
                ctx.reservations.place(id, *remaining);
            }
            return stock.clone();
        }
        kept.insert(Self::of(pool, requirements, ctx)).clone()
    }

    fn of(pool: &NodePool, requirements: &Requirements, ctx: &mut PoolContext<'_>) -> Self {
        let daemons = DaemonLoad::of_pool(pool, requirements, ctx.daemons, ctx.resources);
        let mut instance_types: Vec<&Arc<InstanceType>> = pool.instance_types.iter().collect();
        instance_types.sort_by(|a, b| a.name.cmp(&b.name));
        let (mut stock, mut shapes) = (Self::default(), Vec::new());
        for instance_type in instance_types {
            stock.add(instance_type, &daemons, &mut shapes, ctx);
        }
        stock.shapes = Arc::new(shapes);
        stock
    }

    fn place(
        &mut self,
        id: &ReservationId,
        remaining: u32,
        reservations: &mut Reservations,
    ) -> usize {
        self.reservations.push((id.clone(), remaining));
        reservations.place(id, remaining)
    }

    /// Adds a shape for each group of offerings that leave the same room and use the same reservation. Daemons that want
    /// a zone or a capacity type make such groups too.
    fn add(
        &mut self,
        instance_type: &Arc<InstanceType>,
        daemons: &DaemonLoad,
        shapes: &mut Vec<Shape>,
        ctx: &mut PoolContext<'_>,
    ) {
        let daemons = daemons.on(instance_type);
        let with_daemons = |it| (it, daemons.only_on(it));
        let mut offerings: Vec<(&Offering, Vec<usize>)> =
            instance_type.offerings.iter().map(with_daemons).collect();
        offerings.sort_by(|(a, on_a), (b, on_b)| {
            let order = (group_key(a), on_a).cmp(&(group_key(b), on_b));
            order.then_with(|| {
                (&a.zone, a.capacity_type, a.price).cmp(&(&b.zone, b.capacity_type, b.price))
            })
        });
        let is_alike = |(a, on_a): &(&Offering, Vec<usize>),
                        (b, on_b): &(&Offering, Vec<usize>)| {
            group_key(a) == group_key(b) && on_a == on_b
        };
        for group in offerings.chunk_by(is_alike) {
            let (first, only_here) = &group[0];
            let load = daemons.with(only_here);
            let allocatable = instance_type.allocatable_of(first);
            let capacity = instance_type.capacity_of(first).clone();
            let sales = self.sales.len()..self.sales.len() + group.len();
            self.sales
                .extend(group.iter().map(|(offering, _)| Sale::new(offering)));
            let reservation = first.reservation.as_ref();
            shapes.push(Shape {
                instance_type: Arc::clone(instance_type),
                reservation: reservation
                    .map(|it| self.place(&it.id, it.remaining, ctx.reservations)),
                sales,
                room: room(&allocatable, ctx.resources).difference(&load.requests),
                daemons: load.requests,
                daemon_ports: load.ports,
                capacity: ctx.resources.vector(&capacity),
                capacity_resources: capacity,
                allocatable,
            });
        }
    }
}

/// What a node has room for. A machine that does not say how many volumes it can attach has no limit.
fn room(allocatable: &Resources, resources: &ResourceIndex) -> Vector {
    let mut room = resources.vector(allocatable);
    for (place, name) in resources.names().enumerate() {
        if name.starts_with(ATTACHMENTS_PREFIX) && allocatable.amount(name) == 0 {
            room.set(place, UNLIMITED);
        }
    }
    room
}

/// Far more than is ever asked for, and far enough from overflow.
const UNLIMITED: i64 = i64::MAX / 4;

type GroupKey<'a> = (
    Option<&'a Resources>,
    Option<&'a Resources>,
    Option<&'a ReservationId>,
);

fn group_key(offering: &Offering) -> GroupKey<'_> {
    let reservation = offering.reservation.as_ref().map(|it| &it.id);
    (
        offering.capacity_override.as_deref(),
        offering.overhead_override.as_deref(),
        reservation,
    )
}
