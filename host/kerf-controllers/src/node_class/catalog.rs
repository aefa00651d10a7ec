//! What a resolved class offers, in the form that planning takes. Pure.

use std::collections::BTreeMap;

use kerf_api::ecsnodeclass::{EcsNodeClass, VSwitchSelectionPolicy};
use kerf_cloud::provider::class::ResolvedNodeClass;
use kerf_core::ids::ZoneId;

/// Whether the class wants its zones in balance before prices are compared.
#[must_use]
pub fn is_zone_balanced(class: &EcsNodeClass) -> bool {
    class.spec.v_switch_selection_policy == Some(VSwitchSelectionPolicy::Balanced)
}

/// Free addresses per zone: the sum over the class's vSwitches.
#[must_use]
pub fn free_ips(class: &ResolvedNodeClass) -> BTreeMap<ZoneId, u64> {
    let mut free = BTreeMap::new();
    for vswitch in &class.vswitches {
        let sum: &mut u64 = free
            .entry(ZoneId::from(vswitch.zone_id.as_str()))
            .or_default();
        *sum = sum.saturating_add(vswitch.ips_available);
    }
    free
}
