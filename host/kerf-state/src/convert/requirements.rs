//! Requirements on node labels, from pods, volumes, NodePools and NodeClaims.

use k8s_openapi::api::core::v1 as k8s;
use kerf_core::requirement::{Operator, Requirement};
use kerf_core::requirements::Requirements;

use crate::problem::Problems;

/// One requirement; none and a problem when it cannot be read.
pub(crate) fn requirement(
    key: &str,
    operator: &str,
    values: &[String],
    field: &str,
    problems: &mut Problems,
) -> Option<Requirement> {
    let Some(parsed) = Operator::parse(operator) else {
        problems.add(
            format!("{field}.operator"),
            format_args!(
                "{operator:?} is not one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte and Lte"
            ),
        );
        return None;
    };
    if parsed == Operator::In && values.is_empty() {
        problems.add(
            format!("{field}.values"),
            "operator In needs at least one value",
        );
        return None;
    }
    problems.ok(
        field,
        Requirement::parse(key, parsed, values.iter().cloned()),
    )
}

/// Requirements of a NodePool or NodeClaim.
pub(crate) fn requirements(
    items: &[kerf_api::requirement::Requirement],
    field: &str,
    problems: &mut Problems,
) -> Requirements {
    let mut converted = Requirements::default();
    for (idx, item) in items.iter().enumerate() {
        let field = format!("{field}[{idx}]");
        let parsed = requirement(
            &item.key,
            item.operator.as_str(),
            &item.values,
            &field,
            problems,
        );
        if let Some(parsed) = parsed {
            let min_values = item.min_values.and_then(|least| u32::try_from(least).ok());
            converted.add(parsed.with_min_values(min_values));
        }
    }
    converted
}

/// Terms of which one must hold. A term without expressions matches no node, so it is left out.
pub(crate) fn node_selector(
    selector: &k8s::NodeSelector,
    field: &str,
    problems: &mut Problems,
) -> Vec<Requirements> {
    let mut terms = Vec::with_capacity(selector.node_selector_terms.len());
    for (idx, term) in selector.node_selector_terms.iter().enumerate() {
        let field = format!("{field}.nodeSelectorTerms[{idx}]");
        if let Some(term) = node_selector_term(term, &field, problems) {
            terms.push(term);
        }
    }
    terms
}

/// The requirements of one term; none when it matches no node. `matchFields` is left to the caller.
pub(crate) fn node_selector_term(
    term: &k8s::NodeSelectorTerm,
    field: &str,
    problems: &mut Problems,
) -> Option<Requirements> {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    if expressions.is_empty() {
        return None;
    }
    let mut requirements = Requirements::default();
    for (idx, expression) in expressions.iter().enumerate() {
        let field = format!("{field}.matchExpressions[{idx}]");
        let values = expression.values.as_deref().unwrap_or_default();
        let requirement = requirement(
            &expression.key,
            &expression.operator,
            values,
            &field,
            problems,
        )?;
        requirements.add(requirement);
    }
    Some(requirements)
}
