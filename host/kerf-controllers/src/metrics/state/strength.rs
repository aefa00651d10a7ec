//! Elastic strength: what NodePools and ECSNodeClasses could launch now, and why not more.

use std::collections::BTreeMap;

use kerf_core::snapshot::Snapshot;
use kerf_core::strength::Strength;
use prometheus_client::registry::Registry;

use super::Gauges;

/// What can be launched has this in place of a reason.
const LAUNCHABLE: &str = "Launchable";

/// Registers the series of all pools and of their classes.
pub(super) fn register(snapshot: &Snapshot, registry: &mut Registry) {
    let (of_pools, of_classes) = (Gauges::default(), Gauges::default());
    let mut classes = BTreeMap::new();
    for pool in snapshot
        .pools
        .iter()
        .filter(|pool| !pool.instance_types.is_empty())
    {
        note("nodepool", &pool.name, &pool.strength(), &of_pools);
        classes
            .entry(pool.template.node_class.name.as_str())
            .or_insert(&pool.instance_types);
    }
    for (name, types) in classes {
        let strength = Strength::of(types.iter().map(|it| &**it), |_| true);
        note("nodeclass", name, &strength, &of_classes);
    }
    let kerf = registry.sub_registry_with_prefix("kerf");
    kerf.register(
        "nodepool_elastic_strength",
        "Combinations of instance type, zone and capacity type that a NodePool allows, by whether they can be launched now",
        of_pools,
    );
    kerf.register(
        "nodeclass_elastic_strength",
        "The same of an ECSNodeClass that a NodePool uses",
        of_classes,
    );
}

fn note(kind: &str, name: &str, strength: &Strength, gauges: &Gauges) {
    let others = strength.others.iter();
    let others = others.map(|(cause, number)| (cause.as_str(), *number));
    for (reason, number) in others.chain([(LAUNCHABLE, strength.launchable)]) {
        let labels = vec![
            (kind.to_owned(), name.to_owned()),
            ("reason".to_owned(), reason.to_owned()),
        ];
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        gauges.get_or_create(&labels).set(f64::from(number));
    }
}
