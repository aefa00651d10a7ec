//! What a claim may be launched as, in order: the plan's list, kept in an annotation.
//!
//! A claim that another controller or a person made has no such list; then every offering that its requirements allow
//! is one, cheapest first.

use std::sync::Arc;

use kerf_api::nodeclaim::NodeClaim;
use kerf_cloud::provider::launch::LaunchOffering;
use kerf_core::instance_type::{CapacityType, InstanceType};
use kerf_core::plan::PlannedOffering;
use kerf_core::requirement::{Operator, Requirement};
use kerf_core::requirements::Requirements;

/// Offerings that the annotation keeps: the launch tries no more in one pass, and the object stays small.
pub const OFFERINGS_MAX: usize = 60;

/// The annotation's text: `type/zone/capacity-type`, joined by commas, best first.
#[must_use]
pub fn encode(offerings: &[PlannedOffering]) -> String {
    let parts: Vec<String> = offerings
        .iter()
        .take(OFFERINGS_MAX)
        .map(|offering| {
            format!(
                "{}/{}/{}",
                offering.instance_type, offering.zone, offering.capacity_type
            )
        })
        .collect();
    parts.join(",")
}

/// Reads the annotation; what does not parse is left out.
#[must_use]
pub fn decode(text: &str) -> Vec<LaunchOffering> {
    text.split(',').filter_map(decode_one).collect()
}

fn decode_one(text: &str) -> Option<LaunchOffering> {
    let mut parts = text.split('/');
    let (instance_type, zone_id, capacity_type) = (parts.next()?, parts.next()?, parts.next()?);
    let capacity_type = CapacityType::parse(capacity_type)?;
    Some(LaunchOffering {
        instance_type: instance_type.to_owned(),
        zone_id: zone_id.to_owned(),
        capacity_type,
    })
}

/// The claim's requirements; an item that cannot be read is left out, which only widens the choice of a claim that is
/// not ours: ours are written by us.
#[must_use]
pub fn requirements(claim: &NodeClaim) -> Requirements {
    let items = claim.spec.requirements.iter();
    let parsed = items.filter_map(|item| {
        let operator = Operator::parse(item.operator.as_str())?;
        Requirement::parse(&item.key, operator, item.values.iter().map(String::as_str)).ok()
    });
    parsed.collect()
}

/// Every available offering that the requirements allow, cheapest first; ties by type, zone and capacity type.
#[must_use]
pub fn from_requirements(
    requirements: &Requirements,
    types: &[Arc<InstanceType>],
) -> Vec<LaunchOffering> {
    let mut found = Vec::new();
    for instance_type in types
        .iter()
        .filter(|it| requirements.intersects(&it.requirements))
    {
        for offering in instance_type
            .offerings
            .iter()
            .filter(|it| it.is_available() && it.is_allowed_by(requirements))
        {
            let launch = LaunchOffering {
                instance_type: instance_type.name.to_string(),
                zone_id: offering.zone.to_string(),
                capacity_type: offering.capacity_type,
            };
            found.push((offering.ordering_price(), launch));
        }
    }
    found.sort_by(|(a_price, a), (b_price, b)| {
        let key = |it: &LaunchOffering| {
            (
                it.instance_type.clone(),
                it.zone_id.clone(),
                it.capacity_type,
            )
        };
        a_price.cmp(b_price).then_with(|| key(a).cmp(&key(b)))
    });
    found.truncate(OFFERINGS_MAX);
    found.into_iter().map(|(_, launch)| launch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_plan_survives_the_annotation() {
        let text = "ecs.g7.large/cn-hangzhou-i/spot,ecs.c7.large/cn-hangzhou-h/on-demand";

        let offerings = decode(text);

        assert_eq!(offerings[0].instance_type, "ecs.g7.large");
        assert_eq!(offerings[0].capacity_type, CapacityType::Spot);
        assert_eq!(offerings[1].zone_id, "cn-hangzhou-h");
    }

    #[test]
    fn a_part_that_nobody_can_read_is_left_out() {
        assert_eq!(
            decode("ecs.g7.large/cn-hangzhou-i/spot,nonsense,a/b/c").len(),
            1
        );
    }
}
