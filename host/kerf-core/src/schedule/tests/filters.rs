//! Spread constraints that only count the nodes which their pods could use.

use super::kit::*;
use crate::instance_type::CapacityType;
use crate::labels;
use crate::pod::{PodSpec, TopologySpread};
use crate::selector::LabelSelector;

fn batch(cpu_milli: i64) -> PodSpec {
    PodSpec {
        labels: [("app".to_owned(), "batch".to_owned())]
            .into_iter()
            .collect(),
        ..spec(cpu_milli)
    }
}

#[test]
fn a_node_that_may_be_in_another_zone_does_not_count_for_pods_that_are_bound_to_one() {
    // Spot is cheaper; in which of two zones a spot node will be is open when the first pods come.
    let types = [
        sold("ecs.a.2c", 2, &["h", "i"], &[CapacityType::Spot]),
        sold("ecs.b.2c", 2, &["i"], &[CapacityType::OnDemand]),
    ];
    let mut spread = batch(1400);
    spread
        .node_selector
        .insert(labels::ZONE.to_owned(), "i".to_owned());
    let selector = LabelSelector::label("app", "batch");
    let constraint = TopologySpread::new(labels::CAPACITY_TYPE, 1, selector);
    spread.topology_spread.push(constraint);

    let plan = World::new(pool_of(types))
        .pods(pods("first", 2, &batch(1500)))
        .pods(pods("then", 3, &spread))
        .plan();

    assert_eq!(plan.unschedulable_pods(), 0);
    let mut counts = [0_usize; 2];
    for claim in &plan.new_claims {
        let is_in_i = claim.offerings.iter().all(|it| &*it.zone == "i");
        assert!(is_in_i, "{} counts in zone i", show(claim));
        let is_spot = claim.offerings[0].capacity_type == CapacityType::Spot;
        counts[usize::from(is_spot)] += claim.pods.len();
    }
    assert!(counts[0].abs_diff(counts[1]) <= 1, "{counts:?}");
}
