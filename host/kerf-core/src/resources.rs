//! Amounts of cpu, memory, pods and any other resource, as plain integers.
//!
//! cpu counts thousandths of a core, everything else whole units (bytes, pods, GPUs). Zero and absent are the same;
//! where absent means "no bound", see [`Limits`].

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::quantity::Quantity;

/// Resource name of cpu.
pub const CPU: &str = "cpu";
/// Resource name of memory.
pub const MEMORY: &str = "memory";
/// Resource name of local disk.
pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
/// Resource name of the number of pods.
pub const PODS: &str = "pods";
/// In NodePool limits: the number of nodes.
pub const NODES: &str = "nodes";
/// Memory that a node sets aside in large pages; it is not available as ordinary memory.
pub const HUGE_PAGES_PREFIX: &str = "hugepages-";

/// The resources that nearly every pod and node has, in the order of their slots.
pub const COMMON: [&str; 4] = [CPU, MEMORY, EPHEMERAL_STORAGE, PODS];

/// An amount of each resource. Amounts may be negative after a subtraction.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Resources {
    common: [i64; COMMON.len()],
    /// Sorted by name, without zeros.
    extended: Vec<(Arc<str>, i64)>,
}

impl Resources {
    /// The two amounts that most tests and examples need.
    pub fn of(cpu_milli: i64, memory_bytes: i64) -> Self {
        Self {
            common: [cpu_milli, memory_bytes, 0, 0],
            extended: Vec::new(),
        }
    }

    /// The same with another amount of one resource.
    #[must_use]
    pub fn with(mut self, name: &str, amount: i64) -> Self {
        self.set(name, amount);
        self
    }

    /// The amount of a resource, in thousandths for cpu and whole units otherwise.
    pub fn amount(&self, name: &str) -> i64 {
        match slot(name) {
            Some(slot) => self.common[slot],
            None => self
                .extended_slot(name)
                .map_or(0, |idx| self.extended[idx].1),
        }
    }

    /// Sets the amount of a resource.
    pub fn set(&mut self, name: &str, amount: i64) {
        if let Some(slot) = slot(name) {
            self.common[slot] = amount;
            return;
        }
        match (self.extended_slot(name), amount) {
            (Ok(idx), 0) => drop(self.extended.remove(idx)),
            (Ok(idx), _) => self.extended[idx].1 = amount,
            (Err(_), 0) => {}
            (Err(idx), _) => self.extended.insert(idx, (Arc::from(name), amount)),
        }
    }

    /// Sets the amount of a resource from a Kubernetes quantity.
    pub fn set_quantity(&mut self, name: &str, quantity: Quantity) {
        self.set(name, amount_of(name, quantity));
    }

    /// Thousandths of a core.
    pub fn cpu_milli(&self) -> i64 {
        self.common[0]
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> i64 {
        self.common[1]
    }

    /// Number of pods.
    pub fn pods(&self) -> i64 {
        self.common[3]
    }

    /// All amounts other than zero: the common ones first, then by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        let common = COMMON
            .into_iter()
            .zip(self.common)
            .filter(|(_, amount)| *amount != 0);
        common.chain(
            self.extended
                .iter()
                .map(|(name, amount)| (&**name, *amount)),
        )
    }

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.common == [0; COMMON.len()] && self.extended.is_empty()
    }

    /// Adds every amount of the other.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, i64::saturating_add);
    }

    /// Subtracts every amount of the other; the result may be negative.
    pub fn subtract(&mut self, other: &Self) {
        self.combine(other, i64::saturating_sub);
    }

    /// The same with the pod itself counted, which asks for this.
    #[must_use]
    pub fn with_one_pod(&self) -> Self {
        self.clone().with(PODS, self.pods().max(1))
    }

    /// Raises every amount to at least that of the other.
    pub fn raise_to(&mut self, other: &Self) {
        self.combine(other, i64::max);
    }

    /// Lowers every amount to at most that of the other, where absent counts as zero.
    pub fn lower_to(&mut self, other: &Self) {
        let names: Vec<Arc<str>> = self
            .extended
            .iter()
            .map(|(name, _)| Arc::clone(name))
            .collect();
        for (mine, theirs) in self.common.iter_mut().zip(other.common) {
            *mine = (*mine).min(theirs);
        }
        for name in names {
            self.set(&name, self.amount(&name).min(other.amount(&name)));
        }
    }

    /// Makes negative amounts zero.
    pub fn clear_negatives(&mut self) {
        for amount in &mut self.common {
            *amount = (*amount).max(0);
        }
        self.extended.retain(|(_, amount)| *amount > 0);
    }

    /// Whether some amount is below zero.
    pub fn has_negative(&self) -> bool {
        self.common.iter().any(|amount| *amount < 0)
            || self.extended.iter().any(|(_, amount)| *amount < 0)
    }

    /// Whether everything that is asked for here is available there. Nothing fits where an amount is negative.
    pub fn fits_in(&self, available: &Self) -> bool {
        !available.has_negative() && self.first_shortage(available).is_none()
    }

    /// The first resource of which more is asked for than available.
    pub fn first_shortage(&self, available: &Self) -> Option<&str> {
        self.iter()
            .find(|(name, amount)| *amount > 0 && *amount > available.amount(name))
            .map(|(name, _)| name)
    }

    fn combine(&mut self, other: &Self, operation: impl Fn(i64, i64) -> i64) {
        for (mine, theirs) in self.common.iter_mut().zip(other.common) {
            *mine = operation(*mine, theirs);
        }
        for (name, theirs) in &other.extended {
            let combined = operation(self.amount(name), *theirs);
            self.set(name, combined);
        }
    }

    fn extended_slot(&self, name: &str) -> Result<usize, usize> {
        self.extended.binary_search_by(|(own, _)| (**own).cmp(name))
    }
}

impl<'a> FromIterator<(&'a str, Quantity)> for Resources {
    fn from_iter<I: IntoIterator<Item = (&'a str, Quantity)>>(quantities: I) -> Self {
        let mut resources = Self::default();
        for (name, quantity) in quantities {
            resources.set_quantity(name, quantity);
        }
        resources
    }
}

fn slot(name: &str) -> Option<usize> {
    COMMON.iter().position(|common| *common == name)
}

/// A quantity in the unit that we count the resource in.
pub fn amount_of(name: &str, quantity: Quantity) -> i64 {
    if name == CPU {
        quantity.millis()
    } else {
        quantity.units()
    }
}

/// An amount of ours as a Kubernetes quantity.
pub fn quantity_of(name: &str, amount: i64) -> Quantity {
    if name == CPU {
        Quantity::from_millis(amount)
    } else {
        Quantity::from_units(amount)
    }
}

/// Upper bounds per resource; a resource that is not named has none. `nodes` counts nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits(BTreeMap<String, i64>);

impl Limits {
    /// Sets the bound of a resource.
    pub fn set(&mut self, name: &str, amount: i64) {
        self.0.insert(name.to_owned(), amount);
    }

    /// The bound of a resource, if it has one.
    pub fn bound(&self, name: &str) -> Option<i64> {
        self.0.get(name).copied()
    }

    /// All bounds by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// Whether there is no bound.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> FromIterator<(&'a str, Quantity)> for Limits {
    fn from_iter<I: IntoIterator<Item = (&'a str, Quantity)>>(quantities: I) -> Self {
        let bounds = quantities
            .into_iter()
            .map(|(name, quantity)| (name.to_owned(), amount_of(name, quantity)));
        Self(bounds.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_resources_of_amount_zero_are_absent() {
        let mut resources = Resources::of(100, 0)
            .with("aliyun/eni", 2)
            .with("nvidia.com/gpu", 1);
        resources.subtract(&Resources::default().with("aliyun/eni", 2));
        assert_eq!(resources, Resources::of(100, 0).with("nvidia.com/gpu", 1));
    }

    #[test]
    fn nothing_fits_where_an_amount_is_negative() {
        let available = Resources::of(1000, -1);
        assert!(!Resources::of(1, 0).fits_in(&available));
        assert!(Resources::of(1000, 0).fits_in(&Resources::of(1000, 0)));
    }

    #[test]
    fn the_shortage_is_named() {
        let request = Resources::of(100, 0).with("nvidia.com/gpu", 1);
        assert_eq!(
            request.first_shortage(&Resources::of(4000, 0)),
            Some("nvidia.com/gpu")
        );
    }

    #[test]
    fn cpu_counts_thousandths_and_memory_bytes() {
        let quantities = [("cpu", "1.5"), ("memory", "1Gi"), ("pods", "110")];
        let resources: Resources = quantities
            .into_iter()
            .map(|(name, text)| (name, Quantity::parse(text).unwrap()))
            .collect();
        assert_eq!(
            (
                resources.cpu_milli(),
                resources.memory_bytes(),
                resources.pods()
            ),
            (1500, 1 << 30, 110)
        );
    }
}
