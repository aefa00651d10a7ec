//! Comparing both sides: claims whose instance is gone, and instances that no claim claims.
//!
//! An instance is deleted only when its tags prove that it is ours, no claim names it or its launch group, and that
//! has been so for a grace time since it was first seen. A cloud that cannot be asked proves nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kerf_api::names::{annotation, condition, event};
use kerf_api::nodeclaim::NodeClaim;
use kerf_cloud::provider::instance::{DeleteOutcome, Instance, parse_provider_id};
use kerf_cloud::provider::tags;
use kerf_core::sabotage::{self, Sabotage};
use kube::runtime::events::EventType;
use kube::{Api, Resource, ResourceExt};
use tokio::time::{Instant, interval};

use crate::api_call::list_pages;
use crate::context::Context;
use crate::error::chain;
use crate::lifecycle::initialization::is_ready;
use crate::termination::claim::{Disruption, disrupt};

/// Karpenter's name for it, in metrics.
const CONTROLLER: &str = "nodeclaim.garbagecollection";

/// What the comparison looks at in a NodeClaim. A large cluster has tens of megabytes of them.
#[derive(Debug)]
struct Claim {
    name: String,
    provider_id: Option<String>,
    launch_group: Option<String>,
    is_launched: bool,
    is_deleting: bool,
}

impl Claim {
    fn of(claim: &NodeClaim) -> Self {
        let annotations = claim.annotations();
        Self {
            name: claim.name_any(),
            provider_id: claim.provider_id().map(str::to_owned),
            launch_group: annotations.get(annotation::LAUNCH_GROUP).cloned(),
            is_launched: claim.is_true(condition::LAUNCHED),
            is_deleting: claim.metadata.deletion_timestamp.is_some(),
        }
    }
}

/// Since when each suspect has been one.
type Suspects = BTreeMap<String, Instant>;

/// Compares until the process ends.
pub async fn run(context: Arc<Context>) {
    let mut ticks = interval(context.settings.garbage_collection_poll);
    let mut orphans = Suspects::new();
    let mut lost = Suspects::new();
    loop {
        ticks.tick().await;
        match both_sides(&context).await {
            Ok((instances, claims)) => {
                context.networks.replace(&instances);
                delete_orphans(&instances, &claims, &mut orphans, &context).await;
                delete_lost(&instances, &claims, &mut lost, &context).await;
            }
            Err(message) => tracing::warn!(%message, "nothing is collected"),
        }
    }
}

/// Our instances, then the claims: a claim that is missing in this answer was missing when the instances were listed.
/// The API server itself is asked, since the watch may lag.
async fn both_sides(context: &Context) -> Result<(Vec<Instance>, Vec<Claim>), String> {
    let instances = context.cloud.on(CONTROLLER).list_ours().await;
    let instances =
        instances.map_err(|error| format!("cannot list our instances: {}", chain(&error)))?;
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    let claims = list_pages(&api, |claim| Some(Claim::of(&claim))).await;
    let claims =
        claims.map_err(|error| format!("cannot list the NodeClaims: {}", chain(&error)))?;
    Ok((instances, claims))
}

/// Instances that no claim names by provider id or launch group. Pure.
fn unclaimed(instances: &[Instance], claims: &[Claim]) -> BTreeSet<String> {
    let provider_ids = claims.iter().filter_map(|it| it.provider_id.as_deref());
    let provider_ids: BTreeSet<&str> = provider_ids.collect();
    // A claim that has its instance claims no other of its group: that one is a late twin.
    let open = claims.iter().filter(|it| it.provider_id.is_none());
    let groups = open.filter_map(|it| it.launch_group.as_deref());
    let groups: BTreeSet<&str> = groups.collect();
    let is_claimed = |instance: &Instance| {
        provider_ids.contains(instance.provider_id().as_str())
            || instance.launch_group().is_some_and(|group| {
                groups.contains(group) && !sabotage::is_on(Sabotage::NoGarbageGrace)
            })
    };
    instances
        .iter()
        .filter(|it| !is_claimed(it))
        .map(|it| it.id.clone())
        .collect()
}

/// Those whose instance the cloud does not know by its id either, or knows as stopped. An instance that lost its tags is
/// still there, and so is one that another provider made, whose tags are not ours.
async fn gone<'a>(suspects: Vec<&'a Claim>, context: &Context) -> Result<Vec<&'a Claim>, String> {
    let region = &context.settings.region;
    // Of another region nothing is known here.
    let suspects: Vec<(&Claim, String)> = suspects
        .into_iter()
        .filter_map(|claim| {
            let (of_region, id) = parse_provider_id(claim.provider_id.as_deref()?)?;
            (of_region == region).then(|| (claim, id.to_owned()))
        })
        .collect();
    if suspects.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<String> = suspects.iter().map(|(_, id)| id.clone()).collect();
    let found = context.cloud.on(CONTROLLER).describe(&ids).await;
    let found = found.map_err(|error| format!("cannot look up instances: {}", chain(&error)))?;
    let is_there = |id: &String| {
        let mut alive = found.iter().filter(|instance| !instance.has_stopped());
        alive.any(|instance| instance.id == *id)
    };
    let gone = suspects.into_iter().filter(|(_, id)| !is_there(id));
    Ok(gone.map(|(claim, _)| claim).collect())
}

/// Claims whose recorded instance is not among ours, or is stopped. Pure.
fn without_instance<'a>(instances: &[Instance], claims: &'a [Claim]) -> Vec<&'a Claim> {
    let alive = instances.iter().filter(|it| !it.has_stopped());
    let existing: BTreeSet<String> = alive.map(Instance::provider_id).collect();
    let is_lost = |claim: &&Claim| {
        let is_missing = |id: &String| !existing.contains(id);
        !claim.is_deleting
            && claim.is_launched
            && claim.provider_id.as_ref().is_some_and(is_missing)
    };
    claims.iter().filter(is_lost).collect()
}

/// Keeps the time of first sight of those that are still suspects; returns those that have been for `grace`.
fn ripe(
    suspects: &mut Suspects,
    found: &BTreeSet<String>,
    now: Instant,
    grace: Duration,
) -> Vec<String> {
    suspects.retain(|id, _| found.contains(id));
    for id in found {
        suspects.entry(id.clone()).or_insert(now);
    }
    let is_ripe = |seen: &Instant| now.duration_since(*seen) >= grace;
    suspects
        .iter()
        .filter(|(_, seen)| is_ripe(seen))
        .map(|(id, _)| id.clone())
        .collect()
}

async fn delete_orphans(
    instances: &[Instance],
    claims: &[Claim],
    seen: &mut Suspects,
    context: &Context,
) {
    let found = unclaimed(instances, claims);
    let grace = if sabotage::is_on(Sabotage::NoGarbageGrace) {
        Duration::ZERO
    } else {
        context.settings.orphan_grace
    };
    let ripe = ripe(seen, &found, Instant::now(), grace);
    if ripe.is_empty() {
        return;
    }
    for (id, outcome) in context.cloud.on(CONTROLLER).delete(&ripe).await {
        tracing::warn!(instance = %id, ?outcome, "deleted an instance of ours that no NodeClaim claims");
        context.metrics.orphans_deleted.inc();
        let instance = instances.iter().find(|it| it.id == id);
        let claim = instance.and_then(|it| it.tags.get(tags::NODE_CLAIM));
        if let (Some(claim), DeleteOutcome::Accepted) = (claim, &outcome) {
            let note = format!(
                "deleted instance {id}, which carries this NodeClaim's tags and which no NodeClaim claims"
            );
            let object = claim_reference(claim);
            let events = &context.events;
            events
                .publish(EventType::Warning, &object, event::ORPHAN_DELETED, &note)
                .await;
        }
    }
}

/// A claim that is gone, as the tags of its instance name it.
fn claim_reference(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(NodeClaim::api_version(&()).into_owned()),
        kind: Some(NodeClaim::kind(&()).into_owned()),
        name: Some(name.to_owned()),
        ..ObjectReference::default()
    }
}

async fn delete_lost(
    instances: &[Instance],
    claims: &[Claim],
    seen: &mut Suspects,
    context: &Context,
) {
    let suspects = without_instance(instances, claims);
    let suspects = match gone(suspects, context).await {
        Ok(suspects) => suspects,
        Err(message) => {
            tracing::warn!(%message, "no claim is collected");
            return;
        }
    };
    let found: BTreeSet<String> = suspects.iter().map(|claim| claim.name.clone()).collect();
    // Missing in two readings in a row: one listing may lag behind the launch.
    let ripe = ripe(
        seen,
        &found,
        Instant::now(),
        context.settings.garbage_collection_poll / 2,
    );
    let api: Api<NodeClaim> = Api::all(context.client.clone());
    for suspect in suspects.into_iter().filter(|it| ripe.contains(&it.name)) {
        // One of which the watch says something else is looked at in the next comparison.
        let claim = context.stores.nodeclaims.get(&suspect.name);
        let is_same = |it: &Arc<NodeClaim>| it.provider_id() == suspect.provider_id.as_deref();
        let Some(claim) = claim.filter(is_same) else {
            continue;
        };
        let nodes = claim.provider_id().map(|id| context.nodes_of(id));
        let nodes = nodes.unwrap_or_default();
        if nodes.iter().any(|node| is_ready(node)) {
            continue;
        }
        collect(&claim, &api, context).await;
    }
}

async fn collect(claim: &NodeClaim, api: &Api<NodeClaim>, context: &Context) {
    let note = "its instance was released or stopped from outside, or died at its start";
    context
        .events
        .warning(claim, event::DISRUPTION_TERMINATING, note)
        .await;
    let disruption = Disruption {
        reason: "garbage_collected",
        note,
    };
    if let Err(error) = disrupt(claim, api, context, &disruption).await {
        tracing::warn!(nodeclaim = %claim.name_any(), error = %chain(&error), "cannot delete the claim of a lost instance");
    }
}

#[cfg(test)]
mod tests {
    use kerf_api::nodeclaim::NodeClaimStatus;
    use kerf_cloud::provider::instance::InstanceStatus;
    use kerf_core::instance_type::CapacityType;

    use super::*;

    fn instance(id: &str, group: &str) -> Instance {
        Instance {
            id: id.to_owned(),
            region_id: "cn-hangzhou".to_owned(),
            zone_id: "cn-hangzhou-h".to_owned(),
            instance_type: "ecs.g7.large".to_owned(),
            image_id: String::new(),
            capacity_type: CapacityType::OnDemand,
            status: InstanceStatus::Running,
            vswitch_id: String::new(),
            security_group_ids: Vec::new(),
            private_ips: Vec::new(),
            tags: [(tags::LAUNCH_GROUP.to_owned(), group.to_owned())].into(),
            created_at: None,
            locks: Vec::new(),
        }
    }

    fn claim(provider_id: Option<&str>, group: &str) -> Claim {
        let mut claim = NodeClaim::new("general-1", Default::default());
        claim
            .annotations_mut()
            .insert(annotation::LAUNCH_GROUP.to_owned(), group.to_owned());
        claim.status = Some(NodeClaimStatus {
            provider_id: provider_id.map(str::to_owned),
            ..NodeClaimStatus::default()
        });
        Claim::of(&claim)
    }

    #[test]
    fn an_instance_of_a_launch_that_is_not_recorded_yet_is_claimed() {
        let instances = [instance("i-1", "u-1"), instance("i-2", "u-2")];

        let found = unclaimed(&instances, &[claim(None, "u-1")]);

        assert_eq!(found, BTreeSet::from(["i-2".to_owned()]));
    }

    #[test]
    fn a_late_twin_of_a_recorded_launch_is_unclaimed() {
        let instances = [instance("i-1", "u-1"), instance("i-2", "u-1")];

        let found = unclaimed(&instances, &[claim(Some("cn-hangzhou.i-1"), "u-1")]);

        assert_eq!(found, BTreeSet::from(["i-2".to_owned()]));
    }

    #[test]
    fn a_suspect_is_only_ripe_after_the_grace_in_one_stretch() {
        let grace = Duration::from_secs(60);
        let start = Instant::now();
        let found = BTreeSet::from(["i-1".to_owned()]);
        let mut suspects = Suspects::new();

        assert!(ripe(&mut suspects, &found, start, grace).is_empty());
        assert!(ripe(&mut suspects, &BTreeSet::new(), start + grace, grace).is_empty());
        assert!(ripe(&mut suspects, &found, start + grace, grace).is_empty());
        assert_eq!(
            ripe(&mut suspects, &found, start + grace * 2, grace),
            ["i-1"]
        );
    }
}
