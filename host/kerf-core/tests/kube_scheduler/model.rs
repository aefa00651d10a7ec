//! kube-scheduler's filters: resources, node selection, taints, host ports, topology spread, pod (anti-)affinity.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_core::labels::HOSTNAME;
use kerf_core::node::Node;
use kerf_core::pod::{
    NodeInclusionPolicy, Pod, PodAffinityTerm, TopologySpread, WhenUnsatisfiable,
};
use kerf_core::requirements::{Requirements, Undefined};
use kerf_core::resources::Resources;
use kerf_core::selector::Labels;
use kerf_core::taint::{Taint, TaintEffect};

#[derive(Debug)]
pub(crate) struct ModelNode {
    pub(crate) labels: Labels,
    pub(crate) taints: Vec<Taint>,
    pub(crate) free: Resources,
    pub(crate) pods: Vec<Arc<Pod>>,
}

impl ModelNode {
    pub(crate) fn existing(node: &Node) -> Self {
        let mut free = node.allocatable.clone();
        for pod in &node.pods {
            free.subtract(&pod.spec.requests);
        }
        Self {
            labels: (&node.labels).into(),
            taints: node.taints.clone(),
            free,
            pods: node.pods.to_vec(),
        }
    }

    fn suits_affinity(&self, pod: &Pod) -> bool {
        let labels = Requirements::from_labels(&self.labels);
        let selector = Requirements::from_labels(&pod.spec.node_selector);
        let terms = &pod.spec.required_node_terms;
        labels.is_compatible(&selector, Undefined::Denied)
            && (terms.is_empty()
                || terms
                    .iter()
                    .any(|term| labels.is_compatible(term, Undefined::Denied)))
    }

    fn suits_taints(&self, pod: &Pod) -> bool {
        let hard = self
            .taints
            .iter()
            .filter(|taint| taint.effect != TaintEffect::PreferNoSchedule);
        hard.into_iter().all(|taint| {
            pod.spec
                .tolerations
                .iter()
                .any(|toleration| toleration.tolerates(taint))
        })
    }
}

#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<ModelNode>,
}

impl Cluster {
    pub(crate) fn bind(&mut self, pod: &Arc<Pod>, node: usize) {
        self.nodes[node].free.subtract(&pod.spec.requests);
        self.nodes[node].pods.push(Arc::clone(pod));
    }

    /// Why the pod may not run on the node.
    pub(crate) fn refusal(&self, pod: &Arc<Pod>, idx: usize) -> Option<String> {
        let node = &self.nodes[idx];
        if let Some(resource) = pod.spec.requests.first_shortage(&node.free) {
            return Some(format!("too little {resource}"));
        }
        if !node.suits_affinity(pod) {
            return Some("node affinity".to_owned());
        }
        if !node.suits_taints(pod) {
            return Some("taints".to_owned());
        }
        let taken = |port: &kerf_core::pod::HostPort| {
            node.pods
                .iter()
                .flat_map(|other| &other.spec.host_ports)
                .any(|other| other.conflicts_with(port))
        };
        if pod.spec.host_ports.iter().any(taken) {
            return Some("host port".to_owned());
        }
        self.spread_refusal(pod, node)
            .or_else(|| self.affinity_refusal(pod, node))
    }

    fn spread_refusal(&self, pod: &Arc<Pod>, node: &ModelNode) -> Option<String> {
        let hard: Vec<&TopologySpread> = pod
            .spec
            .topology_spread
            .iter()
            .filter(|spread| spread.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule)
            .collect();
        for spread in &hard {
            let Some(domain) = node.labels.get(&spread.topology_key) else {
                return Some(format!("spread: no label {}", spread.topology_key));
            };
            let counts = self.spread_counts(pod, spread, &hard);
            let matches_itself = spread_selects(spread, pod, pod);
            let mut least = counts.values().copied().min().unwrap_or(0);
            if counts.len() < spread.min_domains.unwrap_or(1) as usize {
                least = 0;
            }
            let own = counts.get(domain.as_str()).copied().unwrap_or(0) + u32::from(matches_itself);
            if own > least + spread.max_skew {
                return Some(format!(
                    "spread over {}: {own} in {domain}, of {counts:?}",
                    spread.topology_key
                ));
            }
        }
        None
    }

    fn spread_counts<'a>(
        &'a self,
        pod: &Pod,
        spread: &TopologySpread,
        hard: &[&TopologySpread],
    ) -> BTreeMap<&'a str, u32> {
        let mut counts = BTreeMap::new();
        for node in &self.nodes {
            let has_keys = hard
                .iter()
                .all(|spread| node.labels.contains_key(&spread.topology_key));
            let affinity = spread.node_affinity_policy == NodeInclusionPolicy::Ignore
                || node.suits_affinity(pod);
            let taints =
                spread.node_taints_policy == NodeInclusionPolicy::Ignore || node.suits_taints(pod);
            if !(has_keys && affinity && taints) {
                continue;
            }
            let matching = node
                .pods
                .iter()
                .filter(|other| spread_selects(spread, pod, other))
                .count();
            *counts
                .entry(node.labels[&spread.topology_key].as_str())
                .or_default() += u32::try_from(matching).unwrap();
        }
        counts
    }

    /// The pods of the nodes that share the node's value of the label.
    fn pods_in_domain(&self, node: &ModelNode, key: &str) -> Vec<&Arc<Pod>> {
        let Some(domain) = node.labels.get(key) else {
            return Vec::new();
        };
        let same = self
            .nodes
            .iter()
            .filter(|other| other.labels.get(key) == Some(domain));
        same.flat_map(|other| &other.pods).collect()
    }

    fn affinity_refusal(&self, pod: &Arc<Pod>, node: &ModelNode) -> Option<String> {
        let in_domain = |key: &str| self.pods_in_domain(node, key).into_iter();
        for term in &pod.spec.anti_affinity {
            if let Some(other) =
                in_domain(&term.topology_key).find(|other| term_selects(term, pod, other))
            {
                return Some(format!(
                    "anti-affinity over {} to {}",
                    term.topology_key, other.name
                ));
            }
        }
        for other in self.nodes.iter().flat_map(|node| &node.pods) {
            for term in other
                .spec
                .anti_affinity
                .iter()
                .filter(|term| term_selects(term, other, pod))
            {
                if in_domain(&term.topology_key).any(|there| there.uid == other.uid) {
                    return Some(format!(
                        "anti-affinity of {} over {}",
                        other.name, term.topology_key
                    ));
                }
            }
        }
        let terms = &pod.spec.affinity;
        let matches_all =
            |other: &Arc<Pod>| terms.iter().all(|term| term_selects(term, pod, other));
        let mut unmet = terms
            .iter()
            .filter(|term| !in_domain(&term.topology_key).any(matches_all))
            .peekable();
        unmet.peek()?;
        let keyed: BTreeSet<&str> = terms
            .iter()
            .map(|term| term.topology_key.as_str())
            .collect();
        let anywhere = self
            .nodes
            .iter()
            .filter(|node| keyed.iter().any(|key| node.labels.contains_key(*key)));
        let is_first = !anywhere.flat_map(|node| &node.pods).any(&matches_all);
        let has_keys = keyed.iter().all(|key| node.labels.contains_key(*key));
        let may_be_first = is_first && matches_all(pod) && has_keys;
        (!may_be_first).then(|| format!("affinity; hosts {:?}", node.labels.get(HOSTNAME)))
    }
}

fn spread_selects(spread: &TopologySpread, owner: &Pod, other: &Pod) -> bool {
    let Some(selector) = &spread.selector else {
        return false;
    };
    let same_values = spread
        .match_label_keys
        .iter()
        .all(|key| match owner.spec.labels.get(key) {
            Some(value) => other.spec.labels.get(key) == Some(value),
            None => true,
        });
    owner.namespace == other.namespace && same_values && selector.matches(&other.spec.labels)
}

fn term_selects(term: &PodAffinityTerm, owner: &Pod, other: &Pod) -> bool {
    let own = term.namespaces.is_empty() && term.namespace_selector.is_none();
    let namespace = if own {
        owner.namespace == other.namespace
    } else {
        // The generator only uses the selector that means all.
        term.namespace_selector.is_some()
            || term
                .namespaces
                .iter()
                .any(|name| **name == *other.namespace)
    };
    namespace
        && term
            .selector
            .as_ref()
            .is_some_and(|selector| selector.matches(&other.spec.labels))
}
