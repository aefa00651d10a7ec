//! From a plan to preferences: what core is told after the policies were asked.

use crate::guest::{ENGINE, PREFER_FAMILY};
use kerf_core::instance_type::{CapacityType, InstanceType, Offering};
use kerf_core::labels;
use kerf_core::node_pool::{NodeClassRef, NodePool};
use kerf_core::plan::{Plan, PlannedClaim, PlannedOffering};
use kerf_core::preferences::{OfferingKey, Preferences};
use kerf_core::price::Price;
use kerf_core::requirement::Requirement;
use kerf_core::resources::Resources;
use kerf_core::snapshot::Snapshot;
use kerf_policy::{FailurePolicy, Hook, Now, Occasion, PolicySpec, Registry, consult};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

fn occasion() -> Occasion<'static> {
    let now = Now {
        instant: Instant::now(),
        unix_secs: 0,
    };
    Occasion {
        region: "cn-hangzhou",
        reason: "provision",
        now,
    }
}

fn world() -> (Snapshot, Plan) {
    let offerings = |price: u64| {
        ["cn-hangzhou-h", "cn-hangzhou-i"]
            .map(|zone| Offering::new(zone, CapacityType::OnDemand, Price::from_micros(price)))
            .to_vec()
    };
    let instance_type = |name: &str, price| {
        let family = name.rsplit_once('.').unwrap().0;
        let labels = [Requirement::in_values(labels::INSTANCE_FAMILY, [family])];
        let none = Resources::default();
        Arc::new(InstanceType::new(
            name,
            labels,
            Resources::of(2000, 8 << 30),
            none,
            offerings(price),
        ))
    };
    let types = vec![
        instance_type("ecs.c7.large", 300_000),
        instance_type("ecs.g7.large", 400_000),
    ];
    let planned = |it: &Arc<InstanceType>, offering: &Offering| PlannedOffering {
        instance_type: it.name.clone(),
        zone: offering.zone.clone(),
        capacity_type: offering.capacity_type,
        price: offering.price,
        reservation: None,
        allocatable: it.allocatable(),
        capacity: it.capacity.clone(),
    };
    let planned: Vec<_> = types
        .iter()
        .flat_map(|it| it.offerings.iter().map(move |o| planned(it, o)))
        .collect();
    let node_class = NodeClassRef {
        name: "default".into(),
        ..NodeClassRef::default()
    };
    let claim = PlannedClaim {
        pool: "default".into(),
        node_class,
        requirements: Arc::default(),
        offerings: planned.into(),
        requests: Resources::of(500, 1 << 30),
        pods: vec![],
        labels: Default::default(),
        annotations: Default::default(),
        taints: vec![],
        startup_taints: vec![],
        expire_after: None,
        termination_grace_period: None,
        reason: String::new(),
    };
    let pool = NodePool {
        name: "default".into(),
        instance_types: Arc::new(types),
        ..NodePool::default()
    };
    let snapshot = Snapshot {
        pools: vec![Arc::new(pool)],
        ..Snapshot::default()
    };
    (
        snapshot,
        Plan {
            new_claims: vec![claim],
            ..Plan::default()
        },
    )
}

fn registry(config: serde_json::Value) -> Registry {
    let registry = Registry::new(ENGINE.clone());
    let spec = PolicySpec {
        config: Some(config),
        ..PolicySpec::new("family", Hook::InstanceSelection)
    };
    registry.update("default", spec, PREFER_FAMILY).unwrap();
    registry
}

fn score(preferences: &Preferences, instance_type: &str, zone: &str) -> Option<i64> {
    let (instance_type, zone) = (instance_type.into(), zone.into());
    let key = OfferingKey {
        instance_type,
        zone,
        capacity_type: CapacityType::OnDemand,
    };
    preferences.pools.get("default")?.scores.get(&key).copied()
}

#[test]
fn a_ranking_becomes_scores_of_the_pools_offerings() {
    let (snapshot, plan) = world();
    let mut preferences = Preferences::none();

    let registry = registry(json!({"weights": {"ecs.g7": 10}}));
    let consultation = consult(&registry, &snapshot, &plan, &mut preferences, occasion());

    assert!(consultation.is_changed);
    for zone in ["cn-hangzhou-h", "cn-hangzhou-i"] {
        assert!(score(&preferences, "ecs.g7.large", zone) > Some(0));
        assert_eq!(score(&preferences, "ecs.c7.large", zone), None);
    }
    let again = consult(&registry, &snapshot, &plan, &mut preferences, occasion());
    assert!(!again.is_changed, "the loop of planning and asking ends");
}

#[test]
fn an_exclusion_becomes_a_bar_with_the_policy_and_its_reason() {
    let (snapshot, plan) = world();
    let mut preferences = Preferences::none();

    consult(
        &registry(json!({"exclude": ["ecs.c7"]})),
        &snapshot,
        &plan,
        &mut preferences,
        occasion(),
    );

    let bars = &preferences.pools["default"].bars;
    assert_eq!(bars.len(), 1);
    assert!(bars[0].covers("ecs.c7.large", "cn-hangzhou-h", CapacityType::OnDemand));
    assert_eq!(
        (bars[0].policy.as_str(), bars[0].reason.as_str()),
        ("family", "family ecs.c7 is excluded")
    );
}

#[test]
fn a_claim_whose_policy_must_answer_is_blocked_with_the_reason() {
    let (snapshot, plan) = world();
    let mut preferences = Preferences::none();
    let registry = Registry::new(ENGINE.clone());
    let spec = PolicySpec {
        failure_policy: FailurePolicy::Fail,
        ..PolicySpec::new("family", Hook::InstanceSelection)
    };
    registry.fail("default", spec, "ConfigMap kerf/family does not exist");

    let consultation = consult(&registry, &snapshot, &plan, &mut preferences, occasion());

    assert_eq!(consultation.blocked.len(), 1);
    assert!(
        consultation.blocked[0]
            .1
            .to_string()
            .contains("ConfigMap kerf/family does not exist")
    );
    assert!(!consultation.is_changed);
}

#[test]
fn classes_without_policies_cost_nothing() {
    let (snapshot, plan) = world();
    let mut preferences = Preferences::none();

    let consultation = consult(
        &Registry::new(ENGINE.clone()),
        &snapshot,
        &plan,
        &mut preferences,
        occasion(),
    );

    assert!(!consultation.is_changed && consultation.runs.is_empty());
    assert_eq!(preferences, Preferences::none());
}
