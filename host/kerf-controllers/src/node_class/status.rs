//! The status of an ECSNodeClass. Pure.

use std::sync::Arc;

use jiff::Timestamp;
use kerf_api::condition::{Condition, ConditionStatus, Conditions};
use kerf_api::ecsnodeclass::EcsNodeClass;
use kerf_api::ecsnodeclass::policy::{FailurePolicy, Policy, PolicyMode};
use kerf_api::ecsnodeclass::status::{
    EcsNodeClassStatus, ImageStatus, PolicyStage, PolicyState, PolicyStatus, SecurityGroupStatus,
    VSwitchStatus,
};
use kerf_api::names::{condition, reason};
use kerf_cloud::provider::class::{ResolveKind, ResolveProblem, ResolvedNodeClass};
use kerf_core::strength::Strength;

use crate::events::created_at;
use crate::node_class::ClassState;
use crate::strength;

/// The condition of each kind of problem, with the reason when it is there.
const KINDS: [(ResolveKind, &str, &str); 6] = [
    (
        ResolveKind::Cluster,
        condition::CLUSTER_RESOLVED,
        reason::CLUSTER_RESOLUTION_FAILED,
    ),
    (
        ResolveKind::VSwitch,
        condition::VSWITCH_RESOLVED,
        reason::VSWITCH_RESOLUTION_FAILED,
    ),
    (
        ResolveKind::SecurityGroup,
        condition::SECURITY_GROUP_RESOLVED,
        reason::SECURITY_GROUP_RESOLUTION_FAILED,
    ),
    (
        ResolveKind::Image,
        condition::IMAGE_RESOLVED,
        reason::IMAGE_RESOLUTION_FAILED,
    ),
    (
        ResolveKind::KeyPair,
        condition::KEY_PAIR_RESOLVED,
        reason::KEY_PAIR_RESOLUTION_FAILED,
    ),
    (
        ResolveKind::CapacityReservation,
        condition::CAPACITY_RESERVATION_RESOLVED,
        reason::CAPACITY_RESERVATION_RESOLUTION_FAILED,
    ),
];

/// What to write: conditions always, findings only when there are new ones (an unreachable cloud unlearns nothing).
#[must_use]
pub fn status(
    class: &EcsNodeClass,
    resolved: &Result<Arc<ResolvedNodeClass>, Vec<ResolveProblem>>,
    loaded: Result<&Arc<ClassState>, &String>,
    policies: &[PolicyStatus],
    now: Timestamp,
) -> EcsNodeClassStatus {
    let mut status = class.status.clone().unwrap_or_default();
    let generation = class.metadata.generation.unwrap_or_default();
    let mut conditions = Conditions::open(
        EcsNodeClass::CONDITIONS,
        class.conditions(),
        generation,
        created_at(class),
        now,
    );
    let problems: &[ResolveProblem] = resolved.as_ref().err().map_or(&[], Vec::as_slice);
    for (kind, type_, reason) in KINDS {
        let found: Vec<String> = problems
            .iter()
            .filter(|it| it.kind == kind)
            .map(|it| it.message.clone())
            .collect();
        if found.is_empty() {
            conditions.set_true(type_);
        } else {
            conditions.set_false(type_, reason, &found.join("; "));
        }
    }
    if let (Ok(_), Err(obstacle)) = (resolved, loaded) {
        conditions.set_false(
            condition::CLUSTER_RESOLVED,
            reason::CLOUD_UNREACHABLE,
            obstacle,
        );
    }
    set_policies(&mut conditions, &class.spec.policies, policies);
    if let Ok(state) = loaded {
        let types = state.instance_types.iter().map(|it| &**it);
        let strength = Strength::of(types, |_| true);
        strength::set(&mut conditions, &strength);
        status.elastic_strength = Some(strength::shown(&strength));
    }
    if let Ok(resolved) = resolved {
        record(&mut status, resolved);
    }
    status.policies = policies.to_vec();
    status.conditions = conditions.finish();
    status
}

/// Not loaded comes before not answering: it is what has to be mended first.
fn set_policies(conditions: &mut Conditions, declared: &[Policy], policies: &[PolicyStatus]) {
    set_stages(conditions, policies);
    let is_loaded = |it: &&PolicyStatus| it.state == PolicyState::Ready;
    let unloaded = policies.iter().filter(|it| !is_loaded(it)).map(|it| {
        let error = it.last_error.as_deref().unwrap_or("not loaded");
        format!("policy {}: {error}", it.name)
    });
    let unloaded: Vec<String> = unloaded.collect();
    let silent = policies.iter().filter(is_loaded).filter_map(|it| {
        let error = it.last_error.as_deref()?;
        let what_follows = what_follows(declared.iter().find(|entry| entry.name == it.name));
        Some(format!("policy {}: {error}; {what_follows}", it.name))
    });
    let silent: Vec<String> = silent.collect();
    let is_coming = |it: &PolicyStatus| it.state == PolicyState::Loading;
    let (reason, problems) = if unloaded.is_empty() {
        (reason::POLICY_CALL_FAILED, silent)
    } else if policies.iter().filter(|it| !is_loaded(it)).all(is_coming) {
        (reason::POLICY_LOADING, unloaded)
    } else {
        (reason::POLICY_LOAD_FAILED, unloaded)
    };
    if problems.is_empty() {
        conditions.set_true(condition::POLICIES_READY);
    } else {
        let problems = problems.join("; ");
        match reason {
            // Nothing is wrong; it takes a while.
            reason::POLICY_LOADING => {
                conditions.set_unknown(condition::POLICIES_READY, reason, &problems);
            }
            _ => conditions.set_false(condition::POLICIES_READY, reason, &problems),
        }
    }
}

/// The condition of each state of a swap but the last, whose condition is PoliciesReady.
const STAGES: [(PolicyStage, &str); 5] = [
    (PolicyStage::Fetched, condition::POLICIES_FETCHED),
    (PolicyStage::Verified, condition::POLICIES_VERIFIED),
    (PolicyStage::Compiled, condition::POLICIES_COMPILED),
    (PolicyStage::Described, condition::POLICIES_DESCRIBED),
    (PolicyStage::ConfigValid, condition::POLICIES_CONFIG_VALID),
];

/// A version that misses a state makes it False, and those after it Unknown.
fn set_stages(conditions: &mut Conditions, policies: &[PolicyStatus]) {
    let place = |stage: &PolicyStage| STAGES.iter().position(|(it, _)| it == stage);
    let reached = |it: &PolicyStatus| {
        it.stage.as_ref().map_or(0, |stage| {
            // The last state has no place among these, and whoever is there has them all.
            place(stage).map_or(STAGES.len(), |at| at + 1)
        })
    };
    for (at, (_, type_)) in STAGES.iter().enumerate() {
        let missing = policies.iter().filter(|it| reached(it) <= at);
        let missing: Vec<&PolicyStatus> = missing.collect();
        let here = missing.iter().filter(|it| reached(it) == at).map(|it| {
            let error = it.last_error.as_deref().unwrap_or("not there yet");
            format!("policy {}: {error}", it.name)
        });
        let here: Vec<String> = here.collect();
        let is_coming = missing.iter().all(|it| it.state == PolicyState::Loading);
        let reason = match is_coming {
            true => reason::POLICY_LOADING,
            false => reason::POLICY_LOAD_FAILED,
        };
        match (policies.is_empty(), missing.is_empty(), here.is_empty()) {
            (true, _, _) => conditions.clear(type_),
            (_, true, _) => conditions.set_true(type_),
            (_, _, true) => conditions.set_unknown(type_, reason, "a state before it is missed"),
            _ if is_coming => conditions.set_unknown(type_, reason, &here.join("; ")),
            _ => conditions.set_false(type_, reason, &here.join("; ")),
        }
    }
}

fn what_follows(entry: Option<&Policy>) -> &'static str {
    let is_enforced = entry.is_some_and(|it| it.mode != PolicyMode::Monitor);
    let is_fatal = entry.is_some_and(|it| it.effective_failure_policy() == FailurePolicy::Fail);
    match is_enforced && is_fatal {
        true => {
            "nothing is launched in its pools until it answers, because its failurePolicy is Fail"
        }
        false => "kerf goes on without it",
    }
}

fn record(status: &mut EcsNodeClassStatus, resolved: &ResolvedNodeClass) {
    status.cluster_id = Some(resolved.cluster_id.clone()).filter(|id| !id.is_empty());
    let vswitches = resolved.vswitches.iter();
    status.v_switches = vswitches
        .map(|it| VSwitchStatus {
            id: it.id.clone(),
            zone_id: it.zone_id.clone(),
            available_ip_address_count: i64::try_from(it.ips_available).ok(),
        })
        .collect();
    let groups = resolved.security_groups.iter();
    status.security_groups = groups
        .map(|it| SecurityGroupStatus {
            id: it.id.clone(),
            name: Some(it.name.clone()).filter(|name| !name.is_empty()),
        })
        .collect();
    let images = resolved.images.iter();
    status.images = images
        .map(|it| ImageStatus {
            id: it.id.clone(),
            name: Some(it.name.clone()).filter(|name| !name.is_empty()),
            architecture: it.architecture.as_str().to_owned(),
        })
        .collect();
}

/// Conditions that are False now and were not, or say something else now.
#[must_use]
pub fn worsened<'a>(before: &[Condition], after: &'a [Condition]) -> Vec<&'a Condition> {
    let is_news = |now: &&Condition| {
        let then = kerf_api::condition::find(before, &now.type_);
        // How many ways there are to launch something changes with every look at the stock.
        let is_counted = now.type_ == condition::ELASTIC_STRENGTH;
        then.is_none_or(|then| {
            then.status != now.status
                || then.reason != now.reason
                || (then.message != now.message && !is_counted)
        })
    };
    let is_cause =
        |it: &&Condition| it.type_ != condition::READY && it.status == ConditionStatus::False;
    after.iter().filter(is_cause).filter(is_news).collect()
}
