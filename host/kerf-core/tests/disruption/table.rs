//! Which test proves which part of Karpenter's behaviour §5, one row per bullet. A row without a test fails, and so does
//! one that names a test that does not exist. §5.14 and §5.15 (carrying out) are proved in kerf-controllers.

const SOURCES: &[&str] = &[
    include_str!("candidates.rs"),
    include_str!("consolidation.rs"),
    include_str!("drift.rs"),
    include_str!("properties.rs"),
    include_str!("validation.rs"),
    include_str!("../../src/disruption/budget.rs"),
    include_str!("../../src/disruption/cron.rs"),
    include_str!("../../src/disruption/emptiness/tests.rs"),
];

const TABLE: &[(&str, &[&str])] = &[
    (
        "5.1 methods in order, all of them in one pass",
        &[
            "empty_drifted_and_underutilized_nodes_go_in_one_pass_and_a_blocked_pool_starves_no_other",
        ],
    ),
    (
        "5.2 rejections",
        &[
            "each_thing_that_keeps_a_node_is_told",
            "a_pod_that_forbids_disruption_keeps_its_node_daemons_too_mirror_pods_not",
            "pod_disruption_budgets_keep_nodes",
            "nodes_with_blocked_pods_are_never_chosen",
        ],
    ),
    (
        "5.2 pod-level blocks are ignored for drift with a grace period",
        &["f62_drift_with_a_grace_period_ignores_do_not_disrupt_and_without_it_does_not"],
    ),
    (
        "5.2 costs and order",
        &["the_dearest_for_the_least_disruption_goes_first"],
    ),
    (
        "5.3 budgets",
        &[
            "the_tightest_budget_that_holds_counts",
            "budgets_hold_over_all_methods_of_a_pass",
            "a_budget_for_one_reason_leaves_the_others_free",
            "budgets_are_never_exceeded",
        ],
    ),
    (
        "5.5 order, places, any number of replacements, no price rule",
        &[
            "the_longest_drifted_goes_first_and_nodes_without_pods_before",
            "a_pod_without_another_place_keeps_its_drifted_node_and_the_next_one_goes",
            "pods_of_a_drifted_node_may_need_several_new_nodes_at_any_price",
            "a_drifted_pool_rolls_within_its_budget_and_its_pods_move_once",
            "f76_drift_stops_where_replacements_do_not_join",
        ],
    ),
    (
        "5.6 static drift",
        &["drifted_nodes_of_a_static_pool_are_replaced_within_budget_and_limit"],
    ),
    (
        "5.7 eligibility",
        &[
            "pools_that_keep_their_nodes_are_left_alone",
            "each_thing_that_keeps_a_node_is_told",
            "f83_a_node_with_recent_pod_movement_is_left_alone",
        ],
    ),
    (
        "5.8 a pod without a place is a no-op; zero claims delete",
        &[
            "a_node_whose_pods_fit_elsewhere_is_deleted_and_each_pod_has_its_place",
            "no_pod_is_displaced_without_a_place_that_has_the_room",
        ],
    ),
    (
        "5.8 more than one claim (differs: n to m)",
        &["a_dear_node_becomes_several_cheap_ones"],
    ),
    (
        "5.8 only cheaper options, minValues strictly",
        &[
            "a_node_is_replaced_by_a_cheaper_one_and_only_cheaper_ones_are_listed",
            "a_node_as_cheap_as_its_pods_allow_stays_and_says_so",
            "min_values_hold_for_what_is_left_of_the_offerings",
            "consolidation_never_raises_the_price_whichever_offerings_are_launched",
            "f46_spot_is_not_always_cheaper",
        ],
    ),
    (
        "5.8 spot only where both are allowed",
        &["f48_after_an_on_demand_fallback_the_node_returns_to_spot"],
    ),
    (
        "5.8 spot to spot",
        &[
            "f47_spot_to_spot_needs_fifteen_cheaper_types_and_says_so",
            "a_spot_pool_consolidates_spot_to_spot_in_sets_without_fifteen_types",
        ],
    ),
    (
        "5.9 sets",
        &["several_nodes_become_fewer_where_no_single_one_can_go"],
    ),
    (
        "5.9 replacement sanity",
        &["several_nodes_do_not_become_one_of_a_type_that_they_have"],
    ),
    (
        "5.10 single nodes (differs: several a pass)",
        &["more_than_one_command_starts_in_a_pass_and_none_shares_room"],
    ),
    (
        "5.11 Balanced",
        &[
            "balanced_refuses_a_saving_that_is_not_worth_its_disruption",
            "balanced_approves_a_large_saving",
        ],
    ),
    (
        "5.12 simulation",
        &[
            "running_pods_do_not_move_to_nodes_that_have_not_initialised",
            "pending_pods_keep_the_room_that_they_will_take_and_block_nothing",
        ],
    ),
    (
        "5.13 a last look (differs: the promised places are looked at, nothing is planned anew)",
        &[
            "a_command_holds_while_nothing_has_changed",
            "every_command_holds_on_the_snapshot_that_it_was_decided_on",
            "a_pod_that_nobody_promised_a_place_stops_the_command",
            "a_promise_whose_place_is_lost_stops_the_command",
            "f64_an_empty_node_that_got_a_pod_is_not_removed",
            "f65_a_pod_that_forbids_disruption_and_came_meanwhile_stops_the_command",
            "a_command_over_budget_or_for_a_node_that_is_gone_stops",
        ],
    ),
    (
        "better: hysteresis",
        &["hysteresis_is_off_unless_asked_for_and_the_pool_comes_before_the_controller"],
    ),
    (
        "better: no A to B to A",
        &["nothing_goes_back_within_a_day_to_what_it_came_from"],
    ),
    (
        "better: policies bar and order",
        &[
            "policies_bar_replacements",
            "policies_order_by_their_prices_but_the_saving_is_real_money",
        ],
    ),
    (
        "better: one reason per node",
        &["every_node_goes_once_or_stays_for_one_reason"],
    ),
    (
        "better: same input, same decision",
        &["the_order_of_the_input_changes_nothing"],
    ),
];

#[test]
fn every_rule_has_a_test_that_exists() {
    for (rule, tests) in TABLE {
        assert!(!tests.is_empty(), "{rule} has no test");
        for test in *tests {
            let declared = format!("fn {test}(");
            let exists = SOURCES.iter().any(|source| source.contains(&declared));
            assert!(exists, "{rule}: there is no test {test}");
        }
    }
}
