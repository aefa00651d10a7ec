//! Resource lists.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubernetesQuantity;
use kerf_core::quantity::Quantity;
use kerf_core::resources::{Limits, Resources};

use crate::problem::Problems;

/// A resource list; unreadable amounts are left out.
pub(crate) fn resources(
    list: &BTreeMap<String, KubernetesQuantity>,
    field: &str,
    problems: &mut Problems,
) -> Resources {
    parsed(list, field, problems).collect()
}

/// Upper bounds; an unreadable bound is left out, and whoever owns the object is told.
pub(crate) fn limits(
    list: &BTreeMap<String, KubernetesQuantity>,
    field: &str,
    problems: &mut Problems,
) -> Limits {
    parsed(list, field, problems).collect()
}

fn parsed<'a>(
    list: &'a BTreeMap<String, KubernetesQuantity>,
    field: &'a str,
    problems: &'a mut Problems,
) -> impl Iterator<Item = (&'a str, Quantity)> {
    list.iter().filter_map(move |(name, quantity)| {
        let quantity = problems.ok(&format!("{field}.{name}"), Quantity::parse(&quantity.0))?;
        Some((name.as_str(), quantity))
    })
}
