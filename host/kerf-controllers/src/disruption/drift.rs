//! Drift: whether a claim is still what its pool and class would make today, and what differs if not. Pure.

use jiff::{SignedDuration, Timestamp};
use kerf_api::names::{annotation, condition, reason};
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodepool::NodePool;
use kerf_cloud::provider::class::Architecture;
use kerf_core::instance_type::CapacityType;
use kerf_core::labels;
use kerf_core::requirements::{Requirements, Undefined};
use kube::ResourceExt;

use crate::adoption::is_adopted;
use crate::disruption::hash::{CLASS_HASH, POOL_HASH};
use crate::disruption::networks::Network;
use crate::events::created_at;
use crate::interruption::notice::{Kind, Notice};
use crate::node_class::ClassState;

/// What a claim is compared with.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Its pool.
    pub pool: &'a NodePool,
    /// The pool's requirements; none while they cannot be read.
    pub requirements: Option<&'a Requirements>,
    /// Its class; none while it is not resolved, and then nothing of the cloud is judged.
    pub class: Option<&'a ClassState>,
    /// The policies whose change rolls out the pool's nodes; none while one does not serve.
    pub policies: Option<&'a str>,
    /// Where its instance is; none while it was not listed.
    pub network: Option<&'a Network>,
    /// A claim must be this old before its instance type is missed.
    pub type_delay: SignedDuration,
}

/// What the comparison came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is what would be made today.
    Current,
    /// It is not.
    Drifted(Drift),
    /// Nothing differs of what could be looked at, but not all could be.
    Unknown,
}

/// What differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The reason of the condition.
    pub reason: &'static str,
    /// Its message: what the claim has, and what would be made today.
    pub message: String,
}

/// Reasons that are judged without the class: while the class is not resolved, the others stay as they were.
const OF_POOL: [&str; 3] = [
    reason::NODEPOOL_DRIFTED,
    reason::REQUIREMENTS_DRIFTED,
    reason::MAINTENANCE_SCHEDULED,
];

/// Whether a condition with this reason stays when the verdict is unknown.
#[must_use]
pub fn outlives_unknown(reason: &str) -> bool {
    !OF_POOL.contains(&reason)
}

/// Compares a claim with what would be made today; the first difference counts, in the order of Karpenter.
#[must_use]
pub fn judge(claim: &NodeClaim, wanted: &Wanted<'_>, now: Timestamp) -> Verdict {
    if let Some(drift) = maintenance(claim) {
        return Verdict::Drifted(drift);
    }
    // The class of another provider is not ours to read, and the pool refers to ours by now.
    if is_adopted(&claim.spec.node_class_ref) || !claim.is_true(condition::LAUNCHED) {
        return Verdict::Current;
    }
    if let Some(drift) = pool_hash(claim, wanted.pool).or_else(|| requirements(claim, wanted)) {
        return Verdict::Drifted(drift);
    }
    let Some(class) = wanted.class else {
        return Verdict::Unknown;
    };
    let is_old = now.duration_since(created_at(claim)) >= wanted.type_delay;
    let found = Some(claim)
        .filter(|_| is_old)
        .and_then(|claim| instance_type(claim, class))
        .or_else(|| class_hash(claim, class))
        .or_else(|| image(claim, class))
        .or_else(|| vswitch(wanted.network?, class))
        .or_else(|| security_groups(wanted.network?, class))
        .or_else(|| policies(claim, wanted.policies?));
    match found {
        Some(drift) => Verdict::Drifted(drift),
        None if wanted.network.is_none() || wanted.policies.is_none() => Verdict::Unknown,
        None => Verdict::Current,
    }
}

fn drift(reason: &'static str, message: String) -> Option<Drift> {
    Some(Drift { reason, message })
}

/// The platform is going to work on its host: what takes its place is made before that, within the budgets.
fn maintenance(claim: &NodeClaim) -> Option<Drift> {
    let notice = Notice::of(claim).filter(|it| it.kind == Kind::Maintenance)?;
    drift(reason::MAINTENANCE_SCHEDULED, notice.to_string())
}

fn pool_hash(claim: &NodeClaim, pool: &NodePool) -> Option<Drift> {
    let (own, today) = (
        POOL_HASH.read(claim.annotations())?,
        POOL_HASH.read(pool.annotations())?,
    );
    if own == today {
        return None;
    }
    let message = format!(
        "the template of NodePool {} is another than when this was made",
        pool.name_any()
    );
    drift(reason::NODEPOOL_DRIFTED, message)
}

fn requirements(claim: &NodeClaim, wanted: &Wanted<'_>) -> Option<Drift> {
    let own = Requirements::from_labels(claim.labels());
    let conflict = own.first_incompatibility(wanted.requirements?, Undefined::Denied)?;
    let found = match &conflict.offered {
        Some(offered) => format!("this has {offered}"),
        None => "this has no such label".to_owned(),
    };
    let message = format!(
        "NodePool {} requires {}: {found}",
        wanted.pool.name_any(),
        conflict.wanted
    );
    drift(reason::REQUIREMENTS_DRIFTED, message)
}

/// An offering without stock is still one: only what is not sold any more is missed.
fn instance_type(claim: &NodeClaim, class: &ClassState) -> Option<Drift> {
    let label = |key: &str| claim.labels().get(key).map(String::as_str);
    let name = label(labels::INSTANCE_TYPE)?;
    let found = class.instance_types.iter().find(|it| *it.name == *name);
    let Some(found) = found else {
        let message = format!("instance type {name} is not offered any more");
        return drift(reason::INSTANCE_TYPE_NOT_FOUND, message);
    };
    let zone = label(labels::ZONE)?;
    let capacity_type = CapacityType::parse(label(labels::CAPACITY_TYPE)?)?;
    let is_same = |own: CapacityType| {
        // A reservation ends while its instance goes on as on-demand.
        own == capacity_type
            || (capacity_type == CapacityType::Reserved && own == CapacityType::OnDemand)
    };
    let is_sold = found
        .offerings
        .iter()
        .any(|it| *it.zone == *zone && is_same(it.capacity_type));
    if is_sold {
        return None;
    }
    let message =
        format!("instance type {name} is not offered as {capacity_type} in {zone} any more");
    drift(reason::INSTANCE_TYPE_NOT_FOUND, message)
}

fn class_hash(claim: &NodeClaim, class: &ClassState) -> Option<Drift> {
    if CLASS_HASH.read(claim.annotations())? == class.hash {
        return None;
    }
    let name = &claim.spec.node_class_ref.name;
    let message = format!("ECSNodeClass {name} is another than when this was launched");
    drift(reason::NODE_CLASS_DRIFT, message)
}

fn image(claim: &NodeClaim, class: &ClassState) -> Option<Drift> {
    let own = claim.status.as_ref()?.image_id.as_deref()?;
    let architecture = match claim.labels().get(labels::ARCH)?.as_str() {
        "amd64" => Architecture::Amd64,
        "arm64" => Architecture::Arm64,
        _ => return None,
    };
    // A class without an image of this architecture makes no such nodes: their types are missed instead.
    let today = class.resolved.image_for(architecture)?;
    if today.id == own {
        return None;
    }
    let message = format!(
        "it was started from image {own}, new nodes start from {}",
        today.id
    );
    drift(reason::IMAGE_DRIFT, message)
}

fn vswitch(network: &Network, class: &ClassState) -> Option<Drift> {
    let own = &network.vswitch_id;
    if own.is_empty() || class.resolved.vswitches.iter().any(|it| it.id == *own) {
        return None;
    }
    let message = format!("its vSwitch {own} is not one of the class's any more");
    drift(reason::VSWITCH_DRIFT, message)
}

fn security_groups(network: &Network, class: &ClassState) -> Option<Drift> {
    let own: Vec<&str> = network
        .security_group_ids
        .iter()
        .map(String::as_str)
        .collect();
    let mut today: Vec<&str> = class
        .resolved
        .security_groups
        .iter()
        .map(|it| it.id.as_str())
        .collect();
    today.sort_unstable();
    if own.is_empty() || own == today {
        return None;
    }
    let message = format!(
        "it is in the security groups {}, new nodes are in {}",
        own.join(", "),
        today.join(", ")
    );
    drift(reason::SECURITY_GROUP_DRIFT, message)
}

fn policies(claim: &NodeClaim, today: &str) -> Option<Drift> {
    let own = claim.annotations().get(annotation::LAUNCH_POLICIES)?;
    if own == today {
        return None;
    }
    let message = format!("policies that wrote it: [{own}], today: [{today}]");
    drift(reason::POLICY_DRIFT, message)
}

#[cfg(test)]
mod tests;
