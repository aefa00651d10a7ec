//! A random cluster: pools, nodes with pods, daemonsets and pending pods. What a case has shows in its `kinds`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_core::Snapshot;
use kerf_core::instance_type::{CapacityType, InstanceType, Offering, Reservation};
use kerf_core::labels;
use kerf_core::node::Node;
use kerf_core::node_pool::{NodePool, NodeTemplate};
use kerf_core::pod::{DaemonPod, OwnerKind, Pod, PodSpec};
use kerf_core::price::Price;
use kerf_core::requirement::{Operator, Requirement};
use kerf_core::resources::{CPU, NODES, PODS, Resources};
use kerf_core::selector::Labels;
use kerf_core::snapshot::{MinValuesPolicy, PreferencePolicy, Settings};
use kerf_core::taint::{Taint, TaintEffect, Toleration, TolerationOperator};

use super::case::Case;
use super::dice::Dice;
use super::{catalog, manifest, pods};

pub(super) const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];
pub(super) const TEAM: &str = "example.com/team";
pub(super) const DEDICATED: &str = "example.com/dedicated";
pub(super) const GPU: &str = "nvidia.com/gpu";
pub(super) const ENI: &str = "aliyun/eni";
const GIBIBYTE: i64 = 1 << 30;
const MEBIBYTE: i64 = 1 << 20;
/// Far from the seeds of other draws.
const LATE: u64 = 1 << 40;
/// The driver of all volumes.
pub(super) const DRIVER: &str = "disk.example.com";

/// What counts the volumes that an instance type can attach.
pub(super) const ATTACHMENTS: &str = "attachable-volumes-csi-";

/// The draws of one case.
#[derive(Debug)]
pub(super) struct Draw {
    pub(super) dice: Dice,
    /// For kinds that came later, so that the older draws of a seed stay what they were.
    pub(super) late: Dice,
    pub(super) seed: u64,
    pub(super) kinds: BTreeSet<&'static str>,
}

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            dice: Dice::new(seed),
            late: Dice::new(seed.wrapping_add(LATE)),
            seed,
            kinds: BTreeSet::new(),
        }
    }

    /// The case of the seed.
    pub(super) fn case(mut self) -> Case {
        let snapshot = self.snapshot();
        let objects = manifest::objects(&snapshot);
        let types = snapshot.pools.first().map(|pool| &pool.instance_types);
        let types = types.into_iter().flat_map(|types| types.iter());
        let mut case = Case {
            seed: self.seed,
            settings: snapshot.settings,
            types: types.map(|it| catalog::write(it)).collect(),
            objects,
            kinds: BTreeSet::new(),
        };
        self.dress(&mut case);
        case.kinds = self.kinds;
        case
    }

    fn snapshot(&mut self) -> Snapshot {
        let types = self.instance_types();
        let mut pools: Vec<NodePool> = (0..self.dice.between(1, 3))
            .map(|idx| self.pool(idx, &types))
            .collect();
        let guarded = self.guarded_zone(&mut pools);
        let pools: Vec<Arc<NodePool>> = pools.into_iter().map(Arc::new).collect();
        let mut nodes: Vec<Arc<Node>> = (0..self.dice.between(0, 4))
            .map(|idx| Arc::new(self.node(idx, &pools)))
            .collect();
        nodes.extend(guarded.map(Arc::new));
        let daemon_pods = (0..self.dice.between(0, 2))
            .map(|idx| self.daemon(idx))
            .collect();
        Snapshot {
            pools,
            nodes,
            daemon_pods,
            pod_budgets: Vec::new(),
            pending_pods: self.pending(),
            namespaces: self.namespaces(),
            settings: self.settings(),
        }
    }

    /// True in that many of a hundred draws, and then the case is of that kind.
    pub(super) fn kind(&mut self, kind: &'static str, percent: i64) -> bool {
        let drawn = self.dice.percent(percent);
        if drawn {
            self.kinds.insert(kind);
        }
        drawn
    }

    /// As [`Self::kind`], without a change of what else is drawn.
    pub(super) fn late_kind(&mut self, kind: &'static str, percent: i64) -> bool {
        let drawn = self.late.percent(percent);
        if drawn {
            self.kinds.insert(kind);
        }
        drawn
    }

    fn settings(&mut self) -> Settings {
        let mut settings = Settings::default();
        if self.late_kind("preferences ignored", 20) {
            settings.preference_policy = PreferencePolicy::Ignore;
        }
        if self.late_kind("minValues at best effort", 40) {
            settings.min_values_policy = MinValuesPolicy::BestEffort;
        }
        settings
    }

    pub(super) fn namespace(&self, name: &str) -> String {
        format!("case-{}-{name}", self.seed)
    }

    fn namespaces(&self) -> BTreeMap<String, Labels> {
        ["a", "b"]
            .into_iter()
            .map(|name| {
                let full = self.namespace(name);
                let own = ("kubernetes.io/metadata.name".to_owned(), full.clone());
                let env = ("env".to_owned(), name.to_owned());
                (full, Labels::from([own, env]))
            })
            .collect()
    }

    fn instance_types(&mut self) -> Vec<Arc<InstanceType>> {
        (0..self.dice.between(2, 5))
            .map(|idx| Arc::new(self.instance_type(idx)))
            .collect()
    }

    fn instance_type(&mut self, idx: i64) -> InstanceType {
        let vcpu = self.dice.pick(&[2, 4, 8, 16]);
        let memory = vcpu * self.dice.pick(&[2, 4, 8]) * GIBIBYTE;
        let arch = if self.kind("arch", 15) {
            "arm64"
        } else {
            "amd64"
        };
        let max_pods = self.dice.pick(&[5, 10, 30]);
        let gpus = if self.kind("gpu", 10) {
            self.dice.between(1, 4)
        } else {
            0
        };
        let enis = if self.kind("eni", 15) {
            self.dice.between(1, 3)
        } else {
            0
        };
        let capacity = Resources::of(vcpu * 1000, memory)
            .with(PODS, max_pods)
            .with(GPU, gpus)
            .with(ENI, enis);
        let capacity = if self.late_kind("attach limit of an instance type", 15) {
            capacity.with(&format!("{ATTACHMENTS}{DRIVER}"), self.late.between(1, 3))
        } else {
            capacity
        };
        let labels = [
            Requirement::in_values(labels::ARCH, [arch]),
            Requirement::in_values(labels::OS, ["linux"]),
            Requirement::in_values(labels::INSTANCE_CPU, [vcpu.to_string()]),
        ];
        let overhead = Resources::of(100, 200 * MEBIBYTE);
        let mut offerings = self.offerings(vcpu);
        if self.late_kind("reserved capacity", 15) {
            let zone = self.late.pick(&ZONES);
            let mut offering = Offering::new(zone, CapacityType::Reserved, Price::from_micros(1));
            offering.reservation = Some(Reservation {
                id: format!("reservation-{idx}").into(),
                remaining: u32::try_from(self.late.between(1, 2)).unwrap_or(1),
            });
            offerings.push(offering);
        }
        InstanceType::new(format!("type-{idx}"), labels, capacity, overhead, offerings)
    }

    fn offerings(&mut self, vcpu: i64) -> Vec<Offering> {
        let mut offerings = Vec::new();
        for zone in self.dice.some(&ZONES) {
            for capacity_type in self
                .dice
                .some(&[CapacityType::Spot, CapacityType::OnDemand])
            {
                let micros = (vcpu * 50_000 + self.dice.between(0, 20_000)).unsigned_abs();
                let price = Price::from_micros(micros);
                let mut offering = Offering::new(zone, capacity_type, price);
                if self.kind("out of stock", 10) {
                    offering.unavailable = Some("no stock".to_owned().into());
                }
                offerings.push(offering);
            }
        }
        offerings
    }

    fn pool(&mut self, idx: i64, types: &[Arc<InstanceType>]) -> NodePool {
        let mut pool = NodePool {
            name: format!("pool-{idx}").into(),
            weight: u32::try_from(self.dice.between(0, 2)).unwrap_or(0),
            instance_types: Arc::new(types.to_vec()),
            template: self.template(),
            ..NodePool::default()
        };
        if self.kind("limit on cpu", 10) {
            pool.limits.set(CPU, self.dice.between(4, 24) * 1000);
        }
        if self.kind("limit on nodes", 10) {
            pool.limits.set(NODES, self.dice.between(1, 3));
        }
        pool
    }

    /// A zone to which no pool can grow, and whose only node is tainted: whether it counts is up to nodeTaintsPolicy.
    fn guarded_zone(&mut self, pools: &mut [NodePool]) -> Option<Node> {
        if !self.late_kind("zone behind a taint", 25) {
            return None;
        }
        for pool in pools {
            let others = Requirement::in_values(labels::ZONE, ["zone-a", "zone-b"]);
            pool.template.requirements.add(others);
        }
        let name = format!("case-{}-guarded", self.seed);
        let capacity = Resources::of(4000, 8 * GIBIBYTE).with(PODS, 10);
        let mut node = ready_node(&name, "zone-c", capacity);
        node.taints.push(dedicated(TaintEffect::NoSchedule));
        Some(node)
    }

    fn template(&mut self) -> NodeTemplate {
        let mut template = NodeTemplate::default();
        if self.kind("label of a pool", 25) {
            let team = self.dice.pick(&["red", "blue"]).to_owned();
            template.labels.insert(TEAM.to_owned(), team);
        } else if self.kind("requirement on a custom label", 25) {
            let teams = self.dice.some(&["red", "blue", "green"]);
            template
                .requirements
                .add(Requirement::in_values(TEAM, teams));
        }
        if self.kind("requirement on zones", 20) {
            let zones = self.dice.some(&ZONES);
            template
                .requirements
                .add(Requirement::in_values(labels::ZONE, zones));
        }
        if self.kind("requirement on a number", 10)
            && let Ok(bound) = Requirement::parse(labels::INSTANCE_CPU, Operator::Gt, ["2"])
        {
            template.requirements.add(bound);
        }
        if self.kind("taint", 20) {
            template.taints.push(dedicated(TaintEffect::NoSchedule));
        }
        if self.kind("soft taint", 10) {
            let taint = Taint::new("example.com/soft", TaintEffect::PreferNoSchedule);
            template.taints.push(taint);
        }
        if self.kind("start-up taint", 10) {
            let taint = Taint::new("example.com/agent", TaintEffect::NoSchedule);
            template.startup_taints.push(taint);
        }
        if self.late_kind("minValues", 12) {
            let several = Requirement::exists(labels::INSTANCE_TYPE).with_min_values(Some(2));
            template.requirements.add(several);
        }
        template
    }

    fn node(&mut self, idx: i64, pools: &[Arc<NodePool>]) -> Node {
        self.kinds.insert("existing node");
        let name = format!("case-{}-old-{idx}", self.seed);
        let zone = self.dice.pick(&ZONES);
        let team = self
            .dice
            .percent(40)
            .then(|| self.dice.pick(&["red", "blue"]).to_owned());
        let capacity = Resources::of(self.dice.pick(&[2000, 4000]), 8 * GIBIBYTE).with(PODS, 10);
        let mut node = ready_node(&name, zone, capacity);
        if let Some(team) = team {
            node.labels.insert(TEAM, team);
        }
        if self.kind("taint on a node", 10) {
            node.taints.push(dedicated(TaintEffect::NoSchedule));
        }
        if self.kind("managed node", 40) {
            let pool = &pools[self.dice.index(pools.len())];
            node.pool = Some(pool.name.clone());
            node.node_claim = Some(name.as_str().into());
            node.labels.insert(labels::NODE_POOL, &*pool.name);
            // In flight: the claim is known, the node is not there yet.
            if self.kind("in-flight node", 25) {
                node.name = None;
                node.labels.remove(labels::HOSTNAME);
                node.startup_taints
                    .clone_from(&pool.template.startup_taints);
                node.is_ready = false;
                node.is_registered = false;
                node.is_initialized = false;
                return node;
            }
        }
        if node.is_managed() && self.late_kind("node that is starting", 40) {
            node.is_initialized = false;
            node.taints.push(Taint {
                value: String::new(),
                ..Taint::new("node.kubernetes.io/not-ready", TaintEffect::NoSchedule)
            });
        }
        node.pods = (0..self.dice.between(0, 3))
            .map(|pod| Arc::new(self.bound_pod(idx, pod)))
            .collect();
        if self.late_kind("attach limit of a node", 25) {
            let limit = u32::try_from(self.late.between(0, 2)).unwrap_or(0);
            node.attachment_limits.insert(DRIVER.to_owned(), limit);
        }
        if node.is_initialized
            && node.is_managed()
            && self.late_kind("node that is being removed", 45)
        {
            node.is_marked_for_deletion = true;
            node.taints.push(Taint::disrupted());
        }
        node
    }

    fn bound_pod(&mut self, node: i64, idx: i64) -> Pod {
        self.kinds.insert("bound pod");
        let mut spec = PodSpec::requesting(self.dice.pick(&[100, 300]), 100 * MEBIBYTE);
        spec.owner = OwnerKind::Other;
        let app = self.dice.pick(&pods::APPS);
        spec.labels.insert("app".to_owned(), app.to_owned());
        if self.kind("anti-affinity of a bound pod", 15) {
            let key = self.dice.pick(&[labels::ZONE, labels::HOSTNAME]);
            let app = self.dice.pick(&pods::APPS);
            spec.anti_affinity.push(pods::term(key, app));
        }
        Pod {
            namespace: Arc::from(self.namespace("a")),
            ..Pod::new(&format!("bound-{node}-{idx}"), spec)
        }
    }

    fn daemon(&mut self, idx: i64) -> DaemonPod {
        self.kinds.insert("daemonset");
        let cpu = self.dice.pick(&[50, 200, 500]);
        let mut spec = PodSpec::requesting(cpu, 64 * MEBIBYTE);
        spec.owner = OwnerKind::DaemonSet;
        spec.labels.insert("daemon".to_owned(), idx.to_string());
        if self.kind("daemonset for some nodes", 40) {
            let (key, value) = self.dice.pick(&[
                (labels::ARCH, "amd64"),
                (TEAM, "red"),
                (labels::ZONE, "zone-a"),
            ]);
            spec.node_selector.insert(key.to_owned(), value.to_owned());
        }
        if self.kind("daemonset with tolerations", 50) {
            spec.tolerations.push(tolerate_everything());
        }
        if self.kind("host port of a daemonset", 20) {
            spec.host_ports.push(pods::host_port(8080));
        }
        DaemonPod {
            namespace: Arc::from(self.namespace("a")),
            name: Arc::from(format!("daemon-{idx}")),
            spec: Arc::new(spec),
        }
    }
}

/// A node that takes pods.
fn ready_node(name: &str, zone: &str, capacity: Resources) -> Node {
    let labels = [
        (labels::HOSTNAME, name),
        (labels::OS, "linux"),
        (labels::ARCH, "amd64"),
        (labels::ZONE, zone),
    ];
    Node {
        name: Some(name.into()),
        labels: labels.into_iter().collect(),
        allocatable: capacity.clone(),
        capacity,
        is_ready: true,
        is_registered: true,
        is_initialized: true,
        ..Node::default()
    }
}

fn dedicated(effect: TaintEffect) -> Taint {
    Taint {
        value: "yes".to_owned(),
        ..Taint::new(DEDICATED, effect)
    }
}

pub(super) fn tolerate_everything() -> Toleration {
    Toleration {
        key: None,
        operator: TolerationOperator::Exists,
        value: String::new(),
        effect: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases of one run, as many as the oracle tries before a release.
    const CASES: u64 = 500;

    #[test]
    fn every_kind_of_constraint_is_in_a_tenth_of_the_cases() {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for kind in (1..=CASES).flat_map(|seed| Draw::new(seed).case().kinds) {
            *counts.entry(kind).or_default() += 1;
        }

        let rare: Vec<_> = counts
            .iter()
            .filter(|(_, count)| **count * 10 < CASES)
            .collect();
        assert!(rare.is_empty(), "{rare:?} of {CASES}");
    }
}
