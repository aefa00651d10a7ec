//! The steps of a command: record, taint, create, mark; then delete, or give everything back.
//!
//! The order is the write-ahead rule. The record names the replacements before they exist; the candidates count as
//! going only when the replacements exist, since from then on their pods are planned elsewhere. Each step can be
//! repeated.

use std::sync::Arc;

use kerf_api::names::event;
use kerf_api::nodeclaim::NodeClaim;
use kerf_core::disruption::Command;
use kerf_core::disruption::command::PromisedPlace;
use kerf_core::ids::NodeClaimName;
use kube::{Api, ResourceExt};

use crate::context::Context;
use crate::disruption::edit::{self, edit};
use crate::disruption::record::Record;
use crate::disruption::running::{Running, names, staying};
use crate::disruption::step::{Failure, obstacle};
use crate::error::{Error, chain};
use crate::metrics::disruption::{DecisionLabels, reason_name};
use crate::provision::claim::fresh_name;
use crate::provision::create::create_named;
use crate::termination::claim::{Disruption, disrupt};
use crate::{clock, failpoint};

/// Begins a command; none when it had to be taken back at once.
pub async fn start(command: Command, context: &Context) -> Option<Running> {
    let record = record(&command);
    let promised = command.promises.iter().filter_map(|it| match &it.place {
        PromisedPlace::Node(target) => Some(target.clone()),
        PromisedPlace::Replacement(_) => None,
    });
    let promised = promised.collect();
    tracing::info!(command = %record.id, "{}", record.note);
    match begin(&command, &record, context).await {
        Ok(()) => {
            let mut pools: Vec<_> = command
                .candidates
                .iter()
                .map(|it| it.pool.clone())
                .collect();
            pools.sort_unstable();
            pools.dedup();
            let metrics = &context.metrics.disruption;
            metrics.started(&labels(&record), &pools);
            Some(Running::new(record, promised, true))
        }
        Err(failure) => {
            // What is not given back here is when the command is found to be broken again.
            let is_back = roll_back(&record, &failure, context).await;
            (!is_back).then(|| Running::broken(record, failure))
        }
    }
}

fn record(command: &Command) -> Record {
    let pool = command.candidates.first().map(|it| it.pool.to_string());
    let replacements = command.replacements.iter();
    let notes: Vec<&str> = command
        .candidates
        .iter()
        .map(|it| it.note.as_str())
        .filter(|note| !note.is_empty())
        .collect();
    let note = match notes.first() {
        Some(first) => format!("{command}: {first}"),
        None => command.to_string(),
    };
    Record {
        id: fresh_name(&pool.unwrap_or_default()),
        kind: command.kind,
        started_at: clock::now(),
        candidates: command.claims().map(ToString::to_string).collect(),
        replacements: replacements.map(|it| fresh_name(&it.pool)).collect(),
        note,
    }
}

async fn begin(command: &Command, record: &Record, context: &Context) -> Result<(), Failure> {
    let claims = staying(record, context);
    if claims.len() != record.candidates.len() {
        return Err(Failure::Invalid("a candidate is gone already".to_owned()));
    }
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    if !record.replacements.is_empty() {
        for claim in &claims {
            let written = edit(&api, &**claim, |it| edit::recorded(it, record)).await;
            written.map_err(|error| broken(&error))?;
        }
        context.reach(failpoint::COMMAND_RECORDED).await;
    }
    taint(&claims, context).await?;
    context.reach(failpoint::CANDIDATES_TAINTED).await;
    let reason = reason_label(record);
    for (name, planned) in record.replacements.iter().zip(&command.replacements) {
        let created = create_named(name, planned, reason, context).await;
        let created = created.map_err(|error| broken(&error))?;
        let note = format!("takes the place of {}", record.candidates.join(", "));
        context
            .events
            .normal(&created, event::DISRUPTION_LAUNCHING, &note)
            .await;
        context.reach(failpoint::REPLACEMENT_CREATED).await;
    }
    mark(record, context).await?;
    context.reach(failpoint::CANDIDATES_MARKED).await;
    Ok(())
}

fn broken(error: &Error) -> Failure {
    Failure::Broken(chain(error))
}

async fn taint(claims: &[Arc<NodeClaim>], context: &Context) -> Result<(), Failure> {
    let api = Api::all(context.client.clone());
    for node in claims.iter().flat_map(|claim| nodes_of(claim, context)) {
        let written = edit(&api, &*node, edit::tainted).await;
        written.map_err(|error| broken(&error))?;
    }
    Ok(())
}

fn nodes_of(claim: &NodeClaim, context: &Context) -> Vec<Arc<k8s_openapi::api::core::v1::Node>> {
    let id = claim.provider_id();
    id.map(|id| context.nodes_of(id)).unwrap_or_default()
}

/// From now on the candidates count as going: budgets count them, and their pods are planned elsewhere.
pub async fn mark(record: &Record, context: &Context) -> Result<(), Failure> {
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    let claims = staying(record, context);
    taint(&claims, context).await?;
    for claim in &claims {
        let now = clock::now();
        let written = edit(&api, &**claim, |it| edit::marked(it, record, now)).await;
        written.map_err(|error| broken(&error))?;
        context
            .cluster
            .mark_for_deletion(&NodeClaimName::from(claim.name_any()));
    }
    Ok(())
}

/// Says once of each replacement that it is waited for.
pub async fn tell_waiting(running: &mut Running, missing: &[String], context: &Context) {
    for name in missing {
        let Some(claim) = context.stores.nodeclaims.get(name) else {
            continue;
        };
        if running.told.insert(name.clone()) {
            let note = format!(
                "{} waits until this is ready",
                running.record.candidates.join(", ")
            );
            context
                .events
                .normal(&*claim, event::DISRUPTION_WAITING_READINESS, &note)
                .await;
        }
    }
}

/// Looks at the candidates once more and deletes them. What cannot be deleted now is tried again in the next step.
///
/// # Errors
/// When a candidate may not go any more; then none was deleted by this call.
pub async fn finish(running: &mut Running, context: &Context) -> Result<(), Failure> {
    let record = &running.record;
    let claims = staying(record, context);
    // Once the first is deleted there is no way back for the others either: their pods' places are shared.
    if running.deleted.is_empty() {
        check(record, &claims, context)?;
        context
            .reach_if(
                !record.replacements.is_empty(),
                failpoint::REPLACEMENTS_READY,
            )
            .await;
    }
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    for claim in &claims {
        let name = claim.name_any();
        if running.deleted.contains(&name) {
            continue;
        }
        let disruption = Disruption {
            reason: reason_label(record),
            note: &record.note,
        };
        tell_terminating(claim, record, context).await;
        match disrupt(claim, &api, context, &disruption).await {
            Ok(()) => drop(running.deleted.insert(name)),
            Err(error) => {
                tracing::warn!(nodeclaim = %name, error = %chain(&error), "cannot delete the NodeClaim; tried again");
            }
        }
        context.reach(failpoint::CANDIDATE_DELETED).await;
    }
    Ok(())
}

fn check(record: &Record, claims: &[Arc<NodeClaim>], context: &Context) -> Result<(), Failure> {
    let names = names(claims);
    let now = clock::now();
    let candidates = context.cluster.nodes_of_claims(&names);
    let mut obstacles = candidates
        .iter()
        .filter_map(|node| obstacle(record.kind, node, now));
    match obstacles.next() {
        Some(why) => Err(Failure::Invalid(why)),
        None => Ok(()),
    }
}

async fn tell_terminating(claim: &NodeClaim, record: &Record, context: &Context) {
    let reason = event::DISRUPTION_TERMINATING;
    context.events.normal(claim, reason, &record.note).await;
    for node in nodes_of(claim, context) {
        context.events.normal(&*node, reason, &record.note).await;
    }
}

/// The label of metrics.
fn reason_label(record: &Record) -> &'static str {
    reason_name(record.kind.reason())
}

fn labels(record: &Record) -> DecisionLabels {
    DecisionLabels {
        decision: match record.replacements.is_empty() {
            true => "delete",
            false => "replace",
        },
        reason: reason_label(record),
        consolidation_type: record.kind.consolidation_type(),
    }
}

/// Gives the candidates back and takes away replacements that nobody uses; whether all of that was done.
pub async fn roll_back(record: &Record, failure: &Failure, context: &Context) -> bool {
    let mut is_done = true;
    for claim in staying(record, context) {
        is_done &= give_back(&claim, failure, context).await;
    }
    is_done &= take_back(&record.replacements, context).await;
    if is_done {
        tracing::warn!(command = %record.id, %failure, note = %record.note, "command taken back");
        let is_invalid = matches!(failure, Failure::Invalid(_));
        context
            .metrics
            .disruption
            .failed(&labels(record), is_invalid);
    }
    is_done
}

async fn give_back(claim: &NodeClaim, failure: &Failure, context: &Context) -> bool {
    if let Err(error) = release(claim, context).await {
        tracing::warn!(nodeclaim = %claim.name_any(), error = %chain(&error), "cannot give the NodeClaim back; tried again");
        return false;
    }
    let note = format!("stays: {failure}");
    context
        .events
        .normal(claim, event::DISRUPTION_BLOCKED, &note)
        .await;
    true
}

/// Takes every sign of a command from a claim and its Node.
///
/// # Errors
/// When one of them cannot be written.
pub async fn release(claim: &NodeClaim, context: &Context) -> Result<(), Error> {
    let claims: Api<NodeClaim> = Api::all(context.client.clone());
    let nodes = Api::all(context.client.clone());
    let now = clock::now();
    gone_is_done(edit(&claims, claim, |it| edit::released(it, now)).await)?;
    for node in nodes_of(claim, context) {
        if node.metadata.deletion_timestamp.is_none() {
            gone_is_done(edit(&nodes, &*node, edit::untainted).await)?;
        }
    }
    context
        .cluster
        .unmark_for_deletion(&NodeClaimName::from(claim.name_any()));
    Ok(())
}

fn gone_is_done<T>(result: Result<T, Error>) -> Result<(), Error> {
    match result {
        Err(error) if !error.is_not_found() => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Deletes replacements without pods; what is in use has become capacity like any other.
async fn take_back(replacements: &[String], context: &Context) -> bool {
    if replacements.is_empty() {
        return true;
    }
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    let snapshot = context.snapshot();
    let is_used = |name: &String| {
        let node = snapshot.nodes.iter().find(|node| {
            let claim = node.node_claim.as_ref();
            claim.is_some_and(|claim| **claim == **name)
        });
        node.is_some_and(|node| node.pods.iter().any(|pod| pod.is_reschedulable()))
    };
    let mut is_done = true;
    for name in replacements.iter().filter(|name| !is_used(name)) {
        // One that the watch has not shown yet may exist all the same.
        let known = context.stores.nodeclaims.get(name);
        let claim = known.unwrap_or_else(|| Arc::new(NodeClaim::new(name, Default::default())));
        let disruption = Disruption {
            reason: "empty",
            note: "its command was taken back",
        };
        if let Err(error) = disrupt(&claim, &api, context, &disruption).await {
            tracing::warn!(nodeclaim = %name, error = %chain(&error), "cannot delete a replacement that nobody needs; tried again");
            is_done = false;
        }
    }
    is_done
}
