//! One group from its first claim to its instances.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use kerf_api::names::annotation;
use kerf_api::nodeclaim::NodeClaim;
use kerf_cloud::provider::launch::{
    Attempt, GroupOutcome, LaunchOutcome, LaunchRequest, Member, group_name,
};
use kerf_core::sabotage::{self, Sabotage};
use kube::{Api, ResourceExt};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::expected::WAITED_FOR_MAX;
use super::{Outcome, Share, for_each};
use crate::clock;
use crate::context::Context;
use crate::disruption::edit::edit;
use crate::disruption::origin::Origin;
use crate::error::chain;
use crate::failpoint;
use crate::termination::claim::CONTROLLER;

/// How often a group looks whether everybody who was announced is here.
const POLL: Duration = Duration::from_millis(10);
/// A claim that nobody announced waits this long for the first of its shape.
const FIRST: Duration = Duration::from_millis(25);
/// And then this long for one more: the controller goes through what it finds at its start in less.
const IDLE: Duration = Duration::from_millis(100);
/// A group is not open for longer than this.
const OPEN_MAX: Duration = WAITED_FOR_MAX;
/// Claims that are written at the same time: enough to hide the API server's latency.
const CONCURRENCY: usize = 16;
/// An instance that was made and does not show yet is looked for after this.
const SHOW_AGAIN: Duration = Duration::from_secs(2);

/// A group under way.
pub(super) struct Drive {
    pub(super) shape: String,
    pub(super) kin: String,
    /// Whether the first claim was waited for.
    pub(super) was_announced: bool,
    pub(super) members: Arc<Mutex<Option<Vec<NodeClaim>>>>,
    pub(super) is_full: Arc<Notify>,
    pub(super) request: LaunchRequest,
    pub(super) origin: Origin,
    pub(super) context: Arc<Context>,
}

/// The claims as they were written last, by name; one that could not be written is not of the group.
type Written = BTreeMap<String, NodeClaim>;

impl Drive {
    /// Gathers, freezes, calls, and hands out. Empty for a claim that stayed alone.
    pub(super) async fn run(self) -> Outcome {
        self.gather().await;
        let members = self.freeze();
        if members.len() < 2 {
            return Outcome::default();
        }
        let uids = members.iter();
        let uids = uids.map(|it| it.uid().unwrap_or_else(|| it.name_any()));
        let amount = u32::try_from(members.len()).unwrap_or(u32::MAX);
        let group = group_name(uids, clock::now());
        let request = self.request.for_group(group, amount);
        let written = Mutex::new(Written::new());
        let record = |attempt: Attempt| self.record(&members, &request.group, attempt, &written);
        let context = &self.context;
        let outcome = context
            .cloud
            .on(CONTROLLER)
            .launch_group(&request, record)
            .await;
        context.reach(failpoint::LAUNCHED_UNRECORDED).await;
        let written = written.into_inner().unwrap_or_else(PoisonError::into_inner);
        let shares = self
            .hand_out(&request.group, &members, written, outcome)
            .await;
        context.launches.forget_finished(context);
        Arc::new(shares)
    }

    /// Until the group is full, or everybody who was announced is here, or nobody came for a while.
    async fn gather(&self) {
        let opened = Instant::now();
        let count = || {
            let members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
            members.as_ref().map_or(0, Vec::len)
        };
        loop {
            let before = count();
            let expected = &self.context.launches.expected;
            let is_awaiting = expected.is_awaiting(&self.kin, Instant::now());
            if self.was_announced && !is_awaiting {
                return;
            }
            let pause = match (is_awaiting, before) {
                (true, _) => POLL,
                (false, 0 | 1) => FIRST,
                (false, _) => IDLE,
            };
            tokio::select! {
                () = self.is_full.notified() => return,
                () = sleep(pause) => {}
            }
            let is_quiet = !is_awaiting && count() == before;
            if is_quiet || opened.elapsed() >= OPEN_MAX {
                return;
            }
        }
    }

    /// From here on nobody joins. The members are in the order of their places.
    fn freeze(&self) -> Vec<NodeClaim> {
        let mut open = self
            .context
            .launches
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_this = |it: &super::Gathering| Arc::ptr_eq(&it.members, &self.members);
        if open.get(&self.shape).is_some_and(is_this) {
            open.remove(&self.shape);
        }
        drop(open);
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let mut members = members.take().unwrap_or_default();
        members.sort_by_key(NodeClaim::name_any);
        members.dedup_by_key(|it| it.name_any());
        members
    }

    /// Stores the attempt in every claim; whoever it cannot be stored in is not of the group any more.
    async fn record(
        &self,
        members: &[NodeClaim],
        group: &str,
        attempt: Attempt,
        written: &Mutex<Written>,
    ) -> Result<(), String> {
        if sabotage::is_on(Sabotage::NoWriteAhead) {
            let unwritten = members.iter().map(|it| (it.name_any(), it.clone()));
            *written.lock().unwrap_or_else(PoisonError::into_inner) = unwritten.collect();
            return Ok(());
        }
        let text = serde_json::to_string(&attempt).map_err(|error| error.to_string())?;
        let before = std::mem::take(&mut *written.lock().unwrap_or_else(PoisonError::into_inner));
        let writes: Vec<_> = members
            .iter()
            .enumerate()
            .map(|(ordinal, claim)| {
                let place = [
                    (annotation::LAUNCH_GROUP, group.to_owned()),
                    (annotation::LAUNCH_ORDINAL, ordinal.to_string()),
                    (annotation::LAUNCH_SIZE, members.len().to_string()),
                    (annotation::LAUNCH_PARAMS_HASH, attempt.params_hash.clone()),
                    (annotation::LAUNCH_ATTEMPT, text.clone()),
                ];
                let newest = before.get(&claim.name_any()).unwrap_or(claim);
                self.place(newest, place)
            })
            .collect();
        let mut stored = Written::new();
        let mut failed = None;
        let mut done = stream::iter(writes).buffer_unordered(CONCURRENCY);
        while let Some(outcome) = done.next().await {
            match outcome {
                Ok(claim) => drop(stored.insert(claim.name_any(), claim)),
                Err(message) => drop(failed.get_or_insert(message)),
            }
        }
        drop(done);
        let is_empty = stored.is_empty();
        *written.lock().unwrap_or_else(PoisonError::into_inner) = stored;
        if is_empty {
            return Err(failed.unwrap_or_default());
        }
        if let Some(message) = failed {
            tracing::warn!(%group, %message, "a claim is left out of its launch group; it joins another");
        }
        self.context.reach(failpoint::ATTEMPT_RECORDED).await;
        Ok(())
    }

    /// Writes its place into a claim, unless it is of another group by now.
    async fn place(
        &self,
        claim: &NodeClaim,
        place: [(&'static str, String); 5],
    ) -> Result<NodeClaim, String> {
        let api: Api<NodeClaim> = Api::all(self.context.client.clone());
        let group = &place[0].1;
        let is_free = |it: &NodeClaim| {
            let of = it.annotations().get(annotation::LAUNCH_GROUP);
            of.is_none_or(|of| of == group)
        };
        let placed = |it: &NodeClaim| {
            let mut it = it.clone();
            if is_free(&it) {
                let annotations = it.annotations_mut();
                let place = place.iter();
                annotations.extend(place.map(|(key, value)| ((*key).to_owned(), value.clone())));
                self.origin.put(annotations);
            }
            it
        };
        let name = claim.name_any();
        match edit(&api, claim, placed).await {
            Ok(written) if is_free(&written) => Ok(written),
            Ok(_) => Err(format!("{name}: it is of another launch group")),
            Err(error) => Err(format!("{name}: {}", chain(&error))),
        }
    }

    /// To each claim its share, and away with what is left.
    async fn hand_out(
        &self,
        group: &str,
        members: &[NodeClaim],
        written: Written,
        outcome: GroupOutcome,
    ) -> BTreeMap<String, (NodeClaim, Share)> {
        let known = self.context.launches.group(group);
        let mut known = known.lock().await;
        let made = match outcome {
            GroupOutcome::Made(made) => made,
            GroupOutcome::Not(outcome) => {
                if !matches!(outcome, LaunchOutcome::Retry { .. }) {
                    known.settle(BTreeMap::new());
                }
                let newest =
                    |claim: &NodeClaim| written.get(&claim.name_any()).unwrap_or(claim).clone();
                let shares = members
                    .iter()
                    .map(|claim| (claim.name_any(), (newest(claim), for_each(outcome.clone()))));
                return shares.collect();
            }
        };
        tracing::info!(%group, claims = written.len(), instances = made.len(), "launched a group");
        let mut instances = made.into_iter();
        let mut given = BTreeMap::new();
        let mut shares = BTreeMap::new();
        for claim in members {
            let name = claim.name_any();
            let newest = written.get(&name);
            let member = newest.and_then(|_| instances.next());
            let share = member.map_or(Share::Another, |member| {
                given.insert(name.clone(), member.instance_id.clone());
                share(member)
            });
            shares.insert(name, (newest.unwrap_or(claim).clone(), share));
        }
        known.settle(given);
        let surplus: Vec<String> = instances.map(|it| it.instance_id).collect();
        super::share::discard(&surplus, &self.context).await;
        shares
    }
}

fn share(member: Member) -> Share {
    match member.launched {
        Some(launched) => for_each(LaunchOutcome::Launched(Box::new(launched))),
        None => for_each(LaunchOutcome::Retry {
            after: SHOW_AGAIN,
            message: format!(
                "instance {} is made but does not show yet",
                member.instance_id
            ),
        }),
    }
}
