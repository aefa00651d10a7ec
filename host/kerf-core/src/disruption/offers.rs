//! What replacements may be launched as: only what keeps the saving, whichever of their offerings is had in the end.

use std::collections::BTreeSet;

use crate::disruption::candidate::{Candidate, World};
use crate::disruption::kept::KeptReason;
use crate::instance_type::CapacityType;
use crate::labels;
use crate::plan::{PlannedClaim, PlannedOffering};
use crate::preferences::OfferingKey;
use crate::price::Price;
use crate::schedule::keep_offerings;

/// Karpenter: same. With fewer cheaper types than this, one spot node replaced by one other would soon be replaced again
/// by the next cheapest, down to the one that is interrupted most.
const SPOT_TO_SPOT_TYPES_MIN: usize = 15;

/// Leaves the replacements only offerings with which the command costs less than its candidates do (or as much, where
/// `may_equal`), and gives what they cost at their first ones.
pub(super) fn keep_cheaper(
    candidates: &[&Candidate<'_>],
    replacements: &mut [PlannedClaim],
    world: &World<'_>,
    may_equal: bool,
) -> Result<Price, KeptReason> {
    let flip = refuse_flips(candidates, replacements, world)?;
    let kept = keep_saving(candidates, replacements, world, may_equal);
    kept.map_err(|reason| match (reason, flip) {
        // It would be cheaper with what the guard has taken away.
        (KeptReason::NotCheaper { .. }, Some(offering)) => KeptReason::WouldFlip { offering },
        (reason, _) => reason,
    })
}

fn keep_saving(
    candidates: &[&Candidate<'_>],
    replacements: &mut [PlannedClaim],
    world: &World<'_>,
    may_equal: bool,
) -> Result<Price, KeptReason> {
    let is_spot_to_spot = restrict_spot_to_spot(candidates, replacements, world)?;
    let before = known_sum(candidates.iter().map(|it| it.price)).ok_or(KeptReason::UnknownPrice)?;
    cap_prices(before, replacements, may_equal)?;
    if let ([replacement], true) = (&mut *replacements, candidates.len() > 1) {
        refuse_same_type(candidates, replacement);
    }
    for replacement in replacements.iter_mut() {
        // Who does not get spot must not fall back to what is dearer than spot and goes again at once.
        let first = replacement.offerings.first().map(|it| it.capacity_type);
        if first == Some(CapacityType::Spot) {
            keep_offerings(replacement, |it| it.capacity_type == CapacityType::Spot);
        }
    }
    if let (true, [_], [replacement]) = (is_spot_to_spot, candidates, &mut *replacements) {
        narrow_spot_to_spot(replacement)?;
    }
    let after = known_sum(replacements.iter().map(PlannedClaim::price));
    let is_kept = replacements.iter().all(|it| keeps_min_values(it, world));
    let not_cheaper = |needed| KeptReason::NotCheaper {
        price: Price::from_micros(before),
        needed,
    };
    match after {
        Some(after) if is_kept && (after < before || (may_equal && after == before)) => {
            Ok(Price::from_micros(after))
        }
        Some(after) => Err(not_cheaper(Price::from_micros(after))),
        None => Err(not_cheaper(Price::UNKNOWN)),
    }
}

fn known_sum(mut prices: impl Iterator<Item = Price>) -> Option<u64> {
    prices.try_fold(0_u64, |sum, price| {
        price.is_known().then(|| sum.saturating_add(price.micros()))
    })
}

fn key_of(offering: &PlannedOffering) -> OfferingKey {
    OfferingKey {
        instance_type: offering.instance_type.clone(),
        zone: offering.zone.clone(),
        capacity_type: offering.capacity_type,
    }
}

/// Nothing goes back to what it came from not long ago: prices that swing would move the same pods to and fro. Gives the
/// best offering that this took away, if any.
fn refuse_flips(
    candidates: &[&Candidate<'_>],
    replacements: &mut [PlannedClaim],
    world: &World<'_>,
) -> Result<Option<String>, KeptReason> {
    let Some(guard) = world.settings.flip_guard else {
        return Ok(None);
    };
    let is_recent = |at: jiff::Timestamp| at.checked_add(guard).map_or(true, |end| world.now < end);
    let came_from = candidates.iter().flat_map(|it| &it.node.replaced);
    let recent: BTreeSet<&OfferingKey> = came_from
        .filter(|it| is_recent(it.at))
        .map(|it| &it.offering)
        .collect();
    if recent.is_empty() {
        return Ok(None);
    }
    let mut refused = None;
    for replacement in replacements {
        let mut keys = replacement.offerings.iter().map(key_of);
        let best = keys
            .find(|key| recent.contains(key))
            .map(|key| key.to_string());
        keep_offerings(replacement, |it| !recent.contains(&key_of(it)));
        if let (true, Some(offering)) = (replacement.offerings.is_empty(), &best) {
            let offering = offering.clone();
            return Err(KeptReason::WouldFlip { offering });
        }
        refused = refused.or(best);
    }
    Ok(refused)
}

/// Whether spot nodes become spot nodes; then the replacements are spot only.
fn restrict_spot_to_spot(
    candidates: &[&Candidate<'_>],
    replacements: &mut [PlannedClaim],
    world: &World<'_>,
) -> Result<bool, KeptReason> {
    let is_spot = |it: &&Candidate<'_>| {
        let offering = it.offering.as_ref();
        offering.is_some_and(|it| it.capacity_type == CapacityType::Spot)
    };
    let has_spot = |it: &PlannedClaim| {
        it.offerings
            .iter()
            .any(|it| it.capacity_type == CapacityType::Spot)
    };
    if !candidates.iter().all(is_spot) || !replacements.iter().any(has_spot) {
        return Ok(false);
    }
    if !world.settings.spot_to_spot {
        return Err(KeptReason::SpotToSpotOff);
    }
    for replacement in replacements.iter_mut().filter(|it| has_spot(it)) {
        keep_offerings(replacement, |it| it.capacity_type == CapacityType::Spot);
    }
    Ok(true)
}

/// Takes away the offerings with which the command would not save. What the first offerings save is shared out, so that
/// all replacements together are cheaper even if each becomes its dearest one.
fn cap_prices(
    before: u64,
    replacements: &mut [PlannedClaim],
    may_equal: bool,
) -> Result<(), KeptReason> {
    let count = u64::try_from(replacements.len()).unwrap_or(u64::MAX).max(1);
    let most = if may_equal {
        before
    } else {
        before.saturating_sub(1)
    };
    let mut firsts: Vec<Price> = replacements.iter().map(PlannedClaim::price).collect();
    let total = known_sum(firsts.iter().copied()).filter(|total| *total <= most);
    let total = match total {
        Some(total) => total,
        // What policies like best is too dear: what is cheapest counts.
        None => {
            firsts = replacements.iter().map(cheapest).collect();
            let total = known_sum(firsts.iter().copied());
            total
                .filter(|total| *total <= most)
                .ok_or_else(|| KeptReason::NotCheaper {
                    price: Price::from_micros(before),
                    needed: total.map_or(Price::UNKNOWN, Price::from_micros),
                })?
        }
    };
    let spare = (most - total) / count;
    for (replacement, first) in replacements.iter_mut().zip(firsts) {
        let cap = first.micros().saturating_add(spare);
        keep_offerings(replacement, |it| {
            it.price.is_known() && it.price.micros() <= cap
        });
    }
    Ok(())
}

fn cheapest(claim: &PlannedClaim) -> Price {
    let prices = claim.offerings.iter().map(|it| it.price);
    prices.min().unwrap_or(Price::UNKNOWN)
}

/// Several nodes become one of a type that some of them have: then keeping that one would have done, unless what is
/// launched is cheaper than it. Karpenter: same.
fn refuse_same_type(candidates: &[&Candidate<'_>], replacement: &mut PlannedClaim) {
    let types: BTreeSet<_> = replacement
        .offerings
        .iter()
        .map(|it| it.instance_type.clone())
        .collect();
    let of_type = candidates.iter().filter(|it| {
        let offering = it.offering.as_ref();
        offering.is_some_and(|it| types.contains(&it.instance_type))
    });
    if let Some(least) = of_type.map(|it| it.price).min() {
        keep_offerings(replacement, |it| it.price < least);
    }
}

/// One spot node becomes one other: enough types must be cheaper, and no more than that are listed.
fn narrow_spot_to_spot(replacement: &mut PlannedClaim) -> Result<(), KeptReason> {
    let mut types = BTreeSet::new();
    let wanted = replacement
        .requirements
        .on(labels::INSTANCE_TYPE)
        .and_then(crate::requirement::Requirement::min_values)
        .map_or(0, |least| usize::try_from(least).unwrap_or(usize::MAX));
    let most = wanted.max(SPOT_TO_SPOT_TYPES_MIN);
    for offering in replacement.offerings.iter() {
        types.insert(offering.instance_type.clone());
    }
    if types.len() < SPOT_TO_SPOT_TYPES_MIN {
        return Err(KeptReason::SpotToSpotTooFew {
            found: types.len(),
            needed: SPOT_TO_SPOT_TYPES_MIN,
        });
    }
    let mut listed = BTreeSet::new();
    keep_offerings(replacement, |it| {
        listed.contains(&it.instance_type)
            || (listed.len() < most && listed.insert(it.instance_type.clone()))
    });
    Ok(())
}

/// Whether the offerings that are left still have as many values of each label as the pool asks for.
fn keeps_min_values(claim: &PlannedClaim, world: &World<'_>) -> bool {
    let asked = claim
        .requirements
        .iter()
        .filter_map(|it| Some((it.key(), it.min_values()?)));
    asked.into_iter().all(|(key, least)| {
        let mut values: BTreeSet<&str> = BTreeSet::new();
        for offering in claim.offerings.iter() {
            let instance_type = world.instance_type(&claim.pool, &offering.instance_type);
            match key {
                labels::ZONE => drop(values.insert(&offering.zone)),
                labels::CAPACITY_TYPE => drop(values.insert(offering.capacity_type.as_str())),
                _ => values.extend(
                    instance_type
                        .and_then(|it| it.requirements.on(key))
                        .into_iter()
                        .flat_map(|it| it.values()),
                ),
            }
        }
        u32::try_from(values.len()).unwrap_or(u32::MAX) >= least
    })
}
