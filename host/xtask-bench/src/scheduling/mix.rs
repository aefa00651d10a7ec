//! The pods of upstream's own benchmark, drawn with our own seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use kerf_core::labels;
use kerf_core::pod::{Pod, PodAffinityTerm, PodSpec, TopologySpread, Weighted};
use kerf_core::requirement::Requirement;
use kerf_core::selector::{LabelSelector, Labels};

use crate::dice::Dice;

const MEBIBYTE: i64 = 1 << 20;
const CPU_MILLI: [i64; 5] = [100, 250, 500, 1000, 1500];
const MEMORY_MIB: [i64; 6] = [100, 256, 512, 1024, 2048, 4096];
const LABEL_VALUES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
/// The key of the affinity pods, as upstream spells it.
const AFFINITY_LABEL: &str = "my-affininity";
const LABEL: &str = "my-label";

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Mix {
    /// Five equal parts: plain, spread over zones, spread over hosts, together in a zone, apart on hosts.
    Diverse,
    /// Equal pods that prefer one zone, a zone each and a host each.
    Preferences,
}

pub(super) fn draw(mix: Mix, count: usize, distinct: bool, seed: u64) -> Vec<Arc<Pod>> {
    let mut dice = Dice::new(seed);
    let mut specs = match mix {
        Mix::Diverse => diverse(&mut dice, count),
        Mix::Preferences => vec![preferences(&mut dice); count],
    };
    if distinct {
        for (idx, spec) in specs.iter_mut().enumerate() {
            make_distinct(&mut dice, idx, spec);
        }
    }
    specs
        .into_iter()
        .enumerate()
        .map(|(idx, spec)| {
            // The uid breaks ties between pods of one size, so it must not follow the order in which they were drawn.
            let uid = format!("{:016x}{:016x}", dice.roll(), dice.roll());
            let pod = Pod::new(&format!("pod-{idx}"), spec);
            Arc::new(Pod {
                uid: uid.into(),
                ..pod
            })
        })
        .collect()
}

/// What does not divide by five is filled up with plain pods.
fn diverse(dice: &mut Dice, count: usize) -> Vec<PodSpec> {
    let parts: [fn(&mut Dice) -> PodSpec; 5] = [
        plain,
        |dice| spread(dice, labels::ZONE),
        |dice| spread(dice, labels::HOSTNAME),
        |dice| together(dice, labels::ZONE),
        |dice| apart(dice, labels::HOSTNAME),
    ];
    let mut specs = Vec::with_capacity(count);
    for part in parts {
        specs.extend((0..count / parts.len()).map(|_| part(dice)));
    }
    while specs.len() < count {
        specs.push(plain(dice));
    }
    specs
}

fn plain(dice: &mut Dice) -> PodSpec {
    PodSpec {
        labels: label(LABEL, dice.pick(&LABEL_VALUES)),
        ..sized(dice)
    }
}

fn spread(dice: &mut Dice, key: &str) -> PodSpec {
    let labels = label(LABEL, dice.pick(&LABEL_VALUES));
    // Drawn anew: often another label than the pod's own, as upstream does it.
    let selector = LabelSelector::label(LABEL, dice.pick(&LABEL_VALUES));
    PodSpec {
        labels,
        topology_spread: vec![TopologySpread::new(key, 1, selector)],
        ..sized(dice)
    }
}

fn together(dice: &mut Dice, key: &str) -> PodSpec {
    let value = dice.pick(&LABEL_VALUES);
    PodSpec {
        labels: label(AFFINITY_LABEL, value),
        affinity: vec![term(key, LabelSelector::label(AFFINITY_LABEL, value))],
        ..sized(dice)
    }
}

fn apart(dice: &mut Dice, key: &str) -> PodSpec {
    PodSpec {
        labels: label("app", "nginx"),
        anti_affinity: vec![term(key, LabelSelector::label("app", "nginx"))],
        ..sized(dice)
    }
}

fn preferences(dice: &mut Dice) -> PodSpec {
    let zone = Requirement::in_values(labels::ZONE, ["test-zone-1"]);
    let apart = |key, weight| Weighted {
        weight,
        term: term(key, LabelSelector::label("app", "nginx")),
    };
    PodSpec {
        labels: label("app", "nginx"),
        preferred_node_terms: vec![Weighted {
            weight: 1,
            term: std::iter::once(zone).collect(),
        }],
        preferred_anti_affinity: vec![apart(labels::ZONE, 10), apart(labels::HOSTNAME, 1)],
        ..sized(dice)
    }
}

fn sized(dice: &mut Dice) -> PodSpec {
    PodSpec::requesting(dice.pick(&CPU_MILLI), dice.pick(&MEMORY_MIB) * MEBIBYTE)
}

/// Amounts near the drawn ones that no other pod has, and a label of its own.
fn make_distinct(dice: &mut Dice, idx: usize, spec: &mut PodSpec) {
    let cpu_milli = spec.requests.cpu_milli() + dice.between(-49, 49);
    // Pages of 4 KiB over the whole range make equal amounts as good as impossible.
    let memory = spec.requests.memory_bytes() + dice.between(0, 50 * 256) * 4096;
    spec.requests.set("cpu", cpu_milli);
    spec.requests.set("memory", memory);
    spec.labels.insert("pod".to_owned(), idx.to_string());
}

fn term(key: &str, selector: LabelSelector) -> PodAffinityTerm {
    PodAffinityTerm {
        topology_key: key.to_owned(),
        selector: Some(selector),
        ..PodAffinityTerm::default()
    }
}

fn label(key: &str, value: &str) -> Labels {
    BTreeMap::from([(key.to_owned(), value.to_owned())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_diverse_mix_has_five_equal_parts_and_is_filled_up() {
        let pods = draw(Mix::Diverse, 23, false, 1);

        let count = |has: fn(&PodSpec) -> bool| pods.iter().filter(|pod| has(&pod.spec)).count();
        assert_eq!(pods.len(), 23);
        assert_eq!(count(|spec| !spec.topology_spread.is_empty()), 8);
        assert_eq!(count(|spec| !spec.affinity.is_empty()), 4);
        assert_eq!(count(|spec| !spec.anti_affinity.is_empty()), 4);
    }

    #[test]
    fn distinct_pods_share_no_spec() {
        let pods = draw(Mix::Diverse, 2000, true, 1);

        let sizes: BTreeSet<_> = pods.iter().map(|pod| &pod.spec.requests).collect();
        assert!(sizes.len() > 1990, "{}", sizes.len());
        let labels: BTreeSet<_> = pods.iter().map(|pod| &pod.spec.labels["pod"]).collect();
        assert_eq!(labels.len(), 2000);
    }
}
