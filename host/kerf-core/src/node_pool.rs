//! NodePools as decisions see them: defaults filled in, instance types resolved.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;

use crate::disruption::budget::Budget;
use crate::disruption::settings::Hysteresis;
use crate::ids::{NodePoolName, ZoneId};
use crate::instance_type::{CapacityType, InstanceType, Offering};
use crate::labels;
use crate::node::Node;
use crate::requirements::Requirements;
use crate::resources::Limits;
use crate::schedule::{template_requirements, type_meets};
use crate::strength::Strength;
use crate::taint::Taint;

/// A reference to a NodeClass.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeClassRef {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// What a NodeClaim of the pool starts from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeTemplate {
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`.
    pub annotations: BTreeMap<String, String>,
    /// Taints that stay.
    pub taints: Vec<Taint>,
    /// Taints that something removes while the node starts.
    pub startup_taints: Vec<Taint>,
    /// `spec.requirements`.
    pub requirements: Requirements,
    /// The NodeClass.
    pub node_class: NodeClassRef,
    /// How long a node may live; none for ever.
    pub expire_after: Option<SignedDuration>,
    /// How long a drain may take; none for ever.
    pub termination_grace_period: Option<SignedDuration>,
}

/// Which nodes consolidation may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConsolidationPolicy {
    /// Only empty ones.
    WhenEmpty,
    /// Any that saves money.
    #[default]
    WhenEmptyOrUnderutilized,
    /// Any whose saving is worth its disruption.
    Balanced,
}

/// `spec.disruption`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disruption {
    /// How long a node must be quiet; none for never.
    pub consolidate_after: Option<SignedDuration>,
    /// What may be consolidated.
    pub policy: ConsolidationPolicy,
    /// How many nodes may go at once.
    pub budgets: Vec<Budget>,
    /// What a consolidation must bring, from the pool's annotations.
    pub hysteresis: Hysteresis,
}

impl Default for Disruption {
    fn default() -> Self {
        Self {
            consolidate_after: Some(SignedDuration::ZERO),
            policy: ConsolidationPolicy::default(),
            budgets: vec![Budget::default()],
            hysteresis: Hysteresis::default(),
        }
    }
}

/// A NodePool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodePool {
    /// Its name.
    pub name: NodePoolName,
    /// Pools of higher weight are tried first; 0 when not set.
    pub weight: u32,
    /// What its nodes may have together.
    pub limits: Limits,
    /// What its claims start from.
    pub template: NodeTemplate,
    /// What its nodes can be. Pools of one NodeClass share the list.
    pub instance_types: Arc<Vec<Arc<InstanceType>>>,
    /// Free IP addresses per zone: the sum over the vSwitches that its NodeClass selects.
    pub free_ips: BTreeMap<ZoneId, u64>,
    /// Whether the zone with the fewest of its nodes comes before a lower price.
    pub is_zone_balanced: bool,
    /// Why it cannot be used now ("NodeClassNotReady: …"); none when it can.
    pub not_ready: Option<String>,
    /// Why its new nodes are not trusted to join (condition `NodeRegistrationHealthy` is False); drift waits for that.
    pub unhealthy: Option<String>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Set for static pools, which never serve pending pods by new nodes.
    pub replicas: Option<u32>,
    /// Disruption settings.
    pub disruption: Disruption,
}

impl NodePool {
    /// Whether new nodes may be made for pending pods.
    pub fn can_grow_for_pods(&self) -> bool {
        self.not_ready.is_none() && !self.is_deleting && self.replicas.is_none()
    }

    /// Whether none of the known instance types is one that its requirements allow, sold in a way that they allow.
    pub fn has_no_compatible_types(&self) -> bool {
        let wanted = template_requirements(self);
        let is_sold = |it: &InstanceType| {
            let mut offerings = it.offerings.iter();
            offerings.any(|offering| offering.is_allowed_by(&wanted))
        };
        !self.instance_types.is_empty() && !self.types_for(&wanted).any(is_sold)
    }

    /// How much of what its requirements allow can be launched now.
    pub fn strength(&self) -> Strength {
        let wanted = template_requirements(self);
        Strength::of(self.types_for(&wanted), |it| it.is_allowed_by(&wanted))
    }

    /// What its requirements allow of what is sold, whether it can be launched now or not.
    pub fn allowed_offerings(&self) -> Vec<(&InstanceType, &Offering)> {
        let wanted = template_requirements(self);
        let types = self.types_for(&wanted);
        let offerings = types.flat_map(|it| it.offerings.iter().map(move |of| (it, of)));
        offerings
            .filter(|(_, of)| of.is_allowed_by(&wanted))
            .collect()
    }

    fn types_for<'a>(&'a self, wanted: &Requirements) -> impl Iterator<Item = &'a InstanceType> {
        let meets =
            |it: &InstanceType| wanted.iter().all(|requirement| type_meets(it, requirement));
        self.instance_types
            .iter()
            .map(|it| &**it)
            .filter(move |it| meets(it))
    }

    /// What a node was bought as, by its labels; none where that is not sold now.
    pub fn offering_of(&self, node: &Node) -> Option<&Offering> {
        let label = |key: &str| node.labels.get(key);
        let name = label(labels::INSTANCE_TYPE)?;
        let capacity_type = CapacityType::parse(label(labels::CAPACITY_TYPE)?)?;
        let mut types = self.instance_types.iter();
        types
            .find(|it| *it.name == *name)?
            .offering(node.zone()?, capacity_type)
    }
}
