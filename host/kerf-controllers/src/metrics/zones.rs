//! Where pods can run, as far as their zone is decided. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_core::labels;
use kerf_core::pod::Pod;
use kerf_core::requirement::Operator;
use kerf_core::requirements::Requirements;

/// Of pods that can run in several zones.
const FLEXIBLE: &str = "flexible";
/// Of pods that can run in none.
const NONE: &str = "none";

/// The zones that something allows; none stands for any.
type Allowed = Option<BTreeSet<String>>;

/// How many of the pods can run in which one zone only. Those of CapacityBuffers do not count.
///
/// Karpenter: differs, because there zonal spread constraints and affinity count too; here where those lead is the plan's
/// to say.
#[must_use]
pub fn by_effective_zone(pods: &[Arc<Pod>]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !pod.is_virtual()) {
        *counts.entry(effective_zone(pod)).or_insert(0) += 1;
    }
    counts
}

fn effective_zone(pod: &Pod) -> String {
    let selected = pod.spec.node_selector.iter();
    let selected = selected.filter(|(key, _)| labels::normalize_key(key) == labels::ZONE);
    let mut allowed: Allowed = None;
    for (_, zone) in selected {
        allowed = both(allowed, Some([zone.clone()].into()));
    }
    allowed = both(allowed, any_of(&pod.spec.required_node_terms));
    for volume in &pod.spec.volumes {
        allowed = both(allowed, any_of(&volume.alternatives));
    }
    let Some(zones) = allowed else {
        return FLEXIBLE.to_owned();
    };
    match zones.len() {
        0 => NONE.to_owned(),
        1 => zones.into_iter().collect(),
        _ => FLEXIBLE.to_owned(),
    }
}

/// Where one of the terms holds; anywhere without terms.
fn any_of(terms: &[Requirements]) -> Allowed {
    let mut zones = BTreeSet::new();
    for term in terms {
        let zone = term.on(labels::ZONE)?;
        match zone.operator() {
            Operator::In => zones.extend(zone.values().map(str::to_owned)),
            // Absent zones are in no zone.
            _ if zone.is_empty() => {}
            _ => return None,
        }
    }
    (!terms.is_empty()).then_some(zones)
}

fn both(left: Allowed, right: Allowed) -> Allowed {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.intersection(&right).cloned().collect()),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use kerf_core::pod::PodSpec;
    use kerf_core::requirement::Requirement;
    use kerf_core::volume::Volume;

    use super::*;

    fn within(zones: &[&str]) -> Requirements {
        let zones = zones.iter().map(|it| (*it).to_owned());
        [Requirement::in_values(labels::ZONE, zones)]
            .into_iter()
            .collect()
    }

    fn zone_of(spec: PodSpec) -> String {
        effective_zone(&Pod::new("p", spec))
    }

    #[test]
    fn a_pod_counts_for_the_one_zone_that_selector_affinity_and_volumes_leave_it() {
        let on_disk = |zones: &[&str]| Volume {
            claim: "shop/data".to_owned(),
            alternatives: vec![within(zones)],
            attachment: None,
            problem: None,
        };
        let selector = || [(labels::ZONE.to_owned(), "h".to_owned())].into();
        let spec = |node_selector, terms: &[&[&str]], volumes| PodSpec {
            node_selector,
            required_node_terms: terms.iter().map(|zones| within(zones)).collect(),
            volumes,
            ..PodSpec::default()
        };
        let none = BTreeMap::new;

        assert_eq!(zone_of(PodSpec::default()), "flexible");
        assert_eq!(zone_of(spec(selector(), &[], vec![])), "h");
        assert_eq!(zone_of(spec(none(), &[&["h"], &["i"]], vec![])), "flexible");
        assert_eq!(
            zone_of(spec(none(), &[&["h", "i"]], vec![on_disk(&["i"])])),
            "i"
        );
        assert_eq!(
            zone_of(spec(selector(), &[], vec![on_disk(&["i"])])),
            "none"
        );
    }
}
