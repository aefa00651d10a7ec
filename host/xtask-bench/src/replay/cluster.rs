//! The cluster of a replay: nodes that boot, nodes that leave, and which pod is where.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use kerf_core::disruption::budget::DisruptionReason;
use kerf_core::disruption::emptiness::allowed_now;
use kerf_core::ids::PodUid;
use kerf_core::instance_type::CapacityType;
use kerf_core::labels;
use kerf_core::node::{Node, Replaced};
use kerf_core::node_pool::NodePool;
use kerf_core::plan::{PlacementTarget, PlannedOffering};
use kerf_core::pod::Pod;
use kerf_core::preferences::OfferingKey;
use kerf_core::price::Price;
use kerf_core::resources::{CPU, MEMORY, PODS, Resources};
use kerf_core::{Preferences, Snapshot, WorkBudget, schedule};

use super::lives::Life;
use crate::scheduling::catalog::GPU;

/// Within that time nothing may go back to what it came from.
const FLIP_SECS: i64 = 24 * 3600;

/// A command as both searches give it; without candidates, places for pending pods.
#[derive(Debug, Default)]
pub(super) struct Start {
    /// Names of the nodes that go.
    pub(super) candidates: Vec<String>,
    /// What is made first.
    pub(super) made: Vec<Made>,
    /// Where the pods of the candidates go.
    pub(super) moves: Vec<(Arc<Pod>, Place)>,
}

/// A node to make.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) offering: OfferingKey,
    pub(super) allocatable: Resources,
    /// What our own guard remembers.
    pub(super) replaced: Vec<Replaced>,
}

/// Where a pod goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Node(String),
    /// By its place in [`Start::made`].
    Made(usize),
}

/// What provisioning did.
#[derive(Debug, Default)]
pub(super) struct Provided {
    pub(super) launched: usize,
    pub(super) unplaced: usize,
}

#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) pool: Arc<NodePool>,
    /// Seconds from the start.
    at: i64,
    /// How long a node takes to boot and to leave.
    boot_secs: i64,
    nodes: BTreeMap<String, Arc<Node>>,
    prices: BTreeMap<String, Price>,
    places: BTreeMap<PodUid, String>,
    pending: Vec<Arc<Pod>>,
    ends: BTreeMap<i64, Vec<Arc<Pod>>>,
    boots: BTreeMap<i64, Vec<String>>,
    leaves: BTreeMap<i64, Vec<String>>,
    /// What each node took the place of, and when: kept apart from our own guard's memory, to check it.
    came_from: BTreeMap<String, Vec<(OfferingKey, i64)>>,
    /// Of all pods that have a place.
    asked: Resources,
    counter: usize,
}

impl Cluster {
    pub(super) fn new(pool: NodePool, boot_secs: i64) -> Self {
        Self {
            pool: Arc::new(pool),
            at: 0,
            boot_secs,
            nodes: BTreeMap::new(),
            prices: BTreeMap::new(),
            places: BTreeMap::new(),
            pending: Vec::new(),
            ends: BTreeMap::new(),
            boots: BTreeMap::new(),
            leaves: BTreeMap::new(),
            came_from: BTreeMap::new(),
            asked: Resources::default(),
            counter: 0,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        // Any day will do, as long as nothing of the replay is older than the calendar.
        Timestamp::UNIX_EPOCH
            + SignedDuration::from_hours(24 * 365)
            + SignedDuration::from_secs(self.at)
    }

    pub(super) fn pods(&self) -> usize {
        self.places.len()
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// What all nodes cost, those that boot or leave too.
    pub(super) fn hourly(&self) -> f64 {
        let sum: Price = self.prices.values().copied().sum();
        sum.per_hour().unwrap_or(0.0)
    }

    pub(super) fn price(&self, node: &str) -> Price {
        self.prices.get(node).copied().unwrap_or(Price::UNKNOWN)
    }

    /// cpu, memory, GPUs and number of the pods that have a place.
    pub(super) fn asked(&self) -> [i64; 4] {
        amounts(&self.asked)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&String, &Arc<Node>)> {
        self.nodes.iter()
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            pools: vec![Arc::clone(&self.pool)],
            nodes: self.nodes.values().cloned().collect(),
            pending_pods: self.pending.clone(),
            ..Snapshot::default()
        }
    }

    /// How many more nodes may go now.
    pub(super) fn allowed(&self) -> usize {
        let snapshot = self.snapshot();
        allowed_now(
            &self.pool,
            &snapshot,
            DisruptionReason::Underutilized,
            self.now(),
        )
    }

    /// Lets the time come: pods end, nodes have booted or are gone.
    pub(super) fn turn(&mut self, at: i64) {
        self.at = at;
        let later = self.ends.split_off(&(at + 1));
        for pod in std::mem::replace(&mut self.ends, later)
            .into_values()
            .flatten()
        {
            self.pending.retain(|it| it.uid != pod.uid);
            if let Some(name) = self.places.remove(&pod.uid) {
                self.asked.subtract(&with_one_pod(&pod));
                self.change(&name, |node| node.pods.retain(|it| it.uid != pod.uid));
            }
        }
        let now = self.now();
        let later = self.boots.split_off(&(at + 1));
        for name in std::mem::replace(&mut self.boots, later)
            .into_values()
            .flatten()
        {
            if let Some(node) = self.nodes.get_mut(&name) {
                let node = Arc::make_mut(node);
                node.is_ready = true;
                node.is_initialized = true;
                node.initialized_at = Some(now);
            }
        }
        let later = self.leaves.split_off(&(at + 1));
        for name in std::mem::replace(&mut self.leaves, later)
            .into_values()
            .flatten()
        {
            self.nodes.remove(&name);
            self.prices.remove(&name);
            self.came_from.remove(&name);
        }
    }

    pub(super) fn arrive(&mut self, life: &Life) {
        self.pending.push(Arc::clone(&life.pod));
        self.ends
            .entry(life.to)
            .or_default()
            .push(Arc::clone(&life.pod));
    }

    /// Gives pending pods their nodes, as our planner does.
    pub(super) fn provide(&mut self) -> Result<Provided> {
        let mut provided = Provided::default();
        if self.pending.is_empty() {
            return Ok(provided);
        }
        let plan = schedule(
            &self.snapshot(),
            &Preferences::none(),
            WorkBudget::ROUND,
            self.now(),
        );
        self.pending.clear();
        for placement in &plan.placements {
            let name = match &placement.node {
                PlacementTarget::Node(name) => name.to_string(),
                PlacementTarget::InFlight(name) => name.to_string(),
            };
            self.bind(&placement.pod, &name)?;
        }
        for claim in &plan.new_claims {
            let first = claim.offerings.first().context("a claim has no offering")?;
            let name = self.launch(&Made::of(first));
            for pod in &claim.pods {
                self.bind(pod, &name)?;
            }
            provided.launched += 1;
        }
        // Nothing holds them, today or later.
        provided.unplaced = plan.unschedulable_pods();
        Ok(provided)
    }

    pub(super) fn pending(&self) -> &[Arc<Pod>] {
        &self.pending
    }

    /// Gives pending pods the nodes that another planner chose.
    pub(super) fn give(&mut self, placed: &Start) -> Result<Provided> {
        let waited = std::mem::take(&mut self.pending).len();
        let names: Vec<String> = placed.made.iter().map(|it| self.launch(it)).collect();
        for (pod, place) in &placed.moves {
            match place {
                Place::Node(name) => self.bind(pod, name)?,
                Place::Made(idx) => self.bind(pod, &names[*idx])?,
            }
        }
        Ok(Provided {
            launched: names.len(),
            unplaced: waited - placed.moves.len(),
        })
    }

    /// Carries a command out: pods move at once, what they leave is paid until the replacements have booted. How many of
    /// the new nodes are what their pods came from within a day.
    pub(super) fn start(&mut self, command: Start) -> Result<usize> {
        let Start {
            candidates,
            made,
            moves,
        } = command;
        let names: Vec<String> = made.iter().map(|it| self.launch(it)).collect();
        let mut sources: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for (pod, place) in moves {
            let from = self.places.get(&pod.uid).cloned();
            let from = from.context("a pod moves that is nowhere")?;
            ensure!(
                candidates.contains(&from),
                "pod {} moves from a node that stays",
                pod.name
            );
            self.unbind(&pod, &from);
            match place {
                Place::Node(name) => self.bind(&pod, &name)?,
                Place::Made(idx) => {
                    sources.entry(idx).or_default().push(from);
                    self.bind(&pod, &names[idx])?;
                }
            }
        }
        let flips = self.remember(&names, &made, &sources);
        for name in candidates {
            let node = self
                .nodes
                .get_mut(&name)
                .context("a node goes that is none")?;
            let node = Arc::make_mut(node);
            ensure!(node.pods.is_empty(), "{name} goes with pods on it");
            node.is_marked_for_deletion = true;
            self.leaves
                .entry(self.at + self.boot_secs)
                .or_default()
                .push(name);
        }
        Ok(flips)
    }

    fn remember(
        &mut self,
        names: &[String],
        made: &[Made],
        sources: &BTreeMap<usize, Vec<String>>,
    ) -> usize {
        let mut flips = 0;
        for (idx, from) in sources {
            let mut memory: Vec<(OfferingKey, i64)> = Vec::new();
            for source in from {
                let earlier = self.came_from.get(source).into_iter().flatten();
                memory.extend(earlier.filter(|(_, at)| self.at - at < FLIP_SECS).cloned());
            }
            flips += usize::from(
                memory
                    .iter()
                    .any(|(offering, _)| *offering == made[*idx].offering),
            );
            let own = from
                .iter()
                .filter_map(|name| offering_of(self.nodes.get(name)?));
            memory.extend(own.map(|offering| (offering, self.at)));
            memory.sort();
            memory.dedup();
            self.came_from.insert(names[*idx].clone(), memory);
        }
        flips
    }

    fn launch(&mut self, made: &Made) -> String {
        let name = format!("n-{:07}", self.counter);
        self.counter += 1;
        let now = self.now();
        let OfferingKey {
            instance_type,
            zone,
            capacity_type,
        } = &made.offering;
        let node_labels = [
            (labels::NODE_POOL, &*self.pool.name),
            (labels::CAPACITY_TYPE, capacity_type.as_str()),
            (labels::ZONE, zone),
            (labels::INSTANCE_TYPE, instance_type),
            (labels::ARCH, "amd64"),
            (labels::OS, "linux"),
            (labels::HOSTNAME, &name),
        ];
        let node = Node {
            name: Some(name.as_str().into()),
            node_claim: Some(name.as_str().into()),
            pool: Some(self.pool.name.clone()),
            labels: node_labels.into_iter().collect(),
            allocatable: made.allocatable.clone(),
            capacity: made.allocatable.clone(),
            created_at: Some(now),
            is_launched: true,
            is_registered: true,
            replaced: made.replaced.clone(),
            ..Node::default()
        };
        self.prices
            .insert(name.clone(), price_of(&self.pool, &made.offering));
        self.boots
            .entry(self.at + self.boot_secs)
            .or_default()
            .push(name.clone());
        self.nodes.insert(name.clone(), Arc::new(node));
        name
    }

    fn bind(&mut self, pod: &Arc<Pod>, name: &str) -> Result<()> {
        let node = self
            .nodes
            .get(name)
            .with_context(|| format!("pod {} goes to {name}, which is gone", pod.name))?;
        ensure!(
            node.is_active(),
            "pod {} goes to {name}, which goes itself",
            pod.name
        );
        let mut used = with_one_pod(pod);
        for other in &node.pods {
            used.add(&with_one_pod(other));
        }
        ensure!(used.fits_in(&node.allocatable), "{name} would be overfull");
        self.asked.add(&with_one_pod(pod));
        self.places.insert(pod.uid.clone(), name.to_owned());
        self.change(name, |node| node.pods.push(Arc::clone(pod)));
        Ok(())
    }

    fn unbind(&mut self, pod: &Arc<Pod>, name: &str) {
        self.asked.subtract(&with_one_pod(pod));
        self.change(name, |node| node.pods.retain(|it| it.uid != pod.uid));
    }

    /// Pods come to a node or leave it.
    fn change(&mut self, name: &str, change: impl FnOnce(&mut Node)) {
        let now = self.now();
        if let Some(node) = self.nodes.get_mut(name) {
            let node = Arc::make_mut(node);
            change(node);
            node.last_pod_event = Some(now);
        }
    }
}

impl Made {
    pub(super) fn of(offering: &PlannedOffering) -> Self {
        Self {
            offering: OfferingKey {
                instance_type: offering.instance_type.clone(),
                zone: offering.zone.clone(),
                capacity_type: offering.capacity_type,
            },
            allocatable: offering.allocatable.clone(),
            replaced: Vec::new(),
        }
    }
}

/// cpu in thousandths, memory in bytes, GPUs, pods.
pub(super) fn amounts(resources: &Resources) -> [i64; 4] {
    [CPU, MEMORY, GPU, PODS].map(|name| resources.amount(name))
}

pub(super) fn with_one_pod(pod: &Pod) -> Resources {
    pod.spec.requests.clone().with(PODS, 1)
}

pub(super) fn offering_of(node: &Arc<Node>) -> Option<OfferingKey> {
    Some(OfferingKey {
        instance_type: node.labels.get(labels::INSTANCE_TYPE)?.into(),
        zone: node.zone()?.into(),
        capacity_type: CapacityType::parse(node.labels.get(labels::CAPACITY_TYPE)?)?,
    })
}

fn price_of(pool: &NodePool, key: &OfferingKey) -> Price {
    let mut types = pool.instance_types.iter();
    let found = types.find(|it| it.name == key.instance_type);
    let offering = found.and_then(|it| it.offering(&key.zone, key.capacity_type));
    offering.map_or(Price::UNKNOWN, |it| it.price)
}
