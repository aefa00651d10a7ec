//! Everything that the simulated cloud knows, behind one lock. No waiting and no IO happens in here.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use jiff::Timestamp;

use crate::announced::Announced;
use crate::catalog::{Catalog, InstanceType, fingerprint};
use crate::error::ApiError;
use crate::instance::{Boot, CapacityType, Instance, Spec, Status};
use crate::keyring::Keyring;
use crate::tokens::Tokens;
use crate::world::{StockRule, VSwitch, World};

/// What an action leaves to be done outside the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    Boot(String),
    Release(String),
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) world: World,
    pub(crate) catalog: Catalog,
    pub(crate) keyring: Keyring,
    pub(crate) tokens: Tokens,
    pub(crate) join_tokens: BTreeMap<String, JoinToken>,
    pub(crate) instances: BTreeMap<String, Instance>,
    pub(crate) effects: Vec<Effect>,
    /// In the order in which they were announced.
    pub(crate) events: Vec<Announced>,
    addresses: BTreeMap<String, Addresses>,
    sequence: u64,
}

/// The addresses of one vSwitch.
#[derive(Debug, Default)]
struct Addresses {
    used: BTreeSet<Ipv4Addr>,
    next: u32,
}

/// A bootstrap token that the CS API gave out.
#[derive(Debug, Clone)]
pub(crate) struct JoinToken {
    pub(crate) cluster_id: String,
    pub(crate) expires_at: Timestamp,
}

/// Whether an offering is sold, and how many machines are left (none: unlimited).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stock {
    NotOnSale,
    Left(Option<u32>),
}

impl State {
    pub(crate) fn new(world: World, catalog: Catalog) -> Self {
        Self {
            world,
            catalog,
            keyring: Keyring::default(),
            tokens: Tokens::default(),
            join_tokens: BTreeMap::new(),
            instances: BTreeMap::new(),
            effects: Vec::new(),
            events: Vec::new(),
            addresses: BTreeMap::new(),
            sequence: 0,
        }
    }

    /// The instance with its status, if it is still there.
    pub(crate) fn living(&self, id: &str, now: Timestamp) -> Option<(&Instance, Status)> {
        let instance = self.instances.get(id)?;
        Some((instance, instance.status(&self.world.timing, now)?))
    }

    pub(crate) fn vswitch(&self, id: &str) -> Option<&VSwitch> {
        self.world.vswitches.iter().find(|vswitch| vswitch.id == id)
    }

    pub(crate) fn free_ips(&self, vswitch: &VSwitch) -> u32 {
        let used = self
            .addresses
            .get(&vswitch.id)
            .map_or(0, |addresses| addresses.used.len());
        let total = vswitch
            .available_ips
            .unwrap_or(u32::MAX)
            .min(vswitch.cidr.usable());
        total.saturating_sub(u32::try_from(used).unwrap_or(u32::MAX))
    }

    pub(crate) fn stock(
        &self,
        instance_type: &InstanceType,
        zone: &str,
        capacity_type: CapacityType,
    ) -> Stock {
        if instance_type.price(&self.world.region).is_none() {
            return Stock::NotOnSale;
        }
        match self.stock_rule(instance_type, zone, capacity_type) {
            None => Stock::Left(None),
            Some(at) if self.world.stock[at].not_on_sale => Stock::NotOnSale,
            Some(at) => Stock::Left(Some(self.world.stock[at].count)),
        }
    }

    fn stock_rule(
        &self,
        instance_type: &InstanceType,
        zone: &str,
        capacity_type: CapacityType,
    ) -> Option<usize> {
        self.world
            .stock
            .iter()
            .rposition(|rule| rule.fits(&instance_type.id, zone, capacity_type.as_str()))
    }

    /// Makes instances; the caller has checked stock and addresses.
    pub(crate) fn create_instances(
        &mut self,
        spec: &Spec,
        amount: u32,
        now: Timestamp,
    ) -> Result<Vec<String>, ApiError> {
        if let Some(at) = self.stock_rule(&spec.instance_type, &spec.zone, spec.capacity_type) {
            let rule = &mut self.world.stock[at];
            rule.count = rule.count.saturating_sub(amount);
        }
        (0..amount)
            .map(|_| self.create_instance(spec.clone(), now))
            .collect()
    }

    fn create_instance(&mut self, spec: Spec, now: Timestamp) -> Result<String, ApiError> {
        let id = self.place(spec, now)?;
        self.effects.push(Effect::Boot(id.clone()));
        Ok(id)
    }

    /// Living instances that were started from a private pool.
    pub(crate) fn used_of_pool(&self, id: &str) -> usize {
        let living = self.instances.values().filter(|it| it.deleted_at.is_none());
        let pool = |it: &&Instance| {
            it.spec
                .request
                .get("PrivatePoolOptions.Id")
                .map(String::as_str)
                == Some(id)
        };
        living.filter(pool).count()
    }

    /// An instance that does not boot.
    pub(crate) fn place(&mut self, spec: Spec, now: Timestamp) -> Result<String, ApiError> {
        let ip = self.take_address(&spec.vswitch_id)?;
        let sequence = self.next_sequence();
        let id = format!("i-bp1{}", opaque_id("instance", sequence));
        let instance = Instance {
            id: id.clone(),
            sequence,
            spec,
            ip,
            created_at: now,
            deleted_at: None,
            recycling: false,
            is_stopped: false,
            boot: Boot::Waiting,
            node_name: None,
        };
        self.instances.insert(id.clone(), instance);
        Ok(id)
    }

    fn take_address(&mut self, vswitch_id: &str) -> Result<Ipv4Addr, ApiError> {
        let vswitch = self
            .world
            .vswitches
            .iter()
            .find(|vswitch| vswitch.id == vswitch_id);
        let cidr = vswitch
            .map(|vswitch| vswitch.cidr)
            .ok_or_else(|| vswitch_not_found(vswitch_id))?;
        let addresses = self.addresses.entry(vswitch_id.to_owned()).or_default();
        // Round and round: an address comes back late, so that a new node is not named like one that is just going.
        let free = (0..cidr.usable())
            .map(|n| (addresses.next + n) % cidr.usable())
            .find(|n| !addresses.used.contains(&cidr.address(*n)));
        let n = free.ok_or_else(|| ip_not_enough(vswitch_id))?;
        addresses.next = (n + 1) % cidr.usable();
        let address = cidr.address(n);
        addresses.used.insert(address);
        Ok(address)
    }

    /// Begins the end of an instance: it stops, gives its address and its machine back, and disappears later.
    pub(crate) fn delete_instance(&mut self, id: &str, now: Timestamp) {
        let Some(instance) = self
            .instances
            .get_mut(id)
            .filter(|instance| instance.deleted_at.is_none())
        else {
            return;
        };
        instance.deleted_at = Some(now);
        let (spec, ip) = (instance.spec.clone(), instance.ip);
        if let Some(addresses) = self.addresses.get_mut(&spec.vswitch_id) {
            addresses.used.remove(&ip);
        }
        if let Some(at) = self.stock_rule(&spec.instance_type, &spec.zone, spec.capacity_type) {
            self.world.stock[at].count += 1;
        }
        self.effects.push(Effect::Release(id.to_owned()));
    }

    pub(crate) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    pub(crate) fn vcpus_in_use(&self) -> u32 {
        let used = self
            .instances
            .values()
            .filter(|instance| instance.deleted_at.is_none());
        used.map(|instance| instance.spec.instance_type.cpu).sum()
    }

    /// What the account pays per hour for the instances that are not deleted.
    pub(crate) fn price_per_hour(&self) -> f64 {
        let paid = self
            .instances
            .values()
            .filter(|instance| instance.deleted_at.is_none());
        paid.map(|instance| instance.spec.price_per_hour).sum()
    }
}

impl StockRule {
    fn fits(&self, instance_type: &str, zone: &str, capacity_type: &str) -> bool {
        let one = |pattern: &Option<String>, value: &str| match pattern {
            None => true,
            Some(pattern) => match pattern.strip_suffix('*') {
                Some(prefix) => value.starts_with(prefix),
                None => pattern == value,
            },
        };
        one(&self.instance_type, instance_type)
            && one(&self.zone, zone)
            && one(&self.capacity_type, capacity_type)
    }
}

/// Seventeen letters and digits that look random but follow from the number, so that runs can be compared.
pub(crate) fn opaque_id(kind: &str, sequence: u64) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let number = sequence.to_string();
    let (high, low) = (fingerprint(&[kind, &number]), fingerprint(&[&number, kind]));
    let mut rest = (u128::from(high) << 64) | u128::from(low);
    (0..17)
        .map(|_| {
            let digit = usize::try_from(rest % 36).unwrap_or(0);
            rest /= 36;
            char::from(DIGITS[digit])
        })
        .collect()
}

pub(crate) fn vswitch_not_found(id: &str) -> ApiError {
    ApiError::new(
        404,
        "InvalidVSwitchId.NotFound",
        format!("The specified vSwitch {id} does not exist."),
    )
}

pub(crate) fn ip_not_enough(id: &str) -> ApiError {
    ApiError::new(
        403,
        "InvalidVSwitchId.IpNotEnough",
        format!("The vSwitch {id} does not have enough IP addresses."),
    )
}
