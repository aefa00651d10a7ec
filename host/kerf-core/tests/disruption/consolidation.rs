//! What consolidation saves, and what it leaves alone.

use std::sync::Arc;

use jiff::SignedDuration;
use kerf_core::Preferences;
use kerf_core::disruption::budget::DisruptionReason;
use kerf_core::disruption::command::PromisedPlace;
use kerf_core::disruption::settings::Hysteresis;
use kerf_core::disruption::{CommandKind, DisruptionSettings, KeptReason, decide};
use kerf_core::instance_type::CapacityType;
use kerf_core::labels;
use kerf_core::node::{Node, Replaced};
use kerf_core::node_pool::ConsolidationPolicy;
use kerf_core::plan::{PlacementTarget, WorkBudget};
use kerf_core::preferences::{Bar, OfferingKey};
use kerf_core::price::Price;
use kerf_core::requirement::Requirement;

use crate::kit::{
    ON_DEMAND, decided, decided_with, kept, node, now, pod, pool, pool_of, shown, snapshot, sold,
    spot,
};

const BOTH: &[(CapacityType, f64)] = &[(CapacityType::OnDemand, 1.0), (CapacityType::Spot, 0.3)];

#[test]
fn a_node_whose_pods_fit_elsewhere_is_deleted_and_each_pod_has_its_place() {
    let nodes = vec![
        node("a", "g.2", vec![pod("p", 500), pod("q", 500)]),
        node("b", "g.8", vec![pod("r", 7000)]),
    ];
    let decision = decided(&snapshot(pool(), nodes));
    assert_eq!(shown(&decision), ["Single: a -> "]);
    let promises = &decision.commands[0].promises;
    let on_b = PromisedPlace::Node(PlacementTarget::Node("b".into()));
    assert_eq!(
        promises.iter().map(|it| &it.place).collect::<Vec<_>>(),
        [&on_b, &on_b]
    );
    assert_eq!(kept(&decision, "b"), KeptReason::TakesInPods);
}

#[test]
fn a_node_is_replaced_by_a_cheaper_one_and_only_cheaper_ones_are_listed() {
    let decision = decided(&snapshot(
        pool(),
        vec![node("a", "g.8", vec![pod("p", 1500)])],
    ));
    assert_eq!(shown(&decision), ["Single: a -> g.2"]);
    let offerings = &decision.commands[0].replacements[0].offerings;
    assert!(
        offerings.iter().all(|it| *it.instance_type != *"g.8"),
        "{offerings:?}"
    );
    let listed = decision.commands[0].replacements[0]
        .requirements
        .on(labels::INSTANCE_TYPE)
        .unwrap();
    assert_eq!(listed.values().collect::<Vec<_>>(), ["g.2", "g.4"]);
    assert_eq!(
        decision.commands[0].to_string(),
        "underutilized: replace a -> 1 new (saves 0.6000 per hour)"
    );
}

#[test]
fn a_node_as_cheap_as_its_pods_allow_stays_and_says_so() {
    let decision = decided(&snapshot(
        pool(),
        vec![node("a", "g.4", vec![pod("p", 3000)])],
    ));
    let price = Price::from_per_hour(0.4);
    assert_eq!(
        kept(&decision, "a"),
        KeptReason::NotCheaper {
            price,
            needed: price
        }
    );
}

#[test]
fn several_nodes_become_fewer_where_no_single_one_can_go() {
    let nodes = (0..4)
        .map(|n| node(&format!("n{n}"), "g.4", vec![pod(&format!("p{n}"), 2100)]))
        .collect();
    // Eight cores at half the price per core: no two pods fit one g.4.
    let cheap = sold("cheap.16", 16, &[(CapacityType::OnDemand, 0.6)]);
    let types = [2, 4].map(|cores| sold(&format!("g.{cores}"), cores, ON_DEMAND));
    let decision = decided(&snapshot(pool_of(types.into_iter().chain([cheap])), nodes));
    assert_eq!(shown(&decision), ["Multi: n0, n1, n2, n3 -> cheap.16"]);
}

#[test]
fn a_dear_node_becomes_several_cheap_ones() {
    let dear = sold("dear.8", 8, &[(CapacityType::OnDemand, 2.0)]);
    let types = [dear, sold("g.4", 4, ON_DEMAND)];
    let pods = (0..4).map(|n| pod(&format!("p{n}"), 1900)).collect();
    let decision = decided(&snapshot(pool_of(types), vec![node("a", "dear.8", pods)]));
    assert_eq!(shown(&decision), ["Single: a -> g.4, g.4"]);
}

#[test]
fn several_nodes_do_not_become_one_of_a_type_that_they_have() {
    // The pods of both fit on one g.4, but keeping one does as well.
    let nodes = vec![
        node("a", "g.4", vec![pod("p", 1500)]),
        node("b", "g.4", vec![pod("q", 2000)]),
    ];
    let decision = decided(&snapshot(pool_of([sold("g.4", 4, ON_DEMAND)]), nodes));
    assert_eq!(decision.commands.len(), 1);
    assert!(
        decision.commands[0].replacements.is_empty(),
        "{:?}",
        shown(&decision)
    );
}

#[test]
fn more_than_one_command_starts_in_a_pass_and_none_shares_room() {
    let mut nodes: Vec<Node> = (0..6)
        .map(|n| node(&format!("s{n}"), "g.2", vec![pod(&format!("p{n}"), 900)]))
        .collect();
    nodes.push(node("large", "g.8", vec![pod("r", 5300)]));
    let decision = decided(&snapshot(pool(), nodes));
    // Each goes to one of the last three; the large one is the first that would go, so it takes in none.
    assert_eq!(
        decision
            .commands
            .iter()
            .map(|it| it.candidates.len())
            .sum::<usize>(),
        3
    );
    assert!(
        decision
            .commands
            .iter()
            .all(|it| it.replacements.is_empty()),
        "{:?}",
        shown(&decision)
    );
}

#[test]
fn f46_spot_is_not_always_cheaper() {
    let types = [sold(
        "g.4",
        4,
        &[(CapacityType::OnDemand, 1.0), (CapacityType::Spot, 1.1)],
    )];
    let decision = decided(&snapshot(
        pool_of(types),
        vec![node("a", "g.4", vec![pod("p", 3000)])],
    ));
    assert!(matches!(
        kept(&decision, "a"),
        KeptReason::NotCheaper { .. }
    ));
}

#[test]
fn f48_after_an_on_demand_fallback_the_node_returns_to_spot() {
    let types = [sold("g.4", 4, BOTH)];
    let decision = decided(&snapshot(
        pool_of(types),
        vec![node("a", "g.4", vec![pod("p", 3000)])],
    ));
    assert_eq!(shown(&decision), ["Single: a -> g.4 spot"]);
    let offerings = &decision.commands[0].replacements[0].offerings;
    assert!(
        offerings
            .iter()
            .all(|it| it.capacity_type == CapacityType::Spot)
    );
}

#[test]
fn f47_spot_to_spot_needs_fifteen_cheaper_types_and_says_so() {
    let decide_with = |count: i64, gate| {
        let types = (0..count).map(|n| {
            let factor = 0.3 + 0.001 * f64::from(i32::try_from(n).unwrap());
            sold(&format!("t{n:02}.2"), 2, &[(CapacityType::Spot, factor)])
        });
        let types = types.chain([sold("g.8", 8, BOTH)]);
        let settings = DisruptionSettings {
            spot_to_spot: gate,
            ..DisruptionSettings::default()
        };
        decided_with(
            &snapshot(
                pool_of(types),
                vec![spot(node("a", "g.8", vec![pod("p", 1500)]))],
            ),
            &settings,
        )
    };
    let few = kept(&decide_with(6, true), "a");
    assert_eq!(
        few,
        KeptReason::SpotToSpotTooFew {
            found: 6,
            needed: 15
        }
    );
    assert_eq!(
        few.to_string(),
        "spot to spot needs 15 cheaper instance types to choose from, and has 6"
    );
    let many = decide_with(16, true);
    assert_eq!(shown(&many), ["Single: a -> t00.2 spot"]);
    let listed = many.commands[0].replacements[0]
        .requirements
        .on(labels::INSTANCE_TYPE)
        .unwrap();
    assert_eq!(listed.values().len(), 15);
    assert_eq!(
        kept(&decide_with(16, false), "a"),
        KeptReason::SpotToSpotOff
    );
}

#[test]
fn a_spot_pool_consolidates_spot_to_spot_in_sets_without_fifteen_types() {
    let types = [
        sold("g.4", 4, BOTH),
        sold("cheap.16", 16, &[(CapacityType::Spot, 0.15)]),
    ];
    let nodes = (0..4)
        .map(|n| {
            spot(node(
                &format!("n{n}"),
                "g.4",
                vec![pod(&format!("p{n}"), 2100)],
            ))
        })
        .collect();
    let all = snapshot(pool_of(types), nodes);
    let settings = DisruptionSettings {
        spot_to_spot: true,
        ..DisruptionSettings::default()
    };
    assert_eq!(
        shown(&decided_with(&all, &settings)),
        ["Multi: n0, n1, n2, n3 -> cheap.16 spot"]
    );
    assert!(decided(&all).commands.is_empty());
}

#[test]
fn min_values_hold_for_what_is_left_of_the_offerings() {
    let mut flexible = pool();
    let types = Requirement::exists(labels::INSTANCE_TYPE).with_min_values(Some(3));
    flexible.template.requirements.add(types);
    let decision = decided(&snapshot(
        flexible,
        vec![node("a", "g.8", vec![pod("p", 1500)])],
    ));
    assert!(decision.commands.is_empty(), "{:?}", shown(&decision));
}

#[test]
fn balanced_refuses_a_saving_that_is_not_worth_its_disruption() {
    let nodes = |policy| {
        let mut pool = pool_of([
            sold("g.8", 8, ON_DEMAND),
            sold("slightly.8", 8, &[(CapacityType::OnDemand, 0.9)]),
        ]);
        pool.disruption.policy = policy;
        let pods = (0..7).map(|n| pod(&format!("p{n}"), 1000)).collect();
        decided(&snapshot(pool, vec![node("a", "g.8", pods)]))
    };
    assert_eq!(
        shown(&nodes(ConsolidationPolicy::WhenEmptyOrUnderutilized)),
        ["Single: a -> slightly.8"]
    );
    let decision = nodes(ConsolidationPolicy::Balanced);
    let scores = &decision.report.scores;
    assert!(
        scores.iter().any(|it| !it.is_approved && it.percent < 50),
        "{scores:?}"
    );
    let balanced = kept(&decision, "a");
    assert!(
        matches!(balanced, KeptReason::NotWorthIt { .. }),
        "{balanced:?}"
    );
}

#[test]
fn balanced_approves_a_large_saving() {
    let mut balanced = pool();
    balanced.disruption.policy = ConsolidationPolicy::Balanced;
    let nodes = vec![
        node("a", "g.8", vec![pod("p", 1500)]),
        node("b", "g.8", vec![pod("q", 7900)]),
    ];
    let decision = decided(&snapshot(balanced, nodes));
    assert_eq!(shown(&decision), ["Single: a -> g.2"]);
    let scores = &decision.report.scores;
    assert!(
        scores.iter().any(|it| it.is_approved && it.percent >= 50),
        "{scores:?}"
    );
}

#[test]
fn a_pass_tells_how_many_nodes_could_go_and_which_searches_its_work_budget_ended() {
    let nodes = vec![
        node("a", "g.8", vec![pod("p", 1500)]),
        node("b", "g.8", vec![pod("q", 7900)]),
    ];
    let snapshot = snapshot(pool(), nodes);
    let settings = DisruptionSettings {
        work: WorkBudget(1),
        ..DisruptionSettings::default()
    };

    let whole = decided(&snapshot).report;
    let short = decided_with(&snapshot, &settings).report;

    assert_eq!(whole.eligible[&DisruptionReason::Underutilized], 2);
    assert_eq!(whole.eligible[&DisruptionReason::Empty], 0);
    assert!(whole.work[&CommandKind::Single] > 0, "{whole:?}");
    assert_eq!(whole.cut_off, []);
    assert!(short.cut_off.contains(&CommandKind::Single), "{short:?}");
}

#[test]
fn running_pods_do_not_move_to_nodes_that_have_not_initialised() {
    let young = Node {
        is_initialized: false,
        ..node("young", "g.8", vec![])
    };
    let decision = decided(&snapshot(
        pool(),
        vec![node("a", "g.2", vec![pod("p", 1500)]), young],
    ));
    assert!(matches!(
        kept(&decision, "a"),
        KeptReason::NotCheaper { .. }
    ));
}

#[test]
fn pending_pods_keep_the_room_that_they_will_take_and_block_nothing() {
    let nodes = vec![
        node("a", "g.2", vec![pod("p", 1500)]),
        node("b", "g.8", vec![pod("q", 6000)]),
    ];
    let mut all = snapshot(pool(), nodes);
    assert_eq!(shown(&decided(&all)), ["Single: a -> "]);
    all.pending_pods = vec![
        Arc::new(pod("waits", 1900)),
        Arc::new(pod("too-large", 90_000)),
    ];
    // The waiting pod takes b's room; a is as cheap as can be.
    assert!(decided(&all).commands.is_empty());
}

#[test]
fn nothing_goes_back_within_a_day_to_what_it_came_from() {
    let decide_with = |hours, guard| {
        let replaced = vec![Replaced {
            offering: OfferingKey {
                instance_type: "g.4".into(),
                zone: "h".into(),
                capacity_type: CapacityType::OnDemand,
            },
            at: now() - SignedDuration::from_hours(hours),
        }];
        let types = [sold("g.4", 4, ON_DEMAND), sold("g.8", 8, ON_DEMAND)];
        let mut pool = pool_of(types);
        let zone = Requirement::in_values(labels::ZONE, ["h"]);
        pool.template.requirements.add(zone);
        let node = Node {
            replaced,
            ..node("a", "g.8", vec![pod("p", 1500)])
        };
        let settings = DisruptionSettings {
            flip_guard: guard,
            ..DisruptionSettings::default()
        };
        decided_with(&snapshot(pool, vec![node]), &settings)
    };
    let day = Some(SignedDuration::from_hours(24));
    let kept = kept(&decide_with(5, day), "a");
    assert_eq!(
        kept,
        KeptReason::WouldFlip {
            offering: "g.4/h/on-demand".to_owned()
        }
    );
    assert_eq!(shown(&decide_with(30, day)), ["Single: a -> g.4"]);
    assert_eq!(shown(&decide_with(5, None)), ["Single: a -> g.4"]);
    let next = decide_with(30, day);
    let memory = &next.commands[0].replacements[0].annotations[labels::REPLACED];
    assert_eq!(memory, "g.8/h/on-demand@2026-08-20T10:00:00Z");
}

#[test]
fn hysteresis_is_off_unless_asked_for_and_the_pool_comes_before_the_controller() {
    let decide_with = |own: Hysteresis, global: Hysteresis| {
        let mut pool = pool();
        pool.disruption.hysteresis = own;
        let nodes = vec![node("a", "g.4", vec![pod("p", 1500)])];
        let settings = DisruptionSettings {
            hysteresis: global,
            ..DisruptionSettings::default()
        };
        decided_with(&snapshot(pool, nodes), &settings)
    };
    let none = Hysteresis::default();
    assert_eq!(shown(&decide_with(none, none)), ["Single: a -> g.2"]);
    let percent = |percent| Hysteresis {
        saving_min_percent: Some(percent),
        ..none
    };
    assert!(matches!(
        kept(&decide_with(none, percent(60)), "a"),
        KeptReason::SavingTooSmall { .. }
    ));
    assert_eq!(
        shown(&decide_with(percent(50), percent(60))),
        ["Single: a -> g.2"]
    );
    let saving = Hysteresis {
        saving_min: Some(Price::from_per_hour(0.3)),
        ..none
    };
    assert!(matches!(
        kept(&decide_with(saving, none), "a"),
        KeptReason::SavingTooSmall { .. }
    ));
    let month = Some(SignedDuration::from_hours(24 * 30));
    let age = Hysteresis {
        node_age_min: month,
        ..none
    };
    assert!(matches!(
        kept(&decide_with(age, none), "a"),
        KeptReason::TooYoung { .. }
    ));
    let cool = Hysteresis {
        cool_down: month,
        ..none
    };
    assert!(matches!(
        kept(&decide_with(cool, none), "a"),
        KeptReason::CoolDown { .. }
    ));
    let used = Hysteresis {
        utilization_max_percent: Some(30),
        ..none
    };
    assert_eq!(
        kept(&decide_with(used, none), "a"),
        KeptReason::WellUsed {
            percent: 37,
            threshold: 30
        }
    );
}

#[test]
fn policies_bar_replacements() {
    let all = snapshot(pool(), vec![node("a", "g.8", vec![pod("p", 1500)])]);
    let mut preferences = Preferences::none();
    preferences.pool_mut(&"general".into()).bars.push(Bar {
        instance_type: "g.2".into(),
        zone: None,
        capacity_type: None,
        policy: "no-small".to_owned(),
        reason: "too small".to_owned(),
    });
    let decision = decide(&all, &preferences, &DisruptionSettings::default(), now());
    assert_eq!(shown(&decision), ["Single: a -> g.4"]);
}

#[test]
fn policies_order_by_their_prices_but_the_saving_is_real_money() {
    let all = snapshot(pool(), vec![node("a", "g.8", vec![pod("p", 1500)])]);
    let mut preferences = Preferences::none();
    for zone in crate::kit::ZONES {
        let key = OfferingKey {
            instance_type: "g.4".into(),
            zone: zone.into(),
            capacity_type: CapacityType::OnDemand,
        };
        let dear = OfferingKey {
            instance_type: "g.8".into(),
            ..key.clone()
        };
        let prices = &mut preferences.pool_mut(&"general".into()).prices;
        prices.insert(key, Price::from_per_hour(0.02));
        prices.insert(dear, Price::from_per_hour(0.01));
    }
    let decision = decide(&all, &preferences, &DisruptionSettings::default(), now());
    // By the policy's prices g.8 is best, but it saves nothing; then g.4.
    assert_eq!(shown(&decision), ["Single: a -> g.4"]);
    assert_eq!(decision.commands[0].price_after.per_hour(), Some(0.4));
    assert_eq!(decision.commands[0].kind, CommandKind::Single);
}
