//! How kube-scheduler would bind the pods of a plan, as far as it goes by resources, node requirements and zones.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::labels;
use crate::node::Node;
use crate::plan::{PlacementTarget, Plan, PlannedClaim};
use crate::pod::{Pod, PodPhase, PodSpec};
use crate::requirements::{Requirements, Undefined};
use crate::resources::Resources;
use crate::schedule::{Daemons, outstanding_on, strict_terms};
use crate::snapshot::Snapshot;
use crate::taint::{Taint, first_untolerated};

use super::stand::Stand;

/// Plans of new nodes for fewer pods are not rehearsed: kube-scheduler is through with them within a second, and the next
/// plan sees what it really left.
pub const PODS_MIN: usize = 200;
/// Pods times nodes that are looked at for one order of the queue, some 50 ns each; beyond, nothing is rehearsed.
const WORK_MAX: usize = 500_000;
/// Orders of kube-scheduler's queue that are tried: by age, spread pods last, and by chance, since what was refused comes
/// back in any order.
const ORDERS: u64 = 6;
/// One of so many pods gets room twice.
const EXTRA_ONE_OF: u64 = 50;
/// A full node, in the unit in which shares of it are counted.
const FULL: i64 = 10_000;

/// A pod that may be bound elsewhere than planned.
#[derive(Debug, Clone, Copy)]
pub struct Guest<'a> {
    /// The pod.
    pub pod: &'a Arc<Pod>,
    /// Where its spread over zones keeps it.
    pub zone: Option<&'a str>,
}

impl Guest<'_> {
    fn priority(&self) -> Reverse<i32> {
        Reverse(self.pod.spec.priority)
    }
}

/// The pods that kube-scheduler finds no room for on the nodes of the plan, where every node is there at once and its
/// queue is in the worst of [`ORDERS`] orders. None for plans that are not rehearsed.
pub fn left_over<'a>(snapshot: &'a Snapshot, plan: &'a Plan) -> Option<Vec<Guest<'a>>> {
    let new_pods: usize = plan.new_claims.iter().map(|claim| claim.pods.len()).sum();
    if new_pods < PODS_MIN {
        return None;
    }
    let stage = Stage::of(snapshot, plan);
    let mut guests: Vec<Guest<'_>> = stage.guests().collect();
    let hosts = stage.hosts.len();
    if hosts < 2 || guests.len() * hosts > WORK_MAX {
        return None;
    }
    let mut taking = Taking::new();
    guests.sort_by_key(|it| (it.priority(), it.pod.created_at));
    let mut worst = stage.bind(&guests, &mut taking);
    for order in 1..ORDERS {
        match order {
            // While the first node of a zone is on its way, pods that are spread over zones are refused, and come back later.
            1 => guests.sort_by_key(|it| (it.priority(), it.zone.is_some())),
            _ => guests.sort_by_key(|it| (it.priority(), shuffled(&it.pod.uid, order))),
        }
        let left = stage.bind(&guests, &mut taking);
        if left.len() > worst.len() {
            worst = left;
        }
    }
    Some(worst)
}

/// Some of the pods, drawn by chance: the rehearsal is a model, and where it leaves none kube-scheduler left one of 200.
pub(super) fn extra<'a>(snapshot: &'a Snapshot, plan: &'a Plan) -> Vec<Guest<'a>> {
    let stage = Stage::of(snapshot, plan);
    let drawn = |guest: &Guest<'_>| shuffled(&guest.pod.uid, ORDERS).is_multiple_of(EXTRA_ONE_OF);
    stage.guests().filter(drawn).collect()
}

fn shuffled(what: impl Hash, seed: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, what).hash(&mut hasher);
    hasher.finish()
}

/// Which hosts take a pod of that spec, by its address, in that zone; equal specs of other pods may be shared.
type Taking<'a> = BTreeMap<(*const PodSpec, Option<&'a str>), Vec<usize>>;

/// The nodes of a plan: those to make, and those that exist or are on their way and get pods.
struct Stage<'a> {
    plan: &'a Plan,
    hosts: Vec<Host<'a>>,
    zones: BTreeMap<&'a PlacementTarget, Option<&'a str>>,
}

impl<'a> Stage<'a> {
    fn of(snapshot: &'a Snapshot, plan: &'a Plan) -> Self {
        let targets: BTreeSet<&PlacementTarget> =
            plan.placements.iter().map(|it| &it.node).collect();
        let mut fixed: BTreeMap<&PlacementTarget, Resources> = BTreeMap::new();
        for placement in plan.placements.iter().filter(|it| !moves(&it.pod)) {
            let there = fixed.entry(&placement.node).or_default();
            there.add(&placement.pod.spec.requests);
        }
        let mut stage = Self {
            plan,
            hosts: plan.new_claims.iter().filter_map(Host::to_make).collect(),
            zones: BTreeMap::new(),
        };
        let daemons = Daemons::of(&snapshot.daemon_pods);
        for node in &snapshot.nodes {
            let Some(target) = target(node).and_then(|target| targets.get(&target).copied()) else {
                continue;
            };
            let mut host = Host::existing(node, &daemons);
            if let Some(there) = fixed.get(target) {
                host.free.subtract(there);
            }
            stage.zones.insert(target, host.zone);
            stage.hosts.push(host);
        }
        stage
    }

    fn guests(&self) -> impl Iterator<Item = Guest<'a>> {
        let new = self.plan.new_claims.iter().flat_map(|claim| {
            let zone = claim.offerings.first().map(|it| it.zone.as_str());
            claim.pods.iter().map(move |pod| (pod, zone))
        });
        let placed = self.plan.placements.iter();
        let placed = placed.map(|it| (&it.pod, self.zones.get(&it.node).copied().flatten()));
        let all = new.chain(placed);
        let real = all.filter(|(pod, _)| moves(pod) && !pod.is_virtual());
        real.map(|(pod, zone)| Guest {
            pod,
            zone: zone.filter(|_| !pod.spec.topology_spread.is_empty()),
        })
    }

    /// Binds the pods in that order; those that are left.
    fn bind(&self, guests: &[Guest<'a>], taking: &mut Taking<'a>) -> Vec<Guest<'a>> {
        let hosts = self.hosts.iter().map(|it| (it.zone, it.free.clone()));
        let mut stand = Stand::of(hosts);
        let mut left = guests.to_vec();
        left.retain(|guest| {
            let known = taking.entry((Arc::as_ptr(&guest.pod.spec), guest.zone));
            let known = known.or_insert_with(|| self.taking(guest));
            !self.bind_one(&guest.pod.spec, known, &mut stand)
        });
        left
    }

    /// Binds a pod of that spec to the host with the best score among those; false when none has room.
    fn bind_one(&self, spec: &Arc<PodSpec>, hosts: &[usize], stand: &mut Stand) -> bool {
        let with_room = hosts.iter().copied();
        let with_room: Vec<usize> = with_room
            .filter(|idx| spec.requests.fits_in(&stand.free[*idx]))
            .collect();
        let costs = stand.spread_costs(spec, &with_room);
        let most = costs.iter().copied().max().unwrap_or(0).max(1);
        let least = costs.iter().copied().min().unwrap_or(0);
        let score = |(nth, idx): (usize, usize)| {
            let spread = FULL * (most + least - costs[nth]) / most;
            self.hosts[idx].score(&stand.free[idx], &spec.requests) + 2 * spread
        };
        let candidates = with_room.iter().copied().enumerate();
        let best = candidates.max_by_key(|it| (score(*it), Reverse(it.1)));
        if let Some((_, idx)) = best {
            stand.bind(spec, idx);
        }
        best.is_some()
    }

    fn taking(&self, guest: &Guest<'_>) -> Vec<usize> {
        let terms = strict_terms(&guest.pod.spec);
        let takes = |host: &Host<'_>| {
            let is_there = guest.zone.is_none_or(|zone| host.zone == Some(zone));
            is_there && host.takes(&guest.pod.spec, &terms)
        };
        let all = self.hosts.iter().enumerate();
        all.filter(|(_, host)| takes(host))
            .map(|(idx, _)| idx)
            .collect()
    }
}

fn target(node: &Node) -> Option<PlacementTarget> {
    let of_node = node.name.clone().map(PlacementTarget::Node);
    of_node.or_else(|| node.node_claim.clone().map(PlacementTarget::InFlight))
}

/// Whether the pod counts only how much it asks for and which nodes and zones it wants. Others stay where they were planned.
fn moves(pod: &Pod) -> bool {
    let spec = &pod.spec;
    let mut spreads = spec.topology_spread.iter();
    spec.affinity.is_empty()
        && spec.anti_affinity.is_empty()
        && spec.host_ports.is_empty()
        && spec.volumes.is_empty()
        && spreads.all(|it| it.topology_key == labels::ZONE)
}

/// What a host says of itself.
enum Has<'a> {
    Labels(&'a Node),
    Requirements(&'a Requirements),
}

impl Has<'_> {
    fn satisfies(&self, wanted: &Requirements) -> bool {
        match self {
            Self::Labels(node) => node.meets(wanted),
            Self::Requirements(own) => own.is_compatible(wanted, Undefined::WellKnownAllowed),
        }
    }
}

/// A node before pods are bound to it.
struct Host<'a> {
    has: Has<'a>,
    taints: Vec<&'a Taint>,
    zone: Option<&'a str>,
    allocatable: &'a Resources,
    /// Less its daemons and the pods that do not move.
    free: Resources,
}

impl<'a> Host<'a> {
    fn to_make(claim: &'a PlannedClaim) -> Option<Self> {
        let offering = claim.offerings.first()?;
        let mut free = offering.allocatable.clone();
        free.subtract(&claim.requests);
        for pod in claim.pods.iter().filter(|pod| moves(pod)) {
            free.add(&pod.spec.requests);
        }
        Some(Self {
            has: Has::Requirements(&claim.requirements),
            taints: claim.taints.iter().collect(),
            zone: Some(offering.zone.as_str()),
            allocatable: &offering.allocatable,
            free,
        })
    }

    fn existing(node: &'a Node, daemons: &Daemons<'_>) -> Self {
        let mut free = node.allocatable.clone();
        for pod in node
            .pods
            .iter()
            .filter(|pod| pod.phase != PodPhase::Terminal)
        {
            free.subtract(&pod.spec.requests);
        }
        free.subtract(&outstanding_on(node, &daemons.belonging(node)));
        Self {
            has: Has::Labels(node),
            taints: node.effective_taints().collect(),
            zone: node.zone(),
            allocatable: &node.allocatable,
            free,
        }
    }

    fn takes(&self, spec: &PodSpec, terms: &[Requirements]) -> bool {
        let mut taints = self.taints.iter();
        taints.all(|taint| {
            first_untolerated(std::slice::from_ref(*taint), &spec.tolerations).is_none()
        }) && terms.iter().any(|term| self.has.satisfies(term))
    }

    /// What kube-scheduler's NodeResourcesFit (LeastAllocated) and NodeResourcesBalancedAllocation make of it, both at
    /// their default weight.
    fn score(&self, free: &Resources, requests: &Resources) -> i64 {
        let share = |free: i64, of: i64| free.max(0) * FULL / of.max(1);
        let cpu = share(
            free.cpu_milli() - requests.cpu_milli(),
            self.allocatable.cpu_milli(),
        );
        let memory = share(
            free.memory_bytes() - requests.memory_bytes(),
            self.allocatable.memory_bytes(),
        );
        let least_allocated = i64::midpoint(cpu, memory);
        let balanced = FULL - (cpu - memory).abs() / 2;
        least_allocated + balanced
    }
}
