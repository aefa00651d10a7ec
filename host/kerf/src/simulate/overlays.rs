//! NodeOverlays of a simulation: what they make of the types that pools can launch.

use std::sync::Arc;

use kerf_controllers::node_overlay::Overlays;
use kerf_state::Catalog;

use crate::simulate::complaint::Complaint;
use crate::simulate::objects::Objects;

/// What pools can launch with all overlays applied; why one does not apply is told in `notes`.
pub(crate) fn apply(objects: &Objects, offers: Catalog, notes: &mut Vec<Complaint>) -> Catalog {
    if objects.node_overlays.is_empty() {
        return offers;
    }
    notes.push(Complaint::note(
        "NodeOverlays are applied; the controller does so only with --feature-gates NodeOverlay=true",
    ));
    let overlays = objects.node_overlays.iter();
    let overlays: Vec<_> = overlays.map(|(_, it)| Arc::new(it.clone())).collect();
    let pools = objects.node_pools.iter();
    let pools: Vec<_> = pools.map(|(_, it)| Arc::new(it.clone())).collect();
    let evaluated = Overlays::default().apply(&overlays, &pools, offers);
    let refused = evaluated.refused.iter();
    notes.extend(refused.map(|(name, (reason, message))| {
        Complaint::note(&format!(
            "NodeOverlay {name} does not apply: {reason}: {message}"
        ))
    }));
    evaluated.catalog.clone()
}
