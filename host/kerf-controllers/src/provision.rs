//! Provisioning: pending pods become NodeClaims.
//!
//! One loop: wait for a batch, take a snapshot, plan it (with the policies), create what was planned, say what was not.
//! Decisions are `kerf_core::schedule`'s; nothing here chooses.

pub mod announce;
pub mod batch;
pub mod claim;
pub mod create;
pub mod rounds;

use std::sync::Arc;

use kerf_core::plan::Plan;

use crate::clock;
use crate::context::Context;
use crate::provision::announce::Announcer;
use crate::provision::batch::Batcher;

/// Plans and creates until the process ends.
pub async fn run(context: Arc<Context>) {
    let mut batcher = Batcher::new(&context);
    let mut announcer = Announcer::default();
    loop {
        batcher.wait(&context).await;
        let plan = plan(&context).await;
        let created = create::create_all(&plan, &context).await;
        announcer.announce(&plan, &created, &context).await;
    }
}

/// One plan of the cluster as it is now.
async fn plan(context: &Context) -> Plan {
    let started = tokio::time::Instant::now();
    let snapshot = context.snapshot().await;
    if snapshot.pending_pods.is_empty() && !snapshot.nodes.iter().any(|node| !node.is_active()) {
        context.metrics.unschedulable_pods.set(0);
        return Plan::default();
    }
    let plan = rounds::plan(&snapshot, context, "provision", clock::now());
    context
        .metrics
        .scheduling_duration
        .observe(started.elapsed().as_secs_f64());
    context
        .metrics
        .unschedulable_pods
        .set(i64::try_from(plan.unschedulable_pods()).unwrap_or(i64::MAX));
    if !plan.new_claims.is_empty() {
        tracing::info!(
            pods = snapshot.pending_pods.len(),
            new_claims = plan.new_claims.len(),
            on_existing = plan.placements.len(),
            unschedulable = plan.unschedulable_pods(),
            price_per_hour = plan.price_per_hour().per_hour(),
            millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            "planned"
        );
    }
    plan
}
