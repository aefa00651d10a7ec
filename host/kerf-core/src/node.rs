//! Nodes that exist or are on their way.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::bound_pods::BoundPods;
use crate::ids::{NodeClaimName, NodeName, NodePoolName};
use crate::instance_type::CapacityType;
use crate::labels;
use crate::node_labels::{Found, NodeLabels};
use crate::preferences::OfferingKey;
use crate::requirements::Requirements;
use crate::resources::Resources;
use crate::taint::Taint;

/// A node of the cluster, or a NodeClaim that will become one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// The Node object's name; none while there is only a NodeClaim.
    pub name: Option<NodeName>,
    /// The NodeClaim; none for nodes that kerf does not manage.
    pub node_claim: Option<NodeClaimName>,
    /// The NodePool that owns it.
    pub pool: Option<NodePoolName>,
    /// Labels: the node's, or the claim's with those of its planned offering while there is no node.
    pub labels: NodeLabels,
    /// Taints: the node's, or the claim's while it is not registered.
    pub taints: Vec<Taint>,
    /// The claim's startup taints, which are ignored until the node is initialised.
    pub startup_taints: Vec<Taint>,
    /// What its pods can use. Where a young node reports zero, the claim's value.
    pub allocatable: Resources,
    /// What the machine has, for limits.
    pub capacity: Resources,
    /// The pods bound to it, finished ones included.
    pub pods: BoundPods,
    /// Volumes per CSI driver that it can attach; a driver that is not named has no limit.
    pub attachment_limits: BTreeMap<String, u32>,
    /// When the claim, or else the node, was created.
    pub created_at: Option<Timestamp>,
    /// Whether its instance exists.
    pub is_launched: bool,
    /// Whether the Node is Ready.
    pub is_ready: bool,
    /// Whether kerf has registered it.
    pub is_registered: bool,
    /// Whether it has initialised.
    pub is_initialized: bool,
    /// Whether the claim or node object is being deleted.
    pub is_deleting: bool,
    /// Whether a disruption command has chosen it. Such a node takes no new pods and its pods are planned elsewhere.
    pub is_marked_for_deletion: bool,
    /// Until when pods that were planned here are expected; such a node is not disrupted.
    pub nominated_until: Option<Timestamp>,
    /// `karpenter.sh/do-not-disrupt: "true"` on the node.
    pub forbids_disruption: bool,
    /// When its last pod came, went or finished; what consolidateAfter counts from.
    pub last_pod_event: Option<Timestamp>,
    /// When it initialised; what consolidateAfter counts from on a node that never had a pod.
    pub initialized_at: Option<Timestamp>,
    /// Virtual pods of CapacityBuffers that it stands in for.
    pub buffer_pods: u32,
    /// Set when it differs from what its NodePool or NodeClass asks for (condition `Drifted`).
    pub drifted: Option<Drift>,
    /// When `expireAfter` ends it; none for never.
    pub expires_at: Option<Timestamp>,
    /// How long its drain may take; none for ever.
    pub termination_grace_period: Option<SignedDuration>,
    /// What it took the place of when it was made, from the claim's annotation [`labels::REPLACED`].
    pub replaced: Vec<Replaced>,
}

/// How a node differs from what is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The condition's reason (`NodePoolDrifted`, `ImageDrift`).
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
}

/// What a node took the place of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Replaced {
    /// The offering that went.
    pub offering: OfferingKey,
    /// When.
    pub at: Timestamp,
}

impl Replaced {
    /// How many are remembered, some 60 bytes each: about as many types as one pool ever uses within a day. With 16, pods
    /// that a day of coming and going moved from node to node went back to types that had been forgotten.
    pub const KEPT_MAX: usize = 64;

    /// Reads what [`Self::write_all`] wrote. What cannot be read is left out: the guard only loses that memory.
    pub fn parse_all(text: &str) -> Vec<Self> {
        let parse = |item: &str| {
            let (offering, at) = item.split_once('@')?;
            let mut parts = offering.split('/');
            let (instance_type, zone, capacity_type) =
                (parts.next()?, parts.next()?, parts.next()?);
            Some(Self {
                offering: OfferingKey {
                    instance_type: instance_type.into(),
                    zone: zone.into(),
                    capacity_type: CapacityType::parse(capacity_type)?,
                },
                at: at.parse().ok()?,
            })
        };
        text.split(',')
            .filter_map(parse)
            .take(Self::KEPT_MAX)
            .collect()
    }

    /// As `type/zone/capacity-type@time`, separated by commas, newest first.
    pub fn write_all(items: &[Self]) -> String {
        let mut newest: Vec<&Self> = items.iter().collect();
        newest.sort_by(|a, b| (b.at, &a.offering).cmp(&(a.at, &b.offering)));
        newest.dedup();
        let write = |it: &&Self| format!("{}@{}", it.offering, it.at);
        let written: Vec<String> = newest.iter().take(Self::KEPT_MAX).map(write).collect();
        written.join(",")
    }
}

impl Node {
    /// The name to show: the node's, or the claim's.
    pub fn display_name(&self) -> &str {
        match (&self.name, &self.node_claim) {
            (Some(name), _) => name,
            (None, Some(claim)) => claim,
            (None, None) => "",
        }
    }

    /// Whether kerf manages it.
    pub fn is_managed(&self) -> bool {
        self.node_claim.is_some()
    }

    /// Whether new pods can be planned on it.
    pub fn is_active(&self) -> bool {
        !self.is_deleting && !self.is_marked_for_deletion
    }

    /// The zone label.
    pub fn zone(&self) -> Option<&str> {
        self.labels.get(labels::ZONE)
    }

    /// What the (canonical) label key is. A node that is on its way will have its name as its host's.
    pub(crate) fn label(&self, key: &str) -> Found<'_> {
        match self.labels.on(key) {
            Found::Nothing if key == labels::HOSTNAME => Found::Value(self.display_name()),
            found @ (Found::Nothing | Found::Value(_) | Found::Contradiction) => found,
        }
    }

    /// Whether its labels satisfy what is wanted.
    pub(crate) fn meets(&self, wanted: &Requirements) -> bool {
        wanted.iter().all(|it| self.label(it.key()).meets(it))
    }

    /// The taints that a pod must tolerate. Those that go away during start-up do not count before it is over.
    pub fn effective_taints(&self) -> impl Iterator<Item = &Taint> {
        let is_starting = self.is_managed() && !self.is_initialized;
        self.taints.iter().filter(move |taint| {
            let goes_away = taint.is_ephemeral()
                || self
                    .startup_taints
                    .iter()
                    .any(|startup| startup.is_same_kind(taint));
            !(is_starting && goes_away)
        })
    }

    /// Whether pods are expected on it at that time.
    pub fn is_nominated(&self, now: Timestamp) -> bool {
        self.nominated_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_replaced_survives_its_annotation() {
        let written = "ecs.g7.large/h/spot@2026-08-20T10:00:00Z,ecs.c7.large/i/on-demand@2026-08-19T10:00:00Z";
        assert_eq!(Replaced::write_all(&Replaced::parse_all(written)), written);
        assert_eq!(Replaced::parse_all("nonsense,a/b/c@d,"), []);
    }

    use crate::taint::TaintEffect;

    #[test]
    fn start_up_taints_count_once_the_node_is_initialised() {
        let taint = Taint::new("example.com/agent", TaintEffect::NoSchedule);
        let mut node = Node {
            node_claim: Some("general-1".into()),
            taints: vec![taint.clone(), Taint::unregistered()],
            startup_taints: vec![taint],
            ..Node::default()
        };

        assert_eq!(node.effective_taints().count(), 0);

        node.is_initialized = true;
        assert_eq!(node.effective_taints().count(), 2);
    }
}
