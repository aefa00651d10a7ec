//! NodePools, with everything checked that the schema cannot.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use jiff::tz::{Offset, TimeZone};
use kerf_api::condition::{self, ConditionStatus};
use kerf_api::duration::NillableDuration;
use kerf_api::names::{annotation, condition as types, label};
use kerf_api::nodepool as api;
use kerf_core::disruption::budget::{Budget, BudgetNodes, BudgetWindow, DisruptionReason};
use kerf_core::disruption::cron::Cron;
use kerf_core::labels;
use kerf_core::node_pool::{ConsolidationPolicy, Disruption, NodeClassRef, NodePool, NodeTemplate};
use kerf_core::resources::Limits;
use kerf_core::taint::Taint;

use super::evacuation::evacuation;
use super::hysteresis::hysteresis;
use super::{quantities, requirements, taints};
use crate::problem::{Problem, Problems};

/// A NodePool without its instance types, and what is wrong with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// The pool as far as it could be read. With problems it must not grow.
    pub pool: NodePool,
    /// What the condition `ValidationSucceeded` says when it is False.
    pub problems: Vec<Problem>,
    /// Annotations that could not be read and count as not there. They keep the pool from nothing.
    pub ignored: Vec<Problem>,
}

/// Converts a NodePool. With any problem the pool is not ready: half of what a user wrote is not what was meant.
#[must_use]
pub fn node_pool(pool: &api::NodePool) -> Converted {
    let mut problems = Problems::default();
    let spec = &pool.spec;
    let limits = spec.limits.as_ref();
    let limits = limits.map_or_else(Limits::default, |limits| {
        quantities::limits(limits, "spec.limits", &mut problems)
    });
    let annotations = pool.metadata.annotations.clone().unwrap_or_default();
    let mut ignored = Problems::default();
    let mut template = template(&spec.template, &mut problems);
    if let Some(elsewhere) = evacuation(&annotations, &mut ignored) {
        template.requirements.add(elsewhere);
    }
    let zone = time_zone(&annotations, &mut ignored);
    let converted = NodePool {
        name: pool.metadata.name.clone().unwrap_or_default().into(),
        weight: spec
            .weight
            .and_then(|weight| u32::try_from(weight).ok())
            .unwrap_or_default(),
        limits,
        template,
        is_deleting: pool.metadata.deletion_timestamp.is_some(),
        replicas: spec
            .replicas
            .map(|replicas| u32::try_from(replicas).unwrap_or_default()),
        disruption: Disruption {
            hysteresis: hysteresis(&annotations, &mut ignored),
            ..disruption(&spec.disruption, zone.as_ref(), &mut problems)
        },
        unhealthy: unhealthy(pool),
        ..NodePool::default()
    };
    Converted {
        pool: converted,
        problems: problems.finish(),
        ignored: ignored.finish(),
    }
}

/// What keeps its new nodes from joining, if they do not.
fn unhealthy(pool: &api::NodePool) -> Option<String> {
    let health = condition::find(pool.conditions(), types::NODE_REGISTRATION_HEALTHY)?;
    let is_bad = health.status == ConditionStatus::False;
    is_bad.then(|| format!("{}: {}", health.reason, health.message))
}

fn template(template: &api::NodeClaimTemplate, problems: &mut Problems) -> NodeTemplate {
    let metadata = template.metadata.clone().unwrap_or_default();
    let spec = &template.spec;
    for key in metadata.labels.iter().flat_map(BTreeMap::keys) {
        refuse_reserved(
            key,
            &format!("spec.template.metadata.labels[{key}]"),
            problems,
        );
    }
    for (idx, requirement) in spec.requirements.iter().enumerate() {
        let field = format!("spec.template.spec.requirements[{idx}]");
        refuse_reserved(&requirement.key, &format!("{field}.key"), problems);
        check_capacity_types(requirement, &field, problems);
        check_min_values(requirement, &field, problems);
    }

    let taints = taints::taints(
        spec.taints.as_deref().unwrap_or_default(),
        "spec.template.spec.taints",
        problems,
    );
    let startup_taints = taints::taints(
        spec.startup_taints.as_deref().unwrap_or_default(),
        "spec.template.spec.startupTaints",
        problems,
    );
    refuse_repeated(taints.iter().chain(&startup_taints), problems);

    let duration = |value: &Option<NillableDuration>, field: &str, problems: &mut Problems| {
        let value = value.as_ref()?;
        problems
            .ok(&format!("spec.template.spec.{field}"), value.parse())
            .flatten()
    };
    NodeTemplate {
        labels: metadata.labels.unwrap_or_default(),
        annotations: metadata.annotations.unwrap_or_default(),
        taints,
        startup_taints,
        requirements: requirements::requirements(
            &spec.requirements,
            "spec.template.spec.requirements",
            problems,
        ),
        node_class: NodeClassRef {
            group: group(&spec.node_class_ref.group),
            kind: spec.node_class_ref.kind.clone(),
            name: spec.node_class_ref.name.clone(),
        },
        expire_after: duration(&spec.expire_after, "expireAfter", problems),
        termination_grace_period: duration(
            &spec.termination_grace_period,
            "terminationGracePeriod",
            problems,
        ),
    }
}

fn refuse_reserved(key: &str, field: &str, problems: &mut Problems) {
    let key = labels::normalize_key(key);
    if key == labels::NODE_POOL {
        problems.add(
            field,
            format_args!("{key} is set by the controller; remove it"),
        );
    } else if labels::is_restricted(&key) && key != kerf_api::names::label::ECSNODECLASS {
        problems.add(
            field,
            format_args!("{key} belongs to the controller; use a key of your own domain"),
        );
    }
}

/// Karpenter: same. Unknown values beside known ones are let through, since another version may know them.
fn check_capacity_types(
    requirement: &kerf_api::requirement::Requirement,
    field: &str,
    problems: &mut Problems,
) {
    let is_capacity_list =
        requirement.key == labels::CAPACITY_TYPE && requirement.operator.as_str() == "In";
    if !is_capacity_list || requirement.values.is_empty() {
        return;
    }
    let known = |value: &String| kerf_core::instance_type::CapacityType::parse(value).is_some();
    if !requirement.values.iter().any(known) {
        problems.add(
            format!("{field}.values"),
            format_args!(
                "none of {} is a capacity type: use spot, on-demand or reserved",
                requirement.values.join(", ")
            ),
        );
    }
}

fn check_min_values(
    requirement: &kerf_api::requirement::Requirement,
    field: &str,
    problems: &mut Problems,
) {
    let distinct: BTreeSet<&String> = requirement.values.iter().collect();
    let least = requirement
        .min_values
        .and_then(|least| usize::try_from(least).ok());
    let is_list = requirement.operator.as_str() == "In" && !distinct.is_empty();
    if is_list && least.is_some_and(|least| least > distinct.len()) {
        problems.add(
            format!("{field}.minValues"),
            format_args!("is above the {} values that are listed", distinct.len()),
        );
    }
}

fn refuse_repeated<'a>(taints: impl Iterator<Item = &'a Taint>, problems: &mut Problems) {
    let mut seen: Vec<&Taint> = Vec::new();
    for taint in taints {
        if seen.iter().any(|other| other.is_same_kind(taint)) {
            problems.add(
                "spec.template.spec.taints",
                format_args!(
                    "{}:{} is there twice, counting startupTaints",
                    taint.key,
                    taint.effect.as_str()
                ),
            );
        }
        seen.push(taint);
    }
}

/// The time zone of the budgets' schedules; none when it cannot be read.
fn time_zone(annotations: &BTreeMap<String, String>, problems: &mut Problems) -> Option<TimeZone> {
    let Some(name) = annotations.get(annotation::BUDGET_TIME_ZONE) else {
        return Some(TimeZone::UTC);
    };
    let found = offset(name).map(TimeZone::fixed);
    if found.is_none() {
        problems.add(
            format!("metadata.annotations[{}]", annotation::BUDGET_TIME_ZONE),
            format_args!(
                "{name:?} is no difference from UTC such as +08:00; until it is corrected, budgets with a schedule let nothing go"
            ),
        );
    }
    found
}

/// `UTC`, `+08:00` or `-03:30`. Names of zones would need a table of their history in every binary.
fn offset(text: &str) -> Option<Offset> {
    if text == "UTC" {
        return Some(Offset::UTC);
    }
    let (sign, rest) = match text.strip_prefix('+') {
        Some(rest) => (1, rest),
        None => (-1, text.strip_prefix('-')?),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let number = |text: &str, most: i32| {
        let is_plain = text.len() == 2 && text.bytes().all(|it| it.is_ascii_digit());
        let number: i32 = text.parse().ok()?;
        (is_plain && number <= most).then_some(number)
    };
    let seconds = number(hours, 14)? * 3600 + number(minutes, 59)? * 60;
    Offset::from_seconds(sign * seconds).ok()
}

/// Without what other annotations say. `zone` is that of the budgets' schedules, if it could be read.
fn disruption(
    disruption: &api::Disruption,
    zone: Option<&TimeZone>,
    problems: &mut Problems,
) -> Disruption {
    let consolidate_after = disruption.consolidate_after.parse();
    let policy = match &disruption.consolidation_policy {
        api::ConsolidationPolicy::WhenEmpty => ConsolidationPolicy::WhenEmpty,
        api::ConsolidationPolicy::WhenEmptyOrUnderutilized => {
            ConsolidationPolicy::WhenEmptyOrUnderutilized
        }
        api::ConsolidationPolicy::Balanced => ConsolidationPolicy::Balanced,
        api::ConsolidationPolicy::Other(text) => {
            problems.add(
                "spec.disruption.consolidationPolicy",
                format_args!(
                    "{text:?} is not one of {}",
                    api::ConsolidationPolicy::VALUES.join(", ")
                ),
            );
            // What touches least until it is corrected.
            ConsolidationPolicy::WhenEmpty
        }
    };
    let budgets = disruption.budgets.iter().enumerate();
    Disruption {
        consolidate_after: problems
            .ok("spec.disruption.consolidateAfter", consolidate_after)
            .flatten(),
        policy,
        budgets: budgets
            .map(|(idx, it)| {
                let field = format!("spec.disruption.budgets[{idx}]");
                budget(it, zone, &field, problems)
            })
            .collect(),
        ..Disruption::default()
    }
}

/// A budget that cannot be read lets nothing go: guessing could take down a fleet.
fn budget(
    budget: &api::Budget,
    zone: Option<&TimeZone>,
    field: &str,
    problems: &mut Problems,
) -> Budget {
    let nodes = BudgetNodes::parse(&budget.nodes).unwrap_or_else(|| {
        problems.add(
            format!("{field}.nodes"),
            format_args!(
                "{:?} is neither a number nor a percentage up to 100%",
                budget.nodes
            ),
        );
        BudgetNodes::Count(0)
    });
    let mut reasons = Vec::new();
    for reason in budget.reasons.iter().flatten() {
        match DisruptionReason::parse(reason.as_str()) {
            Some(reason) => reasons.push(reason),
            None => problems.add(
                format!("{field}.reasons"),
                format_args!(
                    "{reason} is not one of {}",
                    api::DisruptionReason::VALUES.join(", ")
                ),
            ),
        }
    }
    Budget {
        nodes,
        reasons,
        window: window(budget, zone, field, problems),
    }
}

fn window(
    budget: &api::Budget,
    zone: Option<&TimeZone>,
    field: &str,
    problems: &mut Problems,
) -> BudgetWindow {
    let (schedule, duration) = match (&budget.schedule, &budget.duration) {
        (None, None) => return BudgetWindow::Always,
        (Some(schedule), Some(duration)) => (schedule, duration),
        (Some(_), None) | (None, Some(_)) => {
            let message = "a budget has both schedule and duration, or neither";
            problems.add(field, message);
            return BudgetWindow::Invalid {
                message: message.to_owned(),
            };
        }
    };
    let schedule = problems.ok(&format!("{field}.schedule"), Cron::parse(schedule));
    let duration = problems.ok(&format!("{field}.duration"), duration.parse());
    let schedule = schedule
        .zip(zone)
        .map(|(it, zone)| it.in_zone(zone.clone()));
    match (schedule, duration) {
        (Some(schedule), Some(duration)) => BudgetWindow::Scheduled {
            schedule,
            // `Never` as a length means that it never closes.
            duration: duration.unwrap_or(SignedDuration::MAX),
        },
        (None, _) | (_, None) => BudgetWindow::Invalid {
            message: "schedule, duration or time zone cannot be read".to_owned(),
        },
    }
}

/// A pool of the provider that we take over from stands for our class of the same name; its group cannot be edited.
fn group(written: &str) -> String {
    let is_adopted = written == label::ADOPTED_DOMAIN;
    let group = if is_adopted {
        label::PROVIDER_DOMAIN
    } else {
        written
    };
    group.to_owned()
}
