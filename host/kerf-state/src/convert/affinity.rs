//! Affinity, spread constraints and label selectors of pods.

use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use kerf_core::pod::{
    NodeInclusionPolicy, PodAffinityTerm, PodSpec, TopologySpread, Weighted, WhenUnsatisfiable,
};
use kerf_core::selector::{LabelSelector, SelectorExpression, SelectorOperator};

use super::requirements::{node_selector, node_selector_term};
use crate::problem::Problems;

/// Whether a pod may ask for nodes by field. Only DaemonSets do, and for them the field is what we plan anyway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchFields {
    Refused,
    Ignored,
}

/// Fills in what `spec.affinity` and `spec.topologySpreadConstraints` say.
pub(crate) fn fill(
    spec: &mut PodSpec,
    pod: &k8s::PodSpec,
    match_fields: MatchFields,
    problems: &mut Problems,
) {
    if let Some(affinity) = &pod.affinity {
        if let Some(node_affinity) = &affinity.node_affinity {
            fill_node_affinity(spec, node_affinity, match_fields, problems);
        }
        if let Some(pod_affinity) = &affinity.pod_affinity {
            let (required, preferred) = (
                &pod_affinity.required_during_scheduling_ignored_during_execution,
                &pod_affinity.preferred_during_scheduling_ignored_during_execution,
            );
            let field = "spec.affinity.podAffinity";
            spec.affinity = terms(required.as_deref(), field, problems);
            spec.preferred_affinity = weighted_terms(preferred.as_deref(), field, problems);
        }
        if let Some(anti_affinity) = &affinity.pod_anti_affinity {
            let (required, preferred) = (
                &anti_affinity.required_during_scheduling_ignored_during_execution,
                &anti_affinity.preferred_during_scheduling_ignored_during_execution,
            );
            let field = "spec.affinity.podAntiAffinity";
            spec.anti_affinity = terms(required.as_deref(), field, problems);
            spec.preferred_anti_affinity = weighted_terms(preferred.as_deref(), field, problems);
        }
    }
    let constraints = pod
        .topology_spread_constraints
        .as_deref()
        .unwrap_or_default();
    spec.topology_spread = constraints
        .iter()
        .enumerate()
        .map(|(idx, constraint)| {
            topology_spread(
                constraint,
                &format!("spec.topologySpreadConstraints[{idx}]"),
                problems,
            )
        })
        .collect();
}

fn fill_node_affinity(
    spec: &mut PodSpec,
    affinity: &k8s::NodeAffinity,
    match_fields: MatchFields,
    problems: &mut Problems,
) {
    const REQUIRED: &str =
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str =
        "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution";

    if let Some(selector) = &affinity.required_during_scheduling_ignored_during_execution {
        let uses_fields = selector.node_selector_terms.iter().any(has_match_fields);
        if uses_fields && match_fields == MatchFields::Refused {
            problems.add(
                REQUIRED,
                "matchFields asks for a node that exists; no new one can have it",
            );
        }
        spec.required_node_terms = node_selector(selector, REQUIRED, problems);
        let matches_nothing = spec.required_node_terms.is_empty() && !uses_fields;
        if matches_nothing && problems.is_empty() {
            problems.add(
                REQUIRED,
                "a term without matchExpressions matches no node; add one",
            );
        }
    }

    let preferred = affinity
        .preferred_during_scheduling_ignored_during_execution
        .as_deref();
    for (idx, term) in preferred.unwrap_or_default().iter().enumerate() {
        if has_match_fields(&term.preference) {
            continue;
        }
        let field = format!("{PREFERRED}[{idx}].preference");
        if let Some(requirements) = node_selector_term(&term.preference, &field, problems) {
            spec.preferred_node_terms.push(Weighted {
                weight: term.weight,
                term: requirements,
            });
        }
    }
}

fn has_match_fields(term: &k8s::NodeSelectorTerm) -> bool {
    term.match_fields
        .as_ref()
        .is_some_and(|fields| !fields.is_empty())
}

fn terms(
    terms: Option<&[k8s::PodAffinityTerm]>,
    field: &str,
    problems: &mut Problems,
) -> Vec<PodAffinityTerm> {
    let field = format!("{field}.requiredDuringSchedulingIgnoredDuringExecution");
    let indexed = terms.unwrap_or_default().iter().enumerate();
    indexed
        .map(|(idx, term)| affinity_term(term, &format!("{field}[{idx}]"), problems))
        .collect()
}

fn weighted_terms(
    terms: Option<&[k8s::WeightedPodAffinityTerm]>,
    field: &str,
    problems: &mut Problems,
) -> Vec<Weighted<PodAffinityTerm>> {
    let field = format!("{field}.preferredDuringSchedulingIgnoredDuringExecution");
    let indexed = terms.unwrap_or_default().iter().enumerate();
    indexed
        .map(|(idx, term)| {
            let field = format!("{field}[{idx}].podAffinityTerm");
            let converted = affinity_term(&term.pod_affinity_term, &field, problems);
            Weighted {
                weight: term.weight,
                term: converted,
            }
        })
        .collect()
}

fn affinity_term(
    term: &k8s::PodAffinityTerm,
    field: &str,
    problems: &mut Problems,
) -> PodAffinityTerm {
    let mut selector = |selector: &Option<meta::LabelSelector>, name: &str| {
        let selector = selector.as_ref()?;
        Some(label_selector(
            selector,
            &format!("{field}.{name}"),
            problems,
        ))
    };
    PodAffinityTerm {
        topology_key: term.topology_key.clone(),
        selector: selector(&term.label_selector, "labelSelector"),
        namespaces: term.namespaces.clone().unwrap_or_default(),
        namespace_selector: selector(&term.namespace_selector, "namespaceSelector"),
        match_label_keys: term.match_label_keys.clone().unwrap_or_default(),
        mismatch_label_keys: term.mismatch_label_keys.clone().unwrap_or_default(),
    }
}

fn topology_spread(
    constraint: &k8s::TopologySpreadConstraint,
    field: &str,
    problems: &mut Problems,
) -> TopologySpread {
    let selector = constraint.label_selector.as_ref();
    let policy = |text: Option<&str>, default| match text {
        Some("Honor") => NodeInclusionPolicy::Honor,
        Some("Ignore") => NodeInclusionPolicy::Ignore,
        Some(_) | None => default,
    };
    TopologySpread {
        // The API server refuses 0 and less; 1 is the strictest that means anything.
        max_skew: u32::try_from(constraint.max_skew).unwrap_or(1).max(1),
        topology_key: constraint.topology_key.clone(),
        when_unsatisfiable: match constraint.when_unsatisfiable.as_str() {
            "ScheduleAnyway" => WhenUnsatisfiable::ScheduleAnyway,
            _ => WhenUnsatisfiable::DoNotSchedule,
        },
        selector: selector
            .map(|selector| label_selector(selector, &format!("{field}.labelSelector"), problems)),
        min_domains: constraint
            .min_domains
            .and_then(|least| u32::try_from(least).ok()),
        node_affinity_policy: policy(
            constraint.node_affinity_policy.as_deref(),
            NodeInclusionPolicy::Honor,
        ),
        node_taints_policy: policy(
            constraint.node_taints_policy.as_deref(),
            NodeInclusionPolicy::Ignore,
        ),
        match_label_keys: constraint.match_label_keys.clone().unwrap_or_default(),
    }
}

/// A label selector; an unreadable expression is left out with a problem.
pub(crate) fn label_selector(
    selector: &meta::LabelSelector,
    field: &str,
    problems: &mut Problems,
) -> LabelSelector {
    let mut match_expressions = Vec::new();
    for (idx, expression) in selector.match_expressions.iter().flatten().enumerate() {
        let operator = match expression.operator.as_str() {
            "In" => SelectorOperator::In,
            "NotIn" => SelectorOperator::NotIn,
            "Exists" => SelectorOperator::Exists,
            "DoesNotExist" => SelectorOperator::DoesNotExist,
            other => {
                problems.add(
                    format!("{field}.matchExpressions[{idx}].operator"),
                    format_args!("{other:?} is not one of In, NotIn, Exists and DoesNotExist"),
                );
                continue;
            }
        };
        match_expressions.push(SelectorExpression {
            key: expression.key.clone(),
            operator,
            values: expression.values.clone().unwrap_or_default(),
        });
    }
    LabelSelector {
        match_labels: selector.match_labels.clone().unwrap_or_default(),
        match_expressions,
    }
}
