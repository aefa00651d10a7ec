//! The 4,000 pods of the comparison with upstream, bound by a kube-scheduler that knows nothing of the plan, while the
//! nodes join one after another. Its scores are written down here once more, with the spread of ReplicaSets over nodes
//! and zones that the rehearsal leaves out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use jiff::Timestamp;

use super::kit::*;
use crate::instance_type::{CapacityType, InstanceType, Offering};
use crate::labels;
use crate::plan::{Plan, PlannedClaim, WorkBudget};
use crate::pod::{Pod, PodSpec, TopologySpread};
use crate::preferences::Preferences;
use crate::price::Price;
use crate::rehearsal;
use crate::requirement::Requirement;
use crate::resources::Resources;
use crate::schedule::Homes;
use crate::selector::LabelSelector;

const TABLE: &str = include_str!("../../../../xtask/data/scale_replicasets.csv");
const FOUR_ZONES: [&str; 4] = ["a", "b", "c", "d"];
const MI: i64 = 1 << 20;

fn replica_sets() -> Vec<Pod> {
    let rows = TABLE.lines().skip(1).map(|line| line.split(','));
    let rows = rows.map(|row| row.collect::<Vec<_>>());
    let mut pods = Vec::new();
    for row in rows {
        let number = |idx: usize| row[idx].parse::<i64>().unwrap();
        let mut spec = PodSpec::requesting(number(1), number(2) * MI);
        spec.labels.insert("workload".to_owned(), row[0].to_owned());
        if number(4) == 1 {
            let selector = LabelSelector::label("workload", row[0]);
            let spread = TopologySpread::new(labels::ZONE, 1, selector);
            spec.topology_spread.push(spread);
        }
        let spec = Arc::new(spec);
        for nth in 0..number(5) {
            let mut pod = Pod::new(&format!("{}-{nth:03}", row[0]), PodSpec::default());
            pod.spec = Arc::clone(&spec);
            pod.created_at = Timestamp::from_second(i64::try_from(pods.len()).unwrap()).unwrap();
            pods.push(pod);
        }
    }
    pods
}

/// What upstream's kwok provider sells: see `workload.rs` of xtask.
fn upstream_types() -> Vec<InstanceType> {
    let sizes = [1_u32, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256];
    let families = [("c", 2), ("s", 4), ("m", 8)];
    let all = families
        .iter()
        .flat_map(|family| sizes.map(|cores| (family, cores)));
    all.map(|((family, ratio), cores)| upstream_type(family, cores, cores * ratio))
        .collect()
}

fn upstream_type(family: &str, cores: u32, gib: u32) -> InstanceType {
    let price = 0.025 * f64::from(cores) + 0.001 * f64::from(gib) * 1.073_741_824;
    let offerings = FOUR_ZONES.iter().flat_map(|zone| {
        let kinds = [(CapacityType::Spot, 0.7), (CapacityType::OnDemand, 1.0)];
        kinds.map(|(kind, part)| Offering::new(*zone, kind, Price::from_per_hour(price * part)))
    });
    let capacity = Resources::of(i64::from(cores) * 1000, i64::from(gib) * GI);
    InstanceType::new(
        format!("{family}-{cores}x").as_str(),
        [Requirement::in_values(labels::ARCH, ["amd64"])],
        capacity.with("pods", i64::from(16 * cores).min(1024)),
        Resources::of(100, 10 * MI),
        offerings.collect(),
    )
}

fn dice(seed: u64, what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, what).hash(&mut hasher);
    hasher.finish()
}

/// A node, and how many pods of each ReplicaSet are on it.
struct Host<'a> {
    zone: &'a str,
    allocatable: &'a Resources,
    free: Resources,
    sets: BTreeMap<&'a str, i64>,
}

/// Nodes that have joined.
#[derive(Default)]
struct Cluster<'a> {
    hosts: Vec<Host<'a>>,
    /// Zones that any node of the plan is in: those with the taint of a node that is not registered count too.
    zones: BTreeSet<&'a str>,
    /// Pods of each ReplicaSet by zone.
    by_zone: BTreeMap<(&'a str, &'a str), i64>,
}

impl<'a> Cluster<'a> {
    fn join(&mut self, claim: &'a PlannedClaim) {
        let offering = &claim.offerings[0];
        self.hosts.push(Host {
            zone: &offering.zone,
            allocatable: &offering.allocatable,
            free: offering.allocatable.clone(),
            sets: BTreeMap::new(),
        });
    }

    fn in_zone(&self, set: &'a str, zone: &'a str) -> i64 {
        self.by_zone.get(&(set, zone)).copied().unwrap_or(0)
    }

    /// LeastAllocated and BalancedAllocation, and twice PodTopologySpread where the pod has no constraint of its own.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "scores of a model"
    )]
    fn score(&self, host: &Host<'a>, pod: &'a Pod) -> i64 {
        let part = |of: fn(&Resources) -> i64| {
            let rest = of(&host.free) - of(&pod.spec.requests);
            rest as f64 / of(host.allocatable) as f64
        };
        let (cpu, memory) = (part(Resources::cpu_milli), part(Resources::memory_bytes));
        let set = pod.spec.labels["workload"].as_str();
        let here = host.sets.get(set).copied().unwrap_or(0) + self.in_zone(set, host.zone);
        let spread = match pod.spec.topology_spread.is_empty() {
            true => 200.0 / (1.0 + here as f64),
            false => 0.0,
        };
        (50.0 * (cpu + memory) + 100.0 - 50.0 * (cpu - memory).abs() + spread) as i64
    }

    fn takes(&self, host: &Host<'a>, pod: &'a Pod) -> bool {
        let set = pod.spec.labels["workload"].as_str();
        let least = self.zones.iter().map(|zone| self.in_zone(set, zone)).min();
        let is_even = self.in_zone(set, host.zone) <= least.unwrap_or(0);
        let asked = pod.spec.requests.clone().with("pods", 1);
        asked.fits_in(&host.free) && (pod.spec.topology_spread.is_empty() || is_even)
    }

    fn bind(&mut self, pod: &'a Pod, seed: u64) -> bool {
        let feasible = (0..self.hosts.len()).filter(|idx| self.takes(&self.hosts[*idx], pod));
        let best = feasible.max_by_key(|idx| {
            (
                self.score(&self.hosts[*idx], pod),
                Reverse(dice(seed, (*idx, &pod.uid))),
            )
        });
        let Some(best) = best else { return false };
        let set = pod.spec.labels["workload"].as_str();
        let host = &mut self.hosts[best];
        host.free
            .subtract(&pod.spec.requests.clone().with("pods", 1));
        *host.sets.entry(set).or_default() += 1;
        *self.by_zone.entry((set, host.zone)).or_default() += 1;
        true
    }
}

/// How many pods find no room where that many are bound between two joins; even seeds bind by age.
fn left(plan: &Plan, per_join: usize, seed: u64) -> usize {
    let mut claims: Vec<&PlannedClaim> = plan.new_claims.iter().collect();
    claims.sort_by_key(|claim| dice(seed, &claim.pods[0].uid));
    let mut queue: Vec<&Pod> = claims
        .iter()
        .flat_map(|claim| &claim.pods)
        .map(|pod| &**pod)
        .collect();
    if seed.is_multiple_of(2) {
        queue.sort_by_key(|pod| pod.created_at);
    } else {
        queue.sort_by_key(|pod| dice(seed, &pod.uid));
    }
    let zones = claims.iter().map(|claim| &*claim.offerings[0].zone);
    let mut cluster = Cluster {
        zones: zones.collect(),
        ..Cluster::default()
    };
    for claim in &claims {
        cluster.join(claim);
        let is_last = cluster.hosts.len() == claims.len();
        let mut chances = if is_last { usize::MAX } else { per_join };
        queue.retain(|pod| {
            let is_bound = chances > 0 && cluster.bind(pod, seed);
            chances -= usize::from(is_bound);
            !is_bound
        });
    }
    queue.len()
}

#[test]
fn a_burst_needs_no_second_launch() {
    let world = World::new(pool_of(upstream_types())).pods(replica_sets());
    let plain = world.plan();

    let plan = rehearsal::schedule(
        &world.0,
        &Preferences::none(),
        &Homes::new(),
        WorkBudget::ROUND,
        Timestamp::UNIX_EPOCH,
    );

    assert_eq!(plan.unschedulable_pods(), 0);
    for per_join in [0, 10, 40] {
        for seed in 0..6 {
            assert_eq!(
                left(&plan, per_join, seed),
                0,
                "{per_join} per join, seed {seed}"
            );
        }
    }
    let of_both = |per_join, seed| (left(&plain, per_join, seed), left(&plan, per_join, seed));
    let (before, after) = of_both(100, 0);
    assert!(
        after * 4 < before,
        "{after} of {before} where nodes take long to join"
    );
    assert!(plan.price_per_hour().micros() * 100 <= plain.price_per_hour().micros() * 105);
}
