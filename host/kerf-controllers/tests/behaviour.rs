//! Which test proves which part of the specification of lifecycle and termination (Karpenter's behaviour, §3 and §4)
//! and of what shapes capacity besides pods (§1.10, §1.11, §2.23).
//!
//! A row without a test fails, and so does one that names a test that does not exist.
//! With them go §1.6, §1.7 and §1.12, and what users reported (F and a number).

const SOURCES: &[&str] = &[
    include_str!("../src/adoption.rs"),
    include_str!("../src/disruption/conditions.rs"),
    include_str!("../src/disruption/drift/tests.rs"),
    include_str!("../src/disruption/hash.rs"),
    include_str!("../src/disruption/quiet.rs"),
    include_str!("../src/capacity_buffer/resolve.rs"),
    include_str!("../src/capacity_buffer/status.rs"),
    include_str!("../src/garbage.rs"),
    include_str!("../src/lifecycle/consistency.rs"),
    include_str!("../src/lifecycle/expiration.rs"),
    include_str!("../src/lifecycle/health.rs"),
    include_str!("../src/events.rs"),
    include_str!("../src/lifecycle/hydration.rs"),
    include_str!("../src/lifecycle/initialization.rs"),
    include_str!("../src/lifecycle/liveness.rs"),
    include_str!("../src/lifecycle/offerings.rs"),
    include_str!("../src/lifecycle/registration.rs"),
    include_str!("../src/memory/marks.rs"),
    include_str!("../src/node_overlay.rs"),
    include_str!("../src/node_pool.rs"),
    include_str!("../src/pod_events.rs"),
    include_str!("../src/repair.rs"),
    include_str!("../src/termination/drain.rs"),
    include_str!("../src/termination/eviction.rs"),
    include_str!("../src/termination/volumes.rs"),
    include_str!("../../kerf/src/adopt/judge.rs"),
    include_str!("../../kerf-api/src/condition/tests.rs"),
    include_str!("../../kerf-api/src/nodepool/hash.rs"),
    include_str!("../../kerf-state/src/convert/node_overlay.rs"),
    include_str!("../../kerf-cloud/tests/simulated/launches.rs"),
    include_str!("../../kerf-cloud/tests/simulated/reads.rs"),
    include_str!("../../kerf-cloud/tests/simulated/troubles.rs"),
    include_str!("../../kerf-state/src/tests/pods.rs"),
    include_str!("../../kerf-state/src/tests/join.rs"),
    include_str!("../../kerf-state/src/tests/pools.rs"),
    include_str!("../../xtask/src/vectors/nodepool_hash.rs"),
    include_str!("../../../tests/it/capacity.rs"),
    include_str!("../../../tests/it/adoption.rs"),
    include_str!("../../../tests/it/crashes.rs"),
    include_str!("../../../tests/it/lifecycle.rs"),
    include_str!("../../../tests/it/scenarios.rs"),
    include_str!("../../../tests/it/termination.rs"),
];

/// Section and part, and the tests that prove it.
const TABLE: &[(&str, &[&str])] = &[
    (
        "1.10 conditions",
        &[
            "an_overlay_that_does_not_apply_says_why_in_its_condition",
            "what_cannot_be_applied_is_named_by_field",
            "an_overlay_makes_the_dearer_type_the_first_choice_and_two_of_one_weight_are_told",
        ],
    ),
    (
        "1.10 no pool without its overlays, and a change replans",
        &[
            "an_evaluation_holds_until_something_changes",
            "free_addresses_are_those_of_now",
            "an_overlay_with_a_resource_gives_a_waiting_pod_its_node",
        ],
    ),
    (
        "1.11 resolution and conditions",
        &[
            "a_buffer_is_as_large_as_it_says",
            "a_limit_that_cannot_be_read_is_a_failed_resolution",
            "conditions_say_whether_the_pods_are_known_and_have_room",
            "a_buffer_of_a_workload_follows_its_replicas",
        ],
    ),
    (
        "1.11 room is kept, given to real pods, and kept over a restart",
        &["a_buffer_keeps_room_that_real_pods_take_and_no_emptiness_takes_it_away"],
    ),
    (
        "2.23 static capacity, its scale, its gate, a kill in the middle",
        &[
            "a_static_pool_has_its_nodes_without_pods_and_follows_its_scale",
            "kill_9_while_a_static_pool_grows_makes_nothing_twice",
            "a_pool_with_replicas_says_that_its_gate_is_closed",
        ],
    ),
    (
        "1.6 conditions: first touch, root, transition time, clearing",
        &[
            "untouched_objects_await_reconciliation_since_their_creation",
            "ready_is_true_when_all_dependents_are",
            "ready_is_false_when_one_dependent_is",
            "dependents_of_an_older_generation_make_ready_unknown",
            "transition_time_moves_only_with_the_status",
            "only_other_conditions_can_be_cleared",
        ],
    ),
    ("1.7 hash", &["hashes_equal_those_of_upstream"]),
    (
        "1.12 the cloud: create, and its typed refusals",
        &[
            "a_launch_gives_what_the_first_offering_asks_for_with_our_tags",
            "each_class_of_refusal_ends_as_it_should",
            "without_any_stock_every_offering_says_why",
        ],
    ),
    (
        "1.12 the cloud: get, list, delete until it is gone",
        &[
            "deleting_tells_gone_from_accepted_and_one_bad_id_spoils_nothing",
            "an_instance_that_is_still_being_made_is_deleted_later",
        ],
    ),
    (
        "1.12 the cloud: instance types and offerings",
        &[
            "instance_types_have_labels_prices_and_offerings_per_zone",
            "f30_what_is_sold_out_stays_known_and_what_is_not_sold_is_left_out",
        ],
    ),
    (
        "3.1 the finalizer comes first, and a pass can be repeated",
        &[
            "a_claim_whose_launch_was_never_recorded_ends_without_leaving_an_instance",
            "registering_twice_changes_nothing",
        ],
    ),
    (
        "3.2 launch: exactly one instance",
        &[
            "kill_9_between_the_runinstances_reply_and_the_status_write_leaves_one_instance_per_claim",
            "kill_9_between_the_launch_token_and_the_call_leaves_one_instance_per_claim",
        ],
    ),
    (
        "3.2 launch: a refused offering, and the next one",
        &[
            "an_offering_without_stock_is_remembered_over_a_kill_and_strange_memory_is_told_and_left_out",
            "the_order_of_the_plan_survives_the_annotation",
        ],
    ),
    (
        "3.2 launch: a class that is not ready, an error that is retried",
        &["a_wrong_key_and_a_dead_cloud_are_told_and_the_pods_get_their_nodes_once_that_is_mended"],
    ),
    (
        "3.3 registration: labels, taints, owner, finalizer",
        &[
            "registration_trades_the_unregistered_taint_for_the_claims",
            "launch_notes_stay_on_the_claim",
        ],
    ),
    (
        "3.3 registration: two Nodes of one instance",
        &["a_second_node_of_one_instance_is_nobodys"],
    ),
    (
        "3.4 initialization: startup taints and resources",
        &[
            "a_startup_taint_keeps_the_node_back_until_it_is_gone",
            "a_gpu_that_the_device_plugin_has_not_announced_keeps_the_node_back",
            "a_request_of_zero_needs_nothing",
        ],
    ),
    (
        "3.4 initialization: a time limit that can be set",
        &[
            "a_node_with_a_startup_taint_that_nobody_takes_away_is_given_up_after_the_time_that_was_set",
            "without_an_initialization_timeout_a_node_may_take_for_ever_to_get_ready",
        ],
    ),
    (
        "3.5 liveness",
        &[
            "five_minutes_to_launch_fifteen_to_register_an_hour_to_get_ready",
            "nodes_that_never_join_are_given_up_and_the_pool_says_so_also_after_a_restart",
        ],
    ),
    (
        "3.6 registration health: two of the latest four",
        &[
            "two_failures_of_the_latest_four_make_a_pool_unhealthy_and_enough_successes_heal_it",
            "a_claim_counts_once_however_often_its_pass_is_repeated",
            "a_claim_that_no_pool_owns_counts_nowhere",
        ],
    ),
    (
        "3.6 registration health: reset, and kept over a restart",
        &[
            "an_edited_pool_forgets_how_its_claims_registered",
            "what_is_kept_over_a_restart_gives_the_same_verdict",
            "without_results_the_condition_stands_for_them",
        ],
    ),
    (
        "3.7 expiration",
        &[
            "a_claim_expires_after_its_time_and_never_never",
            "jitter_spreads_claims_of_one_minute_and_stays_the_same_for_each",
            "an_expired_claim_is_replaced",
        ],
    ),
    (
        "3.7 garbage collection of claims",
        &["an_instance_that_vanished_takes_its_claim_and_node_with_it_and_the_pod_gets_another"],
    ),
    (
        "3.7 garbage collection of instances",
        &[
            "an_instance_of_a_launch_that_is_not_recorded_yet_is_claimed",
            "a_late_twin_of_a_recorded_launch_is_unclaimed",
            "a_suspect_is_only_ripe_after_the_grace_in_one_stretch",
        ],
    ),
    (
        "3.7 consistency",
        &["a_node_that_shows_less_than_nine_tenths_is_told"],
    ),
    (
        "3.7 pod events, not refreshed by a restart",
        &[
            "a_restart_moves_no_clock",
            "coming_finishing_and_leaving_are_noted_once_each",
            "what_came_while_the_watch_was_broken_is_noted",
        ],
    ),
    (
        "3.7 hydration",
        &[
            "a_claim_of_an_older_version_gets_the_label_of_its_class",
            "a_node_of_an_older_version_gets_the_label_once",
        ],
    ),
    (
        "3.8 Drifted: hash, with both versions",
        &["another_template_drifts_where_both_hashes_are_of_todays_version"],
    ),
    (
        "3.8 Drifted: requirements",
        &["requirements_that_the_labels_do_not_meet_drift"],
    ),
    (
        "3.8 Drifted: instance type not found, and only when the claim is old enough",
        &[
            "a_type_that_is_not_offered_any_more_drifts_once_the_claim_is_old_enough",
            "a_type_without_an_offering_for_its_zone_and_capacity_type_drifts",
        ],
    ),
    (
        "3.8 Drifted: the provider's reasons",
        &[
            "another_class_drifts",
            "a_newer_image_of_the_architecture_drifts",
            "a_network_that_the_class_does_not_name_drifts",
            "another_bootstrap_policy_drifts_and_a_claim_that_remembers_none_does_not",
        ],
    ),
    (
        "3.8 Drifted: cleared, and not by a cloud that cannot be asked",
        &[
            "a_claim_without_an_instance_has_not_drifted",
            "what_would_be_made_today_has_not_drifted",
            "what_cannot_be_looked_at_leaves_drift_as_it_was",
            "drift_of_the_cloud_stays_while_the_cloud_cannot_be_asked_and_that_of_the_pool_goes",
        ],
    ),
    (
        "3.8 Consolidatable",
        &[
            "consolidate_after_counts_from_the_last_pod_event_or_the_initialization",
            "a_claim_that_is_not_initialized_or_of_a_static_pool_is_never_consolidatable",
            "consolidatable_comes_when_it_is_due_and_goes_when_a_pod_moves",
        ],
    ),
    ("3.9 counter", &["a_pool_counts_its_own_claims_that_stay"]),
    (
        "3.9 hash",
        &[
            "hashes_equal_those_of_upstream",
            "all_twenty_pools_hash_as_upstream_hashes_them_as_written_and_as_stored",
            "a_claim_of_an_older_hash_version_takes_the_new_hash_unless_it_had_drifted",
        ],
    ),
    (
        "3.9 readiness",
        &[
            "a_pool_with_a_ready_class_is_ready",
            "a_pool_without_its_class_says_so",
            "a_pool_whose_class_is_not_ready_says_why",
        ],
    ),
    (
        "3.10 node repair",
        &[
            "a_node_is_repaired_once_the_policy_of_its_condition_has_run_out",
            "nothing_is_repaired_while_more_than_a_fifth_of_the_pool_is_broken",
            "a_repair_ends_the_time_to_drain_but_never_makes_it_longer",
            "a_node_that_stays_broken_is_repaired_although_its_pod_forbids_disruption",
        ],
    ),
    (
        "4.1 claim: Node first, then the instance until it is gone",
        &["deleting_a_nodeclaim_deletes_its_node_and_its_instance"],
    ),
    (
        "4.1 claim: the deadline is written down",
        &["a_pod_that_forbids_disruption_keeps_its_node_until_the_grace_is_over_and_not_longer"],
    ),
    (
        "4.2 kubectl delete node",
        &["kubectl_delete_node_drains_it_and_takes_its_claim_and_instance_with_it"],
    ),
    (
        "4.2 an instance that is gone needs no drain",
        &["an_instance_that_vanished_takes_its_claim_and_node_with_it_and_the_pod_gets_another"],
    ),
    (
        "4.2 taint and load-balancer label",
        &["a_pod_that_forbids_disruption_keeps_its_node_until_the_grace_is_over_and_not_longer"],
    ),
    (
        "4.2 volumes",
        &[
            "only_volumes_with_a_name_on_this_node_count",
            "the_claims_of_a_pod_are_those_that_it_names_and_those_made_for_it",
            "a_volume_that_is_still_attached_holds_the_machine_until_the_grace_is_over",
        ],
    ),
    (
        "4.3 tiers",
        &[
            "critical_pods_leave_after_the_others_and_daemons_after_their_users",
            "a_tier_that_is_still_leaving_holds_the_next_one_back",
            "mirror_pods_and_pods_that_tolerate_everything_are_not_waited_for",
        ],
    ),
    (
        "4.3 force only past the deadline",
        &[
            "a_pod_is_overdue_when_its_grace_no_longer_fits",
            "a_terminating_pod_that_would_outlive_the_deadline_is_overdue",
        ],
    ),
    (
        "4.3 pods that do not come to an end",
        &[
            "a_pod_whose_kubelet_is_gone_is_waited_for_one_minute_past_its_end",
            "a_pod_whose_finalizer_nobody_takes_away_and_a_kubelet_that_is_gone_do_not_hold_a_node_for_ever",
        ],
    ),
    (
        "4.3 what the eviction API answers is told, each text once",
        &[
            "a_second_reason_for_the_same_trouble_on_the_same_object_is_an_event_of_its_own",
            "an_equal_event_is_counted_at_once_and_written_a_minute_later",
        ],
    ),
    (
        "4.3 who is refused waits, and holds no other pod up",
        &[
            "a_pod_whose_budget_refuses_for_minutes_is_asked_every_ten_seconds_not_every_second",
            "a_pod_that_was_evicted_is_forgotten_and_other_pods_are_asked_meanwhile",
            "pods_that_were_refused_together_do_not_ask_together_again",
            "an_eviction_that_fails_for_a_reason_of_its_own_does_not_keep_the_other_pods_on_the_node",
            "a_drain_is_looked_at_every_second_while_pods_leave_and_before_a_deadline_else_less_often",
        ],
    ),
    (
        "4.4 budgets",
        &[
            "a_pod_with_two_budgets_holds_a_drain_and_each_reason_is_told_on_the_node",
            "a_pod_that_never_got_ready_leaves_where_its_budget_always_allows_unhealthy_pods",
            "a_budget_that_allows_nothing_holds_a_drain_and_is_told_until_it_is_gone",
        ],
    ),
    (
        "4.5 do-not-disrupt, durations, older annotations",
        &[
            "do_not_disrupt_holds_for_ever_or_for_a_while_and_its_older_forms_hold_too",
            "a_pod_that_has_not_started_is_protected_by_a_duration",
            "a_malformed_do_not_disrupt_is_ignored_and_told",
        ],
    ),
    (
        "design: the restart rule",
        &["every_kind_of_mark_survives_a_restart"],
    ),
    (
        "adoption: what another provider made is kept and ends properly",
        &[
            "a_claim_of_the_other_provider_is_kept_while_collections_pass_and_ends_with_its_machine",
            "claims_of_both_alibaba_providers_are_looked_after_and_those_of_other_clouds_are_not",
            "what_another_provider_made_keeps_its_labels",
            "a_claim_of_another_provider_never_drifts",
            "pools_and_claims_of_both_providers_stay_as_they_are",
        ],
    ),
    (
        "F01 F28 no stock: the next offering, and no loop",
        &[
            "a_stock_out_moves_on_to_the_next_offering_and_marks_only_the_failed_one",
            "a_full_vswitch_is_passed_over_and_its_type_is_not_blamed",
        ],
    ),
    (
        "F31 deleted while still Pending",
        &[
            "a_claim_that_is_deleted_while_its_machine_is_still_initializing_keeps_its_finalizer_until_it_is_gone",
        ],
    ),
    (
        "F40 a node without a providerID",
        &["a_node_without_a_provider_id_and_one_with_a_strange_one_do_not_stop_the_loop"],
    ),
    (
        "F44 crash after create",
        &[
            "kill_9_between_the_runinstances_reply_and_the_status_write_leaves_one_instance_per_claim",
        ],
    ),
    (
        "F59 claims that never become ready",
        &["claims_that_never_become_ready_count_against_the_limit"],
    ),
    (
        "F69 a machine that was stopped, not deleted",
        &[
            "pods_of_a_machine_that_was_stopped_but_not_deleted_get_another_and_the_machine_is_deleted",
        ],
    ),
    (
        "F61 a budget past terminationGracePeriod",
        &["a_budget_does_not_block_a_node_after_its_termination_grace_period"],
    ),
    (
        "F71 delete waits for volumes",
        &[
            "a_volume_that_is_still_attached_holds_the_machine_until_the_grace_is_over",
            "the_claims_of_a_pod_are_those_that_it_names_and_those_made_for_it",
        ],
    ),
    (
        "F81 a machine that dies right after launch",
        &[
            "a_machine_that_dies_right_after_its_launch_takes_its_claim_with_it_before_the_registration_timeout",
        ],
    ),
    (
        "design: leader election",
        &["a_standby_takes_over_when_the_leader_dies_and_acts_only_then"],
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
