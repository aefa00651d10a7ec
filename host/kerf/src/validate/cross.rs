//! What no rule of one definition can see: objects against each other, against the instance types of a region and
//! against the calendar.

use std::collections::BTreeSet;

use anyhow::Result;
use jiff::Timestamp;
use kerf_api::nodepool::{Budget, NodePool};
use kerf_cloud::provider::catalog::{Catalog, CatalogType};
use kerf_core::disruption::cron::Cron;
use kerf_core::labels;
use kerf_core::requirement::{Operator, Requirement};
use serde_json::Value;

use super::Finding;
use crate::document::Document;

/// A day from which schedules are looked at; any would do, since a schedule that names a real day does so every year
/// or every leap year.
const SOME_DAY: Timestamp = Timestamp::UNIX_EPOCH;
/// Keys that the table of types answers for, but for the maker of the processor, which it does not know.
const INSTANCE_KEYS: &str = "karpenter.alibabacloud.com/instance-";
const REQUIREMENTS: &str = "spec.template.spec.requirements";

/// What is wrong, by the index of the document.
pub(super) fn check(documents: &[Document], region: &str) -> Result<Vec<(usize, Finding)>> {
    let catalog = Catalog::embedded(region, &[])?;
    let mut findings = Vec::new();
    let mut pools = Vec::new();
    for (idx, document) in documents.iter().enumerate() {
        if document.value["kind"] != "NodePool" {
            continue;
        }
        // A pool that does not read has findings of its own.
        let Ok(pool) = serde_json::from_value::<NodePool>(document.value.clone()) else {
            continue;
        };
        let own = check_types(&pool, &catalog)
            .into_iter()
            .chain(check_budgets(&pool));
        findings.extend(own.map(|finding| (idx, finding)));
        pools.push(pool);
    }
    if !pools.is_empty() {
        let known = topology_keys(&pools);
        for (idx, document) in documents.iter().enumerate() {
            check_topology(&document.value, "", &known, &mut |finding| {
                findings.push((idx, finding));
            });
        }
    }
    Ok(findings)
}

/// A pool that no type satisfies, and limits below the smallest node of the pool.
fn check_types(pool: &NodePool, catalog: &Catalog) -> Vec<Finding> {
    let mut fitting: Vec<&CatalogType> = catalog.types.iter().collect();
    for (idx, item) in pool.spec.template.spec.requirements.iter().enumerate() {
        let Some(operator) = Operator::parse(item.operator.as_str()) else {
            continue;
        };
        let values = item.values.iter().map(String::as_str);
        let Ok(requirement) = Requirement::parse(&item.key, operator, values) else {
            continue;
        };
        let before = fitting.len();
        fitting.retain(|row| is_met(&requirement, row, &catalog.region));
        if fitting.is_empty() {
            let reason = format!(
                "no instance type of {} is left: {before} meet the requirements before this one, and none has {} {} {}",
                catalog.region,
                item.key,
                item.operator,
                item.values.join(", ")
            );
            return vec![Finding::new(&format!("{REQUIREMENTS}[{idx}]"), reason)];
        }
    }
    check_limits(pool, &fitting)
}

/// Whether a type can meet a requirement. What the type says nothing about is a label of the user, which any node can have.
fn is_met(requirement: &Requirement, row: &CatalogType, region: &str) -> bool {
    match requirement.key() {
        labels::ZONE => row.offerings.iter().any(|it| requirement.has(&it.zone)),
        labels::CAPACITY_TYPE => {
            // Reserved capacity depends on the account, not on the type.
            let is_sold = |it: &str| requirement.has(it);
            is_sold("reserved") || row.offerings.iter().any(|it| is_sold(&it.capacity_type))
        }
        key => {
            let known = row
                .facts()
                .map(|facts| facts.labels(region))
                .unwrap_or_default();
            match known.get(key) {
                Some(value) => requirement.has(value),
                None => {
                    let is_of_types =
                        key.starts_with(INSTANCE_KEYS) && key != labels::INSTANCE_CPU_MODEL;
                    requirement.tolerates_absence() || !is_of_types
                }
            }
        }
    }
}

fn check_limits(pool: &NodePool, fitting: &[&CatalogType]) -> Vec<Finding> {
    let least_cpus = fitting
        .iter()
        .map(|row| f64::from(row.cpus))
        .reduce(f64::min);
    let least_mib = fitting.iter().map(|row| row.memory_mib).min();
    let mut findings = Vec::new();
    let limit = |name: &str| {
        let text = pool.spec.limits.as_ref()?.get(name)?;
        kerf_core::quantity::Quantity::parse(&text.0).ok()
    };
    let mut check = |name: &str, least: Option<String>| {
        let Some(least) = least else {
            return;
        };
        let parsed = kerf_core::quantity::Quantity::parse(&least).ok();
        if let (Some(limit), Some(smallest)) = (limit(name), parsed)
            && limit < smallest
        {
            let reason = format!(
                "below the smallest node that this pool can have ({least}): no node is ever made"
            );
            findings.push(Finding::new(&format!("spec.limits.{name}"), reason));
        }
    };
    check("cpu", least_cpus.map(|cpus| cpus.to_string()));
    check("memory", least_mib.map(|mib| format!("{mib}Mi")));
    check("nodes", Some("1".to_owned()));
    findings
}

/// Budgets that never let a node be disrupted, and windows that never begin.
fn check_budgets(pool: &NodePool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (idx, budget) in pool.spec.disruption.budgets.iter().enumerate() {
        let path = format!("spec.disruption.budgets[{idx}]");
        if let Some(schedule) = &budget.schedule {
            match Cron::parse(schedule) {
                Err(error) => {
                    findings.push(Finding::new(&format!("{path}.schedule"), error.to_string()));
                }
                Ok(cron) if cron.next_after(SOME_DAY).is_none() => {
                    let reason = format!(
                        "the schedule {schedule:?} names no day that exists: the budget never applies"
                    );
                    findings.push(Finding::new(&format!("{path}.schedule"), reason));
                }
                Ok(_) => {}
            }
        } else if is_closed(budget) {
            let reason = "this budget is always closed, so that nodes are never disrupted for its reasons, drift included: \
                          give it a schedule and a duration, or use consolidateAfter: Never";
            findings.push(Finding::new(&format!("{path}.nodes"), reason));
        }
    }
    findings
}

fn is_closed(budget: &Budget) -> bool {
    budget.nodes.trim_end_matches('%').parse() == Ok(0_u32)
}

/// The keys that nodes of the pools can have several values of.
fn topology_keys(pools: &[NodePool]) -> BTreeSet<String> {
    let mut keys: BTreeSet<String> = labels::WELL_KNOWN
        .iter()
        .map(|key| (*key).to_owned())
        .collect();
    keys.insert(labels::HOSTNAME.to_owned());
    for pool in pools {
        let template = &pool.spec.template;
        keys.extend(
            template
                .spec
                .requirements
                .iter()
                .map(|item| item.key.clone()),
        );
        let labels = template.metadata.as_ref().and_then(|it| it.labels.as_ref());
        keys.extend(labels.into_iter().flat_map(|labels| labels.keys().cloned()));
    }
    keys
}

/// Topology keys of pods, wherever a pod is written, that no node of the pools has.
fn check_topology(
    value: &Value,
    path: &str,
    known: &BTreeSet<String>,
    push: &mut impl FnMut(Finding),
) {
    match value {
        Value::Object(object) => {
            for (name, inner) in object {
                let place = crate::document::join(path, name);
                if name == "topologyKey"
                    && let Some(key) = inner.as_str()
                    && !known.contains(labels::normalize_key(key).as_ref())
                {
                    let reason = format!(
                        "no NodePool of these files gives its nodes the label {key}: the topology has no domain"
                    );
                    push(Finding::new(&place, reason));
                }
                check_topology(inner, &place, known, push);
            }
        }
        Value::Array(list) => {
            for (idx, item) in list.iter().enumerate() {
                check_topology(item, &format!("{path}[{idx}]"), known, push);
            }
        }
        _ => {}
    }
}
