//! What DaemonSets take from a node, exactly per instance type and per existing node.

use super::vector::{ResourceIndex, Vector};
use crate::instance_type::{InstanceType, Offering};
use crate::labels;
use crate::node::Node;
use crate::node_pool::NodePool;
use crate::planted::{self, Bug};
use crate::pod::{DaemonPod, HostPort, PodSpec};
use crate::requirements::{Requirements, Undefined};
use crate::resources::Resources;
use crate::schedule::pool::type_meets;
use crate::taint::{Taint, TaintEffect, Toleration, first_untolerated};

/// The daemons that tolerate a pool, each with the requirement sets of which one must hold.
#[derive(Debug)]
pub(super) struct DaemonLoad {
    daemons: Vec<PoolDaemon>,
    nothing: Vector,
}

#[derive(Debug)]
struct PoolDaemon {
    terms: Vec<Requirements>,
    requests: Vector,
    ports: Vec<HostPort>,
}

/// What daemons take from a node.
#[derive(Debug, Clone)]
pub(super) struct Load {
    pub(super) requests: Vector,
    pub(super) ports: Vec<HostPort>,
}

impl DaemonLoad {
    pub(super) fn of_pool(
        pool: &NodePool,
        template: &Requirements,
        daemons: &[DaemonPod],
        resources: &ResourceIndex,
    ) -> Self {
        let on_pool = daemons
            .iter()
            .filter(|daemon| tolerates(&daemon.spec, &pool.template.taints));
        let daemons = on_pool.filter_map(|daemon| {
            let terms = strict_terms(&daemon.spec).into_iter();
            let terms = terms
                .filter(|term| template.is_compatible(term, Undefined::WellKnownAllowed))
                .collect::<Vec<_>>();
            let requests = resources.vector(&daemon.spec.requests.with_one_pod());
            (!terms.is_empty()).then(|| PoolDaemon {
                terms,
                requests,
                ports: daemon.spec.host_ports.clone(),
            })
        });
        Self {
            daemons: daemons.collect(),
            nothing: resources.vector(&Resources::default()),
        }
    }

    /// The daemons that come to nodes of the type.
    pub(super) fn on(&self, instance_type: &InstanceType) -> TypeDaemons<'_> {
        let mut on_type = TypeDaemons {
            load: self,
            always: Vec::new(),
            by_offering: Vec::new(),
        };
        for (idx, daemon) in self.daemons.iter().enumerate() {
            let met = daemon.terms.iter().filter(|term| {
                term.iter()
                    .all(|requirement| type_meets(instance_type, requirement))
            });
            let met: Vec<&Requirements> = met.collect();
            if met.is_empty() || planted::is_on(Bug::DaemonsForgotten) {
                continue;
            }
            if met.iter().all(|term| asks_for_offering(term)) {
                on_type.by_offering.push((idx, met));
            } else {
                on_type.always.push(idx);
            }
        }
        on_type
    }
}

/// Whether it is up to the offering, and not to the type alone, that a daemon comes.
fn asks_for_offering(term: &Requirements) -> bool {
    let keys = [labels::ZONE, labels::CAPACITY_TYPE, labels::RESERVATION_ID];
    keys.iter().any(|key| term.on(key).is_some())
}

/// The daemons that come to nodes of one instance type.
#[derive(Debug)]
pub(super) struct TypeDaemons<'a> {
    load: &'a DaemonLoad,
    /// However the node is bought.
    always: Vec<usize>,
    /// Only where the node's offering meets one of the terms.
    by_offering: Vec<(usize, Vec<&'a Requirements>)>,
}

impl TypeDaemons<'_> {
    /// Which of those that come to some nodes only come to nodes of that offering.
    pub(super) fn only_on(&self, offering: &Offering) -> Vec<usize> {
        let met = self
            .by_offering
            .iter()
            .filter(|(_, terms)| terms.iter().any(|term| offering.is_allowed_by(term)));
        met.map(|(idx, _)| *idx).collect()
    }

    /// What those and the others take together.
    pub(super) fn with(&self, only_here: &[usize]) -> Load {
        let mut load = Load {
            requests: self.load.nothing.clone(),
            ports: Vec::new(),
        };
        for idx in self.always.iter().chain(only_here) {
            let daemon = &self.load.daemons[*idx];
            load.requests.add(&daemon.requests);
            load.ports.extend(&daemon.ports);
        }
        load
    }
}

/// Daemons with the requirement sets of which a node must meet one.
#[derive(Debug)]
pub(crate) struct Daemons<'d>(Vec<(&'d DaemonPod, Vec<Requirements>)>);

impl<'d> Daemons<'d> {
    pub(crate) fn of(daemons: &'d [DaemonPod]) -> Self {
        let daemons = daemons.iter();
        Self(daemons.map(|it| (it, strict_terms(&it.spec))).collect())
    }

    /// Those that belong on an existing node, whether they are there yet or not.
    pub(crate) fn belonging(&self, node: &Node) -> Vec<&'d DaemonPod> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let taints: Vec<Taint> = node.effective_taints().cloned().collect();
        let belongs = |(daemon, terms): &&(&DaemonPod, Vec<Requirements>)| {
            tolerates(&daemon.spec, &taints) && terms.iter().any(|term| node.meets(term))
        };
        let belonging = self.0.iter().filter(belongs);
        belonging.map(|(daemon, _)| *daemon).collect()
    }
}

/// What daemons will still take from an existing node: those that belong there less those that are there.
pub(crate) fn outstanding_on(node: &Node, belonging: &[&DaemonPod]) -> Resources {
    let mut outstanding = Resources::default();
    if belonging.is_empty() {
        return outstanding;
    }
    for daemon in belonging {
        outstanding.add(&daemon.spec.requests.with_one_pod());
    }
    outstanding.subtract(&node.pods.held().by_daemons);
    outstanding.clear_negatives();
    outstanding
}

/// `nodeSelector` with each of the required terms: one of the sets must hold.
pub(crate) fn strict_terms(spec: &PodSpec) -> Vec<Requirements> {
    let selector = Requirements::from_labels(&spec.node_selector);
    if spec.required_node_terms.is_empty() {
        return vec![selector];
    }
    spec.required_node_terms
        .iter()
        .filter_map(|term| selector.together(term))
        .collect()
}

/// A DaemonSet's pods come to a node whatever it would prefer.
fn tolerates(spec: &PodSpec, taints: &[Taint]) -> bool {
    let mut tolerations = spec.tolerations.clone();
    tolerations.push(Toleration::every(TaintEffect::PreferNoSchedule));
    first_untolerated(taints, &tolerations).is_none()
}
