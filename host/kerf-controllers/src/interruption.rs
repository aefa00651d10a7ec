//! Interruption: an instance that the platform takes back or works on gives its pods away before that.
//!
//! Three sources say so ([`sources`]), each enough by itself. What was said is written into the claim first ([`notice`]),
//! so a restart goes on where the last process stopped. What has little time left is evacuated ([`evacuate`]): its pods
//! are planned elsewhere at once, and it is drained when there is room for them, at the latest while the notice still has
//! time for that. Maintenance with time left is drift, which replaces first and keeps to the budgets
//! ([`crate::disruption::drift`]).
//!
//! Karpenter: differs, because there a claim is deleted when the notice comes, and its pods wait for the new node.

pub mod evacuate;
pub mod notice;
pub mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kerf_api::names::event;
use kerf_api::nodeclaim::NodeClaim;
use kerf_cloud::provider::instance::{CapacityType, parse_provider_id};
use kerf_core::labels;
use kube::{Api, ResourceExt};
use tokio::time::{MissedTickBehavior, interval};

use crate::clock;
use crate::context::Context;
use crate::disruption::edit::edit;
use crate::error::chain;
use crate::interruption::notice::{Kind, Notice, Source};
use crate::interruption::sources::{Finding, Told};

/// How often node conditions and what is being evacuated are looked at: both cost no call while nothing is announced.
const TICK: Duration = Duration::from_secs(1);

/// Listens and evacuates until the process ends.
pub async fn run(context: Arc<Context>) {
    futures::join!(listen(&context), watch(&context));
}

/// Asks the cloud. It may take its time: what is being evacuated does not wait for it.
async fn listen(context: &Context) {
    let mut ticks = interval(context.settings.interruption_poll);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = Told::default();
    loop {
        ticks.tick().await;
        if context.stores.nodeclaims.is_empty() {
            continue;
        }
        for source in [Source::Lock, Source::Events] {
            if !context.settings.interruption_sources.contains(&source) {
                continue;
            }
            if let Some(findings) = sources::ask(source, &mut told, context).await {
                take_in(&findings, context).await;
                if source == Source::Events {
                    withdraw(&findings, context).await;
                }
            }
        }
    }
}

/// Looks at what needs no call.
async fn watch(context: &Context) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let has_conditions = context
        .settings
        .interruption_sources
        .contains(&Source::Conditions);
    loop {
        ticks.tick().await;
        if has_conditions {
            take_in(&sources::conditions(context), context).await;
        }
        evacuate::advance(context).await;
    }
}

/// Our claims with the id of their instance. Each is read when its turn comes: a large cluster has tens of megabytes of them.
fn our_claims(context: &Context) -> impl Iterator<Item = (String, Arc<NodeClaim>)> {
    let claims = context.stores.nodeclaims.iter();
    let ours = claims.filter(|claim| context.manages(&claim.spec.node_class_ref));
    ours.filter_map(|claim| {
        let (_, id) = parse_provider_id(claim.provider_id()?)?;
        Some((id.to_owned(), claim))
    })
}

/// Writes down what is new. What speaks of instances that are not ours is passed over, and one that cannot be written
/// holds up no other: it is found again at the next look.
async fn take_in(findings: &[Finding], context: &Context) {
    if findings.is_empty() {
        return;
    }
    let found: BTreeSet<&str> = findings.iter().map(|it| it.instance_id.as_str()).collect();
    let claims = our_claims(context).filter(|(id, _)| found.contains(id.as_str()));
    let claims: BTreeMap<String, Arc<NodeClaim>> = claims.collect();
    for finding in findings {
        let Some(claim) = claims.get(&finding.instance_id) else {
            tracing::debug!(instance = %finding.instance_id, source = finding.source.as_str(), "announced for an instance that is not ours");
            continue;
        };
        let notice = finding.notice(clock::now());
        let known = Notice::of(claim);
        if known.as_ref().is_some_and(|known| !notice.changes(known)) {
            continue;
        }
        note(claim, &notice, known.is_none(), context).await;
    }
}

async fn note(claim: &NodeClaim, notice: &Notice, is_first: bool, context: &Context) {
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    let noted = |it: &NodeClaim| {
        let noted = notice.put(it);
        // Its drain began for another reason, and has no more time than the instance.
        match it.metadata.deletion_timestamp.is_some() {
            true => evacuate::hurried(&noted, notice),
            false => noted,
        }
    };
    if let Err(error) = edit(&api, claim, noted).await {
        tracing::warn!(nodeclaim = %claim.name_any(), error = %chain(&error), "cannot write down an announced interruption; tried again");
        return;
    }
    mark_offering(claim, notice, context);
    let text = notice.to_string();
    tracing::info!(nodeclaim = %claim.name_any(), notice = %text, "interruption announced");
    if is_first {
        context.metrics.interruptions.announced(claim, notice);
    }
    tell(claim, &text, context).await;
}

/// Says it on the claim and on its Node.
async fn tell(claim: &NodeClaim, text: &str, context: &Context) {
    let reason = event::INTERRUPTION_ANNOUNCED;
    context.events.warning(claim, reason, text).await;
    let id = claim.provider_id();
    for node in id.map(|id| context.nodes_of(id)).unwrap_or_default() {
        context.events.warning(&*node, reason, text).await;
    }
}

/// What the market takes back it does not give again at once.
fn mark_offering(claim: &NodeClaim, notice: &Notice, context: &Context) {
    let label = |key: &str| claim.labels().get(key).map(String::as_str);
    let is_spot = label(labels::CAPACITY_TYPE) == Some(CapacityType::Spot.as_str());
    if notice.kind != Kind::Reclaim || !is_spot {
        return;
    }
    if let (Some(instance_type), Some(zone)) = (label(labels::INSTANCE_TYPE), label(labels::ZONE)) {
        let now = clock::now();
        context
            .cloud
            .unavailable()
            .mark_reclaimed(instance_type, zone, now);
    }
}

/// Takes back what was announced for later and is not announced any more. What has begun to move goes on.
async fn withdraw(findings: &[Finding], context: &Context) {
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    for (instance_id, claim) in our_claims(context) {
        let Some(notice) = Notice::of(&claim).filter(|it| it.source == Source::Events) else {
            continue;
        };
        let is_open = findings.iter().any(|it| it.instance_id == instance_id);
        let is_going = claim.metadata.deletion_timestamp.is_some();
        if is_open || is_going || notice.is_urgent(clock::now()) {
            continue;
        }
        match edit(&api, &*claim, Notice::remove).await {
            Ok(_) => {
                tracing::info!(nodeclaim = %claim.name_any(), %notice, "the announced interruption does not come");
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                tracing::warn!(nodeclaim = %claim.name_any(), error = %chain(&error), "cannot take back an announced interruption; tried again");
            }
        }
    }
}
