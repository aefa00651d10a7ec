//! Pending pods: a few groups of equal ones, each with some of the constraints that Kubernetes knows.

use std::net::IpAddr;
use std::sync::Arc;

use kerf_core::labels;
use kerf_core::pod::{
    HostPort, NodeInclusionPolicy, OwnerKind, Pod, PodAffinityTerm, PodSpec, Protocol,
    TopologySpread, Weighted, WhenUnsatisfiable,
};
use kerf_core::requirement::{Operator, Requirement};
use kerf_core::requirements::Requirements;
use kerf_core::selector::{LabelSelector, SelectorExpression, SelectorOperator};
use kerf_core::taint::{Toleration, TolerationOperator};
use kerf_core::volume::{Attachment, Volume};

use super::draw::{DEDICATED, DRIVER, Draw, ENI, GPU, TEAM, ZONES, tolerate_everything};
use super::manifest;

pub(super) const APPS: [&str; 4] = ["web", "db", "cache", "batch"];
const MEBIBYTE: i64 = 1 << 20;
const KEYS: [&str; 3] = [labels::ZONE, labels::HOSTNAME, labels::CAPACITY_TYPE];

impl Draw {
    pub(super) fn pending(&mut self) -> Vec<Arc<Pod>> {
        let mut pods = Vec::new();
        for group in 0..self.dice.between(2, 6) {
            let is_other = self.kind("namespaces", 20);
            let namespace = self.namespace(if is_other { "b" } else { "a" });
            let (spec, replicas) = (self.spec(), self.dice.between(1, 6));
            for replica in 0..replicas {
                let name = format!("pod-{group}-{replica}");
                let mut pod = Pod::new(&name, spec.clone());
                pod.namespace = Arc::from(namespace.as_str());
                pods.push(pod);
            }
            if self.kind("volume in a zone", 8) {
                self.give_volumes(
                    pods.iter_mut()
                        .rev()
                        .take(usize::try_from(replicas).unwrap_or(0)),
                );
            }
        }
        pods.into_iter().map(Arc::new).collect()
    }

    fn spec(&mut self) -> PodSpec {
        let cpu = self.dice.pick(&[100, 250, 500, 1000, 1700, 3500]);
        let memory = self.dice.pick(&[100, 512, 1024, 4096]) * MEBIBYTE;
        let mut spec = PodSpec::requesting(cpu, memory);
        spec.owner = OwnerKind::Other;
        let app = self.dice.pick(&APPS);
        spec.labels.insert("app".to_owned(), app.to_owned());
        self.place_by_node(&mut spec);
        self.place_by_pods(&mut spec, app);
        self.spread(&mut spec, app);
        self.resources(&mut spec);
        if self.late_kind("priority", 10) {
            spec.priority = self.late.pick(&manifest::PRIORITIES).1;
        }
        spec
    }

    fn place_by_node(&mut self, spec: &mut PodSpec) {
        if self.kind("node selector", 20) {
            let (key, value) = self.dice.pick(&[
                (labels::ZONE, "zone-a"),
                (labels::ZONE, "zone-b"),
                (labels::ARCH, "amd64"),
                (labels::ARCH, "arm64"),
                (TEAM, "red"),
                (labels::CAPACITY_TYPE, "spot"),
                (labels::INSTANCE_TYPE, "type-1"),
            ]);
            spec.node_selector.insert(key.to_owned(), value.to_owned());
        }
        if self.kind("required node affinity", 20) {
            spec.required_node_terms.push(self.node_term());
            if self.kind("alternatives of node affinity", 40) {
                spec.required_node_terms.push(self.node_term());
            }
        }
        if self.kind("preferred node affinity", 10) {
            let term = self.node_term();
            spec.preferred_node_terms
                .push(Weighted { weight: 10, term });
        }
        if self.kind("tolerations", 30) {
            let all = self.dice.percent(40);
            let is_other = !all && self.late_kind("toleration of another value", 40);
            spec.tolerations.push(if all {
                tolerate_everything()
            } else {
                Toleration {
                    key: Some(DEDICATED.to_owned()),
                    operator: TolerationOperator::Equal,
                    value: if is_other { "no" } else { "yes" }.to_owned(),
                    effect: None,
                }
            });
        }
        if self.kind("scheduling gate", 4) {
            spec.scheduling_gates.push("example.com/wait".to_owned());
        }
    }

    fn node_term(&mut self) -> Requirements {
        let (key, operator, values): (&str, Operator, Vec<&str>) = match self.dice.between(0, 6) {
            0 => (labels::ZONE, Operator::In, self.dice.some(&ZONES)),
            1 => (labels::ZONE, Operator::NotIn, vec!["zone-a"]),
            2 => (TEAM, Operator::Exists, vec![]),
            3 => (TEAM, Operator::DoesNotExist, vec![]),
            4 => (TEAM, Operator::NotIn, vec!["red"]),
            5 => (labels::INSTANCE_CPU, Operator::Gt, vec!["4"]),
            _ => (labels::INSTANCE_CPU, Operator::Lt, vec!["8"]),
        };
        // All of these can be parsed.
        Requirement::parse(key, operator, values)
            .into_iter()
            .collect()
    }

    fn place_by_pods(&mut self, spec: &mut PodSpec, own: &'static str) {
        if self.kind("pod affinity", 15) {
            spec.affinity.push(self.pod_term(own));
        }
        if self.kind("pod anti-affinity", 20) {
            spec.anti_affinity.push(self.pod_term(own));
        }
        if self.kind("preferred pod affinity", 8) {
            let term = self.pod_term(own);
            spec.preferred_affinity.push(Weighted { weight: 5, term });
        }
        if self.kind("preferred pod anti-affinity", 8) {
            let term = self.pod_term(own);
            spec.preferred_anti_affinity
                .push(Weighted { weight: 7, term });
        }
    }

    fn pod_term(&mut self, own: &'static str) -> PodAffinityTerm {
        let other = self.dice.pick(&APPS);
        let app = if self.dice.percent(60) { own } else { other };
        let mut term = term(self.dice.pick(&KEYS), app);
        if self.kind("namespaces of an affinity term", 20) {
            term.namespaces.push(self.namespace("b"));
        } else if self.kind("namespace selector", 20) {
            let all = self.dice.percent(50);
            let env = || LabelSelector::label("env", "b");
            term.namespace_selector = Some(if all { LabelSelector::default() } else { env() });
        }
        if self.kind("expression in a selector", 15) {
            let values = vec![app.to_owned(), other.to_owned()];
            term.selector = Some(LabelSelector {
                match_expressions: vec![SelectorExpression {
                    key: "app".to_owned(),
                    operator: self
                        .dice
                        .pick(&[SelectorOperator::In, SelectorOperator::Exists]),
                    values,
                }],
                ..LabelSelector::default()
            });
        }
        if let Some(expression) = term
            .selector
            .as_mut()
            .and_then(|selector| selector.match_expressions.first_mut())
            && expression.operator == SelectorOperator::Exists
        {
            expression.values.clear();
        }
        term
    }

    fn spread(&mut self, spec: &mut PodSpec, own: &'static str) {
        if !self.kind("topology spread", 35) {
            return;
        }
        let app = if self.dice.percent(80) {
            own
        } else {
            self.dice.pick(&APPS)
        };
        let skew = u32::try_from(self.dice.between(1, 2)).unwrap_or(1);
        let selector = LabelSelector::label("app", app);
        let mut spread = TopologySpread::new(self.dice.pick(&KEYS), skew, selector);
        if self.kind("soft spread", 15) {
            spread.when_unsatisfiable = WhenUnsatisfiable::ScheduleAnyway;
        } else if self.kind("minDomains", 20) {
            spread.min_domains = Some(u32::try_from(self.dice.between(2, 3)).unwrap_or(2));
        }
        if self.kind("nodeAffinityPolicy Ignore", 25) {
            spread.node_affinity_policy = NodeInclusionPolicy::Ignore;
        }
        if self.kind("nodeTaintsPolicy Honor", 25) {
            spread.node_taints_policy = NodeInclusionPolicy::Honor;
        }
        if self.kind("matchLabelKeys", 20) {
            let revision = self.dice.pick(&["1", "2"]).to_owned();
            spec.labels.insert("revision".to_owned(), revision);
            spread.match_label_keys.push("revision".to_owned());
        }
        spec.topology_spread.push(spread);
    }

    fn resources(&mut self, spec: &mut PodSpec) {
        if self.kind("host port", 10) {
            let mut port = host_port(self.dice.pick(&[8080, 9090]));
            if self.late_kind("host port of one address or protocol", 50) {
                let addresses = [[0, 0, 0, 0], [10, 0, 0, 1], [10, 0, 0, 2]];
                port.ip = Some(IpAddr::from(self.late.pick(&addresses)));
                port.protocol = self.late.pick(&[Protocol::Tcp, Protocol::Udp]);
            }
            spec.host_ports.push(port);
        }
        if self.kind("pod with a GPU", 6) {
            spec.requests.set(GPU, 1);
        }
        if self.kind("pod with an ENI", 6) {
            spec.requests.set(ENI, 1);
        }
    }

    /// Each pod gets a bound volume of its own; all are in the same zones.
    fn give_volumes<'a>(&mut self, pods: impl Iterator<Item = &'a mut Pod>) {
        let zones = self.dice.some(&ZONES);
        for pod in pods {
            let mut spec = (*pod.spec).clone();
            spec.volumes.push(Volume {
                claim: format!("{}/{}", pod.namespace, pod.name),
                alternatives: vec![Requirements::from_iter([Requirement::in_values(
                    labels::ZONE,
                    zones.iter().copied(),
                )])],
                attachment: Some(Attachment {
                    driver: DRIVER.to_owned(),
                    handle: format!("{}-{}", pod.namespace, pod.name),
                }),
                problem: None,
            });
            pod.spec = Arc::new(spec);
        }
    }
}

/// Pods of that app in the pod's own namespace.
pub(super) fn term(topology_key: &str, app: &str) -> PodAffinityTerm {
    PodAffinityTerm {
        topology_key: topology_key.to_owned(),
        selector: Some(LabelSelector::label("app", app)),
        ..PodAffinityTerm::default()
    }
}

pub(super) fn host_port(port: u16) -> HostPort {
    HostPort {
        ip: None,
        port,
        protocol: Protocol::Tcp,
    }
}
