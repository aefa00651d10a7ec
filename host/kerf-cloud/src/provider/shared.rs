//! Instance types once in memory: classes whose nodes are alike share them, and a new look at stock and prices replaces
//! only what it changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use kerf_core::ids::InstanceTypeName;
use kerf_core::instance_type::InstanceType;
use kerf_core::requirements::SharedRequirements;

use crate::provider::class::ResolvedNodeClass;
use crate::provider::config::CniMode;
use crate::provider::instance_types::Zone;
use crate::provider::prices::SpotDiscounts;
use crate::provider::prices::live::LivePrices;
use crate::provider::region::{Stock, Types};
use crate::provider::unavailable::Mark;

/// What a class can be launched as, in name order.
pub type TypeList = Arc<Vec<Arc<InstanceType>>>;

type WeakList = Weak<Vec<Arc<InstanceType>>>;

/// Everything that a list is made from. What the caches hold is told apart by where it is, and not kept alive.
#[derive(Debug)]
pub(crate) struct Inputs {
    pub(crate) types: Weak<Types>,
    pub(crate) stock: Weak<Stock>,
    pub(crate) discounts: Weak<SpotDiscounts>,
    pub(crate) live: Weak<LivePrices>,
    pub(crate) cni: CniMode,
    pub(crate) class: ResolvedNodeClass,
    pub(crate) zones: Vec<Zone>,
    pub(crate) marks: Vec<Mark>,
}

impl Inputs {
    fn are_those_of(&self, other: &Self) -> bool {
        let Self {
            types,
            stock,
            discounts,
            live,
            cni,
            class,
            zones,
            marks,
        } = self;
        types.ptr_eq(&other.types)
            && stock.ptr_eq(&other.stock)
            && discounts.ptr_eq(&other.discounts)
            && live.ptr_eq(&other.live)
            && *cni == other.cni
            && *class == other.class
            && *zones == other.zones
            && *marks == other.marks
    }
}

/// The lists that somebody holds, and what they have in common.
#[derive(Debug, Default)]
pub(crate) struct SharedTypes(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// By class.
    lists: BTreeMap<String, (Inputs, WeakList)>,
    /// Of each name, one for each difference between classes.
    types: BTreeMap<InstanceTypeName, Vec<Weak<InstanceType>>>,
    requirements: SharedRequirements,
}

impl SharedTypes {
    /// The list of a class: the very one that was given last while nothing changed, else what `make` makes.
    pub(crate) fn list<I>(&self, inputs: Inputs, make: impl FnOnce() -> I) -> TypeList
    where
        I: Iterator<Item = InstanceType>,
    {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = inputs.class.spec.name.clone();
        let last = known.lists.remove(&name);
        let last = last.and_then(|(of, list)| Some((of, list.upgrade()?)));
        let list = match last {
            Some((of, list)) if of.are_those_of(&inputs) => list,
            last => {
                let made = make().map(|it| known.one(it)).collect();
                known.prune();
                same_or_new(last.map(|(_, list)| list), made)
            }
        };
        known.lists.insert(name, (inputs, Arc::downgrade(&list)));
        list
    }
}

/// Whoever compares lists by where they are sees that nothing changed.
fn same_or_new(last: Option<TypeList>, made: Vec<Arc<InstanceType>>) -> TypeList {
    let is_same = |last: &TypeList| {
        let mut pairs = last.iter().zip(&made);
        last.len() == made.len() && pairs.all(|(a, b)| Arc::ptr_eq(a, b))
    };
    last.filter(is_same).unwrap_or_else(|| Arc::new(made))
}

impl Known {
    /// The equal one that somebody holds, else this one.
    fn one(&mut self, mut it: InstanceType) -> Arc<InstanceType> {
        let of_name = self.types.entry(it.name.clone()).or_default();
        let held = of_name.iter().filter_map(Weak::upgrade);
        if let Some(same) = held.into_iter().find(|held| **held == it) {
            return same;
        }
        it.requirements.share(&mut self.requirements);
        let it = Arc::new(it);
        of_name.push(Arc::downgrade(&it));
        it
    }

    /// Forgets what nobody holds.
    fn prune(&mut self) {
        self.lists.retain(|_, (_, list)| list.strong_count() > 0);
        self.types.retain(|_, of_name| {
            of_name.retain(|it| it.strong_count() > 0);
            !of_name.is_empty()
        });
        self.requirements.prune();
    }
}

#[cfg(test)]
mod tests;
