//! What would happen if nodes went: only the pods that they free are planned again, on one prepared round.
//!
//! A [`Simulator`] is made once per pass. A trial takes nodes out, places their pods on what is left and, if wanted, on
//! new claims; then it is either taken back, which costs what the trial changed, or made to last, so that the next trial
//! starts from there. Nothing is copied per trial but the small tables of limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::class::{Class, Guest};
use super::finalize::Finalizer;
use super::intake::{self, planning_order};
use super::limits::{self, Leaving};
use super::nodes::NodeOrder;
use super::pack::{Bin, Item, values_of};
use super::place::Spot;
use super::queue::place_some;
use super::round::Round;
use crate::ids::NodeClaimName;
use crate::plan::{Placement, PlacementReason, PlannedClaim, WorkBudget};
use crate::pod::Pod;
use crate::preferences::Preferences;
use crate::price::Price;
use crate::schedule::Homes;
use crate::snapshot::Snapshot;

/// With more distinct requests than this the values of pods take longer to find than they are worth.
const VALUED_ITEMS_MAX: usize = 512;

/// A round in which nodes can be taken out on trial.
#[derive(Debug)]
pub(crate) struct Simulator<'a> {
    round: Round<'a>,
    classes: Vec<Class>,
    node_of: BTreeMap<NodeClaimName, usize>,
    /// By node: its pods that would move, in planning order.
    movers: Vec<Vec<usize>>,
    placements: Vec<Placement>,
    budget: WorkBudget,
}

/// How hard a trial looks for cheap claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    /// One pod after another.
    Quick,
    /// All pods of plain claims packed anew together. Worth its time where much could be saved.
    Thorough,
}

/// A pod without a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoPlace {
    /// As `namespace/name`.
    pub(crate) pod: String,
    pub(crate) why: String,
}

impl<'a> Simulator<'a> {
    /// Prepares a round with all pods that `moves` says would have to run elsewhere. Pending pods and those of nodes
    /// that are leaving get what room they find first; what they need beyond that is not planned here.
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        preferences: &Preferences,
        order: NodeOrder<'_>,
        moves: &dyn Fn(&Pod) -> bool,
        budget: WorkBudget,
    ) -> Self {
        let first = intake::collect(snapshot).pods;
        let first_uids: std::collections::BTreeSet<_> =
            first.iter().map(|pod| pod.uid.clone()).collect();
        let active = snapshot
            .nodes
            .iter()
            .filter(|node| node.is_active() && node.is_managed());
        let bound = active.flat_map(|node| node.pods.iter().filter(|pod| moves(pod)));
        let mut pods: Vec<Arc<Pod>> = first;
        pods.extend(bound.cloned());
        pods.sort_by(|a, b| planning_order(a, b));
        let mut round = Round::in_order(snapshot, preferences, pods, order, None);
        round.limits =
            limits::of_pools(&round.pools, snapshot, &round.resources, Leaving::CountsNot);
        // Classes are lent to the queue while it works, but taking nodes out needs them: both look at one table.
        let waiting: Vec<usize> = (0..round.pods.len())
            .filter(|pod| first_uids.contains(&round.pods[*pod].uid))
            .collect();
        let by_uid: rustc_hash::FxHashMap<_, usize> = round
            .pods
            .iter()
            .enumerate()
            .map(|(idx, pod)| (pod.uid.clone(), idx))
            .collect();
        let movers = round
            .nodes
            .entries
            .iter()
            .map(|entry| {
                let is_candidate = entry.node.is_active() && entry.node.is_managed();
                let pods = entry
                    .node
                    .pods
                    .iter()
                    .filter(|pod| is_candidate && moves(pod));
                let mut movers: Vec<usize> = pods
                    .filter_map(|pod| by_uid.get(&pod.uid).copied())
                    .collect();
                movers.sort_unstable();
                movers
            })
            .collect();
        let node_of = round
            .nodes
            .entries
            .iter()
            .enumerate()
            .filter_map(|(idx, entry)| Some((entry.node.node_claim.clone()?, idx)))
            .collect();
        let classes = std::mem::take(&mut round.classes.classes);
        let mut simulator = Self {
            round,
            classes,
            node_of,
            movers,
            placements: Vec::new(),
            budget,
        };
        simulator.seat_first(&waiting);
        simulator
    }

    /// Gives pods that wait already the room that they will take.
    fn seat_first(&mut self, waiting: &[usize]) {
        for pod in waiting {
            if let Ok(spot) = self.find_on_nodes(*pod) {
                self.commit(*pod, &spot);
            }
        }
        self.round.make_last();
        for (idx, entry) in self.round.nodes.entries.iter().enumerate() {
            // Pods that run now are not moved to what may never become a node.
            if entry.node.is_managed() && !entry.node.is_initialized {
                self.round.nodes.closed.insert(idx);
            }
        }
    }

    /// The number of a claim's node in this simulation.
    pub(crate) fn node(&self, claim: &NodeClaimName) -> Option<usize> {
        self.node_of.get(claim).copied()
    }

    /// How many pods of the node would move.
    pub(crate) fn movers(&self, node: usize) -> usize {
        self.movers[node].len()
    }

    /// Lets a node take no pods from now on. Nodes that take none already stay as they are.
    pub(crate) fn close(&mut self, node: usize) -> bool {
        let was_open = !self.round.nodes.closed.contains(node);
        self.round.nodes.closed.insert(node);
        was_open
    }

    /// Lets a node take pods again.
    pub(crate) fn open(&mut self, node: usize) {
        self.round.nodes.closed.remove(node);
    }

    /// How much work was done.
    pub(crate) fn work(&self) -> u64 {
        self.round.work
    }

    /// Whether the work budget has ended.
    pub(crate) fn is_out_of_work(&self) -> bool {
        self.round.work >= self.budget.0
    }

    /// Takes nodes out for good, their pods with them: they are empty or gone already.
    pub(crate) fn remove_for_good(&mut self, node: usize) {
        self.take_out(&[node]);
    }

    /// Takes nodes out and places their pods on the others. Says whether all of them found room; then the trial waits for
    /// [`Self::keep`] or [`Self::undo`].
    pub(crate) fn try_on_nodes(&mut self, nodes: &[usize]) -> bool {
        self.begin(nodes);
        let mut waiting = self.pods_of(nodes);
        while !waiting.is_empty() {
            let before = waiting.len();
            let mut left = Vec::new();
            for pod in waiting {
                match self.find_on_nodes(pod) {
                    Ok(spot) => self.commit(pod, &spot),
                    Err(Need::NewNode) => return false,
                    Err(Need::Others) => left.push(pod),
                }
            }
            if left.len() == before {
                return false;
            }
            waiting = left;
        }
        true
    }

    /// Takes nodes out and places their pods on the others and on new claims. The price is that of the claims, at the
    /// best offering of each.
    pub(crate) fn try_with_claims(
        &mut self,
        nodes: &[usize],
        packing: Packing,
    ) -> Result<Price, NoPlace> {
        self.begin(nodes);
        let pods = self.pods_of(nodes);
        for pod in &pods {
            self.classes[self.round.class_of[*pod]].failed_at = None;
        }
        let budget = self.budget;
        let outcome = place_some(
            &mut self.round,
            &mut self.classes,
            pods.into_iter(),
            &Homes::new(),
            budget,
        );
        self.placements = outcome.placements;
        if let Some((left, was_tried)) = outcome.left.iter().min().copied() {
            let pod = &self.round.pods[left];
            let pod = format!("{}/{}", pod.namespace, pod.name);
            let class = self.round.class_of[left];
            let why = match was_tried {
                true => self.round.explain(&self.classes[class]).to_string(),
                false => "the work budget of this pass ended".to_owned(),
            };
            return Err(NoPlace { pod, why });
        }
        if self.round.claims.all.len() > 1 {
            if packing == Packing::Thorough {
                self.round.improve(&self.classes);
            }
            self.round.merge_claims(&self.classes);
        }
        Ok(self.claims_price())
    }

    /// The claims of the trial as plans.
    pub(crate) fn planned(&mut self) -> Vec<PlannedClaim> {
        Finalizer::new(&mut self.round).planned_claims()
    }

    /// Where the trial's pods went on nodes that exist.
    pub(crate) fn placements(&self) -> &[Placement] {
        &self.placements
    }

    /// The nodes that take in pods of the trial.
    pub(crate) fn receivers(&self) -> Vec<usize> {
        let by_target = self.round.journal.iter().flat_map(|journal| &journal.nodes);
        let mut nodes: Vec<usize> = by_target.map(super::nodes::NodeBefore::node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// The instance types of the trial's claims at their best shapes, one per claim.
    pub(crate) fn claim_types(&self) -> Vec<String> {
        let name = |claim: &super::claims::Claim| {
            let shape = &self.round.pools[claim.pool].shapes[claim.shape()];
            shape.instance_type.name.to_string()
        };
        self.round.claims.live().map(name).collect()
    }

    /// Takes the trial back.
    pub(crate) fn undo(&mut self) {
        self.lend(|round| round.take_back());
        self.placements.clear();
    }

    /// Makes the trial last.
    pub(crate) fn keep(&mut self) {
        self.lend(|round| round.make_last());
        self.placements.clear();
    }

    /// What the pods of each of these nodes are worth in the cheapest mixes of the pool, in millionths per hour; empty
    /// when that cannot be found. A guide for what to look at first, nothing more.
    pub(crate) fn values(&mut self, pool: &str, nodes: &[usize]) -> Vec<f64> {
        let Some(pool) = self
            .round
            .pools
            .iter()
            .position(|it| *it.pool.name == *pool)
        else {
            return Vec::new();
        };
        let view = self.round.view(pool, self.round.pools[pool].set);
        let entry = &self.round.pools[pool];
        let priced = view.order.iter().filter(|it| it.rank.price.is_known());
        let bins: Vec<Bin> = priced
            .map(|it| Bin {
                room: entry.shapes[it.shape].room.clone(),
                price: it.rank.price.micros(),
            })
            .collect();
        let mut of_request: rustc_hash::FxHashMap<&super::vector::Vector, usize> =
            rustc_hash::FxHashMap::default();
        let mut items: Vec<Item> = Vec::new();
        let mut of_node: Vec<Vec<usize>> = Vec::new();
        for node in nodes {
            let of_pods = self.movers[*node].iter().map(|pod| {
                let request = &self.classes[self.round.class_of[*pod]].claim_request;
                let item = *of_request.entry(request).or_insert_with(|| {
                    items.push(Item {
                        request: request.clone(),
                        count: 0,
                    });
                    items.len() - 1
                });
                items[item].count += 1;
                item
            });
            of_node.push(of_pods.collect());
        }
        if items.len() > VALUED_ITEMS_MAX {
            return Vec::new();
        }
        let places = self.round.resources.names().count();
        let Some(values) = values_of(&items, &bins, places, &mut self.round.work) else {
            return Vec::new();
        };
        let value = |items: &Vec<usize>| items.iter().map(|item| values[*item]).sum();
        of_node.iter().map(value).collect()
    }

    fn begin(&mut self, nodes: &[usize]) {
        self.placements.clear();
        self.round.open_journal();
        self.take_out(nodes);
    }

    fn take_out(&mut self, nodes: &[usize]) {
        let movers = std::mem::take(&mut self.movers);
        self.lend(|round| {
            for node in nodes {
                round.take_node_out(*node, &movers[*node]);
            }
        });
        self.movers = movers;
    }

    /// The round with its classes, for the steps that look both up in it.
    fn lend(&mut self, work: impl FnOnce(&mut Round<'a>)) {
        std::mem::swap(&mut self.round.classes.classes, &mut self.classes);
        work(&mut self.round);
        std::mem::swap(&mut self.round.classes.classes, &mut self.classes);
    }

    fn pods_of(&self, nodes: &[usize]) -> Vec<usize> {
        let mut pods: Vec<usize> = nodes
            .iter()
            .flat_map(|node| self.movers[*node].iter().copied())
            .collect();
        pods.sort_unstable();
        pods
    }

    fn find_on_nodes(&mut self, pod: usize) -> Result<(usize, usize), Need> {
        let class = &self.classes[self.round.class_of[pod]];
        let variants = class.variants.iter().enumerate();
        for (idx, variant) in variants.filter(|(_, it)| !it.is_last_resort) {
            let guest = Guest { class, variant };
            let Some(set) = variant.set else { continue };
            if let Some(node) = self.round.find_node(guest, set, None) {
                return Ok((idx, node));
            }
            // As in a round: a preference is given up only when no new node could meet it.
            let is_last = class.variants.len() == 1;
            if is_last || self.round.find_new_claim(guest, set).is_some() {
                return Err(match class.depends_on_others() {
                    true => Need::Others,
                    false => Need::NewNode,
                });
            }
        }
        Err(Need::Others)
    }

    fn commit(&mut self, pod: usize, (variant, node): &(usize, usize)) {
        let class = &self.classes[self.round.class_of[pod]];
        self.round.commit(pod, class, &Spot::Node(*node));
        self.round.seats[pod].variant = *variant;
        self.placements.push(Placement {
            pod: Arc::clone(&self.round.pods[pod]),
            node: self.round.nodes.target(*node),
            reason: PlacementReason::FirstThatFits,
        });
    }

    /// What the trial's claims cost at their best offerings, in real money.
    fn claims_price(&self) -> Price {
        let price = |claim: &super::claims::Claim| {
            let pool = &self.round.pools[claim.pool];
            let sales = pool.shapes[claim.shape()].sales.clone();
            let open = sales.filter(|sale| claim.view.sales.contains(*sale));
            let best = open
                .map(|sale| &pool.sales[sale])
                .min_by_key(|sale| sale.rank);
            best.map_or(Price::UNKNOWN, |sale| sale.price)
        };
        let mut total = 0_u64;
        for claim in self.round.claims.live() {
            match price(claim) {
                Price::UNKNOWN => return Price::UNKNOWN,
                known => total = total.saturating_add(known.micros()),
            }
        }
        Price::from_micros(total)
    }
}

/// What a pod needs that the nodes do not give it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    NewNode,
    /// Perhaps only that other pods get their places first.
    Others,
}
