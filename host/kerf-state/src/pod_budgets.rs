//! PodDisruptionBudgets in the index.

use std::sync::Arc;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kerf_core::disruption::pod_budget::PodBudget;

use crate::convert::affinity::label_selector;
use crate::problem::Problems;

/// A budget whose status was not written yet allows nothing, as the API server has it.
pub(crate) fn pod_budget(budget: &PodDisruptionBudget, problems: &mut Problems) -> Arc<PodBudget> {
    let metadata = &budget.metadata;
    let spec = budget.spec.clone().unwrap_or_default();
    let selector = spec.selector.as_ref();
    let allowed = budget
        .status
        .as_ref()
        .and_then(|status| status.disruptions_allowed);
    Arc::new(PodBudget {
        namespace: Arc::from(metadata.namespace.as_deref().unwrap_or("default")),
        name: Arc::from(metadata.name.as_deref().unwrap_or_default()),
        selector: selector.map(|it| label_selector(it, "spec.selector", problems)),
        allowed: u32::try_from(allowed.unwrap_or_default()).unwrap_or_default(),
        blocks_fully: is_zero(spec.max_unavailable.as_ref()) || is_all(spec.min_available.as_ref()),
        lets_unready_go: spec.unhealthy_pod_eviction_policy.as_deref() == Some("AlwaysAllow"),
    })
}

fn is_zero(value: Option<&IntOrString>) -> bool {
    match value {
        Some(IntOrString::Int(number)) => *number == 0,
        Some(IntOrString::String(text)) => text == "0%",
        None => false,
    }
}

fn is_all(value: Option<&IntOrString>) -> bool {
    matches!(value, Some(IntOrString::String(text)) if text == "100%")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(spec: &serde_json::Value, blocks_fully: bool) -> Arc<PodBudget> {
        let budget = json!({
            "metadata": {"name": "web", "namespace": "shop"}, "spec": spec,
            "status": {"disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3},
        });
        let budget = serde_json::from_value(budget).unwrap();
        let converted = pod_budget(&budget, &mut Problems::default());

        assert_eq!(converted.blocks_fully, blocks_fully);
        converted
    }

    #[test]
    fn a_budget_that_never_allows_an_eviction_is_told_from_one_that_allows_none_now() {
        let all = check(
            &json!({"minAvailable": "100%", "selector": {"matchLabels": {"app": "web"}}}),
            true,
        );
        assert_eq!(
            (&*all.namespace, &*all.name, all.allowed),
            ("shop", "web", 2)
        );
        assert!(all.selector.is_some());
        check(&json!({"maxUnavailable": 0}), true);
        check(&json!({"maxUnavailable": "0%"}), true);
        check(&json!({"maxUnavailable": 1}), false);
        check(&json!({"minAvailable": 3}), false);
    }
}
