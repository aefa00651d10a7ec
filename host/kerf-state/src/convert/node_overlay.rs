//! NodeOverlays, with everything checked that the schema cannot.

use kerf_api::nodeoverlay as api;
use kerf_core::labels;
use kerf_core::overlay::{Overlay, PriceChange};
use kerf_core::resources::COMMON;

use super::{quantities, requirements};
use crate::problem::{Problem, Problems};

/// Converts a NodeOverlay; with any problem nothing of it may be applied.
///
/// # Errors
/// What the condition `ValidationSucceeded` says.
pub fn node_overlay(overlay: &api::NodeOverlay) -> Result<Overlay, Vec<Problem>> {
    let mut problems = Problems::default();
    let spec = &overlay.spec;
    for (idx, requirement) in spec.requirements.iter().enumerate() {
        let key = labels::normalize_key(&requirement.key);
        if labels::is_restricted(&key) && key != kerf_api::names::label::ECSNODECLASS {
            problems.add(
                format!("spec.requirements[{idx}].key"),
                format_args!("{key} says nothing about instance types or pools; remove it"),
            );
        }
    }
    let none = std::collections::BTreeMap::new();
    let capacity = spec.capacity.as_ref().unwrap_or(&none);
    for name in capacity.keys().filter(|it| COMMON.contains(&it.as_str())) {
        problems.add(
            format!("spec.capacity.{name}"),
            "cpu, memory, ephemeral-storage and pods cannot be overlaid",
        );
    }
    let converted = Overlay {
        name: overlay.metadata.name.clone().unwrap_or_default(),
        weight: spec
            .weight
            .and_then(|weight| u32::try_from(weight).ok())
            .unwrap_or_default(),
        requirements: requirements::requirements(
            &spec.requirements,
            "spec.requirements",
            &mut problems,
        ),
        price: price(spec, &mut problems),
        capacity: quantities::resources(capacity, "spec.capacity", &mut problems),
    };
    for (name, _) in converted.capacity.iter().filter(|(_, it)| *it < 0) {
        problems.add(format!("spec.capacity.{name}"), "is below zero");
    }
    let problems = problems.finish();
    if problems.is_empty() {
        Ok(converted)
    } else {
        Err(problems)
    }
}

fn price(spec: &api::NodeOverlaySpec, problems: &mut Problems) -> Option<PriceChange> {
    match (&spec.price, &spec.price_adjustment) {
        (Some(_), Some(_)) => {
            problems.add("spec", "set price or priceAdjustment, not both");
            None
        }
        (Some(price), None) => problems.ok("spec.price", PriceChange::parse_price(price)),
        (None, Some(change)) => problems.ok(
            "spec.priceAdjustment",
            PriceChange::parse_adjustment(change),
        ),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlay(spec: serde_json::Value) -> api::NodeOverlay {
        api::NodeOverlay::new("gold", serde_json::from_value(spec).unwrap())
    }

    fn check(spec: serde_json::Value, expected: &[&str]) {
        let problems = node_overlay(&overlay(spec)).err().unwrap_or_default();
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn an_overlay_is_read_whole() {
        let read = node_overlay(&overlay(serde_json::json!({
            "requirements": [{"key": "karpenter.sh/nodepool", "operator": "In", "values": ["general"]}],
            "priceAdjustment": "-30%",
            "capacity": {"example.com/fuse": "10"},
            "weight": 7,
        })))
        .unwrap();

        assert_eq!((read.name.as_str(), read.weight), ("gold", 7));
        assert_eq!(
            read.price,
            Some(PriceChange::Scale {
                micro_percent: -30_000_000
            })
        );
        assert_eq!(read.capacity.amount("example.com/fuse"), 10);
    }

    #[test]
    fn what_cannot_be_applied_is_named_by_field() {
        check(
            serde_json::json!({"requirements": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["a"]}]}),
            &[
                "spec.requirements[0].key: kubernetes.io/hostname says nothing about instance types or pools; remove it",
            ],
        );
        check(
            serde_json::json!({"requirements": [], "price": "1", "priceAdjustment": "+1"}),
            &["spec: set price or priceAdjustment, not both"],
        );
        check(
            serde_json::json!({"requirements": [], "capacity": {"cpu": "1", "example.com/fuse": "many"}}),
            &[
                "spec.capacity.cpu: cpu, memory, ephemeral-storage and pods cannot be overlaid",
                "spec.capacity.example.com/fuse: parse quantity \"many\": want a number with an optional suffix such as m, k, Mi or e3",
            ],
        );
    }
}
