//! Which test proves which part of the specification of scheduling (Karpenter's behaviour, §2), one row per bullet.
//!
//! A row without a test fails, and so does one that names a test that does not exist. What is decided outside kerf-core
//! (batching, cluster state, creation of objects) is proved in the crates that do it.

const SOURCES: &[&str] = &[
    include_str!("../src/buffer.rs"),
    include_str!("../src/disruption/emptiness/tests.rs"),
    include_str!("../src/instance_type.rs"),
    include_str!("../src/node.rs"),
    include_str!("../src/overlay/price.rs"),
    include_str!("../src/overlay/tests.rs"),
    include_str!("../src/requirement/tests.rs"),
    include_str!("../src/schedule/tests/basics.rs"),
    include_str!("../src/schedule/tests/buffers.rs"),
    include_str!("../src/schedule/tests/filters.rs"),
    include_str!("../src/schedule/tests/limits.rs"),
    include_str!("../src/schedule/tests/nodes.rs"),
    include_str!("../src/schedule/tests/packing.rs"),
    include_str!("../src/schedule/tests/preferences.rs"),
    include_str!("../src/schedule/tests/topology.rs"),
    include_str!("../src/schedule/tests/user_reports.rs"),
    include_str!("../src/static_capacity/tests.rs"),
    include_str!("../src/taint.rs"),
    include_str!("../src/labels.rs"),
    include_str!("kube_scheduler.rs"),
    include_str!("properties.rs"),
    include_str!("requirement_vectors.rs"),
    include_str!("../../kerf-state/src/tests/buffers.rs"),
    include_str!("../../kerf-state/src/tests/default_spread.rs"),
    include_str!("../../kerf-state/src/tests/join.rs"),
    include_str!("../../kerf-state/src/tests/pods.rs"),
    include_str!("../../kerf-state/src/tests/volumes.rs"),
];

/// Section and bullet, and the tests that prove it.
const TABLE: &[(&str, &[&str])] = &[
    (
        "1.10 price math",
        &[
            "a_price_replaces_a_number_is_added_and_a_percentage_is_of_the_price",
            "no_price_falls_below_zero",
            "an_unknown_price_can_be_replaced_and_not_adjusted",
        ],
    ),
    (
        "1.10 order, conflicts, atomic per overlay",
        &[
            "the_heaviest_overlay_sets_the_price_and_lighter_ones_fill_the_rest",
            "of_equal_weights_the_last_name_counts_and_nothing_of_the_other_applies",
            "a_conflict_in_one_pool_takes_the_overlay_out_of_all",
            "equal_weights_on_different_targets_live_together",
            "the_order_of_overlays_and_pools_does_not_matter",
        ],
    ),
    (
        "1.10 capacity, overrides kept",
        &["capacity_is_added_where_the_overlay_speaks_of_it_and_overrides_are_kept"],
    ),
    (
        "1.10 overlays order, real prices are reported, claims are flagged",
        &[
            "an_overlay_orders_and_the_real_price_is_reported",
            "without_an_overlay_a_claim_has_no_flag_of_one",
        ],
    ),
    (
        "1.11 how many pods",
        &[
            "the_larger_of_number_and_percentage_counts_and_a_percentage_gives_at_least_one",
            "limits_bound_the_number_and_give_it_where_nothing_else_does",
        ],
    ),
    (
        "1.11 virtual pods",
        &["virtual_pods_have_fixed_names_and_nothing_that_would_hold_a_real_one_back"],
    ),
    (
        "1.11 and 2.4 virtual pods are planned last",
        &[
            "a_buffer_gets_its_room_like_pods_do",
            "real_pods_come_first_however_small_they_are",
            "real_pods_that_wait_for_each_other_come_before_a_buffer_too",
            "a_limit_is_spent_on_real_pods_first",
            "a_buffer_fits_into_what_is_there",
        ],
    ),
    (
        "1.11 nodes of buffers are not empty",
        &[
            "a_node_counts_the_virtual_pods_that_went_to_it_or_to_its_claim",
            "after_a_restart_every_node_holds_room_for_buffers_until_a_plan_says_where_it_is",
            "virtual_pods_wait_beside_real_ones_until_their_buffer_is_gone",
        ],
    ),
    (
        "2.1 algebra of one requirement",
        &[
            "the_algebra_answers_as_upstream_does",
            "intersections_are_exact",
        ],
    ),
    (
        "2.1 aliases are normalised",
        &[
            "aliases_become_canonical",
            "f02_a_bound_volume_names_its_zone_by_the_label_of_its_driver",
        ],
    ),
    ("2.1 any value", &["any_value_is_the_least_that_is_allowed"]),
    (
        "2.1 intersects and compatible",
        &[
            "the_algebra_answers_as_upstream_does",
            "a_label_that_an_existing_node_lacks_has_no_value",
        ],
    ),
    (
        "2.1 unknown labels have a hint",
        &[
            "an_unknown_label_is_a_reason_with_a_hint",
            "misspelt_keys_get_a_hint",
        ],
    ),
    (
        "2.1 required terms are alternatives",
        &["required_node_terms_are_alternatives"],
    ),
    (
        "2.2 tolerations, numeric operators too",
        &[
            "equal_compares_the_value_and_exists_does_not",
            "numeric_operators_compare_the_taint_with_the_toleration",
        ],
    ),
    (
        "2.2 ephemeral and startup taints",
        &[
            "start_up_taints_count_once_the_node_is_initialised",
            "start_up_taints_do_not_keep_pods_from_a_node_that_starts",
        ],
    ),
    (
        "2.2 all taints matter",
        &["taints_must_be_tolerated", "soft_taints_give_way_last"],
    ),
    (
        "2.4 pods of nodes that go are planned",
        &["nodes_that_are_being_removed_take_no_pods_and_their_pods_move"],
    ),
    (
        "2.4 pools by weight",
        &["heavier_pools_come_first_and_lighter_ones_take_what_they_cannot"],
    ),
    (
        "2.4 pods that cannot be planned",
        &[
            "gated_pods_wait_and_say_why",
            "a_missing_volume_is_a_reason",
        ],
    ),
    ("2.4 no pool", &["without_a_pool_that_can_grow_pods_say_so"]),
    (
        "2.5 order of the queue",
        &["the_order_of_the_input_does_not_matter"],
    ),
    (
        "2.5 failed pods are tried again",
        &["affinity_to_a_pod_that_comes_later_in_the_batch_is_met"],
    ),
    (
        "2.6 relaxation",
        &[
            "preferences_are_met_one_by_one_as_far_as_possible",
            "a_soft_spread_gives_way",
            "soft_taints_give_way_last",
        ],
    ),
    (
        "2.6 ignored preferences",
        &["ignored_preferences_change_nothing"],
    ),
    (
        "2.7 existing nodes, open claims, new claims",
        &["existing_nodes_come_first", "small_pods_share_a_node"],
    ),
    (
        "2.7 initialised nodes first",
        &["initialised_nodes_come_before_claims_on_their_way"],
    ),
    (
        "2.8 daemons that are still to come",
        &["room_is_kept_for_daemons_that_are_not_there_yet"],
    ),
    ("2.8 resources of nodes", &["nothing_is_over_allocatable"]),
    (
        "2.9 instance types by requirement, room and offering",
        &[
            "a_pod_gets_the_cheapest_type_that_holds_it",
            "bounds_select_instance_types",
            "spot_is_first_where_it_is_cheaper_and_allowed",
        ],
    ),
    (
        "2.9 explanations",
        &[
            "what_is_too_large_is_told_how_near_the_closest_type_came",
            "what_cannot_be_bought_is_told_where_and_why",
            "what_is_large_enough_but_sold_out_is_told_with_what_can_be_bought",
        ],
    ),
    (
        "2.9 pools without any type",
        &["what_cannot_be_bought_is_told_where_and_why"],
    ),
    (
        "2.10 minValues",
        &[
            "min_values_keep_that_many_types_possible",
            "min_values_that_cannot_be_met_fail_or_are_lowered_by_policy",
        ],
    ),
    (
        "2.11 daemons per instance type",
        &[
            "daemons_take_their_share_of_the_types_that_they_run_on",
            "f56_daemons_that_select_types_count_only_there",
            "a_daemon_of_one_zone_takes_nothing_from_nodes_of_another",
            "a_pod_whose_host_port_a_daemon_takes_does_not_join_a_claim_with_that_daemon",
            "a_pod_does_not_take_the_host_port_of_a_daemon_that_has_yet_to_come_to_a_node",
        ],
    ),
    (
        "2.11 claims ask for their daemons",
        &["a_daemon_on_every_node_is_counted_in_the_claims_requests"],
    ),
    (
        "2.12 limits",
        &[
            "limits_hold_inside_a_round",
            "limits_hold_whichever_offerings_the_claims_become",
            "fallbacks_of_a_claim_stay_within_the_limit_too",
        ],
    ),
    (
        "2.12 nodes as a limit",
        &["the_number_of_nodes_is_a_limit_inside_a_round"],
    ),
    (
        "2.13 identity of a group",
        &["two_constraints_that_differ_only_in_min_domains_are_both_kept"],
    ),
    (
        "2.13 domains",
        &[
            "f52_zones_of_a_broken_pool_do_not_count_for_a_spread",
            "custom_topology_keys_come_from_pools_and_nodes",
            "zones_without_stock_do_not_hold_a_spread_back",
        ],
    ),
    (
        "2.13 node inclusion policies",
        &[
            "a_pod_too_large_for_the_nodes_that_anothers_spread_counts_goes_to_others",
            "zones_that_the_pods_node_affinity_refuses_do_not_count_unless_the_policy_says_so",
            "zones_of_tainted_nodes_count_unless_the_policy_says_so",
            "a_node_that_may_be_in_another_zone_does_not_count_for_pods_that_are_bound_to_one",
        ],
    ),
    (
        "2.13 counting",
        &[
            "a_spread_counts_pods_that_run_already",
            "pods_without_constraints_are_counted_where_they_are_put",
            "a_selector_that_is_not_given_counts_nothing",
        ],
    ),
    (
        "2.13 least count and minDomains",
        &[
            "min_domains_lower_the_least_count_to_zero",
            "f53_pinned_volumes_and_min_domains_place_all_pods_when_zones_suffice",
        ],
    ),
    (
        "2.13 choice of the domain",
        &[
            "a_zone_spread_is_even",
            "a_spread_over_hosts_gives_each_its_own",
            "a_spread_that_does_not_select_its_own_pods_does_not_count_them",
        ],
    ),
    (
        "2.13 default constraints",
        &[
            "a_pod_of_a_service_is_spread_over_what_the_service_selects",
            "the_selector_of_the_workload_narrows_that_of_the_services",
            "the_labels_of_a_replication_controller_go_over_those_of_services",
            "a_pod_with_constraints_or_that_nothing_selects_keeps_what_it_has",
        ],
    ),
    (
        "2.13 matchLabelKeys",
        &["match_label_keys_count_only_pods_of_the_same_revision"],
    ),
    (
        "2.14 affinity",
        &[
            "affinity_follows_the_pods_that_it_wants",
            "affinity_to_oneself_starts_somewhere_and_stays_together",
            "affinity_to_nobody_is_a_reason",
        ],
    ),
    (
        "2.14 namespaces",
        &["namespaces_of_a_term_are_the_pods_own_a_list_or_selected"],
    ),
    (
        "2.14 anti-affinity",
        &[
            "anti_affinity_over_zones_fills_each_zone_in_one_round",
            "hard_topology_constraints_hold",
        ],
    ),
    (
        "2.14 inverse anti-affinity",
        &[
            "anti_affinity_holds_the_other_way_round_too",
            "anti_affinity_of_an_earlier_pod_of_the_batch_keeps_a_later_one_away",
        ],
    ),
    (
        "2.15 volume topology",
        &["volumes_pull_their_pod_to_their_zone"],
    ),
    (
        "2.15 volume limits",
        &[
            "a_node_attaches_as_many_volumes_as_its_driver_can_and_shared_ones_once",
            "new_nodes_attach_as_many_volumes_as_their_type_can",
        ],
    ),
    (
        "2.16 host ports",
        &[
            "host_ports_keep_pods_apart",
            "sidecars_with_one_host_port_are_kept_apart_as_kube_scheduler_does",
        ],
    ),
    ("2.17 huge pages", &["huge_pages_are_taken_out_of_memory"]),
    (
        "2.18 reserved capacity",
        &["reserved_capacity_comes_first_and_no_more_than_there_is"],
    ),
    (
        "2.19 what a claim carries",
        &[
            "custom_labels_of_the_pool_can_be_selected_and_end_up_on_the_claim",
            "f49_labels_of_registration_are_met_and_never_written_into_a_claim",
        ],
    ),
    (
        "2.24 one stuck claim never stops the world",
        &["a_claim_that_never_launches_stops_nobody_else"],
    ),
    (
        "2.23 static provisioning: from the template, within limits, replacements counted once",
        &[
            "missing_nodes_are_made_from_the_template_and_zones_take_turns",
            "nodes_whose_replacement_is_on_its_way_are_not_made_twice",
            "a_node_that_is_being_deleted_is_replaced_at_once",
            "a_limit_on_nodes_bounds_what_is_made_and_says_so",
            "a_pool_that_is_not_ready_or_sells_nothing_makes_nothing_and_says_why",
        ],
    ),
    (
        "2.23 static deprovisioning",
        &[
            "what_goes_first_is_not_launched_then_empty_then_cheap_and_protected_ones_last",
            "of_equal_nodes_the_one_with_the_least_life_left_goes_first",
            "the_order_of_the_nodes_does_not_matter",
        ],
    ),
    (
        "design: ties",
        &[
            "thirty_one_pod_nodes_over_three_zones_come_out_ten_each",
            "at_equal_price_and_nodes_the_zone_with_most_free_ips_comes_first",
        ],
    ),
    (
        "design: the policy seam",
        &[
            "barred_offerings_are_not_used",
            "what_policies_leave_unplaced_names_the_policy",
            "higher_scores_come_before_lower_prices",
            "prices_of_policies_order_and_real_prices_are_reported",
        ],
    ),
    (
        "design: packing",
        &[
            "pods_that_complement_each_other_share_a_node_when_that_is_cheaper",
            "two_nodes_become_one_at_the_same_price",
        ],
    ),
    (
        "design: truth",
        &[
            "kube_scheduler_agrees_with_every_plan",
            "every_pod_is_in_exactly_one_place",
        ],
    ),
    (
        "design: work budget",
        &["a_spent_budget_leaves_pods_for_the_next_round"],
    ),
];

#[test]
fn every_bullet_has_tests_that_exist() {
    for (bullet, tests) in TABLE {
        assert!(!tests.is_empty(), "{bullet} has no test");
        for test in *tests {
            let definition = format!("fn {test}(");
            assert!(
                SOURCES.iter().any(|source| source.contains(&definition)),
                "{bullet}: no test {test}"
            );
        }
    }
}
