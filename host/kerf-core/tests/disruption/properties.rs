//! What holds for every decision, whatever the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kerf_core::Snapshot;
use kerf_core::disruption::budget::{BudgetNodes, allowed_disruptions};
use kerf_core::disruption::command::PromisedPlace;
use kerf_core::disruption::{CommandKind, Decision, DisruptionSettings, validate};
use kerf_core::labels;
use kerf_core::node::Node;
use kerf_core::plan::PlacementTarget;
use kerf_core::pod::{Pod, PodAffinityTerm, PodSpec, TopologySpread};
use kerf_core::resources::Resources;
use kerf_core::selector::LabelSelector;
use proptest::prelude::*;

use crate::kit::{
    ZONES, budget, decided, drifted, labelled, node, now, of_app, pod, pod_budget, pool, snapshot,
    with_spec,
};

const APPS: [&str; 3] = ["web", "db", "batch"];

prop_compose! {
    fn some_pod()(cpu in 50_i64..1900, app in 0..APPS.len(), constraint in 0..8_u8) -> (i64, usize, u8) {
        (cpu, app, constraint)
    }
}

fn constrained(spec: &mut PodSpec, app: &str, constraint: u8) {
    let selector = LabelSelector::label("app", app);
    let term = PodAffinityTerm {
        topology_key: labels::HOSTNAME.to_owned(),
        selector: Some(selector.clone()),
        ..PodAffinityTerm::default()
    };
    match constraint {
        0 => spec.anti_affinity.push(term),
        1 => spec
            .topology_spread
            .push(TopologySpread::new(labels::ZONE, 1, selector)),
        2 => drop(
            spec.node_selector
                .insert(labels::ZONE.to_owned(), "h".to_owned()),
        ),
        _ => {}
    }
}

prop_compose! {
    fn some_node()(
        size in 0..3_usize,
        zone in 0..ZONES.len(),
        is_drifted in prop::bool::weighted(0.15),
        pods in prop::collection::vec(some_pod(), 0..5),
    ) -> (usize, usize, bool, Vec<(i64, usize, u8)>) {
        (size, zone, is_drifted, pods)
    }
}

prop_compose! {
    fn cluster()(
        nodes in prop::collection::vec(some_node(), 1..14),
        percent in prop::sample::select(vec![10_u32, 30, 50, 100]),
        strict in prop::option::of(0..APPS.len()),
    ) -> Snapshot {
        let mut pool = pool();
        pool.disruption.budgets = vec![budget(BudgetNodes::Percent(percent))];
        let nodes = nodes.into_iter().enumerate().map(|(n, (size, zone, is_drifted, pods))| {
            let cores = [2_i64, 4, 8][size];
            let mut room = cores * 1000;
            let mut there = BTreeSet::new();
            let mut own: Vec<Pod> = Vec::new();
            for (m, (cpu, app, constraint)) in pods.into_iter().enumerate() {
                // A running cluster keeps the hard constraints of its pods.
                let constraint = match constraint {
                    0 if there.contains(&app) => 7,
                    2 if zone != 0 => 7,
                    other => other,
                };
                if cpu > room || (constraint == 0 && !there.insert(app)) {
                    continue;
                }
                there.insert(app);
                room -= cpu;
                let running = of_app(pod(&format!("p-{n}-{m}"), cpu), APPS[app]);
                own.push(with_spec(running, |spec| constrained(spec, APPS[app], constraint)));
            }
            let made = labelled(node(&format!("n-{n:02}"), &format!("g.{cores}"), own), labels::ZONE, ZONES[zone]);
            if is_drifted { drifted(made, 1) } else { made }
        });
        let nodes: Vec<Node> = nodes.collect();
        let mut all = snapshot(pool, nodes);
        all.pod_budgets = strict.map(|app| Arc::new(pod_budget("strict", APPS[app], 0))).into_iter().collect();
        all
    }
}

fn going(decision: &Decision) -> Vec<&str> {
    decision
        .commands
        .iter()
        .flat_map(kerf_core::disruption::Command::claims)
        .map(|it| &**it)
        .collect()
}

fn node_named<'a>(all: &'a Snapshot, name: &str) -> &'a Arc<Node> {
    all.nodes
        .iter()
        .find(|node| node.display_name() == name)
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_node_goes_once_or_stays_for_one_reason(all in cluster()) {
        let decision = decided(&all);
        let mut names = going(&decision);
        names.extend(decision.kept.iter().map(|it| &*it.node_claim));
        names.sort_unstable();
        let mut managed: Vec<&str> = all.nodes.iter().map(|node| node.display_name()).collect();
        managed.sort_unstable();
        prop_assert_eq!(names, managed);
    }

    #[test]
    fn every_command_holds_on_the_snapshot_that_it_was_decided_on(all in cluster()) {
        let commands = decided(&all).commands;
        let settings = DisruptionSettings::default();
        for (command, answer) in commands.iter().zip(validate(&commands, &all, &settings, now())) {
            prop_assert_eq!(answer, Ok(()), "{}", command);
        }
    }

    #[test]
    fn budgets_are_never_exceeded(all in cluster()) {
        let decision = decided(&all);
        let total = u32::try_from(all.nodes.len()).unwrap();
        let reason = kerf_core::disruption::budget::DisruptionReason::Drifted;
        let allowed = allowed_disruptions(&all.pools[0].disruption.budgets, total, reason, now());
        prop_assert!(going(&decision).len() <= usize::try_from(allowed).unwrap());
    }

    #[test]
    fn consolidation_never_raises_the_price_whichever_offerings_are_launched(all in cluster()) {
        let decision = decided(&all);
        let consolidations = decision.commands.iter().filter(|it| matches!(it.kind, CommandKind::Single | CommandKind::Multi));
        for command in consolidations {
            let dearest = |claim: &kerf_core::plan::PlannedClaim| claim.offerings.iter().map(|it| it.price.micros()).max().unwrap();
            let most: u64 = command.replacements.iter().map(dearest).sum();
            prop_assert!(most < command.price_before.micros(), "{command}: {most}");
        }
    }

    #[test]
    fn no_pod_is_displaced_without_a_place_that_has_the_room(all in cluster()) {
        let decision = decided(&all);
        let going: BTreeSet<&str> = going(&decision).into_iter().collect();
        let mut arriving: BTreeMap<String, Vec<Arc<Pod>>> = BTreeMap::new();
        for command in &decision.commands {
            let mut displaced: Vec<_> = command.claims().flat_map(|claim| &node_named(&all, claim).pods).filter(|pod| pod.is_reschedulable()).map(|pod| pod.uid.clone()).collect();
            displaced.sort();
            let mut promised: Vec<_> = command.promises.iter().map(|it| it.pod.uid.clone()).collect();
            promised.sort();
            prop_assert_eq!(&displaced, &promised);
            for promise in &command.promises {
                match &promise.place {
                    PromisedPlace::Node(PlacementTarget::Node(name)) => arriving.entry(name.to_string()).or_default().push(promise.pod.clone()),
                    PromisedPlace::Node(PlacementTarget::InFlight(name)) => prop_assert!(false, "promised on {name}, which has no node"),
                    PromisedPlace::Replacement(idx) => prop_assert!(command.replacements[*idx].pods.contains(&promise.pod)),
                }
            }
            for replacement in &command.replacements {
                for offering in replacement.offerings.iter() {
                    prop_assert!(replacement.requests.fits_in(&offering.allocatable));
                }
            }
        }
        for (name, pods) in arriving {
            prop_assert!(!going.contains(&*name), "{name} goes itself");
            let node = node_named(&all, &name);
            let mut used = Resources::default();
            for pod in node.pods.iter().chain(&pods) {
                used.add(&pod.spec.requests);
            }
            prop_assert!(used.fits_in(&node.allocatable), "{name} is overfull");
            for pod in &pods {
                let wanted = pod.spec.node_selector.get(labels::ZONE);
                prop_assert!(wanted.is_none_or(|zone| node.zone() == Some(zone)));
                for term in &pod.spec.anti_affinity {
                    let selector = term.selector.as_ref().unwrap();
                    let others = node.pods.iter().chain(&pods).filter(|it| it.uid != pod.uid);
                    prop_assert_eq!(others.filter(|it| selector.matches(&it.spec.labels)).count(), 0);
                }
            }
        }
    }

    #[test]
    fn nodes_with_blocked_pods_are_never_chosen(all in cluster()) {
        let decision = decided(&all);
        for claim in going(&decision) {
            for budget in &all.pod_budgets {
                let selector = budget.selector.as_ref().unwrap();
                let pods = &node_named(&all, claim).pods;
                prop_assert!(!pods.iter().any(|pod| selector.matches(&pod.spec.labels)), "{claim}");
            }
        }
    }

    #[test]
    fn the_order_of_the_input_changes_nothing(all in cluster()) {
        let mut turned = all.clone();
        turned.nodes.reverse();
        prop_assert_eq!(decided(&all), decided(&turned));
    }
}
