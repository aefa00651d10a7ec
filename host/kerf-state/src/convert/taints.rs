//! Taints and tolerations.

use k8s_openapi::api::core::v1 as k8s;
use kerf_core::taint::{Taint, TaintEffect, Toleration, TolerationOperator};

use crate::problem::Problems;

/// A taint as decisions see it; none when its effect is none of the three that are known, which the schemas refuse.
#[must_use]
pub fn taint(taint: &k8s::Taint) -> Option<Taint> {
    Some(Taint {
        key: taint.key.clone(),
        value: taint.value.clone().unwrap_or_default(),
        effect: TaintEffect::parse(&taint.effect)?,
    })
}

pub(crate) fn taints(taints: &[k8s::Taint], field: &str, problems: &mut Problems) -> Vec<Taint> {
    let mut converted = Vec::with_capacity(taints.len());
    for (idx, written) in taints.iter().enumerate() {
        match taint(written) {
            Some(taint) => converted.push(taint),
            None => {
                effect(&written.effect, &format!("{field}[{idx}].effect"), problems);
            }
        }
    }
    converted
}

pub(crate) fn tolerations(
    tolerations: &[k8s::Toleration],
    field: &str,
    problems: &mut Problems,
) -> Vec<Toleration> {
    let mut converted = Vec::with_capacity(tolerations.len());
    for (idx, toleration) in tolerations.iter().enumerate() {
        let field = format!("{field}[{idx}]");
        if let Some(toleration) = self::toleration(toleration, &field, problems) {
            converted.push(toleration);
        }
    }
    converted
}

fn toleration(
    toleration: &k8s::Toleration,
    field: &str,
    problems: &mut Problems,
) -> Option<Toleration> {
    let operator_text = toleration.operator.as_deref().unwrap_or_default();
    let Some(operator) = TolerationOperator::parse(operator_text) else {
        problems.add(
            format!("{field}.operator"),
            format_args!("{operator_text:?} is not one of Equal, Exists, Lt and Gt"),
        );
        return None;
    };
    let effect = match toleration.effect.as_deref().unwrap_or_default() {
        "" => None,
        text => Some(effect(text, &format!("{field}.effect"), problems)?),
    };
    Some(Toleration {
        key: toleration.key.clone().filter(|key| !key.is_empty()),
        operator,
        value: toleration.value.clone().unwrap_or_default(),
        effect,
    })
}

fn effect(text: &str, field: &str, problems: &mut Problems) -> Option<TaintEffect> {
    let effect = TaintEffect::parse(text);
    if effect.is_none() {
        problems.add(
            field,
            format_args!("{text:?} is not one of NoSchedule, PreferNoSchedule and NoExecute"),
        );
    }
    effect
}
