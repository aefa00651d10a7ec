//! Why each pod of a plan is where it is, as JSON: what `kerf simulate -o json` and `kerf explain` print.
//!
//! The shape is open for readers: fields that do not apply are left out, new constraints and fields may come. Its schema
//! is docs/reference/explanation.schema.json, generated from these types.

use kerf_core::plan::{Placement, PlacementTarget, Plan, PlannedClaim};
use kerf_core::pod::Pod;
use kerf_core::reason::{Failure, PoolFailure, Shortage, UnschedulableReason};
use kerf_core::resources::quantity_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every pod of a plan, those without a place first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanations {
    /// One entry per pod: by outcome, then in the order of planning.
    pub pods: Vec<PodExplanation>,
}

/// Why one pod is where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodExplanation {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What becomes of it.
    pub outcome: Outcome,
    /// The node that it is planned on, when it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The NodeClaim that it is planned on, when it exists but has no node yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_claim: Option<String>,
    /// The NodePool that launches a node for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_pool: Option<String>,
    /// Why, in one line: the text of its event.
    pub message: String,
    /// Why it has no place: `NodePools` when each pool has a reason of its own, in `pools`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What keeps each NodePool from serving it, in the order in which they were tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolExplanation>,
}

/// What becomes of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Outcome {
    /// It has no place.
    Unschedulable,
    /// A node is launched for it.
    NewNode,
    /// It goes to a node that exists or is on its way.
    ExistingNode,
}

/// What keeps one NodePool from serving a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolExplanation {
    /// The NodePool.
    pub node_pool: String,
    /// The constraint that failed, as a word: `Taint`, `Requirement`, `TooLarge`, `Unavailable`, `Limit` and so on.
    pub constraint: String,
    /// How it failed, in one line.
    pub message: String,
    /// How near the best instance type that can be bought came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closest: Option<Closest>,
    /// The smallest instance type that fits, when it cannot be bought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest_that_fits: Option<String>,
    /// Where that one cannot be bought, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<UnavailableAt>,
}

/// How near an instance type came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Closest {
    /// The instance type.
    pub instance_type: String,
    /// The resource of which it has too little.
    pub resource: String,
    /// What the pod asks for, as a quantity.
    pub needed: String,
    /// What daemons take first, as a quantity.
    pub daemons: String,
    /// What it leaves after daemons, as a quantity.
    pub left: String,
}

/// Where an instance type cannot be bought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnavailableAt {
    /// The zone.
    pub zone: String,
    /// `reserved`, `spot` or `on-demand`.
    pub capacity_type: String,
    /// Why.
    pub reason: String,
}

impl Explanations {
    /// Explains every pod of the plan.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let refused = plan
            .unschedulable
            .iter()
            .flat_map(|group| group.pods.iter().map(|pod| refused(pod, &group.reason)));
        let new = plan
            .new_claims
            .iter()
            .flat_map(|claim| claim.pods.iter().map(|pod| on_new_node(pod, claim)));
        let placed = plan.placements.iter().map(on_existing_node);
        Self {
            pods: refused.chain(new).chain(placed).collect(),
        }
    }
}

fn explanation(pod: &Pod, outcome: Outcome, message: String) -> PodExplanation {
    PodExplanation {
        namespace: pod.namespace.to_string(),
        name: pod.name.to_string(),
        outcome,
        node: None,
        node_claim: None,
        node_pool: None,
        message,
        reason: None,
        pools: Vec::new(),
    }
}

fn refused(pod: &Pod, reason: &UnschedulableReason) -> PodExplanation {
    let pools = match reason {
        UnschedulableReason::NodePools(failures) => failures.iter().map(pool).collect(),
        _ => Vec::new(),
    };
    PodExplanation {
        reason: Some(reason_word(reason).to_owned()),
        pools,
        ..explanation(pod, Outcome::Unschedulable, reason.to_string())
    }
}

fn on_new_node(pod: &Pod, claim: &PlannedClaim) -> PodExplanation {
    PodExplanation {
        node_pool: Some(claim.pool.to_string()),
        ..explanation(pod, Outcome::NewNode, claim.reason.clone())
    }
}

fn on_existing_node(placement: &Placement) -> PodExplanation {
    let message = placement.reason.to_string();
    let mut result = explanation(&placement.pod, Outcome::ExistingNode, message);
    match &placement.node {
        PlacementTarget::Node(name) => result.node = Some(name.to_string()),
        PlacementTarget::InFlight(name) => result.node_claim = Some(name.to_string()),
    }
    result
}

fn pool(failure: &PoolFailure) -> PoolExplanation {
    let mut result = PoolExplanation {
        node_pool: failure.pool.to_string(),
        constraint: constraint_word(&failure.failure).to_owned(),
        message: failure.failure.to_string(),
        closest: None,
        smallest_that_fits: None,
        unavailable: Vec::new(),
    };
    match &failure.failure {
        Failure::TooLarge(shortage) => result.closest = Some(closest(shortage)),
        Failure::Unavailable(it) => {
            result.closest = it.closest.as_ref().map(closest);
            result.smallest_that_fits = Some(it.smallest.to_string());
            let offerings = it.offerings.iter().map(|offering| UnavailableAt {
                zone: offering.zone.to_string(),
                capacity_type: offering.capacity_type.to_string(),
                reason: offering.reason.clone(),
            });
            result.unavailable = offerings.collect();
        }
        _ => {}
    }
    result
}

fn closest(shortage: &Shortage) -> Closest {
    let show = |amount| quantity_of(&shortage.resource, amount).to_string();
    Closest {
        instance_type: shortage.closest.to_string(),
        resource: shortage.resource.clone(),
        needed: show(shortage.needed),
        daemons: show(shortage.daemons),
        left: show(shortage.left),
    }
}

fn reason_word(reason: &UnschedulableReason) -> &'static str {
    match reason {
        UnschedulableReason::Gated { .. } => "Gated",
        UnschedulableReason::Invalid { .. } => "Invalid",
        UnschedulableReason::RestrictedLabel { .. } => "RestrictedLabel",
        UnschedulableReason::RefusesNodePools => "RefusesNodePools",
        UnschedulableReason::Volume { .. } => "Volume",
        UnschedulableReason::ResourceClaims => "ResourceClaims",
        UnschedulableReason::NoNodePools => "NoNodePools",
        UnschedulableReason::NodePools(_) => "NodePools",
        UnschedulableReason::BudgetExhausted => "BudgetExhausted",
    }
}

fn constraint_word(failure: &Failure) -> &'static str {
    match failure {
        Failure::NotReady { .. } => "NotReady",
        Failure::Taint(_) => "Taint",
        Failure::Requirement(_) => "Requirement",
        Failure::NoInstanceType { .. } => "NoInstanceType",
        Failure::TooLarge(_) => "TooLarge",
        Failure::Unavailable(_) => "Unavailable",
        Failure::Limit { .. } => "Limit",
        Failure::MinValues { .. } => "MinValues",
        Failure::TopologySpread { .. } => "TopologySpread",
        Failure::PodAffinity { .. } => "PodAffinity",
        Failure::PodAntiAffinity { .. } => "PodAntiAffinity",
        Failure::HostPort(_) => "HostPort",
        Failure::ReservedCapacity => "ReservedCapacity",
        Failure::VolumeTopology { .. } => "VolumeTopology",
        Failure::Barred { .. } => "Barred",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kerf_core::pod::PodSpec;
    use kerf_core::reason::{Unavailable, UnavailableOffering, Unschedulable};

    use super::*;

    fn refused_by_stock() -> Plan {
        let offering = |zone: &str| UnavailableOffering {
            zone: zone.into(),
            capacity_type: kerf_core::instance_type::CapacityType::OnDemand,
            reason: "no stock".to_owned(),
        };
        let unavailable = Unavailable {
            closest: Some(Shortage {
                resource: "cpu".to_owned(),
                needed: 3500,
                daemons: 300,
                closest: "ecs.g7.xlarge".into(),
                left: 3120,
            }),
            smallest: "ecs.g7.2xlarge".into(),
            offerings: vec![offering("h"), offering("i")],
        };
        let failure = PoolFailure {
            pool: "general".into(),
            failure: Failure::Unavailable(unavailable),
        };
        let group = Unschedulable {
            pods: vec![Arc::new(Pod::new("web", PodSpec::requesting(3500, 0)))],
            reason: UnschedulableReason::NodePools(vec![failure]),
        };
        Plan {
            unschedulable: vec![group],
            ..Plan::default()
        }
    }

    #[test]
    fn a_pod_whose_only_fitting_type_is_out_of_stock_is_told_how_near_the_others_came() {
        let explained = Explanations::of(&refused_by_stock());

        assert_eq!(
            explained.pods[0].message,
            "pool general: needs 3500m cpu after 300m for daemons; ecs.g7.xlarge leaves 3120m; \
             the smallest that fits is ecs.g7.2xlarge, no stock in h and i (on-demand)"
        );
        let json = serde_json::to_value(&explained).unwrap();
        let pool = &json["pods"][0]["pools"][0];
        assert_eq!(pool["constraint"], "Unavailable");
        assert_eq!(pool["closest"]["left"], "3120m");
        assert_eq!(pool["smallestThatFits"], "ecs.g7.2xlarge");
        assert_eq!(pool["unavailable"][1]["zone"], "i");
        let back: Explanations = serde_json::from_value(json).unwrap();
        assert_eq!(back, explained);
    }
}
