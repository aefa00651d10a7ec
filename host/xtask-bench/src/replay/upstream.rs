//! Upstream's algorithm, written down plainly for pods that ask for resources and nothing else.
//!
//! Pending pods, the largest first, go to the first node with room, else to the open claim with the fewest pods that some
//! type still holds with them, else to a new claim; each claim becomes the cheapest type that holds its pods.
//!
//! Of removal: empty nodes first; then the largest prefix of one sorted list whose pods fit with at most one new, cheaper node, found by bisection; then
//! the first single node of which that is true. One command a pass.

use std::cmp::Reverse;
use std::sync::Arc;

use jiff::Timestamp;
use kerf_core::instance_type::CapacityType;
use kerf_core::node::Node;
use kerf_core::pod::Pod;
use kerf_core::preferences::OfferingKey;
use kerf_core::resources::Resources;

use super::cluster::{Cluster, Made, Place, Start, amounts, offering_of, with_one_pod};

/// Upstream's limit on nodes of one command.
const PREFIX_MAX: usize = 100;

/// A node as the search sees it.
#[derive(Debug)]
struct Host<'a> {
    name: &'a str,
    free: [i64; 4],
    pods: &'a [Arc<Pod>],
    instance_type: String,
    price: u64,
    is_booted: bool,
    /// For longer than consolidateAfter.
    is_quiet: bool,
}

impl Host<'_> {
    fn is_candidate(&self) -> bool {
        self.is_booted && self.is_quiet
    }
}

/// What is for sale, cheapest first; at one price by name.
#[derive(Debug)]
struct Sold {
    offering: OfferingKey,
    allocatable: Resources,
    room: [i64; 4],
    price: u64,
}

/// What starts now, if anything.
pub(super) fn pass(cluster: &Cluster) -> Option<Start> {
    let allowed = cluster.allowed();
    if allowed == 0 {
        return None;
    }
    let hosts = hosts(cluster);
    let empty = hosts
        .iter()
        .filter(|it| it.is_candidate() && it.pods.is_empty());
    let empty: Vec<String> = empty.take(allowed).map(|it| it.name.to_owned()).collect();
    if !empty.is_empty() {
        return Some(Start {
            candidates: empty,
            ..Start::default()
        });
    }
    let mut candidates: Vec<usize> = (0..hosts.len())
        .filter(|idx| hosts[*idx].is_candidate() && !hosts[*idx].pods.is_empty())
        .collect();
    // Pods are alike in priority here, so the cost of moving them is their number.
    let worth = |idx: &usize| {
        let pods = u64::try_from(hosts[*idx].pods.len()).unwrap_or(u64::MAX);
        hosts[*idx].price / (1 + pods)
    };
    candidates.sort_by_key(|idx| (Reverse(worth(idx)), hosts[*idx].name));
    let search = Search {
        hosts: &hosts,
        sold: sold(cluster),
    };
    let most = candidates.len().min(PREFIX_MAX).min(allowed);
    search.multi(&candidates[..most]).or_else(|| {
        let mut singles = candidates.iter();
        singles.find_map(|idx| search.simulate(&[*idx]))
    })
}

/// The nodes that may take pods: those that have booted first, then the name decides.
fn hosts(cluster: &Cluster) -> Vec<Host<'_>> {
    let now = cluster.now();
    let active = cluster.all().filter(|(_, it)| it.is_active());
    let mut active: Vec<(&String, &Arc<Node>)> = active.collect();
    active.sort_by_key(|(name, node)| (!node.is_initialized, *name));
    let hosts = active.into_iter();
    hosts
        .map(|(name, node)| host(cluster, name, node, now))
        .collect()
}

/// Where pending pods go, and what is made for them. Pods that no type holds are left out.
pub(super) fn place(cluster: &Cluster) -> Start {
    let mut placed = Start::default();
    if cluster.pending().is_empty() {
        return placed;
    }
    let hosts = hosts(cluster);
    let sold = sold(cluster);
    let mut free: Vec<[i64; 4]> = hosts.iter().map(|host| host.free).collect();
    let mut claims: Vec<Claim> = Vec::new();
    let mut pods: Vec<&Arc<Pod>> = cluster.pending().iter().collect();
    sort(&mut pods);
    for pod in pods {
        let wants = amounts(&with_one_pod(pod));
        if let Some(idx) = free.iter().position(|free| fits(&wants, free)) {
            take(&mut free[idx], &wants);
            let place = Place::Node(hosts[idx].name.to_owned());
            placed.moves.push((Arc::clone(pod), place));
            continue;
        }
        let open = claims.iter().enumerate();
        let open =
            open.filter_map(|(idx, claim)| Some((claim.pods, idx, claim.grown(&wants, &sold)?)));
        let idx = match open.min_by_key(|(pods, idx, _)| (*pods, *idx)) {
            Some((_, idx, grown)) => {
                claims[idx] = grown;
                idx
            }
            None => {
                let Some(new) = Claim::default().grown(&wants, &sold) else {
                    continue;
                };
                claims.push(new);
                claims.len() - 1
            }
        };
        placed.moves.push((Arc::clone(pod), Place::Made(idx)));
    }
    placed.made = claims.iter().map(|claim| sold[claim.sold].made()).collect();
    placed
}

/// A node to be.
#[derive(Debug, Default)]
struct Claim {
    asked: [i64; 4],
    /// The cheapest type that holds that; as more is asked for it only moves on.
    sold: usize,
    pods: usize,
}

impl Claim {
    /// The claim with another pod, if some type holds that.
    fn grown(&self, wants: &[i64; 4], sold: &[Sold]) -> Option<Self> {
        let mut asked = self.asked;
        for (sum, amount) in asked.iter_mut().zip(wants) {
            *sum += amount;
        }
        let further = sold[self.sold..]
            .iter()
            .position(|it| fits(&asked, &it.room))?;
        Some(Self {
            asked,
            sold: self.sold + further,
            pods: self.pods + 1,
        })
    }
}

impl Sold {
    fn made(&self) -> Made {
        Made {
            offering: self.offering.clone(),
            allocatable: self.allocatable.clone(),
            replaced: Vec::new(),
        }
    }
}

/// The order in which upstream tries pods.
fn sort(pods: &mut [&Arc<Pod>]) {
    pods.sort_by_key(|pod| {
        let requests = &pod.spec.requests;
        (
            Reverse(requests.cpu_milli()),
            Reverse(requests.memory_bytes()),
            &pod.uid,
        )
    });
}

fn host<'a>(cluster: &Cluster, name: &'a str, node: &'a Arc<Node>, now: Timestamp) -> Host<'a> {
    let mut free = amounts(&node.allocatable);
    for pod in &node.pods {
        take(&mut free, &amounts(&with_one_pod(pod)));
    }
    let quiet = node.last_pod_event.max(node.initialized_at);
    let wait = cluster.pool.disruption.consolidate_after;
    let is_quiet = quiet
        .zip(wait)
        .is_some_and(|(since, wait)| since.checked_add(wait).is_ok_and(|until| until <= now));
    Host {
        name,
        free,
        pods: &node.pods,
        instance_type: offering_of(node)
            .map_or_else(String::new, |it| it.instance_type.to_string()),
        price: cluster.price(name).micros(),
        is_booted: node.is_initialized,
        is_quiet: is_quiet || !node.is_initialized,
    }
}

/// Each type once, in its first zone: prices do not differ by zone here.
fn sold(cluster: &Cluster) -> Vec<Sold> {
    let types = cluster.pool.instance_types.iter();
    let usable = types.filter(|it| {
        let arch = it.requirements.on(kerf_core::labels::ARCH);
        arch.is_some_and(|arch| arch.has("amd64"))
    });
    let mut sold: Vec<Sold> = usable
        .filter_map(|it| {
            let mut offerings = it.offerings.iter();
            let first = offerings.find(|it| it.capacity_type == CapacityType::OnDemand)?;
            Some(Sold {
                offering: OfferingKey {
                    instance_type: it.name.clone(),
                    zone: first.zone.clone(),
                    capacity_type: first.capacity_type,
                },
                room: amounts(&it.allocatable()),
                allocatable: it.allocatable(),
                price: first.price.micros(),
            })
        })
        .collect();
    sold.sort_by(|a, b| {
        (a.price, &a.offering.instance_type).cmp(&(b.price, &b.offering.instance_type))
    });
    sold
}

struct Search<'a> {
    hosts: &'a [Host<'a>],
    sold: Vec<Sold>,
}

impl Search<'_> {
    fn multi(&self, candidates: &[usize]) -> Option<Start> {
        let (mut least, mut most) = (1, candidates.len().checked_sub(1)?);
        let mut found = None;
        while least <= most {
            let middle = usize::midpoint(least, most);
            match self.simulate(&candidates[..=middle]) {
                Some(start) => {
                    found = Some(start);
                    least = middle + 1;
                }
                None => most = middle - 1,
            }
        }
        found
    }

    /// What happens when the nodes go; none when pods have no place, or what they need is no single cheaper node.
    fn simulate(&self, set: &[usize]) -> Option<Start> {
        let mut pods: Vec<&Arc<Pod>> = set.iter().flat_map(|idx| self.hosts[*idx].pods).collect();
        sort(&mut pods);
        let mut free: Vec<[i64; 4]> = self.hosts.iter().map(|host| host.free).collect();
        let mut claim: Option<[i64; 4]> = None;
        let mut moves = Vec::new();
        for pod in pods {
            let wants = amounts(&with_one_pod(pod));
            // Nodes that pods came to or left not long ago take none in.
            let mut stays =
                (0..free.len()).filter(|idx| self.hosts[*idx].is_quiet && !set.contains(idx));
            let place = match stays.find(|idx| fits(&wants, &free[*idx])) {
                // What is planned on a node that has not booted is no plan.
                Some(idx) if !self.hosts[idx].is_booted => return None,
                Some(idx) => {
                    take(&mut free[idx], &wants);
                    Place::Node(self.hosts[idx].name.to_owned())
                }
                None => {
                    let mut asked = claim.unwrap_or_default();
                    for (sum, amount) in asked.iter_mut().zip(wants) {
                        *sum += amount;
                    }
                    // A pod that no type holds beside the others would need a second node.
                    self.sold.iter().find(|it| fits(&asked, &it.room))?;
                    claim = Some(asked);
                    Place::Made(0)
                }
            };
            moves.push((Arc::clone(pod), place));
        }
        let made = match claim {
            None => Vec::new(),
            Some(asked) => vec![self.cheaper(set, &asked)?],
        };
        Some(Start {
            candidates: set
                .iter()
                .map(|idx| self.hosts[*idx].name.to_owned())
                .collect(),
            made,
            moves,
        })
    }

    /// The cheapest type that holds what is asked for, if it costs less than the set; several nodes do not become one of a
    /// type that some of them have, unless it is cheaper than that one.
    fn cheaper(&self, set: &[usize], asked: &[i64; 4]) -> Option<Made> {
        let options: Vec<&Sold> = self
            .sold
            .iter()
            .filter(|it| fits(asked, &it.room))
            .collect();
        let mut most: u64 = set.iter().map(|idx| self.hosts[*idx].price).sum();
        if set.len() > 1 {
            let same = set.iter().map(|idx| &self.hosts[*idx]).filter(|host| {
                options
                    .iter()
                    .any(|it| *it.offering.instance_type == *host.instance_type)
            });
            most = same
                .map(|host| host.price)
                .min()
                .map_or(most, |price| most.min(price));
        }
        let first = options.first().filter(|it| it.price < most)?;
        Some(first.made())
    }
}

fn fits(wants: &[i64; 4], room: &[i64; 4]) -> bool {
    wants
        .iter()
        .zip(room)
        .all(|(wanted, there)| wanted <= there)
}

fn take(room: &mut [i64; 4], wants: &[i64; 4]) {
    for (there, wanted) in room.iter_mut().zip(wants) {
        *there -= wanted;
    }
}
