//! Provisioning: pending pods become NodeClaims.
//!
//! One loop: wait for a batch, take a snapshot, plan it (with the policies), create what was planned, say what was not.
//! Decisions are `kerf_core::schedule`'s; nothing here chooses.

pub mod announce;
pub mod batch;
pub mod claim;
pub mod create;
pub mod hold;
pub mod nominated;
pub mod rounds;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kerf_api::nodeclaim::NodeClaim;
use kerf_core::ids::PodUid;
use kerf_core::plan::{Placement, PlacementTarget, Plan};
use kerf_core::pod::Pod;
use kerf_core::schedule::Homes;
use kube::ResourceExt;

use crate::capacity_buffer;
use crate::clock;
use crate::compute::compute;
use crate::context::Context;
use crate::metrics::zones::by_effective_zone;
use crate::provision::announce::Announcer;
use crate::provision::batch::Batcher;
use crate::provision::hold::Planned;
use crate::provision::nominated::Nominator;

/// The least time that a node is kept for the pods that were planned on it (Karpenter: same).
const NOMINATION_MIN: Duration = Duration::from_secs(10);

/// Plans and creates until the process ends.
pub async fn run(nominator: Nominator, context: Arc<Context>) {
    let mut batcher = Batcher::new(&context);
    let mut announcer = Announcer::new(nominator);
    let mut homes = Homes::new();
    let mut planned = Planned::default();
    loop {
        batcher.wait().await;
        let (plan, held) = plan(&homes, &planned, &context).await;
        let created = create::create_all(&plan, &context).await;
        homes = remember(&plan, &created, &context);
        homes.extend(held);
        planned.remember(&homes, clock::now());
        capacity_buffer::remember(&plan, &created, &context);
        announcer.announce(&plan, &created, &context).await;
    }
}

/// Where the pods of the plan are expected: the next plan keeps their places, and nothing disrupts those nodes until
/// kube-scheduler had time to bind them.
fn remember(plan: &Plan, created: &[Option<NodeClaim>], context: &Context) -> Homes {
    let mut homes = Homes::new();
    // A node that only stands in for a CapacityBuffer is kept by that, and nothing is expected on it.
    let mut virtual_pods: BTreeSet<PodUid> = BTreeSet::new();
    let mut settle = |pod: &Pod, target: PlacementTarget| {
        if pod.is_virtual() {
            virtual_pods.insert(pod.uid.clone());
        }
        homes.insert(pod.uid.clone(), target);
    };
    for Placement { pod, node, .. } in &plan.placements {
        settle(pod, node.clone());
    }
    for (planned, claim) in plan.new_claims.iter().zip(created) {
        let Some(claim) = claim else { continue };
        let target = PlacementTarget::InFlight(claim.name_any().into());
        for pod in &planned.pods {
            settle(pod, target.clone());
        }
    }
    let real = homes.iter().filter(|(pod, _)| !virtual_pods.contains(*pod));
    context.cluster.expect(
        real.map(|(pod, target)| (pod.clone(), target)),
        clock::now(),
        (context.hot.batching().max * 2).max(NOMINATION_MIN),
    );
    homes
}

/// One plan of the cluster as it is now, and the homes of pods for which nothing is launched yet.
async fn plan(homes: &Homes, planned: &Planned, context: &Context) -> (Plan, Homes) {
    let started = tokio::time::Instant::now();
    let snapshot = context.fresh_snapshot().await;
    let snapshot_took = started.elapsed();
    let metrics = &context.metrics.scheduling;
    if snapshot.pending_pods.is_empty() && !snapshot.nodes.iter().any(|node| !node.is_active()) {
        metrics.idle();
        return (Plan::default(), Homes::new());
    }
    context.cluster.note_planned(&snapshot);
    metrics.pending(&by_effective_zone(&snapshot.pending_pods));
    let run = metrics.begin(snapshot.pending_pods.len(), clock::now());
    let mut plan = compute(|| rounds::plan(&snapshot, homes, context, "provision", clock::now()));
    let held = planned.hold_back(&mut plan, homes, &snapshot, clock::now());
    drop(run);
    measure(&plan, started.elapsed().as_secs_f64(), context);
    if !plan.new_claims.is_empty() {
        tracing::info!(
            pods = snapshot.pending_pods.len(),
            new_claims = plan.new_claims.len(),
            on_existing = plan.placements.len(),
            unschedulable = plan.unschedulable_pods(),
            price_per_hour = plan.price_per_hour().per_hour(),
            snapshot_millis = millis(snapshot_took),
            millis = millis(started.elapsed()),
            "planned"
        );
    }
    (plan, held)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn measure(plan: &Plan, seconds: f64, context: &Context) {
    let groups = plan.unschedulable.iter();
    let ignored = groups.filter(|it| it.reason.is_ignored());
    let ignored = ignored.map(|it| it.pods.len()).sum();
    let metrics = &context.metrics;
    let left_out = plan.unschedulable_pods();
    metrics.scheduling.planned(seconds, left_out, ignored);
    metrics.pods.planned(plan, clock::now());
}
