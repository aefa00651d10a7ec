//! What policies say: bars, scores and prices; and reserved capacity, which comes before both.

use std::sync::Arc;

use super::kit::*;
use crate::instance_type::{CapacityType, Reservation};
use crate::labels;
use crate::overlay::{Overlay, PriceChange, evaluate};
use crate::pod::PodSpec;
use crate::preferences::{Bar, OfferingKey, Preferences};
use crate::price::Price;
use crate::requirement::Requirement;
use crate::resources::Resources;

fn bar(instance_type: &str) -> Bar {
    Bar {
        instance_type: instance_type.into(),
        zone: None,
        capacity_type: None,
        policy: "no-small".to_owned(),
        reason: "too small for us".to_owned(),
    }
}

fn key(instance_type: &str, zone: &str) -> OfferingKey {
    OfferingKey {
        instance_type: instance_type.into(),
        zone: zone.into(),
        capacity_type: CapacityType::OnDemand,
    }
}

#[test]
fn barred_offerings_are_not_used() {
    let mut preferences = Preferences::none();
    preferences
        .pool_mut(&"general".into())
        .bars
        .push(bar("ecs.g7.2c"));
    let plan = World::new(pool())
        .pod("a", spec(100))
        .plan_with(&preferences);
    assert_eq!(shown(&plan), ["a -> ecs.g7.4c h"]);
}

#[test]
fn what_policies_leave_unplaced_names_the_policy() {
    let mut preferences = Preferences::none();
    preferences
        .pool_mut(&"general".into())
        .bars
        .push(bar("ecs.g7.2c"));
    let plan = World::new(pool_of([instance_type("ecs.g7.2c", 2)]))
        .pod("a", spec(100))
        .plan_with(&preferences);
    assert_eq!(
        only_reason(&plan),
        "pool general: policy no-small excludes what would suit: too small for us"
    );
}

#[test]
fn higher_scores_come_before_lower_prices() {
    let mut preferences = Preferences::none();
    preferences
        .pool_mut(&"general".into())
        .scores
        .insert(key("ecs.g7.8c", "i"), 10);
    let plan = World::new(pool())
        .pod("a", spec(100))
        .plan_with(&preferences);
    assert_eq!(shown(&plan), ["a -> ecs.g7.8c i"]);
    assert_eq!(plan.price_per_hour().to_string(), "0.8000");
}

#[test]
fn prices_of_policies_order_and_real_prices_are_reported() {
    let mut preferences = Preferences::none();
    let prices = &mut preferences.pool_mut(&"general".into()).prices;
    prices.insert(key("ecs.g7.4c", "j"), Price::from_per_hour(0.01));
    let plan = World::new(pool())
        .pod("a", spec(100))
        .plan_with(&preferences);
    assert_eq!(shown(&plan), ["a -> ecs.g7.4c j"]);
    assert_eq!(plan.price_per_hour().to_string(), "0.4000");
}

#[test]
fn reserved_capacity_comes_first_and_no_more_than_there_is() {
    let mut reserved = sold("ecs.g7.2c", 2, &ZONES, &[CapacityType::OnDemand]);
    let mut offering =
        crate::instance_type::Offering::new("i", CapacityType::Reserved, Price::UNKNOWN);
    offering.reservation = Some(Reservation {
        id: "cr-1".into(),
        remaining: 2,
    });
    reserved.offerings.push(offering);
    let plan = World::new(pool_of([reserved]))
        .pods(pods("a", 3, &spec(1500)))
        .plan();
    let first = |idx: usize| plan.new_claims[idx].offerings[0].clone();
    assert_eq!(first(0).reservation.as_deref(), Some("cr-1"));
    assert_eq!(first(1).capacity_type, CapacityType::Reserved);
    assert_eq!(first(2).capacity_type, CapacityType::OnDemand);
}

#[test]
fn an_overlay_orders_and_the_real_price_is_reported() {
    let mut pool = pool();
    let overlay = Overlay {
        name: "discount".to_owned(),
        requirements: [Requirement::in_values(labels::INSTANCE_TYPE, ["ecs.g7.8c"])]
            .into_iter()
            .collect(),
        price: Some(PriceChange::parse_adjustment("-90%").unwrap()),
        capacity: Resources::default().with("example.com/fuse", 10),
        ..Overlay::default()
    };
    let evaluation = evaluate(&[overlay], std::slice::from_ref(&pool));
    pool.instance_types = Arc::clone(&evaluation.pools["general"]);
    let fused = PodSpec {
        requests: spec(500).requests.with("example.com/fuse", 1),
        ..spec(500)
    };

    let plan = World::new(pool)
        .pod("web", spec(500))
        .pod("fuse", fused)
        .plan();

    assert_eq!(shown(&plan), ["fuse web -> ecs.g7.8c h"]);
    assert_eq!(plan.price_per_hour().per_hour(), Some(0.8));
    let annotations = &plan.new_claims[0].annotations;
    assert_eq!(annotations[labels::PRICE_OVERLAY_APPLIED], "true");
    assert_eq!(annotations[labels::CAPACITY_OVERLAY_APPLIED], "true");
}

#[test]
fn without_an_overlay_a_claim_has_no_flag_of_one() {
    let plan = World::new(pool()).pod("web", spec(500)).plan();

    assert!(plan.new_claims[0].annotations.is_empty());
}
