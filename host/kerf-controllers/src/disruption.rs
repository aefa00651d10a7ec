//! Disruption: nodes that are not worth their price are removed.
//!
//! The decision is `kerf_core::disruption`'s; here it is carried out. What it decides not to do is told on the object.

pub mod conditions;
pub mod drift;
pub mod hash;
pub mod networks;
pub mod origin;
pub mod quiet;

use std::sync::Arc;
use std::time::Duration;

use kerf_api::names::event;
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::disruption::emptiness::{Emptiness, EmptyNode, emptiness};
use kube::Api;
use kube::runtime::reflector::ObjectRef;
use tokio::time::sleep;

use crate::clock;
use crate::context::Context;
use crate::error::chain;
use crate::termination::claim::{Disruption, disrupt};

/// Two looks at an unchanged cluster are at least this far apart.
const PAUSE_MIN: Duration = Duration::from_millis(200);

/// Looks for nodes to remove until the process ends.
pub async fn run(context: Arc<Context>) {
    let mut changes = context.cluster.changes();
    loop {
        let snapshot = context.snapshot();
        let now = clock::now();
        let found = emptiness(&snapshot, now);
        remove(&found, &context).await;
        let pause = pause(&found, now, context.settings.disruption_poll);
        sleep(PAUSE_MIN).await;
        tokio::select! {
            _ = changes.changed() => {}
            () = sleep(pause) => {}
        }
    }
}

fn pause(found: &Emptiness, now: jiff::Timestamp, poll: Duration) -> Duration {
    let due = found
        .next_check
        .map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
    due.map_or(poll, |due| due.min(poll))
}

async fn remove(found: &Emptiness, context: &Context) {
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    for empty in &found.removable {
        let EmptyNode {
            pool,
            node_claim,
            quiet_since,
        } = empty;
        let Some(claim) = context.stores.nodeclaims.get(&ObjectRef::new(node_claim)) else {
            continue;
        };
        let note = format!("empty since {quiet_since}: NodePool {pool} removes empty nodes");
        context
            .events
            .normal(&*claim, event::DISRUPTION_TERMINATING, &note)
            .await;
        let disruption = Disruption {
            reason: "empty",
            note: &note,
        };
        if let Err(error) = disrupt(&claim, &api, context, &disruption).await {
            tracing::warn!(nodeclaim = %node_claim, error = %chain(&error), "cannot remove the empty node; tried again in the next pass");
            continue;
        }
        // Nothing may be planned on it from now on, and the budgets count it, before the watch says so.
        context.cluster.mark_for_deletion(node_claim);
    }
}
