//! What kube-scheduler knows of the nodes while it binds: what they have left, and how equal pods are spread.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::pod::PodSpec;
use crate::resources::Resources;

/// What the default constraints over zones and nodes allow, less one each.
const MAX_SKEWS: i64 = 2 + 4;

/// How far a binding has come.
pub(super) struct Stand {
    /// What each host has left.
    pub(super) free: Vec<Resources>,
    /// The zone of each host, by number.
    zones: Vec<usize>,
    /// Where the pods of each spec are: those of one spec belong together.
    kin: BTreeMap<*const PodSpec, Kin>,
}

/// Pods of one spec on each host and in each zone.
struct Kin {
    hosts: Vec<i64>,
    zones: Vec<i64>,
}

impl Stand {
    /// Hosts with their zones and what they have left, before anything is bound.
    pub(super) fn of<'a>(hosts: impl Iterator<Item = (Option<&'a str>, Resources)>) -> Self {
        let (names, free): (Vec<Option<&str>>, Vec<Resources>) = hosts.unzip();
        let distinct: BTreeSet<&Option<&str>> = names.iter().collect();
        let number = |zone| distinct.iter().position(|name| *name == zone).unwrap_or(0);
        Self {
            free,
            zones: names.iter().map(number).collect(),
            kin: BTreeMap::new(),
        }
    }

    /// What PodTopologySpread makes of each of those hosts before it is normalised, with the default constraints over zones
    /// and nodes; a pod with constraints of its own has none of these. A logarithm to base 2 does for its weights.
    pub(super) fn spread_costs(&self, spec: &Arc<PodSpec>, hosts: &[usize]) -> Vec<i64> {
        let kin = self.kin.get(&Arc::as_ptr(spec));
        let Some(kin) = kin.filter(|_| spec.topology_spread.is_empty()) else {
            return vec![0; hosts.len()];
        };
        let weight = |domains: usize| i64::from((domains + 2).ilog2());
        let (of_zone, of_host) = (weight(kin.zones.len()), weight(hosts.len()));
        let cost = |idx: &usize| {
            of_zone * kin.zones[self.zones[*idx]] + of_host * kin.hosts[*idx] + MAX_SKEWS
        };
        hosts.iter().map(cost).collect()
    }

    /// A pod of that spec gets the host.
    pub(super) fn bind(&mut self, spec: &Arc<PodSpec>, host: usize) {
        self.free[host].subtract(&spec.requests);
        let kin = self.kin.entry(Arc::as_ptr(spec)).or_insert_with(|| Kin {
            hosts: vec![0; self.free.len()],
            zones: vec![0; self.zones.iter().max().map_or(0, |last| last + 1)],
        });
        kin.hosts[host] += 1;
        kin.zones[self.zones[host]] += 1;
    }
}
