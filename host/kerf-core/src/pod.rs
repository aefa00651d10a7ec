//! Pods as decisions see them.
//!
//! A [`Pod`] is an identity and a shared [`PodSpec`]. Pods of one ReplicaSet have equal specs: whoever builds the
//! snapshot may share one `Arc` among them, which makes grouping them nearly free, but need not.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::ids::PodUid;
use crate::requirements::Requirements;
use crate::resources::Resources;
use crate::selector::{LabelSelector, Labels};
use crate::taint::Toleration;
use crate::volume::Volume;

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its uid.
    pub uid: PodUid,
    /// When it was created; the age that orders equal pods.
    pub created_at: Timestamp,
    /// When the kubelet took it; what a temporary do-not-disrupt counts from.
    pub started_at: Option<Timestamp>,
    /// How far its life has come.
    pub phase: PodPhase,
    /// Whether it is Ready; what a PodDisruptionBudget may make depend on.
    pub is_ready: bool,
    /// What forbids its disruption.
    pub do_not_disrupt: DoNotDisrupt,
    /// What makes it impossible to plan ("uses matchFields"), found while it was read. Such a pod is only reported.
    pub invalid: Option<String>,
    /// Everything that scheduling depends on.
    pub spec: Arc<PodSpec>,
}

impl Pod {
    /// A pending pod of the default namespace whose uid is its name.
    pub fn new(name: &str, spec: PodSpec) -> Self {
        Self {
            namespace: Arc::from("default"),
            name: Arc::from(name),
            uid: PodUid::from(name),
            created_at: Timestamp::UNIX_EPOCH,
            started_at: None,
            phase: PodPhase::Active,
            is_ready: true,
            do_not_disrupt: DoNotDisrupt::No,
            invalid: None,
            spec: Arc::new(spec),
        }
    }

    /// Whether it must run again elsewhere when its node goes.
    pub fn is_reschedulable(&self) -> bool {
        let owned_by_node = matches!(self.spec.owner, OwnerKind::DaemonSet | OwnerKind::Node);
        let lives = match self.phase {
            PodPhase::Active => true,
            PodPhase::Terminating => self.spec.owner == OwnerKind::StatefulSet,
            PodPhase::Terminal => false,
        };
        lives && !owned_by_node
    }

    /// Whether it is a pod of a CapacityBuffer, which exists in plans only.
    pub fn is_virtual(&self) -> bool {
        self.spec.owner == OwnerKind::CapacityBuffer
    }

    /// Whether something forbids its disruption at that time.
    pub fn forbids_disruption(&self, now: Timestamp) -> bool {
        match self.do_not_disrupt {
            DoNotDisrupt::No => false,
            DoNotDisrupt::Forever => true,
            DoNotDisrupt::For(duration) => self.started_at.is_none_or(|start| {
                // A time beyond the calendar never comes.
                start.checked_add(duration).map_or(true, |end| now < end)
            }),
        }
    }
}

/// How far a pod's life has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PodPhase {
    /// Pending or running.
    #[default]
    Active,
    /// Being deleted.
    Terminating,
    /// Succeeded or failed; it uses nothing any more.
    Terminal,
}

/// The `karpenter.sh/do-not-disrupt` annotation of a pod and its older names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DoNotDisrupt {
    /// Not set, or malformed.
    #[default]
    No,
    /// Until it is taken away.
    Forever,
    /// For that long after the pod's start.
    For(SignedDuration),
}

/// Who controls a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum OwnerKind {
    /// Nobody: once gone it stays gone.
    #[default]
    None,
    /// A DaemonSet.
    DaemonSet,
    /// The kubelet (a mirror pod).
    Node,
    /// A StatefulSet.
    StatefulSet,
    /// A ReplicaSet, Job or any other.
    Other,
    /// A CapacityBuffer, whose pods do not exist.
    CapacityBuffer,
}

/// Everything of a pod that scheduling depends on. Two pods with equal specs are interchangeable.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PodSpec {
    /// Its labels, which selectors of other pods look at.
    pub labels: Labels,
    /// What it asks for, all containers together, with `pods: 1`.
    pub requests: Resources,
    /// `nodeSelector`, keys as written.
    pub node_selector: BTreeMap<String, String>,
    /// Required node affinity: one of these terms must hold. Empty: none is required.
    pub required_node_terms: Vec<Requirements>,
    /// Preferred node affinity.
    pub preferred_node_terms: Vec<Weighted<Requirements>>,
    /// Required pod affinity.
    pub affinity: Vec<PodAffinityTerm>,
    /// Preferred pod affinity.
    pub preferred_affinity: Vec<Weighted<PodAffinityTerm>>,
    /// Required pod anti-affinity.
    pub anti_affinity: Vec<PodAffinityTerm>,
    /// Preferred pod anti-affinity.
    pub preferred_anti_affinity: Vec<Weighted<PodAffinityTerm>>,
    /// Its tolerations.
    pub tolerations: Vec<Toleration>,
    /// Topology spread constraints.
    pub topology_spread: Vec<TopologySpread>,
    /// Host ports of its containers and sidecars.
    pub host_ports: Vec<HostPort>,
    /// Its volumes that limit where it can run.
    pub volumes: Vec<Volume>,
    /// Its priority.
    pub priority: i32,
    /// `controller.kubernetes.io/pod-deletion-cost`.
    pub deletion_cost: i32,
    /// Who controls it.
    pub owner: OwnerKind,
    /// Names of its scheduling gates; with any it is not planned.
    pub scheduling_gates: Vec<String>,
    /// Whether it has resource claims (DRA), which kerf does not plan.
    pub has_resource_claims: bool,
}

impl PodSpec {
    /// A spec that asks for cpu and memory and one pod, and nothing else.
    pub fn requesting(cpu_milli: i64, memory_bytes: i64) -> Self {
        Self {
            requests: Resources::of(cpu_milli, memory_bytes).with("pods", 1),
            ..Self::default()
        }
    }

    fn looks_at_pods(&self) -> bool {
        !(self.topology_spread.is_empty()
            && self.affinity.is_empty()
            && self.preferred_affinity.is_empty()
            && self.anti_affinity.is_empty()
            && self.preferred_anti_affinity.is_empty())
    }
}

/// Whether any of the pods can take the place of any other, whichever comes first: all ask for the same, and none looks at where
/// other pods are.
pub fn are_alike<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> bool {
    let mut pods = pods.into_iter().map(|pod| &pod.spec);
    let Some(first) = pods.next() else {
        return true;
    };
    let mut wanted = (**first).clone();
    !first.looks_at_pods()
        && pods.all(|spec| {
            Arc::ptr_eq(spec, first) || {
                wanted.labels.clone_from(&spec.labels);
                wanted == **spec
            }
        })
}

/// A preference and how much it counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weighted<T> {
    /// 1 to 100.
    pub weight: i32,
    /// What is preferred.
    pub term: T,
}

/// A term of pod affinity or anti-affinity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PodAffinityTerm {
    /// The label whose values are the domains.
    pub topology_key: String,
    /// The pods that it speaks of; none matches no pod.
    pub selector: Option<LabelSelector>,
    /// Namespaces by name. Empty and no selector: the pod's own.
    pub namespaces: Vec<String>,
    /// Namespaces by label; an empty selector means all.
    pub namespace_selector: Option<LabelSelector>,
    /// Label keys whose value on the pod is added to the selector.
    pub match_label_keys: Vec<String>,
    /// Label keys whose value on the pod is excluded from the selector.
    pub mismatch_label_keys: Vec<String>,
}

/// What a spread constraint does when it cannot be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum WhenUnsatisfiable {
    /// The pod waits.
    #[default]
    DoNotSchedule,
    /// The pod is placed anyway.
    ScheduleAnyway,
}

/// Whether a spread constraint leaves out nodes that the pod could not use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeInclusionPolicy {
    /// It leaves them out.
    Honor,
    /// It counts all nodes.
    Ignore,
}

/// A topology spread constraint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopologySpread {
    /// How much fuller than the emptiest domain one may be.
    pub max_skew: u32,
    /// The label whose values are the domains.
    pub topology_key: String,
    /// What to do when it cannot be met.
    pub when_unsatisfiable: WhenUnsatisfiable,
    /// The pods that are counted; none matches no pod.
    pub selector: Option<LabelSelector>,
    /// With fewer eligible domains than this the emptiest counts as 0.
    pub min_domains: Option<u32>,
    /// Whether nodes that the pod's node affinity refuses are left out.
    pub node_affinity_policy: NodeInclusionPolicy,
    /// Whether nodes whose taints the pod does not tolerate are left out.
    pub node_taints_policy: NodeInclusionPolicy,
    /// Label keys whose value on the pod is added to the selector.
    pub match_label_keys: Vec<String>,
}

impl TopologySpread {
    /// A hard constraint with Kubernetes' defaults.
    pub fn new(topology_key: &str, max_skew: u32, selector: LabelSelector) -> Self {
        Self {
            max_skew,
            topology_key: topology_key.to_owned(),
            when_unsatisfiable: WhenUnsatisfiable::DoNotSchedule,
            selector: Some(selector),
            min_domains: None,
            node_affinity_policy: NodeInclusionPolicy::Honor,
            node_taints_policy: NodeInclusionPolicy::Ignore,
            match_label_keys: Vec::new(),
        }
    }
}

/// Transport protocols of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

/// A port of the host that a pod takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// The address; none is every address.
    pub ip: Option<IpAddr>,
    /// The port.
    pub port: u16,
    /// The protocol.
    pub protocol: Protocol,
}

impl HostPort {
    /// Whether one node cannot serve both.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let same_address = match (self.specific_ip(), other.specific_ip()) {
            (Some(left), Some(right)) => left == right,
            (None, _) | (_, None) => true,
        };
        self.port == other.port && self.protocol == other.protocol && same_address
    }

    fn specific_ip(&self) -> Option<IpAddr> {
        self.ip.filter(|ip| !ip.is_unspecified())
    }
}

/// The pod that a DaemonSet would put on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonPod {
    /// The DaemonSet's namespace.
    pub namespace: Arc<str>,
    /// The DaemonSet's name.
    pub name: Arc<str>,
    /// The newest live pod's spec with the template's node affinity, or the template's.
    pub spec: Arc<PodSpec>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(cpu_milli: i64, labels: &[(&str, &str)]) -> Pod {
        let mut spec = PodSpec::requesting(cpu_milli, 0);
        let labels = labels.iter().map(|(key, value)| (*key, *value));
        spec.labels = labels
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
        Pod::new("a", spec)
    }

    #[test]
    fn pods_are_alike_whose_labels_alone_differ_unless_they_look_at_others() {
        let (first, second) = (pod(100, &[("index", "0")]), pod(100, &[("index", "1")]));
        assert!(are_alike([]));
        assert!(are_alike([&first, &second]));
        assert!(!are_alike([&first, &second, &pod(200, &[])]));

        let spread = TopologySpread::new("zone", 1, LabelSelector::default());
        let spread = PodSpec {
            topology_spread: vec![spread],
            ..(*first.spec).clone()
        };
        let apart = PodSpec {
            anti_affinity: vec![PodAffinityTerm::default()],
            ..(*first.spec).clone()
        };
        for spec in [spread, apart] {
            let looking = Pod::new("b", spec);
            assert!(!are_alike([&looking, &looking]));
            assert!(!are_alike([&first, &looking]));
        }
    }
}
