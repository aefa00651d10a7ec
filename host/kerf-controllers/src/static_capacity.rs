//! Static NodePools: brought to their `replicas`.
//!
//! The decision is `kerf_core::static_capacity`'s. Before anything is made, the API server itself is asked which claims
//! the pool has: neither a watch that is late nor the process that was here before can make a node twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kerf_api::names::{event, label};
use kerf_api::nodeclaim::NodeClaim;
use kerf_api::nodepool::NodePool;
use kerf_core::plan::Plan;
use kerf_core::preferences::Preferences;
use kerf_core::static_capacity::{ShortPool, StaticPlan, SurplusClaim, static_capacity};
use kube::api::ListParams;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt};
use tokio::time::sleep;

use crate::api_call::bounded;
use crate::clock;
use crate::context::Context;
use crate::error::chain;
use crate::provision::{create, rounds};
use crate::termination::claim::delete;

/// Two looks at an unchanged cluster are at least this far apart.
const PAUSE_MIN: Duration = Duration::from_millis(200);
/// How often all static pools are looked at when nothing changes (Karpenter: same).
const RECHECK: Duration = Duration::from_secs(60);
/// The same while a pool cannot have all its nodes (Karpenter: same).
const RECHECK_SHORT: Duration = Duration::from_secs(30);
/// After the API server could not be asked.
const RETRY: Duration = Duration::from_secs(1);

/// Compares and corrects until the process ends.
pub async fn run(context: Arc<Context>) {
    let mut changes = context.cluster.changes();
    let mut told = Told::default();
    loop {
        let pause = if context.settings.gates.static_capacity {
            pass(&mut told, &context).await
        } else {
            warn_of_closed_gate(&mut told, &context).await;
            RECHECK
        };
        sleep(PAUSE_MIN).await;
        tokio::select! {
            _ = changes.changed() => {}
            () = sleep(pause) => {}
        }
    }
}

/// What was said of each pool; it is said again when it is something else.
type Told = BTreeMap<String, String>;

fn static_pools(context: &Context) -> Vec<Arc<NodePool>> {
    let mut pools = context.stores.nodepools.state();
    pools.retain(|pool| {
        pool.spec.replicas.is_some() && context.manages(&pool.spec.template.spec.node_class_ref)
    });
    pools
}

/// One pass over all static pools; how long to wait for the next.
async fn pass(told: &mut Told, context: &Context) -> Duration {
    if static_pools(context).is_empty() {
        return RECHECK;
    }
    let now = clock::now();
    let found = static_capacity(&context.snapshot(), &Preferences::none(), now);
    remove(&found.remove, context).await;
    tell_short(&found.short, told, context).await;
    if !found.create.is_empty() {
        if let Err(error) = read_claims(&found, context).await {
            tracing::warn!(error = %chain(&error), "cannot ask which claims static NodePools have; nothing is made before that");
            return RETRY;
        }
        make(context).await;
    }
    match found.short.is_empty() {
        true => RECHECK,
        false => RECHECK_SHORT,
    }
}

/// Puts the claims that the API server has into the index, where the watch has not brought them yet.
async fn read_claims(found: &StaticPlan, context: &Context) -> Result<(), kube::Error> {
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    let pools: BTreeSet<&str> = found.create.iter().map(|it| it.pool.as_str()).collect();
    for pool in pools {
        let params = ListParams::default().labels(&format!("{}={pool}", label::NODEPOOL));
        for claim in bounded(api.list(&params)).await? {
            context.cluster.apply_claim(&claim);
        }
    }
    Ok(())
}

/// Decides again on what is known now, with the policies, and creates.
async fn make(context: &Context) {
    let snapshot = context.fresh_snapshot().await;
    let now = clock::now();
    let plan = rounds::plan_claims(&snapshot, context, now, &mut |preferences| Plan {
        new_claims: static_capacity(&snapshot, preferences, now).create,
        ..Plan::default()
    });
    create::create_all(&plan, context).await;
}

async fn remove(surplus: &[SurplusClaim], context: &Context) {
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    for SurplusClaim {
        node_claim, note, ..
    } in surplus
    {
        let Some(claim) = context.stores.nodeclaims.get(node_claim) else {
            continue;
        };
        context
            .events
            .normal(&*claim, event::DISRUPTION_TERMINATING, note)
            .await;
        if let Err(error) = delete(&claim, &api, "static_surplus", note).await {
            tracing::warn!(nodeclaim = %node_claim, error = %chain(&error), "cannot remove the surplus claim; tried again in the next pass");
            continue;
        }
        // It is gone for the next pass, before the watch says so.
        context.cluster.mark_for_deletion(node_claim);
    }
}

async fn tell_short(short: &[ShortPool], told: &mut Told, context: &Context) {
    let is_short = |name: &str| short.iter().any(|it| *it.pool == *name);
    told.retain(|name, _| is_short(name));
    for ShortPool {
        pool,
        missing,
        reason,
    } in short
    {
        let note = format!("{missing} of its replicas cannot be made now: {reason}");
        tell(pool, note, told, context).await;
    }
}

async fn warn_of_closed_gate(told: &mut Told, context: &Context) {
    for pool in static_pools(context) {
        let note = "spec.replicas has no effect, and the pool makes no nodes: start kerf with --feature-gates StaticCapacity=true";
        tell(&pool.name_any(), note.to_owned(), told, context).await;
    }
}

async fn tell(pool: &str, note: String, told: &mut Told, context: &Context) {
    if told.get(pool) == Some(&note) {
        return;
    }
    tracing::warn!(nodepool = %pool, "{note}");
    if let Some(object) = context.stores.nodepools.get(&ObjectRef::new(pool)) {
        context
            .events
            .warning(&*object, event::STATIC_CAPACITY_SHORT, &note)
            .await;
    }
    told.insert(pool.to_owned(), note);
}
